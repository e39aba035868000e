//! Circles: sets of names that import one another, directly or through others.

use std::collections::{BTreeMap, BTreeSet};

/// Every set of more than one name whose members all reach one another, in order.
pub fn circles<'a>(edges: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Vec<&'a str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in edges {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        next.keys().map(|from| (*from, reachable(from, &next))).collect();
    let mut circles: Vec<Vec<&str>> = Vec::new();
    for (name, forth) in &reached {
        if circles.iter().any(|circle| circle.contains(name)) {
            continue;
        }
        let comes_back = |other: &&&str| reached.get(**other).is_some_and(|back| back.contains(name));
        let circle: Vec<&str> = forth.iter().filter(comes_back).copied().collect();
        if circle.len() > 1 {
            circles.push(circle);
        }
    }
    circles
}

/// Everything that can be reached from a name.
fn reachable<'a>(from: &str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = next.get(from).into_iter().flatten().copied().collect();
    while let Some(name) = open.pop() {
        if found.insert(name) {
            open.extend(next.get(name).into_iter().flatten());
        }
    }
    found
}
