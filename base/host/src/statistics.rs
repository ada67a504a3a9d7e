// SPDX-License-Identifier: MIT OR Apache-2.0
//! Order, middle, spread; do two sets differ?

use serde::{Deserialize, Serialize};

/// Ascending numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// NaN comes last.
    #[must_use]
    pub fn new(mut numbers: Vec<f64>) -> Self {
        numbers.sort_by(f64::total_cmp);
        Self(numbers)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Least number.
    #[must_use]
    pub fn least(&self) -> Option<f64> {
        self.0.first().copied()
    }

    /// Greatest number.
    #[must_use]
    pub fn most(&self) -> Option<f64> {
        self.0.last().copied()
    }

    /// Mean of the middle two, if even.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        self.quartile(2)
    }

    /// 0 to 4; between neighbours.
    #[must_use]
    pub fn quartile(&self, quarter: usize) -> Option<f64> {
        let place = self.0.len().saturating_sub(1).saturating_mul(quarter);
        let below = *self.0.get(place / 4)?;
        let above = *self.0.get(place.div_ceil(4))?;
        Some(below + (above - below) * (place % 4) as f64 / 4.0)
    }

    /// Width of the middle half.
    #[must_use]
    pub fn middle_half(&self) -> Option<f64> {
        Some(self.quartile(3)? - self.quartile(1)?)
    }

    /// Least number that at least `percent` of 100 do not exceed: nearest rank.
    #[must_use]
    pub fn percentile(&self, percent: usize) -> Option<f64> {
        let rank = self.0.len().saturating_mul(percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied()
    }
}

/// Middle and extremes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The least.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The greatest.
    pub max: f64,
    /// Half of the numbers lie within so much of the median.
    pub deviation: f64,
}

impl Spread {
    /// `None` for none.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Option<Self> {
        let sorted = Sorted::new(numbers.to_vec());
        let median = sorted.median()?;
        let away = numbers.iter().map(|number| (number - median).abs());
        Some(Self {
            min: sorted.least()?,
            median,
            max: sorted.most()?,
            deviation: Sorted::new(away.collect()).median()?,
        })
    }
}

/// What half, nine tenths and 99 of 100 numbers stay within; `None` where there are fewer than 10 or 100.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Half.
    pub p50: f64,
    /// Nine tenths.
    pub p90: Option<f64>,
    /// 99 of 100.
    pub p99: Option<f64>,
}

impl Percentiles {
    /// By nearest rank; zeros for none.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Self {
        let sorted = Sorted::new(numbers.to_vec());
        let if_enough = |least, percent| {
            let percentile = sorted.percentile(percent);
            percentile.filter(|_| sorted.count() >= least)
        };
        Self {
            p50: sorted.percentile(50).unwrap_or_default(),
            p90: if_enough(10, 90),
            p99: if_enough(100, 99),
        }
    }
}

/// Mean, deviation and extremes.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many numbers there are.
    pub runs: usize,
    /// Their mean.
    pub mean: f64,
    /// Standard deviation of a sample: 0 for fewer than two.
    pub deviation: f64,
    /// The least.
    pub minimum: f64,
    /// The greatest.
    pub maximum: f64,
    /// Numbers further than 1.5 interquartile ranges from the quartiles.
    pub outliers: usize,
}

impl Summary {
    /// Zeros for none.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Self {
        let sorted = Sorted::new(numbers.to_vec());
        let ends = sorted.least().zip(sorted.most());
        let quartiles = sorted.quartile(1).zip(sorted.quartile(3));
        let (Some((minimum, maximum)), Some((low, high))) = (ends, quartiles) else {
            return Self::default();
        };
        let runs = numbers.len();
        let mean = numbers.iter().sum::<f64>() / runs as f64;
        let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        let reach = 1.5 * (high - low);
        let far = |number: &&f64| **number < low - reach || **number > high + reach;
        Self {
            runs,
            mean,
            deviation: (squares / runs.saturating_sub(1).max(1) as f64).sqrt(),
            minimum,
            maximum,
            outliers: numbers.iter().filter(far).count(),
        }
    }

    fn standard_error(&self) -> f64 {
        self.deviation / (self.runs.max(1) as f64).sqrt()
    }

    /// Change of the mean relative to `other`: -0.1 is a tenth less.
    #[must_use]
    pub fn change_from(&self, other: &Self) -> f64 {
        self.mean / other.mean - 1.0
    }

    /// Whether means differ by over twice the standard error of the difference.
    #[must_use]
    pub fn differs_from(&self, other: &Self) -> bool {
        let error = self.standard_error().hypot(other.standard_error());
        (self.mean - other.mean).abs() > 2.0 * error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_fall_between_neighbours() {
        let sorted = Sorted::new(vec![9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!((sorted.least(), sorted.most()), (Some(1.0), Some(9.0)));
        // Places 1.75, 3.5 and 5.25 of 0 to 7.
        assert_eq!(
            (1..=3).map(|it| sorted.quartile(it)).collect::<Vec<_>>(),
            [Some(2.75), Some(4.5), Some(6.25)]
        );
        assert_eq!(sorted.middle_half(), Some(3.5));
        assert_eq!(
            (Sorted::default().median(), Sorted::default().percentile(50)),
            (None, None)
        );
    }

    #[test]
    fn a_spread_has_its_median() {
        let spread = Spread::of(&[3.0, 1.0, 2.0, 10.0]).unwrap();
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.5, 10.0));
        assert_eq!(spread.deviation, 1.0);
        let one = Spread::of(&[2.0]).unwrap();
        assert_eq!((one.median, one.deviation), (2.0, 0.0));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let times: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let found = Percentiles::of(&times);
        assert_eq!(found.p50, 100.0);
        assert_eq!((found.p90, found.p99), (Some(180.0), Some(198.0)));
        // One run shows no 99 in 100.
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
