// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU with command streams.

use std::sync::Arc;

use gpureplay_memory::Bus;
use mali_facts::StreamGpu;
use mali_facts::page_table::Format;

use super::tables::{BASE, Tables};
use super::{Map, NoRoom, Space};
use crate::{Options, Sequencer, StreamFault, Streams};

/// Takes streams as panthor does.
pub struct DrivenStreams<B: Bus> {
    streams: Streams<B>,
    bus: Arc<B>,
    space: Option<Space>,
}

impl<B: Bus> DrivenStreams<B> {
    /// Page tables lie at [`BASE`](super::BASE) of the bus.
    pub fn new(gpu: &'static StreamGpu, bus: Arc<B>, options: Options) -> Self {
        Self {
            streams: Streams::new(gpu, bus.clone(), options),
            bus,
            space: None,
        }
    }

    /// Runs a stream (address, bytes). Equal spaces have equal maps. Inside: why it ended early.
    ///
    /// # Errors
    /// Page tables do not fit.
    pub fn run(
        &mut self,
        space: Space,
        maps: impl IntoIterator<Item = Map>,
        queue: &mut Sequencer,
        (address, bytes): (u64, u32),
    ) -> Result<Result<(), StreamFault>, NoRoom> {
        if self.space != Some(space) {
            self.space = None;
            Tables::of(&*self.bus, Format::AArch64, maps)?;
            self.space = Some(space);
        }
        self.streams.renew_work();
        Ok(self.streams.run(queue, BASE, address, bytes))
    }

    /// Modelled GPU.
    pub fn gpu(&self) -> &'static StreamGpu {
        self.streams.gpu()
    }

    /// Ticks of [`TIMESTAMP_FREQUENCY`](super::TIMESTAMP_FREQUENCY).
    pub fn timestamp(&self) -> u64 {
        self.streams.timestamp()
    }
}
