//! The table of who may talk to whom, by pairs: each pair is one numbered arrow of the picture and a few lines of the table beside it.

use crate::blueprint::{Blueprint, Protocol, Rule, SecurityGroup, Source};

/// Where a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Ranges of addresses that cluster.yaml allows, by the reason.
    Outside(&'static str),
    /// Members of a security group.
    Group(SecurityGroup),
}

impl Origin {
    fn of(rule: &Rule) -> Self {
        match rule.from {
            Source::SecurityGroup(group) => Self::Group(group),
            Source::Range(_) => Self::Outside(rule.why),
        }
    }

    /// What a reader calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Outside(why) => why,
            Self::Group(group) => short_name(group),
        }
    }
}

/// A security group in one or two words.
pub(super) fn short_name(group: SecurityGroup) -> &'static str {
    match group {
        SecurityGroup::Etcd => "etcd members",
        SecurityGroup::Controllers => "controllers",
        SecurityGroup::Nodes => "nodes",
        SecurityGroup::InternalLoadBalancer => "internal load balancer",
        SecurityGroup::PublicLoadBalancer => "public load balancer",
        SecurityGroup::FileSystem => "file system",
        SecurityGroup::Efa => "EFA interfaces",
    }
}

/// All that one origin may send to one security group.
#[derive(Clone, Debug)]
pub(super) struct AllowedConnection<'a> {
    /// The number of the arrow.
    pub(super) number: usize,
    pub(super) from: Origin,
    pub(super) to: SecurityGroup,
    pub(super) rules: Vec<&'a Rule>,
}

impl AllowedConnection<'_> {
    /// The ports, as `6443, 8472/udp`; each once.
    pub(super) fn ports(&self) -> String {
        let mut ports: Vec<String> = Vec::new();
        for rule in &self.rules {
            let port = port_in_words(rule);
            if !ports.contains(&port) {
                ports.push(port);
            }
        }
        ports.join(", ")
    }
}

/// The port of a rule; TCP is not mentioned, and all traffic has none.
pub(super) fn port_in_words(rule: &Rule) -> String {
    match (rule.protocol, rule.port) {
        (Protocol::All, _) | (_, None) => "all".to_owned(),
        (Protocol::Tcp, Some(port)) => port.to_string(),
        (Protocol::Udp, Some(port)) => format!("{port}/udp"),
    }
}

/// Every connection, numbered in the order of the table.
pub(super) fn connections_between_machines(blueprint: &Blueprint) -> Vec<AllowedConnection<'_>> {
    let mut found: Vec<AllowedConnection<'_>> = Vec::new();
    for rule in &blueprint.rules {
        let from = Origin::of(rule);
        match found.iter_mut().find(|connection| connection.from == from && connection.to == rule.to) {
            Some(connection) => connection.rules.push(rule),
            None => {
                let number = found.len() + 1;
                found.push(AllowedConnection { number, from, to: rule.to, rules: vec![rule] });
            }
        }
    }
    found
}

/// Who is outside: the reason with the ranges of addresses that it allows, each once.
pub(super) fn allowed_outsiders(blueprint: &Blueprint) -> Vec<(&'static str, Vec<String>)> {
    let mut found: Vec<(&'static str, Vec<String>)> = Vec::new();
    for rule in &blueprint.rules {
        let Source::Range(range) = &rule.from else { continue };
        let range = range.to_string();
        match found.iter_mut().find(|(why, _)| *why == rule.why) {
            Some((_, ranges)) if ranges.contains(&range) => {}
            Some((_, ranges)) => ranges.push(range),
            None => found.push((rule.why, vec![range])),
        }
    }
    found
}
