// SPDX-License-Identifier: MIT OR Apache-2.0
//! A raw trace in memory: jobs, memory, mappings and settings.
//!
//! Drops what only the driver needed. The rest's order is checked against the registers, so that no misunderstood trace
//! becomes a recording.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::ops::Deref;

use gpureplay_format::MAX_SUBMITTED_JOBS;
use gpureplay_trace::note::Note;
use gpureplay_trace::{Check, Event, Line, PAGE_SIZE, Phase, Reader, Record, RegionFlags};
use mali_facts::registers::{
    ADDRESS_SPACES, Class, GpuId, JobCommand, JobStatus, TranslationTable, address_space, gpu,
    job_slot, lookup,
};
use mali_facts::{Architecture, Launch, Profile};
use mali_jobs::streams::{Flat, flatten, payload};

use crate::chain;
use crate::error::CompileError;
use crate::pages::{Memory, Moment};

/// The recorded stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// GPU kernel driver.
    pub driver: String,
    /// Kernel release.
    pub kernel: String,
    /// GPU and CPU caches are coherent.
    pub coherent: bool,
    /// Recorded by a library in the app, not by the kernel.
    pub in_app: bool,
}

/// A submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Job slot.
    pub slot: u8,
    /// JS_CONFIG as the driver wrote it.
    pub config: u32,
    /// First header's GPU address.
    pub chain: u64,
    /// Empty for a command stream.
    pub headers: Headers,
    /// The command stream, if the work is no chain.
    pub stream: Option<Flat>,
    /// SUBMIT record number.
    pub sequence: u64,
    /// Nanoseconds from submission to completion.
    pub duration_ns: u64,
}

impl Job {
    /// Jobs, or dispatches of a stream.
    pub fn count(&self) -> usize {
        match &self.stream {
            Some(stream) => stream.dispatches.len(),
            None => self.headers.len(),
        }
    }
}

/// Headers of a chain, in order and indexed by page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    list: Vec<mali_facts::Job>,
    addresses: Vec<u64>,
}

impl Headers {
    /// Takes headers in chain order.
    pub fn new(list: Vec<mali_facts::Job>) -> Self {
        let mut addresses: Vec<u64> = list.iter().map(|job| job.address).collect();
        addresses.sort_unstable();
        Self { list, addresses }
    }

    /// Addresses in the page at `va`, ascending.
    pub fn in_page(&self, va: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self.addresses.partition_point(|address| *address < va);
        let rest = self.addresses.get(first..).unwrap_or_default();
        let here = rest.iter().copied();
        here.take_while(move |address| address - va < PAGE_SIZE as u64)
    }
}

impl Deref for Headers {
    type Target = [mali_facts::Job];

    fn deref(&self) -> &Self::Target {
        &self.list
    }
}

/// A buffer announced by the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// First GPU address.
    pub va: u64,
    /// Bytes, whole pages.
    pub size: u64,
}

/// An OpenCL note and its place in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The note.
    pub note: Note,
    /// Submissions before it.
    pub jobs: usize,
    /// The last buffer mapped since the previous note.
    pub mapped: Option<Buffer>,
}

/// What a replay needs of a raw trace.
#[derive(Debug, Default)]
pub struct Capture {
    /// Recorded stack.
    pub origin: Origin,
    /// First value of each GPU constant, by register offset.
    pub identity: BTreeMap<u32, u32>,
    /// Between the last reset and the first job: register and value in order.
    pub settings: Vec<(u32, u32)>,
    /// In order.
    pub jobs: Vec<Job>,
    /// Page contents over time.
    pub memory: Memory,
    /// Access of each page, by address, over the whole trace.
    pub access: BTreeMap<u64, RegionFlags>,
    /// Replaced ones included.
    pub buffers: Vec<Buffer>,
    /// Before each job: new memory, zero until written.
    pub mapped: BTreeMap<Moment, Vec<Buffer>>,
    /// OpenCL layer notes in order.
    pub opencl: Vec<Noted>,
    /// Other remarks in the trace.
    pub remarks: Vec<String>,
    /// Records read.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
}

/// The engine owns core, power and address-space registers.
const SETTINGS: [u32; 4] = [
    gpu::JM_CONFIG,
    gpu::SHADER_CONFIG,
    gpu::TILER_CONFIG,
    gpu::L2_MMU_CONFIG,
];

#[derive(Default)]
struct Reading {
    written: BTreeMap<u32, u32>,
    root: Option<u64>,
    started: Option<u64>,
    settings: Vec<(u32, u32)>,
    read_values: BTreeMap<u32, u32>,
    mapped: Option<Buffer>,
    /// Address, pages, flags.
    regions: HashSet<(u64, u64, u32)>,
    listed: u64,
    jobs: usize,
    /// Headers, and the moment of their last submission.
    described: BTreeMap<u64, Moment>,
    /// A stream without a dispatch runs.
    idle: bool,
}

impl Reading {
    fn written(&self, offset: u32) -> u32 {
        self.written.get(&offset).copied().unwrap_or(0)
    }

    fn written64(&self, low: u32) -> u64 {
        u64::from(self.written(low)) | u64::from(self.written(low + 4)) << 32
    }
}

impl Capture {
    /// # Errors
    /// The trace is incomplete, a job did not end with DONE, or no driver produces the order of events.
    pub fn read(stream: impl Read) -> Result<Capture, CompileError> {
        let mut reader = Reader::new(stream);
        let mut check = Check::new();
        let mut reading = Reading::default();
        let mut capture = Capture::default();
        while let Some(record) = reader.next_record()? {
            check.observe(&record)?;
            capture.records += 1;
            capture.take(&record, &mut reading)?;
        }
        capture.bytes = reader.position();
        check.finish()?;
        if reading.started.is_some() {
            return Err(CompileError::JobUnfinished {
                job: capture.jobs.len().saturating_sub(1),
            });
        }
        if capture.jobs.is_empty() {
            return Err(CompileError::NoJobs);
        }
        if !capture.identity.contains_key(&gpu::GPU_ID) {
            return Err(CompileError::NoIdentity);
        }
        capture.buffers.sort_by_key(|b| (b.va, b.size));
        capture.buffers.dedup();
        Ok(capture)
    }

    /// Up to a submission and a note, both excluded; later memory is unknown.
    #[must_use]
    pub fn until(mut self, jobs: usize, notes: usize) -> Capture {
        self.jobs.truncate(jobs);
        self.opencl.truncate(notes);
        let end = self.end();
        self.memory.forget_after(end);
        self.mapped.retain(|moment, _| *moment <= end);
        self
    }

    /// GPU_ID as read.
    pub fn gpu_id(&self) -> u32 {
        self.identity.get(&gpu::GPU_ID).copied().unwrap_or(0)
    }

    /// Whether work is command streams.
    pub fn has_streams(&self) -> bool {
        self.jobs.iter().any(|job| job.stream.is_some())
    }

    /// What a submission launches, by its descriptors just before.
    pub fn launches(&self, submission: usize) -> Vec<Launch> {
        let Some(job) = self.jobs.get(submission) else {
            return Vec::new();
        };
        let Some(stream) = &job.stream else {
            let headers = job.headers.iter();
            return headers
                .filter_map(|header| self.launch(submission, header))
                .collect();
        };
        let moment = Moment::before(submission);
        let read = |va: u64, to: &mut [u8]| self.memory.read(moment, va, to);
        let dispatches = stream.dispatches.iter().map(payload);
        dispatches
            .filter_map(|(payload, environment)| Launch::requested(&read, &payload, &environment))
            .collect()
    }

    /// What a compute job launches, by its descriptors just before.
    pub fn launch(&self, submission: usize, job: &mali_facts::Job) -> Option<Launch> {
        let profile = Profile::by_product(GpuId(self.gpu_id()).product());
        let architecture = profile.map_or(Architecture::default(), |it| it.architecture);
        let moment = Moment::before(submission);
        chain::launch(&self.memory, moment, job, architecture)
    }

    /// Bytes of GPU memory mapped or known, whichever are more.
    pub fn memory_bytes(&self) -> u64 {
        let pages = self.memory.known().max(self.access.len());
        (pages as u64).saturating_mul(PAGE_SIZE as u64)
    }

    /// Moment after the last job.
    pub fn end(&self) -> Moment {
        Moment::after(self.jobs.len().saturating_sub(1))
    }

    fn take(&mut self, record: &Record<'_>, reading: &mut Reading) -> Result<(), CompileError> {
        match record.event {
            Event::Begin(begin) => {
                self.origin = Origin {
                    driver: begin.driver_name.to_string(),
                    kernel: begin.kernel_release.to_string(),
                    coherent: begin.coherent,
                    in_app: begin.in_app,
                };
            }
            Event::RegRead { offset, value }
                if lookup(offset).is_some_and(|r| r.class() == Class::Identity) =>
            {
                self.identity.entry(offset).or_insert(value);
            }
            Event::RegRead { offset, value } if SETTINGS.contains(&offset) => {
                reading.read_values.insert(offset, value);
            }
            Event::RegWrite { offset, value } => {
                self.register_write(record, reading, offset, value)?
            }
            Event::Submit {
                slot,
                space,
                chain_head,
                stream_bytes: 0,
            } => {
                self.submit(record, reading, slot, space, chain_head)?;
            }
            Event::Submit {
                slot,
                space,
                chain_head,
                stream_bytes,
            } => self.stream(record, reading, (slot, space), (chain_head, stream_bytes))?,
            Event::Complete { slot, status } => self.complete(record, reading, slot, status)?,
            Event::Region {
                flags, va, pages, ..
            } => self.region(
                (record.sequence, reading),
                RegionFlags(flags.0 & 0xf),
                va,
                pages,
            )?,
            Event::Page {
                phase, va, bytes, ..
            } => {
                if va >= ADDRESS_END {
                    let sequence = record.sequence;
                    return Err(CompileError::Address { sequence, va });
                }
                let moment = match (phase, reading.started) {
                    (Phase::Before, None) => Moment::before(self.jobs.len()),
                    (Phase::After, Some(_)) if reading.idle => Moment::before(self.jobs.len()),
                    (Phase::After, Some(_)) => Moment::after(self.jobs.len().saturating_sub(1)),
                    // The dump after a job may follow its COMPLETE record.
                    (Phase::After, None) if !self.jobs.is_empty() => {
                        Moment::after(self.jobs.len() - 1)
                    }
                    _ => {
                        return Err(CompileError::PageOrder {
                            sequence: record.sequence,
                            va,
                        });
                    }
                };
                self.memory.set(moment, va, bytes);
            }
            Event::Map { va, size, .. } => {
                let moment = Moment::before(self.jobs.len());
                self.buffers.push(Buffer { va, size });
                reading.mapped = Some(Buffer { va, size });
                let mapped = self.mapped.entry(moment).or_default();
                mapped.push(Buffer { va, size });
            }
            Event::IrqEnter { line: Line::Mmu } => {
                // A page fault fails its job, which COMPLETE reports; a growing heap does not.
            }
            Event::Note(text) => match Note::parse(text) {
                None => self.remarks.push(text.to_string()),
                Some(note) => self.opencl.push(Noted {
                    note: note.map_err(|source| CompileError::Note {
                        sequence: record.sequence,
                        source,
                    })?,
                    jobs: self.jobs.len(),
                    mapped: reading.mapped.take(),
                }),
            },
            _ => {}
        }
        Ok(())
    }

    /// Every job lists the same pages again.
    fn region(
        &mut self,
        (sequence, reading): (u64, &mut Reading),
        flags: RegionFlags,
        va: u64,
        pages: u64,
    ) -> Result<(), CompileError> {
        if !reading.regions.insert((va, pages, flags.0)) {
            return Ok(());
        }
        reading.listed = reading.listed.saturating_add(pages);
        if va >= ADDRESS_END {
            return Err(CompileError::Address { sequence, va });
        }
        if pages > MAX_PAGES || reading.listed > MAX_LISTED {
            let pages = reading.listed;
            return Err(CompileError::TooMuchMemory { pages });
        }
        for page in 0..pages {
            let at = va + page * PAGE_SIZE as u64;
            let old = self.access.entry(at).or_insert(flags);
            *old = *old | flags;
        }
        match self.access.len() as u64 {
            pages if pages > MAX_PAGES => Err(CompileError::TooMuchMemory { pages }),
            _ => Ok(()),
        }
    }

    fn register_write(
        &mut self,
        record: &Record<'_>,
        reading: &mut Reading,
        offset: u32,
        value: u32,
    ) -> Result<(), CompileError> {
        reading.written.insert(offset, value);
        let Some(located) = lookup(offset) else {
            return Err(CompileError::UnknownRegister {
                sequence: record.sequence,
                offset,
                value,
            });
        };
        match located.class() {
            // A reset loses earlier settings.
            Class::Command if value == 1 || value == 2 => {
                reading.settings.clear();
                reading.read_values.clear();
            }
            Class::Quirk if SETTINGS.contains(&offset) => {
                match reading
                    .settings
                    .iter_mut()
                    .find(|(register, _)| *register == offset)
                {
                    Some((_, old)) => *old = value,
                    // Writing back what was read changes nothing, whatever bits the GPU starts with.
                    None if reading.read_values.get(&offset) == Some(&value) => {}
                    None => reading.settings.push((offset, value)),
                }
            }
            Class::Doorbell if value == JobCommand::Start as u32 && reading.started.is_none() => {
                return Err(CompileError::DoorbellWithoutSubmit {
                    sequence: record.sequence,
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// A stream without a dispatch only makes driver settings: it is not part of the program.
    fn stream(
        &mut self,
        record: &Record<'_>,
        reading: &mut Reading,
        (queue, space): (u8, u32),
        (address, bytes): (u64, u32),
    ) -> Result<(), CompileError> {
        let (job, sequence) = (self.jobs.len(), record.sequence);
        self.begins(reading, sequence, space)?;
        let read = |va: u64| {
            let mut word = [0; 8];
            let read = self.memory.read(Moment::before(job), va, &mut word);
            read.then(|| u64::from_le_bytes(word))
        };
        let stream = flatten(address, bytes, LONGEST_STREAM, read)
            .map_err(|source| CompileError::Stream { job, source })?;
        reading.started = Some(record.time_ns);
        reading.idle = stream.dispatches.is_empty();
        if reading.idle {
            return Ok(());
        }
        reading.jobs += stream.dispatches.len();
        if reading.jobs > MAX_SUBMITTED_JOBS {
            return Err(CompileError::TooManyJobs { job, sequence });
        }
        self.jobs.push(Job {
            slot: queue,
            config: 0,
            chain: address,
            headers: Headers::default(),
            stream: Some(stream),
            sequence,
            duration_ns: 0,
        });
        Ok(())
    }

    fn begins(
        &mut self,
        reading: &mut Reading,
        sequence: u64,
        space: u32,
    ) -> Result<(), CompileError> {
        let job = self.jobs.len();
        if reading.started.is_some() {
            return Err(CompileError::JobsOverlap { job, sequence });
        }
        if space >= ADDRESS_SPACES {
            return Err(CompileError::AddressSpace {
                job,
                sequence,
                space,
            });
        }
        let table = reading.written64(address_space::offset(space, address_space::TRANSTAB_LO));
        let root = TranslationTable(table).root();
        match reading.root {
            Some(first) if first != root => {
                return Err(CompileError::SecondContext { job, first, root });
            }
            _ => reading.root = Some(root),
        }
        if job == 0 {
            self.settings = reading.settings.clone();
        }
        Ok(())
    }

    fn submit(
        &mut self,
        record: &Record<'_>,
        reading: &mut Reading,
        slot: u8,
        space: u32,
        chain: u64,
    ) -> Result<(), CompileError> {
        let job = self.jobs.len();
        let register = |r| job_slot::offset(slot.into(), r);
        let head = reading.written64(register(job_slot::HEAD_NEXT_LO));
        if reading.started.is_none() && head != chain {
            return Err(CompileError::ChainMismatch {
                job,
                submit: chain,
                register: head,
            });
        }
        self.begins(reading, record.sequence, space)?;
        let headers = chain::walk(&self.memory, Moment::before(job), chain)
            .map_err(|source| CompileError::Chain { job, source })?;
        self.written_by_the_app(reading, &headers)?;
        reading.jobs += headers.len();
        if reading.jobs > MAX_SUBMITTED_JOBS {
            return Err(CompileError::TooManyJobs {
                job,
                sequence: record.sequence,
            });
        }
        let config = reading.written(register(job_slot::CONFIG_NEXT));
        self.jobs.push(Job {
            slot,
            config,
            chain,
            headers: Headers::new(headers),
            stream: None,
            sequence: record.sequence,
            duration_ns: 0,
        });
        reading.started = Some(record.time_ns);
        Ok(())
    }

    /// Recorders may take what an app writes while a job runs for that job's work.
    fn written_by_the_app(
        &self,
        reading: &mut Reading,
        headers: &[mali_facts::Job],
    ) -> Result<(), CompileError> {
        let (job, now) = (self.jobs.len(), Moment::before(self.jobs.len()));
        for header in headers {
            let va = header.address;
            let seen = reading.described.insert(va, now);
            // The job's type, which no GPU writes.
            let changed = self.memory.word_changed(seen, now, va + 16);
            if let Some(moment) = changed.filter(|moment| moment.is_after()) {
                let during = moment.job();
                return Err(CompileError::WrittenByAJob { job, va, during });
            }
        }
        Ok(())
    }

    fn complete(
        &mut self,
        record: &Record<'_>,
        reading: &mut Reading,
        slot: u8,
        status: u32,
    ) -> Result<(), CompileError> {
        let Some(started) = reading.started.take() else {
            return Err(CompileError::CompleteWithoutSubmit {
                sequence: record.sequence,
            });
        };
        if std::mem::take(&mut reading.idle) {
            let job = self.jobs.len();
            return match status == JobStatus::DONE.0 {
                true => Ok(()),
                false => Err(CompileError::JobFailed {
                    job,
                    chain: 0,
                    status: JobStatus(status),
                }),
            };
        }
        let index = self.jobs.len() - 1;
        let job = &mut self.jobs[index];
        if job.slot != slot {
            return Err(CompileError::CompleteWithoutSubmit {
                sequence: record.sequence,
            });
        }
        if status != JobStatus::DONE.0 {
            return Err(CompileError::JobFailed {
                job: index,
                chain: job.chain,
                status: JobStatus(status),
            });
        }
        job.duration_ns = record.time_ns.saturating_sub(started);
        Ok(())
    }
}

/// Instructions.
const LONGEST_STREAM: u32 = 1 << 16;
const ADDRESS_END: u64 = 1 << 48;
/// 4 GiB, as in a recording.
const MAX_PAGES: u64 = 1 << 20;
/// Pages in distinct regions.
const MAX_LISTED: u64 = 1 << 24;
