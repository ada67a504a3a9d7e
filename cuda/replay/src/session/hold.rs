// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds the default stream while it is filled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::driver;
use crate::{Gpu, ReplayError};

static LAST_TAKEN: AtomicU64 = AtomicU64::new(0);
static LAST_ENDED: AtomicU64 = AtomicU64::new(0);

/// A profiler may wait for the stream before the hold is dropped.
const MOST: Duration = Duration::from_millis(2);

pub(super) struct Hold(u64);

impl Hold {
    pub(super) fn new(gpu: &Gpu) -> Result<Self, ReplayError> {
        let number = LAST_TAKEN.fetch_add(1, Ordering::SeqCst) + 1;
        let data = usize::try_from(number).unwrap_or(0);
        let function = wait as extern "C" fn(usize) as usize;
        // SAFETY: a function of the process, and a number.
        let status = unsafe { gpu.driver.cuLaunchHostFunc(0, function, data) };
        driver("cuLaunchHostFunc", status)?;
        Ok(Self(number))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        LAST_ENDED.fetch_max(self.0, Ordering::SeqCst);
    }
}

extern "C" fn wait(number: usize) {
    let began = Instant::now();
    while LAST_ENDED.load(Ordering::SeqCst) < number as u64 && began.elapsed() < MOST {
        std::hint::spin_loop();
    }
}
