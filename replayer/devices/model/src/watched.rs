// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model as a device with somebody who looks at it whenever a chain starts or has ended.

use gpureplay_core::{Chain, DeviceError, ErrorKind, Wrapper};

use crate::OnModel;

/// Who looks. Chains are counted from 1 on.
pub trait Watch {
    /// A chain is about to start; false keeps it from starting, and the run fails.
    fn starts(&mut self, device: &mut OnModel, number: u32, chain: &Chain) -> bool;
    /// A chain has succeeded.
    fn ended(&mut self, device: &mut OnModel, number: u32) {
        let _ = (device, number);
    }
}

/// A device that is watched.
pub struct Watched<W> {
    device: OnModel,
    /// Who looks.
    pub watch: W,
    number: u32,
}

impl<W: Watch> Watched<W> {
    /// A device that this one looks at.
    pub fn new(device: OnModel, watch: W) -> Self {
        Self {
            device,
            watch,
            number: 0,
        }
    }
}

impl<W: Watch> Wrapper for Watched<W> {
    type Inner = OnModel;

    fn inner(&mut self) -> &mut OnModel {
        &mut self.device
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        self.number += 1;
        if self.watch.starts(&mut self.device, self.number, chain) {
            Ok(())
        } else {
            Err(DeviceError::Refused(0))
        }
    }

    fn after_chain(&mut self, _: &Chain, result: Result<(), ErrorKind>) {
        if result.is_ok() {
            self.watch.ended(&mut self.device, self.number);
        }
    }
}
