// SPDX-License-Identifier: MIT OR Apache-2.0
//! What many times of the same thing say.

use serde::Serialize;

/// The times that half, nine tenths and 99 of 100 runs stay within, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
}

impl Percentiles {
    /// By nearest rank.
    pub(crate) fn of(times: &[f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or(0.0)
        };
        Self {
            p50: at(50),
            p90: at(90),
            p99: at(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let found = Percentiles::of(&times);
        assert_eq!((found.p50, found.p90, found.p99), (100.0, 180.0, 198.0));
        assert_eq!(Percentiles::of(&[3.0]).p99, 3.0);
    }
}
