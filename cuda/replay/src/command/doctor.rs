// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doctor`: what records and replays on this machine.

use std::process::ExitCode;

use crate::{Gpu, ReplayError};
use clap::Args;

use crate::command::app::beside;
use crate::command::failure::Outcome;
use crate::command::report::{say, version};

/// Recording and replaying here, or why not. `None` without NVIDIA's driver.
#[must_use]
pub fn ways() -> Option<[Result<String, String>; 2]> {
    let gpu = match Gpu::open(0) {
        Err(ReplayError::NoDriver) => return None,
        Err(error) => return Some([Err(error.to_string()), Err(error.to_string())]),
        Ok(gpu) => gpu,
    };
    let info = gpu.info();
    let found = format!("{}, driver for CUDA {}", info.name, version(info.driver));
    let record = match beside() {
        Ok(_) => Ok(format!("a library in the app, on {found}; needs no root")),
        Err(failure) => Err(failure.to_string()),
    };
    Some([record, Ok(format!("recordings of CUDA, on {found}"))])
}

/// Check this machine for CUDA
#[derive(Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) fn execute(&self) -> Outcome {
        let gpu = Gpu::open(0)?;
        let info = gpu.info();
        let [major, minor] = info.capability;
        say!(
            "GPU      {} (sm_{major}{minor}), the first of {}",
            info.name,
            info.count
        );
        say!("driver   CUDA {}", version(info.driver));
        if info.driver < 12_040 {
            say!(
                "         older than CUDA 12.4: layouts of parameters are not told; recording needs a newer driver"
            );
        }
        if !cfg!(target_arch = "x86_64") {
            say!(
                "         programs that look the driver up with dlsym are not seen on this processor"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}
