// SPDX-License-Identifier: MIT OR Apache-2.0
//! What OpenCL notes say: names of job chains, and tensors that no file names.
//!
//! [`launches`] gives each chain to a launch, [`propose`] makes tensors of what the host wrote and read. Both check
//! notes against the trace: launch sizes against job descriptors, transfers against GPU memory. What disagrees gets
//! a remark instead of a name. `copies` follows the runtime's CPU copies, which a replay does not repeat, to their
//! source, or refuses the trace. Without notes, [`propose_unnoted`] takes what differs between two runs.

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
