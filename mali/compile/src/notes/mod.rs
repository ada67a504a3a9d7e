// SPDX-License-Identifier: MIT OR Apache-2.0
//! OpenCL notes: names of job chains, and tensors without files.
//!
//! [`launches`] gives chains to launches, [`propose`] makes tensors of host writes and reads. Both check notes against
//! the trace: launch sizes against job descriptors, transfers against GPU memory. What disagrees gets a remark. Without
//! notes, [`propose_unnoted`] takes differences between two runs.

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
