//! Addresses on the web.

use crate::document::Fault;

/// A URL that can be fetched without a login.
pub(crate) fn parse_url(text: &str) -> Result<String, Fault> {
    let refuse = |reason: &str| {
        Err(Fault::new(format!("'{text}' cannot be fetched: {reason}"))
            .help("write a URL as https://example.com/data.tar.gz or s3://bucket/data.tar.gz, or put the archive on the claim and name it with archive:"))
    };
    let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else {
        return refuse("it does not begin with https://");
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.is_empty() {
        return refuse("it names no host");
    }
    if host.contains('@') {
        // Said without the text, which holds it.
        return Err(Fault::new("the URL contains a login, which everyone who sees the job can read")
            .help("put the archive on the claim and name it with archive:"));
    }
    if text.len() > 2000 || !text.chars().all(|c| c.is_ascii_graphic() && !"\"'<>\\^`{|}$".contains(c)) {
        return refuse("it is not a URL");
    }
    Ok(text.to_owned())
}
