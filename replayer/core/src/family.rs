// SPDX-License-Identifier: MIT OR Apache-2.0
//! What verifier and engine need to know of a GPU family. A program names its family when it is compiled: there is no table of
//! functions, and the code of a family that is not named is not linked.

use core::fmt::Debug;

use gpureplay_format::layout::{Header, IdentityCheck};
use gpureplay_format::{Access, Recording, RegionKind};

use crate::error::ErrorKind;
use crate::gpu::{Gpu, Submission};
use crate::verify::rules::Rule;

/// A step failed; [`Driver::error`] says why. A reason inside of every result would be more code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// A device with what the engine keeps of it between two steps.
#[derive(Debug)]
pub struct Driver<G, S> {
    /// The device.
    pub gpu: G,
    /// What the family keeps, [`Family::RESET`] after a reset.
    pub state: S,
    /// Address space that has the page tables.
    pub space: u8,
    /// Why the last step failed.
    pub error: ErrorKind,
}

impl<G, S> Driver<G, S> {
    /// Says why a step failed.
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

/// A GPU family: GPUs that one set of rules and one way of driving registers serve.
pub trait Family {
    /// Its number in the header of recordings.
    const ID: u16;
    /// Whether work is words ([`gpureplay_format::Opcode::Launch`]). If not, it is chains
    /// ([`gpureplay_format::Opcode::Submit`]), whose headers are made ready before and say afterwards how they ended.
    const LAUNCHES: bool;
    /// Bits of the largest GPU virtual address.
    const ADDRESS_BITS: u32;
    /// What is kept between submissions.
    type State: Debug;
    /// The state after a reset.
    const RESET: Self::State;

    /// Whether an identity check may read this register: a constant of the GPU.
    fn is_identity(register: u32) -> bool;

    /// Whether a check demands the product that the header names.
    fn demands_product(check: &IdentityCheck, gpu_id: u32) -> bool;

    /// Whether set-up may write this value.
    fn may_write(gpu_id: u32, register: u32, value: u32) -> bool;

    /// Whether memory of this kind may have this access. Nothing is writable and executable, whatever the answer.
    fn suits(kind: RegionKind, access: Access) -> bool;

    /// Whether a chain may have a header here; not asked of a family that launches.
    fn may_rearm(recording: &Recording<'_>, va: u64) -> bool;

    /// Checks what the verifier does not check by itself of work: it knows where headers are ready and that waits are bounded.
    ///
    /// # Errors
    /// The rule that the work breaks.
    fn check(recording: &Recording<'_>, work: &Submission<'_>) -> Result<(), Rule>;

    /// Checks that the GPU can address everything up to `last`. It was reset, and its identity was checked.
    ///
    /// # Errors
    /// It cannot.
    fn fits<G: Gpu>(at: &mut Driver<G, Self::State>, last: u64) -> Result<(), Failed>;

    /// Brings the GPU from its reset to where it takes work, all but for the address space.
    ///
    /// # Errors
    /// A unit gets no power.
    fn power_up<G: Gpu>(at: &mut Driver<G, Self::State>, header: &Header) -> Result<(), Failed>;

    /// Starts work by registers, waits for its end within its bound, and finds out how it ended.
    ///
    /// # Errors
    /// It failed, or did not end.
    fn submit<G: Gpu>(at: &mut Driver<G, Self::State>, work: &Submission<'_>)
    -> Result<(), Failed>;

    /// Checks a header that was made ready for the chain that just ended; not asked of a family that launches.
    ///
    /// # Errors
    /// It does not say that the job is done.
    fn done<G: Gpu>(at: &mut Driver<G, Self::State>, va: u64) -> Result<(), Failed>;
}
