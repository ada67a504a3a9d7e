// SPDX-License-Identifier: MIT OR Apache-2.0
//! Unverified chains fail, the next replay is right.

use std::error::Error;

use gpureplay_core::{Chain, DeviceError, Gpu, Wrapper};
use gpureplay_format::{Access, PAGE_SIZE, Recording};
use gpureplay_linux::Stock;
use mali_drive::Verified;
use mali_facts::Invocation;
use mali_facts::job::{INVOCATION, PAYLOAD};
use mali_facts::registers::gpu::GpuId;

use crate::{Values, wrong_then_right};

/// Offset in a job header, and an invalid type.
const TYPE: (u64, u8) = (16, 0xfe);
const NEXT_OFFSET: u64 = 24;
/// Unmapped, and outside the driver's addresses.
const NOWHERE: u64 = 0x7000_0000;
const BEYOND: u64 = 0x1_0000_0000;
/// Work groups, far beyond the time limit.
const ENDLESS: [u32; 2] = [0xffff, 64];
/// From here on compute jobs count work groups in payload words: Y is 3, Z is 4.
const VALHALL: u32 = 9;
const COUNTS: u64 = PAYLOAD + 3 * 4;
/// In an invocation's second word.
const SHIFTS: u32 = (1 << 28) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twist {
    Type,
    Loop,
    Outside,
    Pointer,
    Above,
    Code,
    Long,
}

pub(crate) const TWISTS: &[(&str, Twist)] = &[
    ("type", Twist::Type),
    ("loop", Twist::Loop),
    ("outside", Twist::Outside),
    ("pointer", Twist::Pointer),
    ("above", Twist::Above),
    ("code", Twist::Code),
    ("long", Twist::Long),
];

struct Twisted<'a> {
    gpu: Stock,
    recording: &'a Recording<'a>,
    twist: Option<Twist>,
}

impl Wrapper for Twisted<'_> {
    type Inner = Stock;

    fn inner(&mut self) -> &mut Stock {
        &mut self.gpu
    }

    fn before_chain(&mut self, chain: &Chain) -> Result<(), DeviceError> {
        if let Some(twist) = self.twist.take() {
            self.make_wrong(twist, chain.head)?;
        }
        self.gpu.before_chain(chain)
    }
}

impl Twisted<'_> {
    fn make_wrong(&mut self, twist: Twist, head: u64) -> Result<(), DeviceError> {
        let regions = self.recording.regions().iter();
        let is_code = |access: u8| Access(access).contains(Access::EXECUTE);
        let all = regions.map(|region| (region.va.get()..region.end(), is_code(region.access)));
        let (code, data): (Vec<_>, Vec<_>) = all.partition(|(_, is_code)| *is_code);
        let holds = |list: &[(std::ops::Range<u64>, bool)], va| {
            list.iter().any(|(range, _)| range.contains(&va))
        };
        match twist {
            Twist::Type => self.gpu.write_memory(head + TYPE.0, &[TYPE.1]),
            Twist::Loop => self
                .gpu
                .write_memory(head + NEXT_OFFSET, &head.to_le_bytes()),
            Twist::Outside => self
                .gpu
                .write_memory(head + NEXT_OFFSET, &NOWHERE.to_le_bytes()),
            Twist::Long if GpuId(self.recording.gpu_id()).architecture() >= VALHALL => {
                let counts = ENDLESS.map(u32::to_le_bytes);
                self.gpu.write_memory(head + COUNTS, counts.as_flattened())
            }
            Twist::Long => {
                let mut old = [0; Invocation::SIZE];
                self.gpu.read_memory(head + INVOCATION, &mut old)?;
                let old = Invocation::from_bytes(&old);
                let dimensions = old.dimensions();
                let new = dimensions
                    .and_then(|(size, [x, ..])| Invocation::pack(size, [x, ENDLESS[0], ENDLESS[1]]))
                    .ok_or(DeviceError::NotMapped(head))?;
                let [sizes, shifts] = new.words;
                // Above the shifts: how groups are split.
                let shifts = shifts | old.words[1] & !SHIFTS;
                self.gpu
                    .write_memory(head + INVOCATION, &sizes.to_le_bytes())?;
                self.gpu
                    .write_memory(head + INVOCATION + 4, &shifts.to_le_bytes())
            }
            // Addresses near the head stay: the job itself must be found.
            Twist::Pointer => self.replace(|va| {
                (holds(&data, va) && va.abs_diff(head) > u64::from(PAGE_SIZE)).then_some(NOWHERE)
            }),
            Twist::Above => self.replace(|va| {
                (holds(&data, va) && va.abs_diff(head) > u64::from(PAGE_SIZE)).then_some(BEYOND)
            }),
            Twist::Code => self.replace(|va| holds(&code, va).then_some(head)),
        }
    }

    fn replace(&mut self, other: impl Fn(u64) -> Option<u64>) -> Result<(), DeviceError> {
        // Pointers may have flags in low and high bits.
        const ADDRESS: u64 = 0xffff_ffff_ff00;
        let (mut page, mut changed) = ([0; PAGE_SIZE as usize], 0);
        for region in self.recording.regions() {
            for va in (region.va.get()..region.end()).step_by(PAGE_SIZE as usize) {
                self.gpu.read_memory(va, &mut page)?;
                for (at, word) in (va..).step_by(8).zip(page.as_chunks::<8>().0) {
                    let word = u64::from_le_bytes(*word);
                    if let Some(new) = other(word & ADDRESS) {
                        let new = new | word & !ADDRESS;
                        self.gpu.write_memory(at, &new.to_le_bytes())?;
                        changed += 1;
                    }
                }
            }
        }
        match changed {
            0 => Err(DeviceError::NotMapped(0)),
            _ => Ok(()),
        }
    }
}

pub(crate) fn test(
    verified: Verified<'_>,
    values: &mut Values,
    twist: Twist,
    gpu: Stock,
) -> Result<String, Box<dyn Error>> {
    let mut gpu = Twisted {
        gpu,
        recording: verified.recording(),
        twist: Some(twist),
    };
    wrong_then_right(&mut gpu, verified, values)
}
