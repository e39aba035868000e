//! How preflight's findings look.

use super::printer::Printer;
use super::progress_view::finding_lines;
use super::session::Session;
use crate::deploy::preflight::PreflightReport;

/// Prints every finding with why it matters and how to fix it.
pub(super) fn print_findings(report: &PreflightReport, printer: &Printer) {
    for line in report.findings.iter().flat_map(finding_lines) {
        printer.note(line);
    }
}

/// Says who is calling, before anything is changed in their name.
pub(super) fn print_caller(report: &PreflightReport, session: &Session) {
    session.printer.note(format_args!("account {}, as {}", report.account, report.caller));
}
