//! The sections about money and rights: what AWS bills for, and the IAM policies, each behind a heading that opens.

use time::Date;

use super::markup::element;
use super::page::Section;
use super::table::{html_table, note_paragraph, number_cell, paragraph, row_head, scrolling_box, text_cell};
use crate::blueprint::{BilledItem, Cost, CostSummary, Prices};
use crate::config::values::Money;
use crate::operator::Policy;
use crate::plural::count_of;

const RUNNING: &str = "What is billed by the hour or by size while the cluster runs as cluster.yaml says; traffic comes on top.";

/// The section about costs; with prices, what an hour and a month cost.
pub(super) fn costs_section(items: &[BilledItem], prices: Option<&Prices>, today: Date) -> Section {
    let section = Section::new("costs", "Costs");
    let Some(prices) = prices else {
        let rows = items.iter().map(|item| {
            vec![row_head(&item.what), number_cell(item.count), text_cell(&item.note), text_cell(&item.stack)]
        });
        return section
            .part(html_table("What AWS bills for", &["What", "Count", "Detail", "Stack"], rows))
            .part(note_paragraph(RUNNING))
            .part(note_paragraph("infra.lock has no prices; `infra cost --online` looks them up."));
    };
    let rows = items.iter().map(|item| {
        let cost = Cost::of([(item.count, &item.charge)], prices);
        let [hour, month] = if cost.per_month() > Money::ZERO {
            [prices.currency.exact(cost.per_hour().rounded(4)), prices.currency.sum(cost.per_month())]
        } else {
            ["–", "–"].map(str::to_owned)
        };
        vec![
            row_head(&item.what),
            number_cell(item.count),
            number_cell(hour),
            number_cell(month),
            text_cell(&item.note),
            text_cell(&item.stack),
        ]
    });
    let all = Cost::of(items.iter().map(|item| (item.count, &item.charge)), prices);
    let total = CostSummary::new(&all, prices, today);
    let month = prices.currency.sum(total.per_month);
    section
        .part(paragraph(format!("{}, {month} a month of 730 hours ({}).", total.hourly(), total.basis())))
        .part(html_table(
            "What AWS bills for",
            &["What", "Count", "An hour", "A month", "Detail", "Stack"],
            rows,
        ))
        .part(note_paragraph(RUNNING))
}

/// The section about IAM policies; none are known without an S3 URI.
pub(super) fn policies_section(policies: Option<&[Policy]>) -> Section {
    let section = Section::new("policies", "IAM policies");
    let Some(policies) = policies else {
        let text =
            "Policies name the bucket, and no S3 URI is known: set s3URI in cluster.yaml, or give --s3-uri.";
        return section.part(paragraph(text));
    };
    let part = |policy: &Policy| {
        let statements = policy.document["Statement"].as_array().map_or(0, Vec::len);
        let size = policy.document.to_string().len();
        let more = format!(" {}, {size} of 6144 characters", count_of(statements, "statement"));
        let summary = element("summary").text(&policy.name).child(element("span").class("more").text(more));
        let text = format!("{:#}", policy.document);
        let name = format!("The policy {}", policy.name);
        element("details")
            .child(summary)
            .child(scrolling_box(&name, element("pre").child(element("code").text(text))))
    };
    section
        .part(paragraph(
            "The boundary is what IAM roles of machines may be allowed at most; the others are what an operator of this cluster needs.",
        ))
        .parts(policies.iter().map(part))
}
