// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the default stream while it is filled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::driver;
use crate::{Gpu, ReplayError};

/// Taken, and ended.
static TAKEN: AtomicU64 = AtomicU64::new(0);
static OVER: AtomicU64 = AtomicU64::new(0);

/// A profiler may wait for the stream first.
const MOST: Duration = Duration::from_millis(2);

/// Holds the default stream while it lives, at most 2 ms.
pub(super) struct Hold(u64);

impl Hold {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, ReplayError> {
        let number = TAKEN.fetch_add(1, Ordering::SeqCst) + 1;
        let data = usize::try_from(number).unwrap_or(0);
        let function = wait as extern "C" fn(usize) as usize;
        // SAFETY: a function that lives as long as the process, and a number.
        let status = unsafe { gpu.driver.cuLaunchHostFunc(0, function, data) };
        driver("cuLaunchHostFunc", status)?;
        Ok(Self(number))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        OVER.fetch_max(self.0, Ordering::SeqCst);
    }
}

extern "C" fn wait(number: usize) {
    let began = Instant::now();
    while OVER.load(Ordering::SeqCst) < number as u64 && began.elapsed() < MOST {
        std::hint::spin_loop();
    }
}
