//! The section about certificates: how long each is valid, on a time line that begins today.

use super::markup::{HtmlElement, element};
use super::page::Section;
use super::table::{html_table, note_paragraph, number_cell, paragraph, row_head};
use crate::credentials::{CertificateFacts, FEWEST_DAYS_LEFT, InventoryEntry};
use crate::plural::count_of;

/// What is known of the certificates on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CertificateSources<'a> {
    /// The certificates on disk; none if there is no directory of them.
    pub on_disk: Option<&'a [InventoryEntry]>,
    /// The files that cluster.yaml asks for and that do not exist.
    pub missing: &'a [String],
}

impl CertificateSources<'_> {
    fn readable(&self) -> impl Iterator<Item = (&InventoryEntry, &CertificateFacts)> {
        let entries = self.on_disk.unwrap_or_default().iter();
        entries.filter_map(|entry| Some((entry, entry.certificate.as_ref().ok()?)))
    }

    /// Days until the first certificate expires.
    pub(super) fn first_days_left(&self) -> Option<i64> {
        self.readable().map(|(_, facts)| facts.days_left).min()
    }

    /// The section.
    pub(super) fn section(&self) -> Section {
        let section = Section::new("certificates", "Certificates");
        if self.on_disk.unwrap_or_default().is_empty() {
            let text = "There are no certificates on this machine; `infra render credentials --generate-ca` creates them.";
            return section.part(paragraph(text));
        }
        let (mut authorities, mut leaves): (Vec<_>, Vec<_>) =
            self.readable().partition(|(_, facts)| facts.subject == facts.issuer);
        authorities.sort_by_key(|(_, facts)| facts.not_after);
        leaves.sort_by_key(|(_, facts)| facts.not_after);
        let unreadable = self.on_disk.unwrap_or_default().iter().filter_map(|entry| {
            let reason = entry.certificate.as_ref().err()?;
            Some(vec![row_head(&entry.file), element("td").child(warning_pill(&format!("! {reason}")))])
        });
        let missing = self.missing.iter();
        let missing =
            missing.map(|file| vec![row_head(file), element("td").child(warning_pill("! missing"))]);
        let wrong: Vec<Vec<HtmlElement>> = unreadable.chain(missing).collect();
        let mut section = section;
        if !wrong.is_empty() {
            section =
                section.part(html_table("Certificates that cannot be used", &["File", "Problem"], wrong));
        }
        for (name, certificates) in [("Machines and users", leaves), ("Authorities", authorities)] {
            if !certificates.is_empty() {
                section = section.part(element("h3").text(name)).part(time_line(name, &certificates));
            }
        }
        section.part(note_paragraph(format!(
            "Every bar begins today and ends when the certificate expires. Below {FEWEST_DAYS_LEFT} days a certificate is due: `infra render credentials --renew`."
        )))
    }
}

fn warning_pill(text: &str) -> HtmlElement {
    element("span").class("pill bad").text(text)
}

fn time_line(name: &str, certificates: &[(&InventoryEntry, &CertificateFacts)]) -> HtmlElement {
    let longest = certificates.iter().map(|(_, facts)| facts.days_left).max().unwrap_or_default().max(1);
    let last = certificates.iter().map(|(_, facts)| facts.not_after).max();
    let end = last.map_or_else(String::new, |last| format!("Today to {}", last.date()));
    let rows = certificates.iter().map(|(entry, facts)| {
        let (class, days) = match facts.days_left {
            ..0 => ("bar over", "! expired".to_owned()),
            days if days < FEWEST_DAYS_LEFT => ("bar due", format!("! {}", count_of(days, "day"))),
            days => ("bar", count_of(days, "day")),
        };
        // In thousandths of the whole line; what is over has none.
        let length = facts.days_left.max(0) * 1000 / longest;
        let bar = element("svg")
            .with("xmlns", "http://www.w3.org/2000/svg")
            .with("viewBox", "0 0 1000 10")
            .with("preserveAspectRatio", "none")
            .with("aria-hidden", "true")
            .with("focusable", "false")
            .child(element("rect").class("bar-back").with("y", 4).with("width", 1000).with("height", 2))
            .child(element("rect").class(class).with("width", length.max(4)).with("height", 10));
        vec![
            row_head(entry.file.trim_end_matches(".pem")),
            number_cell(facts.not_after.date()),
            number_cell(days),
            element("td").class("bar-cell").child(bar),
        ]
    });
    html_table(name, &["Certificate", "Valid until", "Left", &end], rows)
}
