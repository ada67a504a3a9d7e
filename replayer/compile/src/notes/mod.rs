// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an OpenCL layer's notes say about a trace: names of job chains, and tensors that no file names.
//!
//! [`launches`] gives each chain to a launch, [`propose`] makes tensors of what the host wrote and read. Both check what the notes say
//! against the trace: sizes of launches against the job descriptors, contents of transfers against GPU memory. What does not agree gets no
//! name, and a remark says so. What the runtime copies on the CPU a replay does not repeat: `copies` follows it to its
//! source, or the trace is refused. Without notes, [`propose_unnoted`] takes what differs between two runs.

mod copies;
mod error;
mod events;
mod launches;
mod looped;
mod matching;
mod naming;
mod place;
mod propose;
mod steps;
mod traced;

pub use error::ProposeError;
pub use launches::{Dispatch, Launches, launches};
pub use propose::{Choices, Proposal, propose};
pub use steps::{Kept, Turn, first_turn, kept};
pub use traced::propose_unnoted;
