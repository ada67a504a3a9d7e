// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functional model of a Mali GPU. [`Gpu`] takes jobs, [`StreamDevice`] command streams through firmware, and
//! [`Streams`] is what those compute.
//!
//! Software writes the registers of a [`Gpu`]; memory is a [`gpureplay_memory::Bus`]. Hosts run waiting chains
//! ([`Gpu::has_work`], [`Gpu::run`]) and watch the interrupt lines ([`Gpu::irq`]).
//!
//! ```
//! use std::sync::Arc;
//! use gpureplay_memory::Ram;
//! use mali_model::{Gpu, Options, Profile};
//! use mali_facts::registers::{GpuInterrupt, gpu};
//!
//! let profile = Profile::by_name("g52").unwrap();
//! let mut gpu = Gpu::new(profile, Arc::new(Ram::new(16).unwrap()), Options::default());
//! gpu.write32(gpu::GPU_INT_MASK, GpuInterrupt::RESET_COMPLETED.bits());
//! gpu.write32(gpu::GPU_CMD, 1);
//! assert_eq!(gpu.read32(gpu::GPU_INT_RAWSTAT), GpuInterrupt::RESET_COMPLETED.bits());
//! assert!(!gpu.irq().any(), "a reset clears the mask as well");
//! ```

#![forbid(unsafe_code)]

mod address_space;
mod chain;
mod clock;
mod compute;
mod draw;
pub mod driven;
mod environment;
mod firmware;
mod gpu;
mod interrupt;
mod log;
mod machine;
mod observer;
mod order;
mod power;
mod slot;
mod space;
mod streams;
mod walk;
mod writer;

pub use firmware::{StreamDevice, StreamFinished, StreamWork};
pub use gpu::{Finished, Gpu, Options, UsedUp, Work};
pub use gpureplay_shader::{Access, JOB_COST, Statistics, probe};
pub use interrupt::IrqLines;
pub use log::{Level, Log, NoLog};
pub use machine::{Done, Machine, Task, register_name};
pub use mali_facts::{Architecture, PROFILES, Product, Profile, Source, StreamGpu};
pub use mali_isa::valhall::streams::Sequencer;
pub use mali_shader::Dispatch;
pub use observer::{ComputeReport, JobReport, Observer};
pub use space::FaultPolicy;
pub use streams::{StreamFault, Streams};
pub use walk::{Mapping, Translation};
pub use writer::Writer;
