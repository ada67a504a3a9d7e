// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of repeated launches.

/// Times of a kernel's runs, in microseconds, by events on the GPU. Events overstate a kernel of few microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    sorted: Vec<f64>,
}

impl Times {
    pub(crate) fn new(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { sorted: times }
    }

    /// How many runs there were.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.sorted.len()
    }

    /// The shortest run, in microseconds; 0 if there was none.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(0.0)
    }

    /// The run in the middle, in microseconds; 0 if there was none.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.sorted
            .get(self.sorted.len() / 2)
            .copied()
            .unwrap_or(0.0)
    }

    /// The range in which the middle half of the runs lies, in microseconds.
    #[must_use]
    pub fn spread(&self) -> f64 {
        let quarter = |part: usize| self.sorted.get(self.sorted.len() * part / 4).copied();
        quarter(3)
            .zip(quarter(1))
            .map_or(0.0, |(upper, lower)| upper - lower)
    }
}

#[cfg(test)]
mod tests {
    use super::Times;

    #[test]
    fn the_middle_and_the_spread_are_those_of_sorted_times() {
        let times = Times::new(vec![9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(
            (times.least(), times.median(), times.spread()),
            (1.0, 5.0, 4.0)
        );
        assert_eq!(Times::default().spread(), 0.0);
    }
}
