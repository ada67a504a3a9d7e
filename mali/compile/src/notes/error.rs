// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of proposals.

use gpureplay_core::Limits;
use gpureplay_tensors::StatedError;

/// Times the bytes of the trace's GPU memory.
pub(super) const MOST_COPIES: u64 = Limits::OUTPUT_COPIES;

/// Why notes give no tensors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// The trace has no notes.
    #[error(
        "the trace has no notes of OpenCL calls: record with the layer, or a second run with another input (--second), or name the app's files with --reads and --writes"
    )]
    NoNotes,
    /// Without notes: the runs have different numbers of jobs.
    #[error(
        "the two runs have {first} and {second} jobs; a recording cannot replay a computation that depends on its input's values"
    )]
    Jobs {
        /// Jobs of the first run.
        first: usize,
        /// Jobs of the second.
        second: usize,
    },
    /// The runs do different things.
    #[error(
        "the two runs do not do the same work: step {step} is {first} in the first and {second} in the second; a recording cannot replay a computation that depends on its input's values or on which of its threads is first"
    )]
    Steps {
        /// Step number, from 0.
        step: usize,
        /// First run's step.
        first: String,
        /// Second run's step.
        second: String,
    },
    /// A launch gets another number.
    #[error(
        "launch {launch} ({kernel}) depends on the input, or on which of its threads is first: its argument '{argument}' differs between the two runs; a replay would use the recorded one"
    )]
    Scalar {
        /// Launch number.
        launch: u32,
        /// Kernel name.
        kernel: String,
        /// Name or index.
        argument: String,
    },
    /// A launch gets another number in the next step.
    #[error(
        "launch {launch} ({kernel}) depends on the step: its argument '{argument}' is another in the second step, and a replay would use the first one's; give the kernel a buffer with it, which becomes an input or a state"
    )]
    Step {
        /// Launch number.
        launch: u32,
        /// Kernel name.
        kernel: String,
        /// Name or index.
        argument: String,
    },
    /// A launch or transfer has another size in the next step.
    #[error(
        "{first} depends on the step: in the second step it is {second}, and a replay would repeat the first one; let every step have the size of the largest, and give the kernel a buffer, such as a mask, that says what counts"
    )]
    StepSize {
        /// First step's action.
        first: String,
        /// Second step's action.
        second: String,
    },
    /// A launch reads a CPU copy of what another launch computed.
    #[error(
        "{reader} reads its argument '{argument}' from a memory object that {call} filled with what {writer} computed; the CPU did the copy, which a replay does not repeat: let {reader} read the object that {writer} wrote, or copy with a kernel{}",
        if *weights { "; it depends on weights alone, so --fixed-weights, which makes constants of them, helps too" } else { "" }
    )]
    Copied {
        /// The reading launch.
        reader: String,
        /// Name or index.
        argument: String,
        /// The copying function.
        call: String,
        /// The computing launch.
        writer: String,
        /// No input contributes.
        weights: bool,
    },
    /// Without notes: what looks like an input is a copy of a job's result.
    #[error(
        "'{name}', which the CPU writes before job {job}, is what job {from} computed: the app or the runtime copies it on the CPU, which a replay does not repeat; let the later job read what the earlier one wrote, or copy with a kernel"
    )]
    Carried {
        /// Its would-be name.
        name: String,
        /// Its writing precedes this job.
        job: usize,
        /// The computing job.
        from: usize,
    },
    /// The notes need too much work.
    #[error(
        "the notes tell of so much that looking for its tensors takes too long: record less of the app, or name its files with --reads and --writes"
    )]
    TooMuchWork,
    /// The tensors have too many bytes.
    #[error(
        "the tensors would have more than {most} bytes in all, {MOST_COPIES} times the GPU memory that the trace has: record less of the app, or name its files with --reads and --writes"
    )]
    TooMuchMoved {
        /// In bytes.
        most: u64,
    },
    /// The user's statements do not fit the tensors.
    #[error(transparent)]
    Stated(#[from] StatedError),
}
