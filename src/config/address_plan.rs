//! Arithmetic of address ranges: how many nodes and subnets fit where.

use ipnet::Ipv4Net;

/// Each node gets a range of this prefix for its pods.
pub const NODE_PREFIX: u8 = 24;

/// The smallest subnet that AWS allows.
pub const SMALLEST_SUBNET: u8 = 28;

/// AWS reserves five addresses of every subnet, and a load balancer needs eight free ones.
const KEPT_BY_AWS: u32 = 5 + 8;

/// How many nodes get a pod range out of `pod_range`.
#[must_use]
pub fn nodes_that_fit(pod_range: Ipv4Net) -> u32 {
    1_u32.checked_shl(u32::from(NODE_PREFIX.saturating_sub(pod_range.prefix_len()))).unwrap_or(u32::MAX)
}

/// The prefix of each of `count` equal subnets of `vpc_range`; it may be smaller than AWS allows.
#[must_use]
pub fn subnet_prefix(vpc_range: Ipv4Net, count: usize) -> u8 {
    let mut prefix = vpc_range.prefix_len();
    while (1_usize << (prefix - vpc_range.prefix_len())) < count {
        prefix += 1;
    }
    prefix
}

/// How many machines can have an address in a subnet of this prefix.
#[must_use]
pub fn machines_that_fit(prefix: u8) -> u32 {
    1_u32.checked_shl(u32::from(32_u8.saturating_sub(prefix))).unwrap_or(u32::MAX).saturating_sub(KEPT_BY_AWS)
}

/// Whether two ranges share an address.
#[must_use]
pub fn has_overlap(one: Ipv4Net, other: Ipv4Net) -> bool {
    one.contains(&other.network()) || other.contains(&one.network())
}

#[cfg(test)]
mod tests {
    use super::{has_overlap, machines_that_fit, nodes_that_fit, subnet_prefix};

    fn range(text: &str) -> ipnet::Ipv4Net {
        text.parse().unwrap_or_default()
    }

    #[test]
    fn nodes_and_subnets_are_counted() {
        assert_eq!(nodes_that_fit(range("10.2.0.0/16")), 256);
        assert_eq!(nodes_that_fit(range("10.2.0.0/24")), 1);
        assert_eq!(subnet_prefix(range("10.0.0.0/16"), 1), 16);
        assert_eq!(subnet_prefix(range("10.0.0.0/16"), 3), 18);
        assert_eq!(subnet_prefix(range("10.0.0.0/16"), 4), 18);
        assert_eq!(subnet_prefix(range("10.0.0.0/28"), 6), 31);
        assert_eq!(machines_that_fit(28), 3);
    }

    #[test]
    fn ranges_overlap_whichever_is_larger() {
        assert!(has_overlap(range("10.0.0.0/8"), range("10.2.0.0/16")));
        assert!(has_overlap(range("10.2.0.0/16"), range("10.0.0.0/8")));
        assert!(!has_overlap(range("10.2.0.0/16"), range("10.3.0.0/16")));
    }
}
