// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the driver decides instead of a recording, and which recordings it therefore cannot replay.
//!
//! Chip settings, attributes of memory, flushes of caches and the address space are the driver's, and serve as well. Memory that the recording
//! only reads is writable here. The rest must be what the driver gives: all shader cores, slots 0 and 1, addresses from 32 MiB to 4 GiB.

use gpureplay_format::layout::FAMILY_MALI;
use gpureplay_format::{Access, Action, PAGE_SIZE, Recording};

use super::placement::{Range, Unplaceable, plan};

/// Job slots that the driver uses: 0 for fragments, 1 for all else.
pub(crate) const SLOTS: u8 = 2;

/// Why a recording cannot be replayed through the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// Cores must stay unused.
    #[error("it leaves shader cores {0:#x} unused, but the driver uses all")]
    UnusedCores(u32),
    /// Another slot.
    #[error("it uses job slot {0}, but the driver has 0 and 1 only")]
    Slot(u8),
    /// Its work is for another driver.
    #[error("its work is command streams, which panthor takes")]
    Streams,
    /// The same the other way round.
    #[error("its work is job chains, which panfrost takes")]
    Chains,
    /// Its memory lies in the driver's own addresses.
    #[error("its memory at {0:#x} leaves the driver no addresses of its own")]
    High(u64),
    /// Its memory.
    #[error(transparent)]
    Memory(#[from] Unplaceable),
}

/// Whether the driver can replay a recording, which keeps the rules of the verifier. The GPU is not looked at.
///
/// # Errors
/// What stands against it.
pub fn fits(recording: &Recording<'_>) -> Result<(), Misfit> {
    if recording.header().family.get() != FAMILY_MALI {
        return Err(Misfit::Streams);
    }
    let unused = recording.header().unused_cores.get();
    if unused != 0 {
        return Err(Misfit::UnusedCores(unused));
    }
    let regions = recording.regions().iter();
    let ranges: Vec<Range> = regions
        .map(|region| range(region.va.get(), region.pages.get(), Access(region.access)))
        .collect();
    plan(&ranges)?;
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

/// Memory as the placement takes it.
pub(crate) fn range(va: u64, pages: u32, access: Access) -> Range {
    Range {
        va,
        bytes: u64::from(pages) * u64::from(PAGE_SIZE),
        executable: access.contains(Access::EXECUTE),
    }
}

#[cfg(test)]
mod tests {
    use gpureplay_format::layout::Platform;
    use gpureplay_format::{Builder, RegionKind, SegmentKind};

    use super::*;
    use crate::panfrost::placement::END;

    /// What is said of a recording with memory at an address and a chain on a slot.
    fn checked(va: u64, kind: RegionKind, slot: u8, unused_cores: u32) -> Result<(), Misfit> {
        let mut builder = Builder::new(0x7212_0000);
        let access = match kind {
            RegionKind::Code => Access::READ_EXECUTE,
            _ => Access::READ_WRITE,
        };
        builder.region(va, 1, access, kind);
        builder.platform(Platform {
            unused_cores,
            ..Platform::of(0x7212_0000)
        });
        builder.segment("run", SegmentKind::Run);
        builder.rearm(va);
        builder.submit(slot, va, 1000);
        let bytes = builder.finish().unwrap();
        fits(&Recording::parse(&bytes).unwrap())
    }

    #[test]
    fn what_the_driver_decides_otherwise_is_refused_by_name() {
        let data = RegionKind::Data;
        assert_eq!(checked(0x200_0000, data, 1, 0), Ok(()));
        assert_eq!(checked(0x200_0000, data, 0, 0), Ok(()));
        assert_eq!(checked(0x200_0000, data, 2, 0), Err(Misfit::Slot(2)));
        assert_eq!(checked(0x200_0000, data, 1, 2), Err(Misfit::UnusedCores(2)));
        for va in [0x1000, 0x1ff_f000, END, 1 << 40] {
            let refused = checked(va, data, 1, 0);
            assert_eq!(refused, Err(Unplaceable::OutOfRange(va).into()));
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(&format!("{va:#x}")), "{text}");
        }
        let high = END - 4096;
        assert_eq!(checked(high, data, 1, 0), Ok(()));
        assert_eq!(
            checked(high, RegionKind::Code, 1, 0),
            Err(Unplaceable::HighCode(high).into())
        );
    }
}
