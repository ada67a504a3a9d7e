// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay node`.

use std::os::unix::process::CommandExt;

use clap::Args;

use crate::Result;
use crate::common::failure::Failure;
use crate::common::model_node::NodeOptions;

const EXAMPLES: &str = "\
Examples:
  gpureplay node -- clinfo
  gpureplay node --gpu g31 -- python3 app.py

The app sees a render node of the panfrost driver, /dev/dri/renderD128, whose GPU is the model. It needs Mesa with panfrost: on Arm,
Debian's mesa-opencl-icd; elsewhere what `cargo xtask mesa` builds. The exit code is the app's. Faults of the GPU are told on standard error.";

/// Run an OpenCL app on the GPU model, without a GPU
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Node {
    #[command(flatten)]
    options: NodeOptions,
    /// The app and its arguments
    #[arg(last = true, required = true, value_name = "APP")]
    app: Vec<String>,
}

impl Node {
    pub(crate) fn execute(&self) -> Result {
        let node = self.options.node()?;
        let mut command = node.command(&self.app)?;
        // Signals and the exit code are the app's own.
        let error = command.exec();
        let program = self.app.first().map_or("", String::as_str);
        Err(Failure::Usage(format!("{program}: {error}")))
    }
}
