//! Certificates that have expired or soon will.

use super::finding::SubjectFindings;
use super::{CertificateExpiry, Finding};
use crate::credentials::FEWEST_DAYS_LEFT;

pub(crate) fn check_certificates(certificates: &[CertificateExpiry]) -> Vec<Finding> {
    let mut findings = SubjectFindings::about("certificates");
    for CertificateExpiry { name, days_left } in certificates {
        if *days_left < 0 {
            findings.refuse(
                format!("the certificate {name} has expired"),
                "other components refuse connections that use it",
                "run `infra render credentials`, which creates expired ones again",
            );
        } else if *days_left < FEWEST_DAYS_LEFT {
            let days = if *days_left == 1 { "day" } else { "days" };
            findings.warn(
                format!("the certificate {name} expires in {days_left} {days}"),
                "the cluster stops working on that day",
                "run `infra render credentials --renew`, then `infra up`",
            );
        }
    }
    findings.into_list()
}

#[cfg(test)]
mod tests {
    use super::super::{CertificateExpiry, Severity};
    use super::check_certificates;

    #[test]
    fn certificates_are_a_warning_in_their_last_month_and_refused_once_expired() {
        let certificate = |days_left| CertificateExpiry { name: "worker".to_owned(), days_left };
        let findings =
            check_certificates(&[certificate(30), certificate(29), certificate(0), certificate(-1)]);
        let severities: Vec<Severity> = findings.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, [Severity::Warning, Severity::Warning, Severity::Refused]);
    }
}
