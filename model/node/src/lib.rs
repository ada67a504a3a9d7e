// SPDX-License-Identifier: MIT OR Apache-2.0
//! A render node of panfrost or panthor whose GPU is the model, inside an app's own process.
//!
//! `LD_PRELOAD=libgpureplay_node.so` answers the app's `open("/dev/dri/renderD128")`. The node speaks Linux's
//! panfrost (version 1.3), or panthor (1.2) for a GPU with command streams, so unmodified OpenCL apps run on Mesa
//! without GPU, driver or root. `GPUREPLAY_NODE_GPU` names the GPU.
//!
//! Open files, objects and fences are memory files: the kernel counts holders, the app maps objects itself, and
//! copies of descriptors need no bookkeeping. Each file has its own address space. A chain runs inside SUBMIT, a
//! stream inside GROUP_SUBMIT, so no fence is ever pending. Not there: `stat` and `/sys` for the node (EGL looks
//! there), performance counters, the parent's files in a child of `fork`, which has a node of its own.

mod descriptor;
mod errno;
mod faults;
mod file;
#[cfg(not(test))]
mod interpose;
mod machine;
#[cfg(not(test))]
mod next;
mod node;
mod object;
mod ranges;
mod stream_machine;
mod sync;
mod tables;
mod user;
mod vm;

pub use errno::{Errno, Result};
pub use node::{MappedFile, Node};
