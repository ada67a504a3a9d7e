// SPDX-License-Identifier: MIT OR Apache-2.0
//! `jobs` and `bench`: a run's operations and times.

use std::num::NonZeroU32;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::layers::{layers, parts};
use crate::{Gpu, How, Times};
use clap::Args;
use gpureplay_cuda_launch::recording::{Operation, Recording, Run};

use crate::command::attempt::opened;
use crate::command::failure::{Failure, Outcome};
use crate::command::report::{bytes, say, sizes};
use crate::command::target::Target;

/// List what a whole run gives the GPU
///
/// Launches, copies, memsets, events and waits, in order.
#[derive(Args)]
pub(crate) struct Jobs {
    /// The whole run, DIR#runK; DIR where it holds one.
    #[arg(value_name = "DIR")]
    target: Target,
    /// One row for each layer instead of each operation.
    #[arg(long)]
    by_layer: bool,
    /// Run it N times, and say how long each layer takes.
    #[arg(long, value_name = "N", requires = "by_layer")]
    runs: Option<NonZeroU32>,
    /// Which GPU.
    #[arg(long, value_name = "N", default_value_t = 0)]
    gpu: i32,
    /// The file of weights, if it does not lie beside the recording.
    #[arg(long, value_name = "FILE.safetensors", requires = "runs")]
    weights: Option<PathBuf>,
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

fn whole(target: &Target) -> Result<(Recording, u32, Run), Failure> {
    let recording = target.recording()?;
    let number = target.whole(&recording, "this command")?;
    let run = recording.run(number)?;
    Ok((recording, number, run))
}

impl Jobs {
    pub(crate) fn execute(&self) -> Outcome {
        let (recording, number, run) = whole(&self.target)?;
        if self.by_layer {
            return self.layers(&recording, number, run);
        }
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

impl Jobs {
    fn layers(&self, recording: &Recording, number: u32, run: Run) -> Outcome {
        let layers = layers(&run);
        if layers.is_empty() {
            return Err(Failure::Usage(format!(
                "run {number} has no layers: the program named no ranges (NVTX)"
            )));
        }
        let parts = parts(&run);
        let times = match self.runs {
            Some(runs) => self.times(recording, run, &parts, runs)?,
            None => Vec::new(),
        };
        for (number, (layer, part)) in layers.iter().zip(&parts).enumerate() {
            let time = times.get(number);
            let time = time.map_or_else(String::new, |time| format!("{:>10.2} us", time.median()));
            say!(
                "{:>4}  {:>6} operations {:>6} launches{time}  {}",
                number + 1,
                part.len(),
                layer.jobs,
                layer.name
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    /// With the host's wait for the layer's end.
    fn times(
        &self,
        recording: &Recording,
        run: Run,
        parts: &[Range<u32>],
        runs: NonZeroU32,
    ) -> Result<Vec<Times>, Failure> {
        let gpu = Gpu::open_alone(self.gpu, &run)?;
        let limit = Duration::from_secs(60);
        let mut session = opened(gpu, recording, run, self.weights.as_deref(), limit)?;
        session.execute(How::Launches)?;
        let mut times = vec![Vec::new(); parts.len()];
        for _ in 0..runs.get() {
            session.restore()?;
            for (part, times) in parts.iter().zip(&mut times) {
                let began = Instant::now();
                session.execute_part(part.clone())?;
                times.push(began.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(times.into_iter().map(Times::new).collect())
    }
}

pub(crate) fn words(run: &Run, operation: &Operation) -> String {
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
        let gpu = Gpu::open_alone(self.gpu, &run)?;
        let time_limit = Duration::from_secs(self.timeout);
        let mut session = opened(gpu, &recording, run, self.weights.as_deref(), time_limit)?;
        session.execute(How::Graph)?;
        let first = began.elapsed();
        say!(
            "run {number} on {}: first output after {:.0} ms",
            session.gpu().info().name,
            first.as_secs_f64() * 1e3
        );
        for (how, name) in [(How::Graph, "one graph "), (How::Launches, "one by one")] {
            let times = session.time(how, self.runs)?;
            say!("  {name}  {times}, of {} runs", times.runs());
        }
        Ok(ExitCode::SUCCESS)
    }
}
