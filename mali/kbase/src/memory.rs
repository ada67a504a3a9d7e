// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's memory in this process: what lies where, and code at its new place.

use std::collections::BTreeMap;

use gpureplay_format::{Access, Recording};
use mali_facts::{
    ChainEnd, Draw, Job, JobHeader, JobType, RendererState, clause_address, descriptor_address,
    follow, job,
};

use crate::context::{Context, PAGE, Request};
use crate::error::Error;
use crate::interface::flags;
use crate::place::{CODE_ALIGNMENT, LARGEST, Reservation};

/// Bytes from the start of a renderer state to the address of its shader.
const SHADER: u64 = match RendererState::LAYOUT.offset_of("Shader") {
    Some(offset) => offset,
    None => panic!("renderer states have a shader"),
};

/// Which pages grow when the GPU touches them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// None: all pages are there from the start.
    Never,
    /// Those that the CPU never writes.
    OnFault,
}

/// Everything that is mapped. All access from here on is by address.
pub(crate) struct Memory {
    /// Recorded ranges, by start: end and whether it is code.
    regions: BTreeMap<u64, (u64, bool)>,
    /// Windows of 16 MiB with code: where they have gone.
    windows: BTreeMap<u64, u64>,
    /// Ranges of which no page was there at the start.
    growing: Vec<(u64, u64)>,
}

/// One region to be made.
struct Plan {
    va: u64,
    request: Request,
    executable: bool,
}

impl Memory {
    /// Makes all regions of a recording. `written` says whether the CPU writes to a page.
    pub(crate) fn new(
        context: &Context,
        recording: &Recording<'_>,
        growth: Growth,
        written: impl Fn(u64) -> bool,
    ) -> Result<Memory, Error> {
        let mut memory = Memory {
            regions: BTreeMap::new(),
            windows: BTreeMap::new(),
            growing: Vec::new(),
        };
        let mut plans = memory.code(recording);
        for region in recording.regions() {
            let access = Access(region.access);
            let (start, end) = (region.va.get(), region.end());
            let code = access.contains(Access::EXECUTE);
            memory.regions.insert(start, (end, code));
            if code {
                continue;
            }
            let grows = |va| growth == Growth::OnFault && !written(va);
            let mut at = start;
            while at < end {
                let first = grows(at);
                let mut to = at + PAGE;
                while to < end && to - at < LARGEST && grows(to) == first {
                    to += PAGE;
                }
                let pages = (to - at) / PAGE;
                let mut request = Request {
                    pages,
                    commit: pages,
                    extension: 0,
                    flags: flags::CPU_READ | flags::CPU_WRITE | flags::GPU_READ,
                };
                if access.contains(Access::WRITE) {
                    request.flags |= flags::GPU_WRITE;
                }
                if first {
                    request.flags |= flags::GROW_ON_FAULT;
                    request.commit = 0;
                    request.extension = 1;
                    memory.growing.push((at, to));
                }
                plans.push(Plan {
                    va: at,
                    request,
                    executable: false,
                });
                at = to;
            }
        }
        let mut reservation = Reservation::new(plans.len())?;
        for plan in &plans {
            reservation.place(context, plan.va, &plan.request, plan.executable)?;
        }
        drop(reservation);
        Ok(memory)
    }

    /// Finds a new place for every window of 16 MiB that has code, above everything else.
    fn code(&mut self, recording: &Recording<'_>) -> Vec<Plan> {
        let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
        let mut top = 0;
        for region in recording.regions() {
            top = region.end().max(top);
            if Access(region.access).contains(Access::EXECUTE) {
                let mut at = region.va.get();
                while at < region.end() {
                    let window = at & !(CODE_ALIGNMENT - 1);
                    let end = region.end().min(window + CODE_ALIGNMENT);
                    let used = ends.entry(window).or_default();
                    *used = end.max(*used);
                    at = end;
                }
            }
        }
        let mut target = top.next_multiple_of(CODE_ALIGNMENT) + CODE_ALIGNMENT;
        let mut plans = Vec::new();
        for (window, end) in ends {
            self.windows.insert(window, target);
            let pages = (end - window) / PAGE;
            plans.push(Plan {
                va: target,
                request: Request {
                    pages,
                    commit: pages,
                    extension: 0,
                    flags: flags::CPU_READ
                        | flags::CPU_WRITE
                        | flags::GPU_READ
                        | flags::GPU_EXECUTE,
                },
                executable: true,
            });
            // The driver wants twice the room, and code must not begin or end at a multiple of 4 GiB.
            target += 2 * CODE_ALIGNMENT;
        }
        plans
    }

    /// Where recorded code is now; `None` when the address is not in code.
    fn moved(&self, va: u64) -> Option<u64> {
        let (_, &(end, code)) = self.regions.range(..=va).next_back()?;
        if va >= end || !code {
            return None;
        }
        let window = va & !(CODE_ALIGNMENT - 1);
        Some(self.windows.get(&window)? + (va - window))
    }

    /// Whether a range lies in pages that come when the GPU touches them.
    pub(crate) fn grows(&self, va: u64, length: u64) -> bool {
        let inside = |&(from, to): &(u64, u64)| from < va.saturating_add(length) && va < to;
        self.growing.iter().any(inside)
    }

    /// Calls `visit(pointer, offset, bytes)` for each part of a range that lies in one piece.
    fn parts(
        &self,
        va: u64,
        length: usize,
        mut visit: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), Error> {
        let outside = Error::Unmapped {
            va,
            length: length as u64,
        };
        let mut done = 0;
        while done < length {
            let at = va.checked_add(done as u64);
            let found = at.and_then(|at| {
                let (_, &(end, _)) = self.regions.range(..=at).next_back()?;
                Some((at, end.min((at & !(PAGE - 1)) + PAGE)))
            });
            let Some((at, end)) = found.filter(|(at, end)| at < end) else {
                return Err(outside);
            };
            let count = ((end - at) as usize).min(length - done);
            visit(self.moved(at).unwrap_or(at) as *mut u8, done, count);
            done += count;
        }
        Ok(())
    }

    /// Puts bytes into memory.
    pub(crate) fn write(&mut self, va: u64, bytes: &[u8]) -> Result<(), Error> {
        self.parts(va, bytes.len(), |pointer, offset, count| {
            let from = bytes[offset..offset + count].as_ptr();
            // SAFETY: `parts` gives only addresses of regions that this object has mapped for reading and writing.
            unsafe { std::ptr::copy_nonoverlapping(from, pointer, count) };
        })
    }

    /// Puts one repeated byte into memory.
    pub(crate) fn fill(&mut self, va: u64, length: usize, byte: u8) -> Result<(), Error> {
        self.parts(va, length, |pointer, _, count| {
            // SAFETY: as in `write`.
            unsafe { std::ptr::write_bytes(pointer, byte, count) };
        })
    }

    /// Takes bytes out of memory.
    pub(crate) fn read(&self, va: u64, bytes: &mut [u8]) -> Result<(), Error> {
        self.parts(va, bytes.len(), |pointer, offset, count| {
            let to = bytes[offset..offset + count].as_mut_ptr();
            // SAFETY: as in `write`.
            unsafe { std::ptr::copy_nonoverlapping(pointer, to, count) };
        })
    }

    fn bytes<const N: usize>(&self, va: u64) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        self.read(va, &mut bytes)?;
        Ok(bytes)
    }

    /// Makes the renderer states of a chain's compute jobs point at the code's new place.
    pub(crate) fn relocate(&mut self, head: u64) -> Result<(), Error> {
        let read = |va: u64, to: &mut [u8]| self.read(va, to).is_ok();
        let chain = follow(&read, head);
        let jobs: Vec<Job> = chain.jobs(&read).collect();
        match chain.end {
            ChainEnd::Complete => {}
            ChainEnd::Unknown(va) => {
                let length = JobHeader::SIZE as u64;
                return Err(Error::Unmapped { va, length });
            }
            end @ (ChainEnd::Misaligned(at) | ChainEnd::Loop(at) | ChainEnd::TooLong(at)) => {
                return Err(Error::Chain { at, end });
            }
        }
        for job in jobs {
            if job.job_type() != Some(JobType::Compute) {
                continue;
            }
            let draw = job.address.saturating_add(job::COMPUTE_DRAW);
            let at = descriptor_address(Draw::from_bytes(&self.bytes(draw)?).state());
            let shader = RendererState::from_bytes(&self.bytes(at)?).shader();
            let code = clause_address(shader);
            if let Some(moved) = self.moved(code) {
                let pointer = moved | shader & !clause_address(u64::MAX);
                self.write(at.saturating_add(SHADER), &pointer.to_le_bytes())?;
            }
        }
        Ok(())
    }
}
