// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a trace does not become a recording.

use gpureplay_format::{EncodeError, MAX_SUBMITTED_JOBS};
use gpureplay_trace::{Problem, TraceError};
use mali_facts::registers::{ADDRESS_SPACES, JobStatus};
use mali_jobs::streams::WalkError;

use crate::chain::ChainError;
use crate::tag::error::TagError;

/// Why a trace does not become a recording.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The trace is not complete.
    #[error("the trace is not complete: {0}")]
    Incomplete(#[from] Problem),
    /// A note of an OpenCL layer cannot be read.
    #[error("record {sequence}: {source}")]
    Note {
        /// Number of the record.
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
    /// A job was submitted and never completed.
    #[error("job {job} was submitted but never completed")]
    JobUnfinished {
        /// Index of the job.
        job: usize,
    },
    /// A job failed while it was recorded.
    #[error("job {job} (chain {chain:#x}) failed while it was recorded: {} ({:#x}); see the kernel log", status.name().unwrap_or("unknown status"), status.0)]
    JobFailed {
        /// Index of the job.
        job: usize,
        /// GPU virtual address of its chain.
        chain: u64,
        /// JS_STATUS.
        status: JobStatus,
    },
    /// A chain cannot be followed.
    #[error("job {job}: {source}")]
    Chain {
        /// Index of the job.
        job: usize,
        /// Why.
        source: ChainError,
    },
    /// A command stream cannot be followed.
    #[error("job {job}: the command stream has, at {source}")]
    Stream {
        /// Index of the job.
        job: usize,
        /// Why.
        source: WalkError,
    },
    /// More jobs than are accepted.
    #[error(
        "with job {job} (record {sequence}), the submissions have more than the {MAX_SUBMITTED_JOBS} jobs in all that a trace may have: record less of the app"
    )]
    TooManyJobs {
        /// Index of the job.
        job: usize,
        /// Number of the record.
        sequence: u64,
    },
    /// SUBMIT and the registers disagree.
    #[error(
        "job {job}: SUBMIT says chain {submit:#x}, JS_HEAD_NEXT was written with {register:#x}"
    )]
    ChainMismatch {
        /// Index of the job.
        job: usize,
        /// Chain of the SUBMIT record.
        submit: u64,
        /// What the driver wrote.
        register: u64,
    },
    /// Jobs of two programs.
    #[error(
        "job {job} uses other page tables ({root:#x}) than the jobs before it ({first:#x}): two programs used the GPU during the recording; record one app alone"
    )]
    SecondContext {
        /// Index of the job.
        job: usize,
        /// Root of the first job's page tables.
        first: u64,
        /// Root of this job's.
        root: u64,
    },
    /// A job in an address space that no GPU has.
    #[error(
        "job {job} (record {sequence}) is submitted in address space {space}, and a GPU has at most {ADDRESS_SPACES}: the trace is damaged"
    )]
    AddressSpace {
        /// Index of the job.
        job: usize,
        /// Sequence number of the record.
        sequence: u64,
        /// The address space.
        space: u32,
    },
    /// A job started before the one before it completed.
    #[error(
        "job {job} (record {sequence}) started while the job before it ran; the recorder must serialise jobs"
    )]
    JobsOverlap {
        /// Index of the job.
        job: usize,
        /// Number of the record.
        sequence: u64,
    },
    /// A doorbell without SUBMIT.
    #[error("record {sequence} starts a job without a SUBMIT record before it")]
    DoorbellWithoutSubmit {
        /// Number of the record.
        sequence: u64,
    },
    /// COMPLETE without SUBMIT.
    #[error("record {sequence} completes a job that was not submitted on this slot")]
    CompleteWithoutSubmit {
        /// Number of the record.
        sequence: u64,
    },
    /// A page dump at the wrong time.
    #[error("record {sequence}: the dump of page {va:#x} does not belong to a job")]
    PageOrder {
        /// Number of the record.
        sequence: u64,
        /// GPU virtual address.
        va: u64,
    },
    /// A write to a register that is not in the register map.
    #[error(
        "record {sequence} writes {value:#x} to the unknown register {offset:#06x}; a replay would not know whether it matters"
    )]
    UnknownRegister {
        /// Number of the record.
        sequence: u64,
        /// Byte offset.
        offset: u32,
        /// Value.
        value: u32,
    },
    /// An address that no GPU has.
    #[error("record {sequence} is about {va:#x}, and addresses have 48 bits: the trace is damaged")]
    Address {
        /// Number of the record.
        sequence: u64,
        /// GPU virtual address.
        va: u64,
    },
    /// More memory than is accepted.
    #[error("the trace maps {pages} pages, more than the 4 GiB that a recording may have")]
    TooMuchMemory {
        /// Pages mapped.
        pages: u64,
    },
    /// Memory that the GPU executes changed while the program ran.
    #[error(
        "shader code at {va:#x} was {what} between the first run's jobs (job {job}); this cannot be replayed repeatedly"
    )]
    CodeChanged {
        /// GPU virtual address.
        va: u64,
        /// What happened.
        what: &'static str,
        /// Index of the job.
        job: usize,
    },
    /// A tensor shares a page with something that a recording must keep apart.
    #[error("tensor '{name}' lies at {va:#x} in a page that also holds {what}")]
    TensorPage {
        /// Name of the tensor.
        name: String,
        /// GPU virtual address.
        va: u64,
        /// What else is there.
        what: &'static str,
    },
    /// A weight whose memory is used for something else during a run.
    #[error(
        "weight '{name}' lies at {va:#x}, which every run loads or restores (before job {job}): it cannot be replaced when the recording is opened; --fixed-weights makes a constant of it; if the app reads it from a file, name it as an input with --reads"
    )]
    WeightInRun {
        /// Name of the tensor.
        name: String,
        /// GPU virtual address.
        va: u64,
        /// Index of the job.
        job: usize,
    },
    /// A state that the app itself writes during a run.
    #[error(
        "state '{name}' lies at {va:#x}, where the app writes before job {job}: only jobs may change a state during a run; record one step only, or name it as an input"
    )]
    StateInRun {
        /// Name of the tensor.
        name: String,
        /// GPU virtual address.
        va: u64,
        /// Index of the job.
        job: usize,
    },
    /// A tensor was not found, or not completely.
    #[error(transparent)]
    Tag(#[from] TagError),
    /// The recording cannot be encoded.
    #[error("encoding the recording: {0}")]
    Encode(#[from] EncodeError),
    /// The encoder's output is not a recording.
    #[error("the encoded recording does not parse: {0:?}")]
    Unreadable(gpureplay_format::ParseError),
    /// The recording breaks a rule of the replayer.
    #[error("the recording would break the rule '{}' in section {} at entry {} (value {:#x}): {}", _0.rule.name(), _0.section.name(), _0.index, _0.value, _0.rule.meaning().trim())]
    Unverified(gpureplay_core::Violation),
    /// Two runs differ in what the inputs do not explain.
    #[error("{0}")]
    Differential(#[from] crate::differential::unexplained::Unexplained),
}
