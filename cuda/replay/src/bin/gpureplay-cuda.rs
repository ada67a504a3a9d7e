// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands alone, for machines with only a GPU.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use gpureplay_cuda_replay::command::Cuda;

/// Record launches of CUDA kernels of an unmodified program, replay them alone.
#[derive(Parser)]
#[command(name = "gpureplay-cuda", version)]
struct Arguments {
    #[command(flatten)]
    cuda: Cuda,
}

fn main() -> ExitCode {
    Arguments::parse().cuda.execute()
}
