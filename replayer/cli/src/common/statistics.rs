// SPDX-License-Identifier: MIT OR Apache-2.0
//! What many times of the same thing say.

use std::time::Duration;

use gpureplay_library::text;
use serde::{Deserialize, Serialize};

/// The times that half, nine tenths and 99 of 100 runs stay within, in seconds; `None` where there are fewer than 10 or 100 runs.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p90: Option<f64>,
    pub(crate) p99: Option<f64>,
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
            p90: (sorted.len() >= 10).then(|| at(90)),
            p99: (sorted.len() >= 100).then(|| at(99)),
        }
    }
}

/// A time as people read it.
pub(crate) fn seconds(value: f64) -> String {
    text::duration(Duration::from_secs_f64(value))
}

/// Mean, spread and extremes of times, in seconds.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// How many times there are.
    pub(crate) runs: usize,
    pub(crate) mean: f64,
    /// Standard deviation of a sample: 0 for fewer than two.
    pub(crate) deviation: f64,
    pub(crate) minimum: f64,
    pub(crate) maximum: f64,
    /// Times further than 1.5 interquartile ranges from the quartiles.
    pub(crate) outliers: usize,
}

impl Summary {
    pub(crate) fn of(times: &[f64]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&minimum), Some(&maximum)) = (sorted.first(), sorted.last()) else {
            return Self::default();
        };
        let runs = sorted.len();
        let mean = sorted.iter().sum::<f64>() / runs as f64;
        let squares: f64 = sorted.iter().map(|time| (time - mean).powi(2)).sum();
        let (low, high) = (quartile(&sorted, 1), quartile(&sorted, 3));
        let reach = 1.5 * (high - low);
        let far = |time: &&f64| **time < low - reach || **time > high + reach;
        Self {
            runs,
            mean,
            deviation: (squares / runs.saturating_sub(1).max(1) as f64).sqrt(),
            minimum,
            maximum,
            outliers: sorted.iter().filter(far).count(),
        }
    }

    /// How far the mean of as many runs may be from the true one, once: the standard error.
    fn error(&self) -> f64 {
        self.deviation / (self.runs.max(1) as f64).sqrt()
    }

    /// How much longer this takes than `other`, as a part of it: -0.1 is a tenth less.
    pub(crate) fn change_from(&self, other: &Self) -> f64 {
        self.mean / other.mean - 1.0
    }

    /// Whether the means differ by more than chance explains: by over twice the standard error of their difference.
    pub(crate) fn differs_from(&self, other: &Self) -> bool {
        let error = self.error().hypot(other.error());
        (self.mean - other.mean).abs() > 2.0 * error
    }
}

/// A quartile, between neighbours where it falls between two.
fn quartile(sorted: &[f64], quarter: usize) -> f64 {
    let place = (sorted.len().saturating_sub(1) * quarter) as f64 / 4.0;
    let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
    let below = at(place.floor() as usize);
    let above = at(place.ceil() as usize);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let found = Percentiles::of(&times);
        assert_eq!(found.p50, 100.0);
        assert_eq!((found.p90, found.p99), (Some(180.0), Some(198.0)));
        // One run says nothing of 99 in 100.
        let one = Percentiles::of(&[3.0]);
        assert_eq!((one.p50, one.p90, one.p99), (3.0, None, None));
    }

    #[test]
    fn spreads_are_those_of_a_sample() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares of differences 32, of a sample 32 / 7.
        let found = Summary::of(&[9.0, 2.0, 4.0, 5.0, 4.0, 7.0, 4.0, 5.0]);
        assert_eq!((found.runs, found.mean), (8, 5.0));
        assert!((found.deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((found.minimum, found.maximum), (2.0, 9.0));
        // Quartiles 4 and 5.5: beyond 7.75 lies the 9.
        assert_eq!(found.outliers, 1);
        assert_eq!(Summary::of(&[3.0]).deviation, 0.0);
        assert_eq!(Summary::of(&[]), Summary::default());
    }

    #[test]
    fn a_difference_counts_only_beyond_chance() {
        let times = |mean: f64, spread: f64| -> Vec<f64> {
            let side = |i: u32| if i.is_multiple_of(2) { spread } else { -spread };
            (0..100).map(|i| mean + side(i)).collect()
        };
        let (old, new) = (
            Summary::of(&times(10.0, 1.0)),
            Summary::of(&times(10.1, 1.0)),
        );
        assert!(!new.differs_from(&old));
        let faster = Summary::of(&times(9.0, 1.0));
        assert!(faster.differs_from(&old));
        assert!((faster.change_from(&old) + 0.1).abs() < 1e-12);
    }
}
