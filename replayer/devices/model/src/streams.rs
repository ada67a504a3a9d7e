// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes whole launches, as a driver with firmware does.

use std::sync::Arc;

use gpureplay_core::{DeviceError, ErrorKind, UsedUp};
use gpureplay_format::Access;
use gpureplay_memory::{Bus, PAGE_SIZE};
use mali_drive::LAUNCHED_AT;
use mali_model::{Options, Sequencer, StreamGpu, Streams, Writer};

use crate::memory::Memory;

const STREAM_PAGES: u32 = 16;

pub(crate) struct Firmware<B: Bus> {
    streams: Streams<B>,
    /// Page tables, once work can start.
    root: Option<u64>,
    used_up: Option<UsedUp>,
}

pub(crate) fn map(memory: &mut Memory) -> Result<(), DeviceError> {
    memory.map(LAUNCHED_AT, STREAM_PAGES, Access::READ)
}

impl<B: Bus> Firmware<B> {
    pub(crate) fn new(gpu: &'static StreamGpu, bus: Arc<B>, options: Options) -> Self {
        Self {
            streams: Streams::new(gpu, bus, options),
            root: None,
            used_up: None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.root.is_some()
    }

    pub(crate) fn begin(&mut self, root: u64) {
        self.root = Some(root);
    }

    pub(crate) fn end(&mut self) {
        self.root = None;
    }

    pub(crate) fn renew_work(&mut self) {
        self.used_up = None;
        self.streams.renew_work();
    }

    pub(crate) fn set_work_limit(&mut self, limit: u64) {
        self.streams.set_work_limit(limit);
    }

    pub(crate) fn used_up(&self) -> Option<UsedUp> {
        self.used_up
    }

    pub(crate) fn read32(&self, register: u32) -> u32 {
        self.streams.identity(register)
    }

    fn place(&self, memory: &Memory, words: &[u8]) -> Result<(u32, u64), ErrorKind> {
        let root = self.root.ok_or(ErrorKind::Internal)?;
        let length = u32::try_from(words.len()).map_err(|_| ErrorKind::Internal)?;
        // Chains, of another family, have no words.
        if words.is_empty() || words.len() > STREAM_PAGES as usize * PAGE_SIZE {
            return Err(ErrorKind::Device(DeviceError::Refused(0)));
        }
        memory.write(LAUNCHED_AT, words)?;
        Ok((length, root))
    }

    pub(crate) fn writer(&self, memory: &Memory, words: &[u8], va: u64) -> Option<Writer> {
        let (length, root) = self.place(memory, words).ok()?;
        self.streams.writer(root, (LAUNCHED_AT, length), va)
    }

    pub(crate) fn launch(&mut self, memory: &Memory, words: &[u8]) -> Result<(), ErrorKind> {
        let (length, root) = self.place(memory, words)?;
        // Nothing is left of the launch before.
        let ended = self
            .streams
            .run(&mut Sequencer::new(), root, LAUNCHED_AT, length);
        ended.map_err(|fault| {
            self.used_up = self.streams.used_up().map(|limit| UsedUp {
                job: fault.at,
                slot: 0,
                limit,
            });
            ErrorKind::JobFault {
                slot: 0,
                status: fault.status.0,
                tail: fault.at,
                fault_address: 0,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use gpureplay_core::gpu::Submission;
    use gpureplay_core::{Chain, Gpu};
    use gpureplay_format::layout::ActionEntry;
    use mali_model::Options;
    use mali_model::Product;

    use crate::OnModel;

    #[test]
    fn the_launches_of_a_run_share_the_work_limit() {
        let options = Options {
            work_limit: Some(24),
            ..Options::default()
        };
        let mut device = OnModel::new(Product::by_name("g610").unwrap(), options).unwrap();
        assert_eq!(device.start(0), Some(Ok(())));
        let entry = &ActionEntry {
            op: 0,
            a: 0,
            b: 0.into(),
            c: 0.into(),
            d: 0.into(),
        };
        let words = &[0; 128];
        let mut launch = |index| {
            let chain = Chain {
                index,
                head: 0,
                queue: 0,
                space: 0,
            };
            device.before_chain(&chain).unwrap();
            let ended = device.run_chain(&Submission { entry, words }).unwrap();
            (ended.is_ok(), device.used_up().map(|it| it.limit))
        };
        assert_eq!(launch(0), (true, None));
        assert_eq!(launch(1), (false, Some(24)));
        assert_eq!(launch(0), (true, None));
    }
}
