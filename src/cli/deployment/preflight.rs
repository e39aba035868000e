//! How preflight's findings look.

use crate::cli::progress_view::finding_lines;
use crate::cli::session::Session;
use crate::cli::terminal::printer::Printer;
use crate::deploy::preflight::PreflightReport;

/// Prints every finding with why it matters and how to fix it.
pub(in crate::cli) fn print_findings(report: &PreflightReport, printer: &Printer) {
    for line in report.findings.iter().flat_map(finding_lines) {
        printer.note(line);
    }
}

/// Says who is calling, before anything is changed in their name.
pub(in crate::cli) fn print_caller(report: &PreflightReport, session: &Session) {
    session.printer.note(format_args!("account {}, as {}", report.account, report.caller));
}
