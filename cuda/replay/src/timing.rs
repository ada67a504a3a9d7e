// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of repeated launches.

use gpureplay_host::statistics::Sorted;

/// Times of a kernel's runs, in microseconds, by events on the GPU. Events overstate a kernel of few microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times(Sorted);

impl Times {
    pub(crate) fn new(times: Vec<f64>) -> Self {
        Self(Sorted::new(times))
    }

    /// How many runs there were.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.0.count()
    }

    /// The shortest run, in microseconds; 0 if there was none.
    #[must_use]
    pub fn least(&self) -> f64 {
        self.0.least().unwrap_or_default()
    }

    /// The run in the middle, in microseconds; 0 if there was none.
    #[must_use]
    pub fn median(&self) -> f64 {
        self.0.median().unwrap_or_default()
    }

    /// The range in which the middle half of the runs lies, in microseconds.
    #[must_use]
    pub fn spread(&self) -> f64 {
        self.0.middle_half().unwrap_or_default()
    }
}
