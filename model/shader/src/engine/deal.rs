// SPDX-License-Identifier: MIT OR Apache-2.0
//! Order and cores of sets of work groups.

use crate::Cores;

/// Depends on nothing of the host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deal {
    cores: Cores,
    sets: u64,
    /// The order is `factor * n + first`, modulo their number.
    factor: u64,
    first: u64,
}

impl Deal {
    pub(crate) fn new(cores: Cores, sets: u64) -> Deal {
        let (mut factor, mut first) = (1, 0);
        if cores.seed != 0 && sets > 1 {
            factor = mixed(cores.seed) % sets;
            while common_divisor(factor, sets) != 1 {
                factor = (factor + 1) % sets;
            }
            first = mixed(cores.seed ^ sets) % sets;
        }
        Deal {
            cores,
            sets,
            factor,
            first,
        }
    }

    pub(crate) fn set(&self, number: u64) -> u64 {
        let product = u128::from(number) * u128::from(self.factor) + u128::from(self.first);
        (product % u128::from(self.sets.max(1))) as u64
    }

    pub(crate) fn core(&self, set: u64) -> Option<u32> {
        let count = u64::from(self.cores.usable.count_ones());
        let number = match self.cores.seed {
            0 => set,
            seed => mixed(seed ^ mixed(set)),
        };
        let mut rest = self.cores.usable;
        for _ in 0..number.checked_rem(count)? {
            rest &= rest - 1;
        }
        Some(rest.trailing_zeros())
    }
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// SplitMix64's last step.
fn mixed(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_set_comes_once_and_every_core_works() {
        for sets in [1, 2, 3, 64, 97, 1000] {
            for seed in 0..20 {
                let usable = 0b1011_0101;
                let deal = Deal::new(Cores { usable, seed }, sets);
                let order: Vec<u64> = (0..sets).map(|number| deal.set(number)).collect();
                let distinct: BTreeSet<u64> = order.iter().copied().collect();
                assert_eq!(distinct, (0..sets).collect(), "{sets} sets, seed {seed}");
                let cores = order.iter().filter_map(|&set| deal.core(set));
                let used = cores.fold(0, |used, core| used | 1u64 << core);
                assert_eq!(used & !usable, 0);
                assert!(sets < 97 || used == usable, "{sets} sets, seed {seed}");
                assert!(seed != 0 || order.is_sorted());
                assert!(
                    seed == 0 || sets < 1000 || !order.is_sorted(),
                    "seed {seed}"
                );
            }
        }
        assert_eq!(Deal::new(Cores::default(), 4).core(1), None);
    }
}
