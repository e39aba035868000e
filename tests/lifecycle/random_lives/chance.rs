//! Random choices: the same seed gives the same choices every time.

/// The generator SplitMix64.
pub struct Chance(u64);

impl Chance {
    pub fn of_seed(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    /// True with a probability of one in `times`.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A choice, each as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, choices: &[(usize, T)]) -> T {
        let mut place = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if place < *weight {
                return *choice;
            }
            place -= weight;
        }
        unreachable!("the place is below the sum of the weights")
    }
}
