//! The ids of resources that exist already.

use super::checked_text;
use crate::document::Fault;

checked_text!(
    /// An AWS account.
    AccountId,
    check_account_id
);

checked_text!(
    /// A VPC that is adopted.
    VpcId,
    |text: &str| check_hexadecimal_id(text, "vpc-", 17, "a VPC")
);

checked_text!(
    /// A subnet of an adopted VPC.
    SubnetId,
    |text: &str| check_hexadecimal_id(text, "subnet-", 17, "a subnet")
);

checked_text!(
    /// An EFS file system that is adopted.
    FileSystemId,
    |text: &str| check_hexadecimal_id(text, "fs-", 40, "an EFS file system")
);

checked_text!(
    /// An EC2 capacity reservation.
    CapacityReservationId,
    |text: &str| check_hexadecimal_id(text, "cr-", 17, "a capacity reservation")
);

checked_text!(
    /// A Route 53 hosted zone.
    HostedZoneId,
    check_hosted_zone_id
);

/// AWS's older ids have 8 digits, newer ones 17; those of file systems may have up to 40.
fn check_hexadecimal_id(text: &str, prefix: &str, longest: usize, what: &str) -> Result<(), Fault> {
    let digits = text.strip_prefix(prefix).unwrap_or_default();
    let is_hexadecimal = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if is_hexadecimal && (8..=longest).contains(&digits.len()) {
        return Ok(());
    }
    Err(Fault::new(format!("'{text}' is not the id of {what}")).help(format!(
        "it is '{prefix}' and 8 to {longest} hexadecimal digits, as in {prefix}0123456789abcdef0"
    )))
}

fn check_account_id(text: &str) -> Result<(), Fault> {
    if text.len() == 12 && text.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(());
    }
    Err(Fault::new(format!("'{text}' is not the id of an AWS account"))
        .help("it has 12 digits, in quotes: \"111122223333\""))
}

fn check_hosted_zone_id(text: &str) -> Result<(), Fault> {
    let rest = text.strip_prefix('Z').unwrap_or_default();
    if (1..=31).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()) {
        return Ok(());
    }
    let help = match text.rsplit_once('/') {
        Some((_, id)) if id.starts_with('Z') => format!("leave out the path: {id}"),
        _ => "it looks like Z0123456789ABCDEFGHIJ; `aws route53 list-hosted-zones` lists yours".to_owned(),
    };
    Err(Fault::new(format!("'{text}' is not the id of a hosted zone")).help(help))
}
