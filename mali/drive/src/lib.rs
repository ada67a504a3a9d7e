// SPDX-License-Identifier: MIT OR Apache-2.0
//! Job-manager Malis: permitted settings, and driving.
//!
//! No allocation, no panic, no unsafe code.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod allow;
mod chain;
mod counters;
pub mod ends;
pub mod kinds;
pub mod middleware;
pub mod names;
pub mod page_table;
mod power;
mod reset;

use gpureplay_format::layout::{FAMILY_MALI, Header, IdentityCheck};
use gpureplay_format::{Access, Recording, RegionKind};
use mali_facts::registers::JobConfigFlags;
use mali_facts::registers::gpu::GPU_ID;

use gpureplay_core::family::{Driver, Failed, Family};
use gpureplay_core::gpu::{Gpu, Submission};
use gpureplay_core::verify::{Limits, Rule, Violation};

pub use allow::writable;
pub use counters::Counters;
pub use power::address_bits;
pub use reset::{MASKS, clean_caches, pending, raised, reset};

/// With a job manager: architecture versions 6, 7 and 9.
#[derive(Clone, Copy, Debug)]
pub struct Mali;

/// A verified recording.
pub type Verified<'a> = gpureplay_core::verify::Verified<'a, Mali>;
/// Session on a Mali.
pub type Session<'a, 'w, G> = gpureplay_core::engine::Session<'a, 'w, G, Mali>;

/// Command streams' instructions on a model's device, above recorded maps. Places name dispatches.
pub const LAUNCHED_AT: u64 = 1 << 47;

/// # Errors
/// As [`gpureplay_core::verify()`].
pub fn verify<'a>(
    recording: &'a Recording<'a>,
    limits: &Limits,
) -> Result<Verified<'a>, Violation> {
    gpureplay_core::verify::verify(recording, limits)
}

/// What GPU_ID reads.
pub fn identify(gpu: &mut dyn Gpu) -> u32 {
    gpu.read32(GPU_ID)
}

/// Kept between chains.
#[derive(Debug)]
pub struct State {
    affinity: u32,
    /// NEXT registers: head's high word, configuration (bits 3:0 are free), slot; or [`NOT_LOADED`].
    loaded: u64,
}

/// No chain has it.
const NOT_LOADED: u64 = u64::MAX;
const PRODUCT_MASK: u32 = 0xffff_0000;
const JOB_HEADER: u64 = 32;
/// Every job manager has these.
const SLOTS: u8 = 3;
const PERMITTED_CONFIG: u32 = JobConfigFlags::START_FLUSH_CLEAN.bits()
    | JobConfigFlags::START_FLUSH_INVALIDATE.bits()
    | JobConfigFlags::START_MMU.bits()
    | JobConfigFlags::CHAIN_FLAG.bits()
    | JobConfigFlags::END_FLUSH_CLEAN.bits()
    | JobConfigFlags::END_FLUSH_INVALIDATE.bits();

impl Family for Mali {
    const ID: u16 = FAMILY_MALI;
    const LAUNCHES: bool = false;
    /// At most; the engine checks the actual one.
    const ADDRESS_BITS: u32 = 48;
    type State = State;
    const RESET: State = State {
        affinity: 0,
        loaded: NOT_LOADED,
    };

    fn is_identity(register: u32) -> bool {
        allow::identity(register)
    }

    fn demands_product(check: &IdentityCheck, gpu_id: u32) -> bool {
        check.register.get() == GPU_ID
            && check.mask.get() & PRODUCT_MASK == PRODUCT_MASK
            && (check.value.get() ^ gpu_id) & PRODUCT_MASK == 0
    }

    fn may_write(gpu_id: u32, register: u32, value: u32) -> bool {
        writable(gpu_id, register, value)
    }

    fn suits(kind: RegionKind, access: Access) -> bool {
        match kind {
            RegionKind::Code => access == Access::READ_EXECUTE,
            _ => access == Access::READ || access == Access::READ_WRITE,
        }
    }

    fn may_rearm(recording: &Recording<'_>, va: u64) -> bool {
        let region = recording.region_of(va, JOB_HEADER);
        let suits = region.is_some_and(|region| {
            region.kind == RegionKind::Descriptors.code()
                && Access(region.access).contains(Access::WRITE)
        });
        va.is_multiple_of(64) && suits
    }

    fn check(_: &Recording<'_>, chain: &Submission<'_>) -> Result<(), Rule> {
        if chain.queue() < SLOTS && u32::from(chain.configuration()) & !PERMITTED_CONFIG == 0 {
            Ok(())
        } else {
            Err(Rule::JobConfiguration)
        }
    }

    fn fits<G: Gpu>(at: &mut Driver<G, State>, last: u64) -> Result<(), Failed> {
        power::fits(at, last)
    }

    fn power_up<G: Gpu>(at: &mut Driver<G, State>, header: &Header) -> Result<(), Failed> {
        power::up(at, header.unused_cores.get())
    }

    fn submit<G: Gpu>(at: &mut Driver<G, State>, chain: &Submission<'_>) -> Result<(), Failed> {
        chain::submit(at, chain)
    }

    fn done<G: Gpu>(at: &mut Driver<G, State>, va: u64) -> Result<(), Failed> {
        chain::done(at, va)
    }
}
