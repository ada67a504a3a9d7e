// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two events around a launch.

use std::time::{Duration, Instant};

use gpureplay_cuda_launch::abi::{Handle, Status};

use crate::error::driver;
use crate::{Gpu, ReplayError};

pub(super) struct Events<'a> {
    gpu: &'a Gpu,
    pub(super) start: Handle,
    pub(super) end: Handle,
}

impl<'a> Events<'a> {
    pub(super) fn new(gpu: &'a Gpu) -> Result<Self, ReplayError> {
        let mut events = Self {
            gpu,
            start: 0,
            end: 0,
        };
        // SAFETY: pointers to fields.
        unsafe {
            driver(
                "cuEventCreate",
                gpu.driver.cuEventCreate(&raw mut events.start, 0),
            )?;
            driver(
                "cuEventCreate",
                gpu.driver.cuEventCreate(&raw mut events.end, 0),
            )?;
        }
        Ok(events)
    }

    pub(super) fn record(&self, event: Handle) -> Result<(), ReplayError> {
        // SAFETY: our event, the default stream.
        driver("cuEventRecord", unsafe {
            self.gpu.driver.cuEventRecord(event, 0)
        })
    }

    pub(super) fn wait(&self, limit: Duration) -> Result<(), ReplayError> {
        let began = Instant::now();
        loop {
            // SAFETY: our event.
            match unsafe { self.gpu.driver.cuEventQuery(self.end) } {
                Status::NOT_READY => {}
                status => return driver("the kernel", status),
            }
            let elapsed = began.elapsed();
            if elapsed > limit {
                return Err(ReplayError::TimeLimit {
                    seconds: limit.as_secs(),
                });
            }
            if elapsed > Duration::from_millis(20) {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
    }

    pub(super) fn microseconds(&self) -> Result<f64, ReplayError> {
        let mut milliseconds = 0f32;
        // SAFETY: a pointer to a local, our events.
        let status = unsafe {
            self.gpu
                .driver
                .cuEventElapsedTime(&raw mut milliseconds, self.start, self.end)
        };
        driver("cuEventElapsedTime", status)?;
        Ok(f64::from(milliseconds) * 1e3)
    }
}

impl Drop for Events<'_> {
    fn drop(&mut self) {
        for event in [self.start, self.end] {
            if event != 0 {
                // SAFETY: our event.
                let _ = unsafe { self.gpu.driver.cuEventDestroy_v2(event) };
            }
        }
    }
}
