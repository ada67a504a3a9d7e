// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU families, named at compile time: without function table, others are not linked.

use core::fmt::Debug;

use gpureplay_format::layout::{Header, IdentityCheck};
use gpureplay_format::{Access, Recording, RegionKind};

use crate::error::ErrorKind;
use crate::gpu::{Gpu, Submission};
use crate::verify::rules::Rule;

/// [`Driver::error`] has the reason; in every result it would be more code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// A device with the engine's state.
#[derive(Debug)]
pub struct Driver<G, S> {
    /// The device.
    pub gpu: G,
    /// [`Family::RESET`] after a reset.
    pub state: S,
    /// Address space of the page tables.
    pub space: u8,
    /// Why the last step failed.
    pub error: ErrorKind,
}

impl<G, S> Driver<G, S> {
    /// Records why.
    ///
    /// # Errors
    /// Always.
    pub fn fail<T>(&mut self, error: ErrorKind) -> Result<T, Failed> {
        self.error = error;
        Err(Failed)
    }

    /// Takes a device's result.
    ///
    /// # Errors
    /// The device failed.
    pub fn take<E: Into<ErrorKind>>(&mut self, result: Result<(), E>) -> Result<(), Failed> {
        result.or_else(|error| self.fail(error.into()))
    }
}

/// One set of rules, one register driver.
pub trait Family {
    /// Number in the recording's header.
    const ID: u16;
    /// Work is words ([`gpureplay_format::Opcode::Launch`]); otherwise chains
    /// ([`gpureplay_format::Opcode::Submit`]), whose headers are made ready before and checked afterwards.
    const LAUNCHES: bool;
    /// Bits of the largest GPU address.
    const ADDRESS_BITS: u32;
    /// Kept between submissions.
    type State: Debug;
    /// The state after a reset.
    const RESET: Self::State;

    /// A constant of the GPU, for identity checks.
    fn is_identity(register: u32) -> bool;

    /// A check for the header's product.
    fn demands_product(check: &IdentityCheck, gpu_id: u32) -> bool;

    /// Whether set-up may write this value.
    fn may_write(gpu_id: u32, register: u32, value: u32) -> bool;

    /// Write and execute never go together anyway.
    fn suits(kind: RegionKind, access: Access) -> bool;

    /// For chains' headers.
    fn may_rearm(recording: &Recording<'_>, va: u64) -> bool;

    /// What the verifier cannot; it knows ready headers and bounded waits.
    ///
    /// # Errors
    /// The broken rule.
    fn check(recording: &Recording<'_>, work: &Submission<'_>) -> Result<(), Rule>;

    /// Addresses up to `last`, after reset and identity check.
    ///
    /// # Errors
    /// It cannot.
    fn fits<G: Gpu>(at: &mut Driver<G, Self::State>, last: u64) -> Result<(), Failed>;

    /// From reset to work, without address space.
    ///
    /// # Errors
    /// A unit gets no power.
    fn power_up<G: Gpu>(at: &mut Driver<G, Self::State>, header: &Header) -> Result<(), Failed>;

    /// By registers, within its bound, with its result.
    ///
    /// # Errors
    /// It failed, or did not end.
    fn submit<G: Gpu>(at: &mut Driver<G, Self::State>, work: &Submission<'_>)
    -> Result<(), Failed>;

    /// A header of the ended chain.
    ///
    /// # Errors
    /// The job is not done.
    fn done<G: Gpu>(at: &mut Driver<G, Self::State>, va: u64) -> Result<(), Failed>;
}
