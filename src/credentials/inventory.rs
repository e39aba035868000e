//! Lists the certificates in a directory: whose they are, who signed them, how long they last.

use std::path::Path;

use time::{Duration, OffsetDateTime};

use super::CredentialsError;
use super::certificate::Certificate;
use crate::config::values::CertificateName;
use crate::confined_directory::ConfinedDirectory;

/// With fewer days left a certificate is not healthy: renewing it and replacing the machines that hold it takes a while.
pub const FEWEST_DAYS_LEFT: i64 = 30;

/// One certificate file.
#[derive(Clone, Debug)]
pub struct InventoryEntry {
    /// The file name.
    pub file: String,
    /// What it says, or why that cannot be read.
    pub certificate: Result<CertificateFacts, String>,
}

/// What a certificate says.
#[derive(Clone, Debug)]
pub struct CertificateFacts {
    /// The subject of the certificate.
    pub subject: String,
    /// The issuer of the certificate.
    pub issuer: String,
    /// The names that the certificate is valid for.
    pub names: Vec<CertificateName>,
    /// When the certificate expires.
    pub not_after: OffsetDateTime,
    /// Whole days until then; negative once it has passed.
    pub days_left: i64,
}

/// Every certificate in `directory`, by file name; `None` if there is no such directory.
pub fn list_certificates(
    directory: &Path,
    now: OffsetDateTime,
) -> Result<Option<Vec<InventoryEntry>>, CredentialsError> {
    let files = ConfinedDirectory::new(directory);
    if files.metadata("")?.is_none() {
        return Ok(None);
    }
    let mut list = Vec::new();
    for entry in files.entries("")? {
        let file = entry.file_name().to_string_lossy().into_owned();
        let is_pem = Path::new(&file).extension().is_some_and(|extension| extension == "pem");
        if !is_pem || file.ends_with("-key.pem") || file.starts_with('.') {
            continue;
        }
        let bytes = files.read(entry.file_name())?.unwrap_or_default();
        let pem = String::from_utf8_lossy(&bytes);
        if pem.contains("BEGIN PUBLIC KEY") {
            continue;
        }
        let certificate = Certificate::read(&pem).map(|certificate| CertificateFacts {
            days_left: days_until(certificate.not_after, now),
            subject: certificate.subject,
            issuer: certificate.issuer,
            names: certificate.names,
            not_after: certificate.not_after,
        });
        list.push(InventoryEntry { file, certificate });
    }
    Ok(Some(list))
}

/// Whole days from `now` until a certificate expires; negative once it has.
#[must_use]
pub fn days_until(expiry: OffsetDateTime, now: OffsetDateTime) -> i64 {
    count_days(expiry - now)
}

/// Whole days, rounded down: what ended an hour ago has not even the rest of a day left.
fn count_days(left: Duration) -> i64 {
    left.whole_seconds().div_euclid(24 * 60 * 60)
}

#[cfg(test)]
mod tests {
    use time::Duration;

    use super::count_days;

    #[test]
    fn a_certificate_that_expired_an_hour_ago_has_negative_days_left() {
        assert_eq!(count_days(Duration::hours(-1)), -1);
        assert_eq!(count_days(Duration::hours(1)), 0);
        assert_eq!(count_days(Duration::hours(-25)), -2);
        assert_eq!(count_days(Duration::days(30)), 30);
    }
}
