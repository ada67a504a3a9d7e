// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay run`: replay a recording with new inputs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use gpureplay_core::{Gpu, Options, ReplayError, Verified};
use gpureplay_format::layout::Segment;
use gpureplay_format::{Opcode, Recording, SegmentKind};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Bindings, Files, Layer, TensorKind, layers_named, shown};
use mali_model::Observer;

use crate::common::arguments::whole_number;
use crate::common::classification::Choice as ClassChoice;
use crate::common::destinations::{Destinations, Force};
use crate::common::expectations::{Comparison, Expectations, tolerance};
use crate::common::failure::Failure;
use crate::common::held_signals::Held;
use crate::common::job_trace::Trace;
use crate::common::layer_options::{Layers, Step};
use crate::common::model_options::ModelOptions;
use crate::common::progress::Progress;
use crate::common::recording_source::{Place, Trust};
use crate::common::replay::{Effort, Inject, replay};
use crate::common::run_report::{OutputReport, Report, SpecialValues};
use crate::common::tensor_arguments::Given;
use crate::common::terminal;
use crate::{Result, explain};

const EXAMPLES: &str = "\
Examples:
  gpureplay run recordings/acl-gemm-g52
      the first case of the manifest, compared with its expected outputs
  gpureplay run recordings/acl-gemm-g52 --input a=my.npy --output out.npy
      another input; --input FILE and --output FILE are enough where there is only one
  gpureplay run recordings/acl-gemm-g52 --input a=my.npy --expect out=mine.npy --json
      compared with a file of your own, result for scripts
  gpureplay run recordings/digits-g52 --input recordings/digits-g52/inputs/3.npy --top 3
      the three most probable classes
  gpureplay run recordings/digits-g52 --input 3.png --weights mine.safetensors
      a picture, and another trained model; --bind conv1.weight=w.npy replaces one weight
  gpureplay run recordings/digits-g52 --until conv2 --output-layer
      the first layers, and what the last of them computes, in conv2.npy
  gpureplay run recordings/digits-g52 --layers pool1.. --input conv2=mine.npy
      the layers behind it with another value of conv2; those before do not run
  gpureplay run recordings/digits-g52 --trace -
      a table of its jobs: kernels, dimensions, operations by unit, bytes, time
  gpureplay run recordings/digits-g52 --inject job-fault@300 --retry 1
      a job fails, the GPU is reset, and the second attempt gives the right answer";

/// Replay a recording with new inputs
///
/// Inputs are .npy files of the declared type and shape. Outputs are compared with the expected ones where the manifest
/// knows a case with the same input files.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// File for an input, weight or intermediate tensor: .npy, .bin, .safetensors, .png or .jpg; `-` is an .npy file on standard input
    #[arg(
        short,
        long = "input",
        visible_alias = "bind",
        value_name = "[NAME=]FILE.npy"
    )]
    inputs: Vec<Given>,
    /// Another trained model: a .safetensors file with all weights, or a directory with a NAME.npy for each
    #[arg(long, value_name = "DIR|FILE.safetensors")]
    weights: Option<PathBuf>,
    /// Where to write an output: .npy, .bin (elements only) or .json, in which NaN and infinities are strings; `-` is standard output, as .npy
    #[arg(short, long = "output", value_name = "[NAME=]FILE")]
    outputs: Vec<Given>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    layers: Layers,
    /// What an output is compared with, instead of the manifest's expectation
    #[arg(short, long = "expect", value_name = "[NAME=]FILE.npy")]
    expected: Vec<Given>,
    /// Largest relative difference from the expected output [default: the manifest's, or 1e-5]
    #[arg(long, value_name = "RELATIVE", value_parser = tolerance)]
    tolerance: Option<f64>,
    /// What to replay on: model, model:GPU such as model:g76, nano (the nano driver), nano:shared (takes turns), nano:direct, devmem, devmem:BOARD
    #[arg(short, long, value_name = "DEVICE", default_value = "model")]
    device: Choice,
    /// Replay even if the device is not the GPU that was recorded; results may be wrong and jobs may fault
    #[arg(long = "i-know-this-is-the-wrong-gpu")]
    wrong_gpu: bool,
    /// After a failure start again up to N times, from the last segment boundary that was reached
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<u32>)]
    retry: u32,
    /// Make the device fail once: KIND@CALL (such as job-fault@200) or a number that both follow from
    #[arg(long, value_name = "FAULT")]
    inject: Option<Inject>,
    /// Write what each job did (kernel, dimensions, operations, bytes, time) to FILE as JSON lines; `-` prints a table. Model only
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    classes: ClassChoice,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    trust: Trust,
}

impl Run {
    pub(crate) fn execute(&self) -> Result {
        let started = Instant::now();
        let place = Place::open(&self.recording, &self.trust)?;
        let files = Files::read(place.path())?;
        let verified = files.verify()?;
        let recording = *verified.recording();
        let mut bindings = Bindings::new(&recording, &files.path);
        let inputs = self.bind(&files, &mut bindings)?;
        let classes = self.classes.read()?;
        let layers = Layer::all(&recording);
        let part = self.layers.part(&layers, &bindings)?;
        let running = layers.get(part.running()).unwrap_or_default();
        let takes = |tensor: usize| running.iter().any(|l| l.inputs.contains(&(tensor as u32)));
        bindings.require(|tensor| !self.layers.chosen() || takes(tensor))?;
        let mut output_files =
            self.named(&self.outputs, &bindings, TensorKind::Output, "--output")?;
        output_files.extend(self.layers.output(&part, &layers, &bindings)?);
        let expected = self.named(&self.expected, &bindings, TensorKind::Output, "--expect")?;
        for name in output_files.keys().chain(expected.keys()) {
            want(name, (&layers, running), &mut bindings)?;
        }
        // The manifest expects what the recorded weights give to a network whose layers all run.
        let case = match &self.weights {
            None if part.running().start == 0 => files.case_for(&inputs),
            _ => None,
        };
        let destinations = self.destinations((&files, &place), &inputs, output_files.values())?;
        let expectations = Expectations::new(&files, &bindings, case, &expected)?;

        let trace = self.trace.as_ref().map(|_| Arc::new(Trace::default()));
        let observer = trace.clone().map(|trace| trace as Arc<dyn Observer>);
        let _held = Held::while_using(&self.device);
        let mut device = Device::open_observed(
            &self.device,
            recording.gpu_id(),
            self.model.into(),
            observer,
        )?;
        let steps = part.steps(&layers);
        let counts = jobs(&recording, &steps);
        let (result, effort, fault) = self.replay(
            &mut device,
            verified,
            (&mut bindings, &steps),
            (counts, started),
        );
        if let (Some(trace), Some(path)) = (trace, &self.trace) {
            trace.write(path, &destinations)?;
        }
        result.map_err(|error| {
            let text = explain::replay_error(&recording, &error);
            Failure::Device(format!("{}: {text}", shown(&place.shown(&files.path))))
        })?;
        if let Some(never) = fault {
            return Err(never);
        }

        let mut outputs = BTreeMap::new();
        for (name, tensor) in bindings.outputs() {
            let file = output_files.get(&name).cloned();
            if let Some(path) = &file {
                destinations.write_tensor(path, &tensor)?;
            }
            let report = OutputReport {
                element: tensor.dtype().name(),
                shape: tensor.shape().to_vec(),
                file,
                comparison: expectations.compare(&name, &tensor, self.tolerance)?.map(
                    |comparison| Comparison {
                        expected: place.shown(&comparison.expected),
                        ..comparison
                    },
                ),
                top: classes.of(&files, &name, &tensor)?,
                special: SpecialValues::of(&tensor),
            };
            outputs.insert(name, report);
        }
        let report = Report {
            recording: files.name(),
            device: device.description().to_owned(),
            on_model: device.is_model(),
            layers: self.layers.chosen().then(|| part.clone()),
            recorded_values: part.takes_recorded_values(),
            inputs: inputs
                .into_iter()
                .map(|(name, file)| (name, place.shown(&file)))
                .collect(),
            jobs: counts.0,
            setup_jobs: counts.1,
            chains: effort.chains,
            load: effort.load,
            replay: effort.replay,
            device_seconds: device.working().map(|time| time.as_secs_f64()),
            retries: effort.retries,
            outputs,
        };
        match self.json {
            true => report.print_json(&mut terminal::stdout())?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                report.print(&mut out, &bindings, &classes)?;
            }
        }
        Ok(report.outcome())
    }

    /// Takes the places of all results, none of which is a file that is read.
    fn destinations<'a>(
        &self,
        (files, place): (&Files, &Place),
        inputs: &BTreeMap<String, PathBuf>,
        outputs: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Destinations> {
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads(&self.recording);
        destinations.reads_recording(files);
        place.reads(&mut destinations);
        let given = self.expected.iter().map(|given| &given.path);
        for path in inputs.values().chain(&self.weights).chain(given) {
            destinations.reads(path);
        }
        self.classes.reads(&mut destinations);
        for path in outputs {
            destinations.claim_tensor(path)?;
        }
        if let Some(trace) = &self.trace {
            destinations.claim(trace)?;
        }
        if self.json && destinations.takes_standard_output() {
            return Err(Failure::Usage(
                "--json and another result both want standard output; give the other one a file"
                    .into(),
            ));
        }
        Ok(destinations)
    }

    /// Reads the files of inputs and weights; gives the inputs.
    fn bind(&self, files: &Files, bindings: &mut Bindings) -> Result<BTreeMap<String, PathBuf>> {
        let inputs = self.chosen_inputs(files, bindings)?;
        if let Some(path) = &self.weights {
            bindings.bind_all_weights(path)?;
        }
        for (name, path) in &inputs {
            bindings.bind_file(files, name, path)?;
        }
        bindings.bind_weights(files)?;
        Ok(inputs)
    }

    /// Replays with the fault that was asked for, and shows how far it is. `jobs` are those of the run and of set-up.
    fn replay(
        &self,
        device: &mut Device,
        verified: Verified<'_>,
        (bindings, steps): (&mut Bindings, &[Step]),
        ((jobs, setup_jobs), started): ((u64, u64), Instant),
    ) -> (
        std::result::Result<(), ReplayError>,
        Effort,
        Option<Failure>,
    ) {
        // Only the model counts jobs as they end.
        let _progress = device
            .is_model()
            .then(|| Progress::start("replaying", device.job_counter(), jobs + setup_jobs));
        let options = Options {
            ignore_identity: self.wrong_gpu,
        };
        let mut work = |gpu: &mut dyn Gpu| {
            replay(
                gpu,
                verified,
                options,
                (&mut *bindings, steps),
                self.retry,
                started,
            )
        };
        let Some(inject) = self.inject else {
            let (result, effort) = work(device.gpu());
            return (result, effort, None);
        };
        let mut disturbed = inject.on(device.gpu());
        let (result, effort) = work(&mut disturbed);
        let never = (!disturbed.fired()).then(|| inject.never(disturbed.calls()));
        (result, effort, never)
    }

    /// What was given by name or by being the only one; the inputs of the manifest's first case if only weights were.
    fn chosen_inputs(
        &self,
        files: &Files,
        bindings: &Bindings,
    ) -> Result<BTreeMap<String, PathBuf>> {
        let mut inputs = self.named(&self.inputs, bindings, TensorKind::Input, "--input")?;
        let weight = |name: &String| {
            let mut tensors = bindings.tensors().iter();
            tensors.any(|t| t.name == *name && t.kind == TensorKind::Weight)
        };
        if inputs.keys().all(weight) {
            for (name, file) in files.case().into_iter().flat_map(|case| &case.inputs) {
                let file = files.directory.join(file);
                inputs.entry(name.clone()).or_insert(file);
            }
        }
        Ok(inputs)
    }

    /// Gives every `[NAME=]FILE` its name.
    fn named(
        &self,
        given: &[Given],
        bindings: &Bindings,
        kind: TensorKind,
        option: &str,
    ) -> Result<BTreeMap<String, PathBuf>> {
        let mut named = BTreeMap::new();
        for given in given {
            let name = given.resolve(bindings.tensors(), kind, option)?;
            if named.insert(name.clone(), given.path.clone()).is_some() {
                return Err(Failure::Usage(format!("{option} names {name} twice")));
            }
        }
        Ok(named)
    }
}

/// Makes room for a tensor that one of the layers that run computes.
fn want(
    name: &str,
    (layers, running): (&[Layer], &[Layer]),
    bindings: &mut Bindings,
) -> Result<()> {
    let (index, info) = bindings.named(name)?;
    if !running
        .iter()
        .any(|layer| layer.outputs.contains(&(index as u32)))
    {
        return Err(Failure::Usage(format!(
            "{} {name} is not computed by the layers that run; {}",
            info.kind.name(),
            layers_named(layers)
        )));
    }
    bindings.want(name)?;
    Ok(())
}

/// Jobs of the steps that run, and jobs of set-up and finish.
fn jobs(recording: &Recording<'_>, steps: &[Step]) -> (u64, u64) {
    let segments = recording.segments();
    let of = |segment: &Segment| u64::from(recording.count(segment, Opcode::Rearm));
    let running = steps.iter().filter(|step| !step.skip);
    let run = running.filter_map(|step| segments.get(step.segment as usize));
    let other = segments.iter();
    let other = other.filter(|segment| segment.kind != SegmentKind::Run.code());
    (run.map(of).sum(), other.map(of).sum())
}
