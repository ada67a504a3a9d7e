// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of compilation.

use gpureplay_format::{EncodeError, MAX_SUBMITTED_JOBS};
use gpureplay_trace::{Problem, TraceError};
use mali_facts::registers::{ADDRESS_SPACES, JobStatus};
use mali_jobs::streams::WalkError;

use crate::chain::ChainError;
use crate::tag::error::TagError;

/// Why a trace does not become a recording.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// Unreadable trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Incomplete trace.
    #[error("the trace is not complete: {0}")]
    Incomplete(#[from] Problem),
    /// Unreadable note of an OpenCL layer.
    #[error("record {sequence}: {source}")]
    Note {
        /// Record number.
        sequence: u64,
        /// Why.
        source: gpureplay_trace::note::NoteError,
    },
    /// No job was submitted.
    #[error(
        "the trace contains no GPU job: did the app use the GPU? (check the app's output and RUSTICL_ENABLE=panfrost)"
    )]
    NoJobs,
    /// GPU_ID was never read.
    #[error(
        "the trace does not say which GPU it is from (no read of GPU_ID): load the recorder before the GPU's driver"
    )]
    NoIdentity,
    /// A submitted job never completed.
    #[error("job {job} was submitted but never completed")]
    JobUnfinished {
        /// Index.
        job: usize,
    },
    /// A job failed in the recorded run.
    #[error("job {job} (chain {chain:#x}) failed while it was recorded: {} ({:#x}); see the kernel log", status.name().unwrap_or("unknown status"), status.0)]
    JobFailed {
        /// Index.
        job: usize,
        /// Chain's GPU address.
        chain: u64,
        /// JS_STATUS.
        status: JobStatus,
    },
    /// A chain cannot be followed.
    #[error("job {job}: {source}")]
    Chain {
        /// Index.
        job: usize,
        /// Why.
        source: ChainError,
    },
    /// A command stream cannot be followed.
    #[error("job {job}: the command stream has, at {source}")]
    Stream {
        /// Index.
        job: usize,
        /// Why.
        source: WalkError,
    },
    /// A descriptor that a job wrote, as the trace has it.
    #[error(
        "job {job}: its descriptor at {va:#x} was written while job {during} ran; the trace has it as that job's work, so a recording would lack it: record again"
    )]
    WrittenByAJob {
        /// Index.
        job: usize,
        /// Its header's GPU address.
        va: u64,
        /// Index of the job that ran.
        during: usize,
    },
    /// Too many jobs.
    #[error(
        "with job {job} (record {sequence}), the submissions have more than the {MAX_SUBMITTED_JOBS} jobs in all that a trace may have: record less of the app"
    )]
    TooManyJobs {
        /// Index.
        job: usize,
        /// Record number.
        sequence: u64,
    },
    /// SUBMIT and the registers disagree.
    #[error(
        "job {job}: SUBMIT says chain {submit:#x}, JS_HEAD_NEXT was written with {register:#x}"
    )]
    ChainMismatch {
        /// Index.
        job: usize,
        /// Chain in the SUBMIT record.
        submit: u64,
        /// Chain in the registers.
        register: u64,
    },
    /// Jobs of two programs.
    #[error(
        "job {job} uses other page tables ({root:#x}) than the jobs before it ({first:#x}): two programs used the GPU during the recording; record one app alone"
    )]
    SecondContext {
        /// Index.
        job: usize,
        /// First job's page-table root.
        first: u64,
        /// This job's page-table root.
        root: u64,
    },
    /// No GPU has the job's address space.
    #[error(
        "job {job} (record {sequence}) is submitted in address space {space}, and a GPU has at most {ADDRESS_SPACES}: the trace is damaged"
    )]
    AddressSpace {
        /// Index.
        job: usize,
        /// Record number.
        sequence: u64,
        /// Address space.
        space: u32,
    },
    /// A job started before the previous one completed.
    #[error(
        "job {job} (record {sequence}) started while the job before it ran; the recorder must serialise jobs"
    )]
    JobsOverlap {
        /// Index.
        job: usize,
        /// Record number.
        sequence: u64,
    },
    /// A doorbell without SUBMIT.
    #[error("record {sequence} starts a job without a SUBMIT record before it")]
    DoorbellWithoutSubmit {
        /// Record number.
        sequence: u64,
    },
    /// COMPLETE without SUBMIT.
    #[error("record {sequence} completes a job that was not submitted on this slot")]
    CompleteWithoutSubmit {
        /// Record number.
        sequence: u64,
    },
    /// A page dump at the wrong time.
    #[error("record {sequence}: the dump of page {va:#x} does not belong to a job")]
    PageOrder {
        /// Record number.
        sequence: u64,
        /// GPU address.
        va: u64,
    },
    /// A write to an unknown register.
    #[error(
        "record {sequence} writes {value:#x} to the unknown register {offset:#06x}; a replay would not know whether it matters"
    )]
    UnknownRegister {
        /// Record number.
        sequence: u64,
        /// Byte offset.
        offset: u32,
        /// Value.
        value: u32,
    },
    /// No GPU has the address.
    #[error("record {sequence} is about {va:#x}, and addresses have 48 bits: the trace is damaged")]
    Address {
        /// Record number.
        sequence: u64,
        /// GPU address.
        va: u64,
    },
    /// Too much memory.
    #[error("the trace maps {pages} pages, more than the 4 GiB that a recording may have")]
    TooMuchMemory {
        /// Pages mapped.
        pages: u64,
    },
    /// Executable memory changed while the program ran.
    #[error(
        "shader code at {va:#x} was {what} between the first run's jobs (job {job}); this cannot be replayed repeatedly"
    )]
    CodeChanged {
        /// GPU address.
        va: u64,
        /// What happened.
        what: &'static str,
        /// Index.
        job: usize,
    },
    /// A tensor's page also holds something to be kept apart.
    #[error("tensor '{name}' lies at {va:#x} in a page that also holds {what}")]
    TensorPage {
        /// Tensor name.
        name: String,
        /// GPU address.
        va: u64,
        /// What else is there.
        what: &'static str,
    },
    /// A weight's memory has another use during a run.
    #[error(
        "weight '{name}' lies at {va:#x}, which every run loads or restores (before job {job}): it cannot be replaced when the recording is opened; --fixed-weights makes a constant of it; if the app reads it from a file, name it as an input with --reads"
    )]
    WeightInRun {
        /// Tensor name.
        name: String,
        /// GPU address.
        va: u64,
        /// Index.
        job: usize,
    },
    /// The app itself writes a state during a run.
    #[error(
        "state '{name}' lies at {va:#x}, where the app writes before job {job}: only jobs may change a state during a run; record one step only, or name it as an input"
    )]
    StateInRun {
        /// Tensor name.
        name: String,
        /// GPU address.
        va: u64,
        /// Index.
        job: usize,
    },
    /// A tensor was not found completely.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The recording cannot be encoded.
    #[error("encoding the recording: {0}")]
    Encode(#[from] EncodeError),
    /// The encoder's output is not a recording.
    #[error("the encoded recording does not parse: {0:?}")]
    Unreadable(gpureplay_format::ParseError),
    /// The recording breaks a replayer rule.
    #[error("the recording would break the rule '{}' in section {} at entry {} (value {:#x}): {}", _0.rule.name(), _0.section.name(), _0.index, _0.value, _0.rule.meaning().trim())]
    Unverified(gpureplay_core::Violation),
    /// Inputs do not explain how two runs differ.
    #[error("{0}")]
    Differential(#[from] crate::differential::unexplained::Unexplained),
}
