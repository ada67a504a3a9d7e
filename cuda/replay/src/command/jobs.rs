// SPDX-License-Identifier: MIT OR Apache-2.0
//! `jobs` and `bench`: what a whole run gives the GPU, one thing after the other, and how long all of it takes.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::{Gpu, How, RunSession};
use clap::Args;
use gpureplay_cuda_launch::recording::{Operation, Run};

use crate::command::attempt::again;
use crate::command::failure::{Failure, Outcome};
use crate::command::report::{bytes, say, sizes};
use crate::command::target::Target;
use crate::command::weights::Given;

/// List what a whole run gives the GPU
///
/// Launches, copies, memsets, events and waits, in order.
#[derive(Args)]
pub(crate) struct Jobs {
    /// The whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
}

/// Time a whole run
///
/// As one graph and operation by operation, with copies of inputs and outputs.
#[derive(Args)]
pub(crate) struct Bench {
    /// The whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
    /// Runs of each kind.
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Seconds that one replay may take.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
    /// Which GPU.
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: i32,
    /// The file of weights, if it does not lie beside the recording.
    #[arg(long, value_name = "FILE.safetensors")]
    weights: Option<PathBuf>,
}

fn whole(
    target: &Target,
) -> Result<(gpureplay_cuda_launch::recording::Recording, u32, Run), Failure> {
    let recording = target.recording()?;
    let Some(number) = target.run(&recording)? else {
        return Err(Failure::Usage(
            "this command takes a whole run: DIR#runK".into(),
        ));
    };
    let run = recording.run(number)?;
    Ok((recording, number, run))
}

impl Jobs {
    pub(crate) fn execute(&self) -> Outcome {
        let (_, _, run) = whole(&self.target)?;
        for (number, operation) in run.operations.iter().enumerate() {
            let stream = match operation.stream() {
                Some(stream) => format!("stream {stream}"),
                None => "host".into(),
            };
            say!("{number:>6}  {stream:<9} {}", words(&run, operation));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// An operation in words.
fn words(run: &Run, operation: &Operation) -> String {
    match operation {
        Operation::Launch {
            kernel,
            grid,
            block,
            shared,
            ..
        } => {
            let kernel = run.kernels.get(*kernel as usize);
            let name = kernel.map_or("", |kernel| &kernel.name);
            let shared = match shared {
                0 => String::new(),
                size => format!(", {size} B shared"),
            };
            format!(
                "launch {} of {}{shared}: {name}",
                sizes(*grid),
                sizes(*block)
            )
        }
        Operation::Set {
            element,
            width,
            height,
            value,
            ..
        } => {
            let size = u64::from(*element)
                .saturating_mul(*width)
                .saturating_mul(*height);
            format!("set {} to {value:#x}", bytes(size))
        }
        Operation::In { input, .. } => match run.inputs.get(*input as usize) {
            Some(port) => format!("input {}, {}", port.name, bytes(port.size)),
            None => "input".into(),
        },
        Operation::Out { output, .. } => match run.outputs.get(*output as usize) {
            Some(port) => format!("output {}, {}", port.name, bytes(port.size)),
            None => "output".into(),
        },
        Operation::Copy { size, .. } => format!("copy {}", bytes(*size)),
        Operation::Record { event, .. } => format!("record event {event}"),
        Operation::Wait { event, .. } => format!("wait for event {event}"),
        Operation::HostStream { .. } => "the host waits for the stream".into(),
        Operation::HostEvent { event } => format!("waits for event {event}"),
        Operation::HostAll {} => "waits for everything".into(),
    }
}

impl Bench {
    pub(crate) fn execute(&self) -> Outcome {
        let began = Instant::now();
        let (recording, number, run) = whole(&self.target)?;
        let gpu = Gpu::open(self.gpu)?;
        let time_limit = Duration::from_secs(self.timeout);
        let weights = Given::of(&recording, &run, self.weights.as_deref())?;
        let weights = weights.map(Given::bytes);
        let mut session =
            RunSession::open(gpu, &recording, run, weights, time_limit).map_err(again)?;
        session.execute(How::Graph)?;
        let first = began.elapsed();
        say!(
            "run {number} on {}: first output after {:.0} ms",
            session.gpu().info().name,
            first.as_secs_f64() * 1e3
        );
        for (how, name) in [(How::Graph, "one graph "), (How::Launches, "one by one")] {
            let times = session.time(how, self.runs)?;
            say!(
                "  {name}  median {:.2} us, least {:.2} us, spread {:.2} us, of {} runs",
                times.median(),
                times.least(),
                times.spread(),
                times.runs()
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}
