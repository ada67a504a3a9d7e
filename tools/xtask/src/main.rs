// SPDX-License-Identifier: MIT OR Apache-2.0
//! Project tasks: the full-system guest, figures.
#![forbid(unsafe_code)]

mod error;
mod figures;
mod guest;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of the project that are more than `cargo build`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// The full-system guest: Debian's kernel and GPU stack in QEMU, with our model as the GPU.
    Guest(guest::Guest),
    /// Draws figs/*.svg from the Graphviz sources beside them.
    Figures,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Guest(guest) => guest.execute(),
        Task::Figures => figures::draw(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
