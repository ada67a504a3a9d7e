// SPDX-License-Identifier: MIT OR Apache-2.0
//! Times of launches.

use gpureplay_cuda_launch::abi::{LaunchAttribute, LaunchConfiguration, attribute};

use super::Session;
use super::events::Events;
use super::hold::Hold;
use crate::error::driver;
use crate::{Loaded, ReplayError, Sizes, Times};

const PAIRS: usize = 9;

impl Session {
    /// Fills the second-level cache before timed runs; else it holds what the last run and restore left.
    ///
    /// # Errors
    /// No memory.
    pub fn make_cold(&mut self) -> Result<(), ReplayError> {
        let cache = self.gpu.attribute(attribute::device::L2_CACHE_SIZE)?;
        let size = (usize::try_from(cache).unwrap_or(0) * 4).max(1 << 20);
        let mut address = 0;
        // SAFETY: a pointer to a local.
        driver("cuMemAlloc_v2", unsafe {
            self.gpu.driver.cuMemAlloc_v2(&raw mut address, size)
        })?;
        self.gpu.clear(address, size as u64)?;
        self.evicting = Some((address, size & !15));
        Ok(())
    }

    /// The events' own time: the median of pairs, in microseconds.
    fn between_events(&self) -> Result<f64, ReplayError> {
        let mut times = Vec::new();
        for _ in 0..PAIRS {
            let events = Events::new(&self.gpu)?;
            let hold = Hold::new(&self.gpu)?;
            events.record(events.start)?;
            events.record(events.end)?;
            drop(hold);
            events.wait(self.time_limit)?;
            times.push(events.microseconds()?);
        }
        Ok(Times::new(times).median())
    }

    /// Times of launches, less the events' own. Restores changed memory before each; a first untimed run loads and
    /// warms.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn time(&self, loaded: &Loaded, sizes: &Sizes, runs: u32) -> Result<Times, ReplayError> {
        loaded.limits().check(sizes)?;
        self.restore(loaded)?;
        if runs > 0 {
            self.launch_once(loaded, sizes)?;
        }
        let own = if runs > 0 {
            self.between_events()?
        } else {
            0.0
        };
        let mut times = Vec::new();
        for _ in 0..runs {
            self.restore_changed(loaded)?;
            if let Some((address, size)) = self.evicting {
                // Unlike set memory, read memory needs no writing back later.
                self.read_on_gpu(address, size)?;
            }
            let events = Events::new(&self.gpu)?;
            // Begins when all is queued: no host time between events.
            let hold = Hold::new(&self.gpu)?;
            self.submit(loaded, sizes, &events)?;
            drop(hold);
            events.wait(self.time_limit)?;
            times.push((events.microseconds()? - own).max(0.0));
        }
        Ok(Times::new(times))
    }

    pub(super) fn launch_once(&self, loaded: &Loaded, sizes: &Sizes) -> Result<(), ReplayError> {
        self.scratch()?;
        let events = Events::new(&self.gpu)?;
        self.submit(loaded, sizes, &events)?;
        events.wait(self.time_limit)
    }

    fn submit(
        &self,
        loaded: &Loaded,
        sizes: &Sizes,
        events: &Events<'_>,
    ) -> Result<(), ReplayError> {
        loaded.allow_shared(&self.gpu, sizes.shared)?;
        let attributes: Vec<LaunchAttribute> = self
            .launch
            .attribute_list()
            .iter()
            .filter(|value| attribute::launch::KEPT.contains(&value[0]))
            .filter(|value| {
                !loaded.has_carveout
                    || value[0] != attribute::launch::PREFERRED_SHARED_MEMORY_CARVEOUT
            })
            .copied()
            .collect();
        let configuration = LaunchConfiguration {
            grid: sizes.grid,
            block: sizes.block,
            shared: sizes.shared,
            stream: 0,
            attributes: attributes.as_ptr(),
            attribute_count: u32::try_from(attributes.len()).unwrap_or(0),
        };
        events.record(events.start)?;
        // SAFETY: configuration, attributes and parameters live until the call returns; the driver copies them.
        let status = unsafe {
            let driver = &self.gpu.driver;
            driver.launch_packed(&configuration, loaded.function, &self.parameters)
        };
        driver("cuLaunchKernelEx", status)?;
        events.record(events.end)
    }
}
