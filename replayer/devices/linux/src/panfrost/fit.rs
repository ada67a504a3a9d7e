// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which recordings panfrost can replay.
//!
//! Its own chip settings, memory attributes, flushes and address space serve as well; read-only memory is writable.

use gpureplay_format::{Access, PAGE_SIZE, Recording};

use super::placement::{Range, plan};
use crate::misfit::{Misfit, plain_chains};

pub(crate) fn fits(recording: &Recording<'_>) -> Result<(), Misfit> {
    plain_chains(recording)?;
    let regions = recording.regions().iter();
    let ranges: Vec<Range> = regions
        .map(|region| range(region.va.get(), region.pages.get(), Access(region.access)))
        .collect();
    plan(&ranges).map(drop)
}

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
    use crate::panfrost::placement::{END, END_OF_CODE, FIRST};

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
            assert_eq!(
                refused,
                Err(Misfit::OutOfRange {
                    va,
                    first: FIRST,
                    end: END
                })
            );
            let text = refused.unwrap_err().to_string();
            assert!(text.contains(&format!("{va:#x}")), "{text}");
        }
        let high = END - 4096;
        assert_eq!(checked(high, data, 1, 0), Ok(()));
        assert_eq!(
            checked(high, RegionKind::Code, 1, 0),
            Err(Misfit::HighCode {
                va: high,
                end: END_OF_CODE
            })
        );
    }
}
