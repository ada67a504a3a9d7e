// SPDX-License-Identifier: MIT OR Apache-2.0
//! `doctor`: what this machine has for recording and replaying.

use std::process::ExitCode;

use crate::Gpu;
use clap::Args;

use crate::command::failure::Outcome;
use crate::command::report::say;

/// Says whether this machine can record and replay CUDA kernels.
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
        say!(
            "driver   CUDA {}.{}",
            info.driver / 1000,
            info.driver % 1000 / 10
        );
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
