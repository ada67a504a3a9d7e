// SPDX-License-Identifier: MIT OR Apache-2.0
//! A render node of panfrost or panthor, with the model as GPU, inside an app's process.
//!
//! `LD_PRELOAD=libgpureplay_node.so` answers `open("/dev/dri/renderD128")` with Linux's panfrost (version 1.3), or
//! panthor (1.2) for command streams: unmodified OpenCL apps run on Mesa without GPU, driver or root.
//! `GPUREPLAY_NODE_GPU` names the GPU.
//!
//! Files, objects and fences are memory files: the kernel counts holders, and apps map objects themselves. Chains run
//! inside SUBMIT, streams inside GROUP_SUBMIT: no fence is ever pending. Not there: `stat` and `/sys` (EGL looks
//! there), performance counters, the parent's files in a child of `fork`.

mod descriptor;
mod errno;
mod faults;
mod file;
#[cfg(not(test))]
mod interpose;
mod lock;
mod machine;
#[cfg(not(test))]
mod next;
mod node;
mod object;
mod ranges;
mod sync;
mod user;
mod vm;

pub use errno::{Errno, Result};
pub use node::{MappedFile, Node};
