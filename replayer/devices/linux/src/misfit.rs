// SPDX-License-Identifier: MIT OR Apache-2.0
//! What kernel drivers cannot replay.

use gpureplay_format::layout::FAMILY_MALI;
use gpureplay_format::{Action, Recording};

/// 0 for fragments, 1 for all else.
const SLOTS: u8 = 2;

/// Why a driver cannot replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Cores must stay unused.
    #[error("it leaves shader cores {0:#x} unused, but the driver uses all")]
    UnusedCores(u32),
    /// Another slot.
    #[error("it uses job slot {0}, but the driver has 0 and 1 only")]
    Slot(u8),
    /// Streams, for another driver.
    #[error("its work is command streams, which panthor takes")]
    Streams,
    /// Chains, for another driver.
    #[error("its work is job chains, which panfrost and kbase take")]
    Chains,
    /// Memory in the driver's own addresses.
    #[error("its memory at {0:#x} leaves the driver no addresses of its own")]
    High(u64),
    /// Memory outside the address space.
    #[error(
        "memory at {va:#x}: the driver has GPU addresses from {first:#x} to {end:#x} only; record the app on this driver"
    )]
    OutOfRange {
        /// Memory.
        va: u64,
        /// The driver's first address.
        first: u64,
        /// End of its addresses.
        end: u64,
    },
    /// Code at the address space's end.
    #[error(
        "code at {va:#x}: the driver puts no code above {end:#x}; record the app on this driver"
    )]
    HighCode {
        /// Code.
        va: u64,
        /// Where code ends.
        end: u64,
    },
    /// Too many objects.
    #[error("its memory would need more than {0} objects of the driver")]
    TooManyObjects(usize),
    /// This process uses these addresses.
    #[error(
        "memory from {0:#x} to {1:#x}: this process uses these addresses itself; try again with: setarch -R gpureplay …"
    )]
    Taken(u64, u64),
    /// Code that should have moved.
    #[error("code at {0:#x}: the driver cannot put it there")]
    Code(u64),
    /// No room for moving code.
    #[error("no addresses are free for its code")]
    NoRoom,
}

pub(crate) fn plain_chains(recording: &Recording<'_>) -> Result<(), Misfit> {
    if recording.header().family.get() != FAMILY_MALI {
        return Err(Misfit::Streams);
    }
    let unused = recording.header().unused_cores.get();
    if unused != 0 {
        return Err(Misfit::UnusedCores(unused));
    }
    for segment in recording.segments() {
        for action in recording.segment_actions(segment).flatten() {
            if let Action::Submit { slot, .. } = action
                && slot >= SLOTS
            {
                return Err(Misfit::Slot(slot));
            }
        }
    }
    Ok(())
}
