// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model with an observer.

use gpureplay_core::{Chain, DeviceError, ErrorKind, Wrapper};

use crate::OnModel;

/// An observer. Chains count from 1.
pub trait Watch {
    /// False fails the run.
    fn starts(&mut self, device: &mut OnModel, number: u32, chain: &Chain) -> bool;
    /// After a successful chain.
    fn ended(&mut self, device: &mut OnModel, number: u32) {
        let _ = (device, number);
    }
}

/// A watched device.
pub struct Watched<W> {
    device: OnModel,
    /// Observer.
    pub watch: W,
    number: u32,
}

impl<W: Watch> Watched<W> {
    /// Watches this device.
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
