//! Whether a call was refused because of this machine's clock: each call is signed with its time, and AWS takes none that is far off.

use std::time::SystemTime;

use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;

/// Codes that need no other sign.
const CLOCK_ERROR_CODES: [&str; 2] = ["RequestTimeTooSkewed", "RequestInTheFuture"];
/// Codes that may also mean a wrong key. Responses of S3 to HEAD requests have no code at all.
const AMBIGUOUS_CODES: [&str; 5] =
    ["", "AuthFailure", "InvalidSignatureException", "RequestExpired", "SignatureDoesNotMatch"];
/// AWS allows five minutes; below that the key is wrong.
const ALLOWED_MINUTES: i64 = 4;

/// By how many minutes this machine's clock is ahead of the answer's date, if that is why the call was refused. Behind is negative.
pub(super) fn minutes_ahead(code: &str, message: &str, date: &str) -> Option<i64> {
    let theirs = DateTime::from_str(date, Format::HttpDate).ok()?.secs();
    let ours = DateTime::from(SystemTime::now()).secs();
    let minutes = (ours - theirs) / 60;
    let is_certain = CLOCK_ERROR_CODES.contains(&code)
        || message.contains("Signature expired")
        || message.contains("Signature not yet current");
    let is_possible = AMBIGUOUS_CODES.contains(&code) && minutes.abs() >= ALLOWED_MINUTES;
    (is_certain || is_possible).then_some(minutes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use aws_smithy_types::DateTime;
    use aws_smithy_types::date_time::Format;

    use super::minutes_ahead;

    #[test]
    fn a_wrong_key_is_no_wrong_clock() -> Result<(), Box<dyn std::error::Error>> {
        let now = SystemTime::now();
        let date = |time: SystemTime| DateTime::from(time).fmt(Format::HttpDate);
        let (right, early) = (date(now)?, date(now - Duration::from_secs(25 * 60 + 30))?);
        let late = date(now + Duration::from_secs(25 * 60 + 30))?;
        assert_eq!(minutes_ahead("SignatureDoesNotMatch", "check your key", &right), None);
        assert_eq!(minutes_ahead("AccessDenied", "no", &late), None);
        assert_eq!(minutes_ahead("SignatureDoesNotMatch", "check your key", &early), Some(25));
        assert_eq!(minutes_ahead("AuthFailure", "not able to validate", &late), Some(-25));
        assert_eq!(
            minutes_ahead("InvalidSignatureException", "Signature expired: 1 is now earlier than 2", &right),
            Some(0)
        );
        Ok(())
    }
}
