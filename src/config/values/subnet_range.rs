//! Address ranges as people write them.

use ipnet::Ipv4Net;

use crate::document::Fault;

/// Reads an IPv4 range; the part behind the prefix must be zero, because a range written otherwise is usually a typing mistake.
pub fn parse_ipv4_range(text: &str) -> Result<Ipv4Net, Fault> {
    let refused = || Fault::new(format!("'{text}' is not an IPv4 range"));
    if text.contains(':') {
        return Err(refused().help("IPv6 is not supported"));
    }
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Err(refused()
            .help(format!("it lacks its prefix, as in 10.0.0.0/16; one address alone is {address}/32")));
    }
    let range: Ipv4Net = text.parse().map_err(|_| refused().help("it looks like 10.0.0.0/16"))?;
    if range.trunc() != range {
        return Err(Fault::new(format!("{text} has bits set after its prefix"))
            .help(format!("did you mean {}?", range.trunc())));
    }
    Ok(range)
}
