// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of repeated launches.

use std::fmt;

use gpureplay_host::statistics::Sorted;

/// Times of a kernel's runs in microseconds, 0 without runs; events overstate kernels of few.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times(Sorted);

impl Times {
    pub(crate) fn new(times: Vec<f64>) -> Self {
        Self(Sorted::new(times))
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.0.count()
    }

    /// Shortest run, in microseconds; 0 without runs.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.least().unwrap_or_default()
    }

    /// Median, in microseconds; 0 without runs.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.0.median().unwrap_or_default()
    }

    /// Range of the middle half, in microseconds.
    #[must_use]
    pub fn spread(&self) -> f64 {
        self.0.middle_half().unwrap_or_default()
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (median, least, spread) = (self.median(), self.least(), self.spread());
        write!(
            f,
            "median {median:.2} us, least {least:.2} us, spread {spread:.2} us"
        )
    }
}
