//! What commands say that forward a port of this machine to a pod.

use std::io;

use super::failure::Refusal;
use crate::cli::terminal::printer::Printer;
use crate::kube::Contact;

/// Why a port of this machine cannot be listened on.
pub(super) fn explain_port(error: &io::Error, port: Option<u16>) -> Refusal {
    match port {
        Some(port) => Refusal::new(format!("port {port} of this machine cannot be used: {error}"))
            .help("name another with `--port`, or leave it out"),
        None => Refusal::new(format!("no port of this machine can be used: {error}")),
    }
}

/// That the API does not answer, or answers again.
pub(super) fn report_contact(contact: &Contact, printer: &Printer) {
    match contact {
        Contact::Lost(why) => printer.warning(format_args!("{why}; retrying")),
        Contact::Found => printer.note("the Kubernetes API answers again"),
    }
}
