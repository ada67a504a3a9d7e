// SPDX-License-Identifier: MIT OR Apache-2.0
//! Project tasks.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod cuda;
mod dist;
mod docs;
mod examples;
mod foreign;
mod guest;
mod links;
mod mesa;
mod node;
mod repository;
mod rules;
mod trust;
mod words;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use gpureplay_task::{error, files};

/// Tasks of the project that are more than `cargo build`.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    Check(check::Check),
    Cuda(cuda::Cuda),
    /// The full-system guest: Debian's kernel and GPU stack in QEMU, with our model as the GPU.
    Guest(guest::Guest),
    /// Benchmarks: the model beside pocl.
    Bench(bench::Bench),
    Dist(dist::Dist),
    Docs(docs::Docs),
    Examples(examples::Examples),
    Foreign(foreign::Foreign),
    Install(dist::Install),
    Links(links::Links),
    Mesa(mesa::Mesa),
    Node(node::Node),
    Packages(dist::packages::Packages),
    Mutants(trust::Mutants),
    Mutation(trust::Mutation),
    Faults(trust::Faults),
    Fuzz(trust::Fuzz),
    Cost(trust::Cost),
    Sanitize(trust::Sanitize),
    Reliability(trust::Reliability),
    Words(words::Words),
    /// What verifier, engine and firmware cost in bytes; that no panic and no floating point is in them.
    Size(guest::Guest),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().task {
        Task::Check(check) => check.execute(),
        Task::Cuda(cuda) => cuda.execute(),
        Task::Guest(guest) => guest.execute(None),
        Task::Bench(bench) => bench.execute(),
        Task::Dist(dist) => dist.execute(),
        Task::Docs(docs) => docs.execute(),
        Task::Examples(examples) => examples.execute(),
        Task::Foreign(foreign) => foreign.execute(),
        Task::Install(install) => install.execute(),
        Task::Packages(packages) => packages.execute(),
        Task::Links(links) => links.execute(),
        Task::Mesa(mesa) => mesa.execute(),
        Task::Node(node) => node.execute(),
        Task::Mutants(mutants) => mutants.execute(),
        Task::Mutation(mutation) => mutation.execute(),
        Task::Faults(faults) => faults.execute(),
        Task::Fuzz(fuzz) => fuzz.execute(),
        Task::Cost(cost) => cost.execute(),
        Task::Sanitize(sanitize) => sanitize.execute(),
        Task::Reliability(reliability) => reliability.execute(),
        Task::Words(words) => words.execute(),
        Task::Size(guest) => guest.execute(Some("size")),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
