//! Which machines measure with which, and when.

/// Every pair once, in rounds of pairs that share no machine (the circle method of tournaments), and then all machines together, unless
/// they are a pair themselves.
pub(super) fn rounds_of_pairs(machines: usize) -> Vec<Vec<Vec<usize>>> {
    if machines < 2 {
        return Vec::new();
    }
    // With an odd number, whoever meets the one that does not exist rests.
    let places = machines.next_multiple_of(2);
    let mut circle: Vec<usize> = (0..places).collect();
    let mut rounds = Vec::new();
    for _ in 1..places {
        let pairs = (0..places / 2).map(|place| (circle[place], circle[places - 1 - place]));
        let pairs = pairs.filter(|(one, other)| *one.max(other) < machines);
        rounds.push(pairs.map(|(one, other)| vec![one.min(other), one.max(other)]).collect());
        // The first stays where it is.
        circle[1..].rotate_right(1);
    }
    if machines > 2 {
        rounds.push(vec![(0..machines).collect()]);
    }
    rounds
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::rounds_of_pairs;

    #[test]
    fn every_pair_meets_once_and_nobody_is_in_two_pairs_of_a_round() {
        for machines in 2..=17_usize {
            let mut rounds = rounds_of_pairs(machines);
            if machines > 2 {
                assert_eq!(rounds.pop(), Some(vec![(0..machines).collect()]));
            }
            assert_eq!(rounds.len(), if machines % 2 == 0 { machines - 1 } else { machines });
            let mut met = BTreeSet::new();
            for round in &rounds {
                let of_round: Vec<usize> = round.iter().flatten().copied().collect();
                assert_eq!(of_round.len(), of_round.iter().collect::<BTreeSet<_>>().len(), "{round:?}");
                for pair in round {
                    assert!(pair.len() == 2 && pair[0] < pair[1] && met.insert(pair.clone()), "{pair:?}");
                }
            }
            assert_eq!(met.len(), machines * (machines - 1) / 2);
        }
    }

    #[test]
    fn one_machine_has_nobody_to_measure_with() {
        assert!(rounds_of_pairs(0).is_empty() && rounds_of_pairs(1).is_empty());
    }
}
