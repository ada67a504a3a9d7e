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

/// GPUs with one set of rules and one register driver.
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

    /// The check demands the header's product.
    fn demands_product(check: &IdentityCheck, gpu_id: u32) -> bool;

    /// Set-up may write this value.
    fn may_write(gpu_id: u32, register: u32, value: u32) -> bool;

    /// Memory of this kind may have this access; never write and execute.
    fn suits(kind: RegionKind, access: Access) -> bool;

    /// A chain's header may lie here.
    fn may_rearm(recording: &Recording<'_>, va: u64) -> bool;

    /// Checks work; the verifier itself checks ready headers and bounded waits.
    ///
    /// # Errors
    /// The broken rule.
    fn check(recording: &Recording<'_>, work: &Submission<'_>) -> Result<(), Rule>;

    /// The GPU must address everything up to `last`. Called after reset and identity check.
    ///
    /// # Errors
    /// It cannot.
    fn fits<G: Gpu>(at: &mut Driver<G, Self::State>, last: u64) -> Result<(), Failed>;

    /// Makes a reset GPU take work, but for the address space.
    ///
    /// # Errors
    /// A unit gets no power.
    fn power_up<G: Gpu>(at: &mut Driver<G, Self::State>, header: &Header) -> Result<(), Failed>;

    /// Runs work by registers within its bound.
    ///
    /// # Errors
    /// It failed, or did not end.
    fn submit<G: Gpu>(at: &mut Driver<G, Self::State>, work: &Submission<'_>)
    -> Result<(), Failed>;

    /// Checks a header of the ended chain.
    ///
    /// # Errors
    /// The job is not done.
    fn done<G: Gpu>(at: &mut Driver<G, Self::State>, va: u64) -> Result<(), Failed>;
}
