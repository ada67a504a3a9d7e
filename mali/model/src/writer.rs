// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the instruction that gave a byte its value: runs the chain in copies of its pages, then the writing job with
//! fewer clauses until one makes the difference. A clause has at most one message, so its store is known.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use gpureplay_memory::{Bus, PAGE_SIZE, Page, Ram};
use gpureplay_shader::{Access, AddressSpace, Control, FaultKind, ShaderFault, Threads};
use mali_facts::job::{PAYLOAD, WRITTEN_BACK};
use mali_facts::{JobHeader, JobType, LONGEST_CHAIN, WriteValue};
use mali_isa::valhall::streams::{Compute, walk};
use mali_shader::Dispatch;

use crate::compute;
use crate::gpu::Gpu;
use crate::space::{JobMemory, Space};
use crate::streams::{LONGEST, Streams, asked};

const MOST_PAGES: usize = 1 << 20;

/// What wrote a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// Shader's clause.
    Clause {
        /// Address.
        job: u64,
        /// Address.
        shader: u64,
        /// Address.
        clause: u64,
    },
    /// A job's status, or a write-value job.
    JobManager {
        /// Job's address.
        job: u64,
    },
    /// No job.
    Nobody,
}

type Pages = BTreeMap<u64, Vec<u8>>;

/// Copies pages at first access; writes stay there.
struct Copies<'a, B: Bus> {
    under: &'a B,
    left: &'a Pages,
    ram: Ram,
    copies: Mutex<HashMap<u64, u64>>,
}

impl<'a, B: Bus> Copies<'a, B> {
    fn new(under: &'a B, left: &'a Pages) -> Option<Self> {
        Some(Self {
            under,
            left,
            ram: Ram::new(MOST_PAGES).ok()?,
            copies: Mutex::default(),
        })
    }

    fn into_pages(self) -> Pages {
        let mut pages = self.left.clone();
        let copies = self.copies.into_inner();
        for (address, copy) in copies.unwrap_or_else(PoisonError::into_inner) {
            if let Some(page) = self.ram.page(copy) {
                let mut bytes = vec![0; PAGE_SIZE];
                page.copy_to_slice(0, &mut bytes);
                pages.insert(address, bytes);
            }
        }
        pages
    }
}

impl<B: Bus> Bus for Copies<'_, B> {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        let address = address - address % PAGE_SIZE as u64;
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&copy) = copies.get(&address) {
            return self.ram.page(copy);
        }
        let mut bytes = [0; PAGE_SIZE];
        match self.left.get(&address) {
            Some(left) => bytes.copy_from_slice(left),
            None => {
                self.under.page(address)?.copy_to_slice(0, &mut bytes);
            }
        }
        let copy = self.ram.allocate()?;
        let page = self.ram.page(copy)?;
        page.copy_from_slice(0, &bytes);
        copies.insert(address, copy);
        Some(page)
    }
}

struct Trial<'a, B: Bus> {
    bus: &'a B,
    space: &'a Space,
    left: &'a Pages,
    dispatch: &'a Dispatch,
    threads: &'a Threads,
    va: u64,
}

impl<B: Bus> Trial<'_, B> {
    /// The byte holds `start` before. Returns its value after, the job's end and the pages.
    fn run(
        &self,
        start: Option<u8>,
        clauses: u64,
    ) -> Option<(u8, Result<u64, ShaderFault>, Copies<'_, B>)> {
        let bus = Copies::new(self.bus, self.left)?;
        let memory = JobMemory {
            bus: &bus,
            space: self.space,
            stall: None,
            observer: None,
        };
        let offset = self.va as usize % PAGE_SIZE;
        if let Some(start) = start {
            let page = memory.translate(self.va, Access::Write).ok()?;
            page.store_u8(offset, start);
        }
        let control = Control::new(clauses);
        let ended = mali_shader::run(self.dispatch, &memory, self.threads, &control);
        let page = memory.translate(self.va, Access::Read).ok()?;
        let byte = page.load_u8(offset);
        let ended = ended.map(|statistics| statistics.clauses);
        Some((byte, ended, bus))
    }

    fn clause(&self, before: u8, after: u8, clauses: u64) -> Option<u64> {
        // A store of the old value shows only if the byte held another one.
        let most = clauses.saturating_mul(2).saturating_add(1024);
        let starts = [before, !after, after ^ 0x55].into_iter();
        let (start, value, clauses) = starts.take(3).find_map(|start| {
            let (value, ended, _) = self.run(Some(start), most)?;
            (value != start).then_some((start, value, ended.ok()?))
        })?;
        let (mut without, mut with) = (0, clauses);
        while with - without > 1 {
            let middle = without.midpoint(with);
            let (found, ..) = self.run(Some(start), middle)?;
            if found == value {
                with = middle;
            } else {
                without = middle;
            }
        }
        match self.run(Some(start), without)?.1 {
            Err(fault) if fault.kind == FaultKind::Budget => Some(fault.clause),
            _ => None,
        }
    }
}

struct Search<'a, B: Bus> {
    bus: &'a B,
    space: &'a Space,
    threads: Threads,
    va: u64,
    left: Pages,
    writer: Writer,
}

impl<'a, B: Bus> Search<'a, B> {
    fn new(bus: &'a B, space: &'a Space, va: u64) -> Self {
        Self {
            bus,
            space,
            threads: Threads::new(1),
            va,
            left: Pages::new(),
            writer: Writer::Nobody,
        }
    }

    fn look<T>(&self, look: impl FnOnce(&JobMemory<'_, Copies<'_, B>>) -> Option<T>) -> Option<T> {
        let copies = Copies::new(self.bus, &self.left)?;
        look(&JobMemory {
            bus: &copies,
            space: self.space,
            stall: None,
            observer: None,
        })
    }

    fn run(&mut self, job: u64, dispatch: &Dispatch) -> Option<()> {
        let [before] = self.look(|memory| memory.bytes(self.va).ok())?;
        let trial = Trial {
            bus: self.bus,
            space: self.space,
            left: &self.left,
            dispatch,
            threads: &self.threads,
            va: self.va,
        };
        let (after, ended, pages) = trial.run(None, u64::MAX)?;
        if let Some(clause) = trial.clause(before, after, ended.ok()?) {
            self.writer = Writer::Clause {
                job,
                shader: dispatch.grid.shader,
                clause,
            };
        }
        let pages = pages.into_pages();
        self.left = pages;
        Some(())
    }
}

impl<B: Bus> Gpu<B> {
    /// The last job to write the byte at `va` if the chain ran now, and its clause; nothing changes. `None`: it would
    /// not end, or needs the job manager.
    ///
    /// Jobs run on one thread, the writer some thirty times.
    pub fn writer(&self, space: u32, chain: u64, va: u64) -> Option<Writer> {
        let space = self.space(space)?;
        let mut search = Search::new(&**self.bus(), &space, va);
        let mut job = chain;
        for _ in 0..LONGEST_CHAIN {
            let header = search.look(|memory| memory.bytes(job).ok())?;
            let header = JobHeader::from_bytes(&header);
            match JobType::from_bits(header.job_type())? {
                JobType::Null | JobType::CacheFlush => {}
                JobType::WriteValue => {
                    let at = job.wrapping_add(PAYLOAD);
                    let payload = search.look(|memory| memory.bytes(at).ok())?;
                    let payload = WriteValue::from_bytes(&payload);
                    if va.wrapping_sub(payload.address()) < payload.bytes() {
                        search.writer = Writer::JobManager { job };
                    }
                }
                JobType::Compute => {
                    let profile = self.profile();
                    let read =
                        search.look(|memory| compute::dispatch(profile, memory, job).ok())?;
                    search.run(job, &read)?;
                }
                _ => return None,
            }
            if va.wrapping_sub(job) < WRITTEN_BACK {
                search.writer = Writer::JobManager { job };
            }
            job = header.next();
            if job == 0 {
                return Some(search.writer);
            }
        }
        None
    }
}

impl<B: Bus> Streams<B> {
    /// As [`Gpu::writer`], for [`Streams::run`]; a job is a dispatch. `None` also if the stream cannot be walked.
    pub fn writer(&self, root: u64, (address, bytes): (u64, u32), va: u64) -> Option<Writer> {
        let space = self.space(root);
        let mut search = Search::new(self.bus(), &space, va);
        let mut dispatches = Vec::new();
        let word = |at| search.look(|memory| memory.bytes(at).ok());
        let read = |at| word(at).map(u64::from_le_bytes);
        let found = |at, compute: &Compute| dispatches.push((at, *compute));
        walk(address, bytes, LONGEST, read, found).ok()?;
        for (at, compute) in dispatches {
            let profile = &self.gpu().profile;
            let (payload, shaders) = asked(&compute);
            let read = search.look(|memory| {
                compute::from_registers(profile, memory, at, &payload, &shaders).ok()
            })?;
            search.run(at, &read)?;
        }
        Some(search.writer)
    }
}
