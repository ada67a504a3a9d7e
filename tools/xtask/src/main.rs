// SPDX-License-Identifier: MIT OR Apache-2.0
//! Project tasks: the full-system guest, figures, trials.
#![forbid(unsafe_code)]

mod bench;
mod error;
mod examples;
mod figures;
mod guest;
mod size;
mod trust;

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
    /// Benchmarks: the model beside pocl.
    Bench(bench::Bench),
    Examples(examples::Examples),
    /// Draws figs/*.svg from the Graphviz sources beside them.
    Figures,
    Mutants(trust::Mutants),
    Faults(trust::Faults),
    Fuzz(trust::Fuzz),
    Sanitize(trust::Sanitize),
    Reliability(trust::Reliability),
    Size(size::Size),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Guest(guest) => guest.execute(),
        Task::Bench(bench) => bench.execute(),
        Task::Examples(examples) => examples.execute(),
        Task::Figures => figures::draw(),
        Task::Mutants(mutants) => mutants.execute(),
        Task::Faults(faults) => faults.execute(),
        Task::Fuzz(fuzz) => fuzz.execute(),
        Task::Sanitize(sanitize) => sanitize.execute(),
        Task::Reliability(reliability) => reliability.execute(),
        Task::Size(size) => size.execute(),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
