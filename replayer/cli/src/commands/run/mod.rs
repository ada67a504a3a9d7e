// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay run`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use gpureplay_format::{Opcode, SegmentKind};
use gpureplay_library::device::Choice;
use gpureplay_library::expectation::{Comparison, Expectations};
use gpureplay_library::{
    Bindings, HeldSignals, Layer, Recording, Selection, Session, TensorKind, layers_named, shown,
};

use crate::Result;
use crate::common::arguments::{tolerance, whole_number};
use crate::common::classification::Choice as ClassChoice;
use crate::common::destinations::Force;
use crate::common::device_option::DeviceOption;
use crate::common::evaluation::ManyInputs;
use crate::common::failure::Failure;
use crate::common::fault_argument::Inject;
use crate::common::job_watch::{JobWatch, WatchOptions};
use crate::common::layer_options::LayerOptions;
use crate::common::model_options::ModelOptions;
use crate::common::progress::Progress;
use crate::common::repeat::StateOptions;
use crate::common::run_report::{OutputReport, Report, SpecialValues};
use crate::common::tensor_arguments::TensorFile;
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;

mod many;
mod remarks;
mod session;

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
  gpureplay run recordings/digits-g52 --inputs tools/digits/held-out/images.npy --truth tools/digits/held-out/labels.npy
      360 pictures in one process: how many are right, which are not
  gpureplay run recordings/digits-g52 --inputs recordings/digits-g52/inputs --output answers.csv
      the output of each input in a row; .npy has one more dimension
  gpureplay run recordings/digits-g52 --until conv2 --output-layer
      the first layers, and what the last of them computes, in conv2.npy
  gpureplay run recordings/digits-g52 --layers pool1.. --input conv2=mine.npy
      the layers behind it with another value of conv2; those before do not run
  gpureplay run recordings/digits-g52 --trace run.perfetto.json
      a time line of layers, chains, jobs and uploads, for ui.perfetto.dev; --trace - prints a table
  gpureplay run recordings/digits-g52 --jobs layer:conv2 --per-job
      how long the jobs of a layer take
  gpureplay run recordings/train-digits-g52 --state-in initial.safetensors --repeat 352 --inputs batches/ \\
      --output loss=losses.npy --state-out learnt.safetensors
      352 steps of training, each with its own batch, and what was learnt
  gpureplay run digits.pack --device optee --input 3.npy --output answer.npy
      in OP-TEE's secure world, which checks signature and counter of the pack itself
  gpureplay run recordings/digits-g52 --inject job-fault@300 --retry 1
      a job fails, the GPU is reset, and the second attempt gives the right answer";

/// Replay a recording with your inputs
///
/// Inputs are .npy files of the declared type and shape. Outputs are compared with the expected ones where the manifest
/// knows a case with the same inputs.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// File for an input, weight or intermediate tensor: .npy, .bin, .safetensors, .png or .jpg; `-` is standard input. Other names: .npy if the file begins as one, else raw.
    /// `FILE.bin:f32[8,8]` states type and shape, which must be the tensor's
    #[arg(
        short,
        long = "input",
        visible_alias = "bind",
        value_name = "[NAME=]FILE"
    )]
    inputs: Vec<TensorFile>,
    #[command(flatten)]
    many: ManyInputs,
    #[command(flatten)]
    states: StateOptions,
    /// Another trained model: a .safetensors file with all weights, or a directory with a NAME.npy for each
    #[arg(long, value_name = "DIR|FILE")]
    weights: Option<PathBuf>,
    /// Where to write an output: .npy, .bin (elements only) or .json, in which NaN and infinities are strings; `-` is standard output, as .npy
    #[arg(short, long = "output", value_name = "[NAME=]FILE", value_parser = TensorFile::written)]
    outputs: Vec<TensorFile>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    layers: LayerOptions,
    /// What an output is compared with, instead of the manifest's expectation
    #[arg(short, long = "expect", value_name = "[NAME=]FILE")]
    expected: Vec<TensorFile>,
    /// Largest relative difference from the expected output [default: the manifest's, or 1e-5]
    #[arg(long, value_name = "RELATIVE", value_parser = tolerance)]
    tolerance: Option<f64>,
    #[command(flatten)]
    on: DeviceOption,
    /// Replay even if the device is not the GPU that was recorded; results may be wrong and jobs may fault
    #[arg(long = "i-know-this-is-the-wrong-gpu")]
    wrong_gpu: bool,
    /// After a failure start again up to N times, from the last segment boundary that was reached
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<u32>)]
    retry: u32,
    /// Make the device fail once: KIND@CALL (such as job-fault@200) or a number that both follow from
    #[arg(long, value_name = "FAULT")]
    inject: Option<Inject>,
    #[command(flatten)]
    watch: WatchOptions,
    /// Write what each job did (kernel, dimensions, operations, bytes, time) to FILE, one JSON object in a line for each. Model only
    #[arg(long, value_name = "FILE.jsonl")]
    trace_lines: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    classes: ClassChoice,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    trust: TrustOptions,
}

impl Run {
    pub(crate) fn execute(&self) -> Result {
        let started = Instant::now();
        let trust = self.trust.read()?;
        let recording = Recording::open_trusted(&self.recording, &trust)?;
        if let (None, Some(seal)) = (trust.key, recording.files().seal()) {
            terminal::note(format!("{}: {seal}", shown(&self.recording)));
        }
        let watches = self.watch.given() || self.trace_lines.is_some();
        self.on.choose(&recording, watches || self.model.given());
        if self.states.repeat.is_some() {
            return self.execute_repeatedly(&recording);
        }
        if self.many.given() {
            return self.execute_many(&recording);
        }
        let lines = self.trace_lines.as_ref();
        let recording = match self.watch.given() || lines.is_some() {
            true => recording.apart()?,
            false => recording,
        };
        let files = recording.files();
        let mut watch = JobWatch::new(&self.watch, lines, &recording, self.on.device())?;
        // From before the device is opened until it is closed.
        let _held = HeldSignals::if_needed(matches!(self.on.device(), Choice::DevMem(_)));
        let constant = self.constant_outputs(&recording);
        let (mut session, inputs) = self.session(&recording, self.model, watch.as_ref())?;
        // Drivers take one run's chains in less time than joining layers. With register access, one chain saves
        // accesses.
        let by_driver = matches!(
            self.on.device(),
            Choice::Panfrost | Choice::Panthor | Choice::Kbase
        );
        session.join_layers(!by_driver);
        let classes = self.classes.read()?;
        let layers = recording.layers();
        let selection = session.select(self.layers.range(layers)?)?;
        let running = layers.get(selection.running()).unwrap_or_default();
        let named = |given: &[TensorFile], option| {
            named(given, session.bindings(), TensorKind::Output, option)
        };
        let mut output_files = named(&self.outputs, "--output")?;
        let layer = self.layers.output(&selection, layers, session.bindings())?;
        output_files.extend(layer);
        let expected = named(&self.expected, "--expect")?;
        for name in output_files.keys().chain(expected.keys()) {
            want(name, (layers, running), &mut session)?;
        }
        // Fail before any result is written.
        for name in reported(&session, running).chain(output_files.keys()) {
            let (_, info) = session.bindings().named(name)?;
            classes.fit(name, info.shape.iter().product())?;
        }
        // The case expects the recorded weights and all layers.
        let case = match &self.weights {
            None if selection.running().start == 0 => session.bindings().case(files, &inputs),
            _ => None,
        };
        let mut destinations =
            self.destinations((files, &session), &inputs, output_files.values())?;
        if let Some(watch) = &watch {
            watch.claim(&mut destinations)?;
            watch.begin(&mut session);
        }
        self.has_standard_output(&destinations)?;
        let case = case.filter(|_| self.states.state_in.is_none());
        let expectations = Expectations::new(files, session.bindings(), case, &expected)?;
        let counts = jobs(&recording, running);

        let prepared = started.elapsed();
        let result = self.replay(&mut session, &selection, counts, watch.as_mut());
        let per_job = match &mut watch {
            Some(watch) => {
                let report = watch.report(&mut session, 0);
                watch.write(&report, &destinations, !self.json)?;
                Some(report).filter(|_| self.watch.per_job())
            }
            None => None,
        };
        let retries = result?;
        let found: Vec<_> = session.take_outputs().collect();
        let mut outputs = BTreeMap::new();
        for (name, tensor) in &found {
            let file = output_files.get(name).cloned();
            let comparison = expectations.compare(name, tensor, self.tolerance)?;
            let report = OutputReport {
                element: tensor.dtype().name(),
                shape: tensor.shape().to_vec(),
                file,
                comparison: comparison.map(|comparison| Comparison {
                    expected: files.shown(&comparison.expected),
                    ..comparison
                }),
                top: classes.of(files, name, tensor)?,
                constant: constant.contains(name),
                special: SpecialValues::of(tensor),
            };
            outputs.insert(name.clone(), report);
        }
        self.states.write(&destinations, &mut session)?;
        for (name, tensor) in found {
            if let Some(path) = output_files.get(&name) {
                destinations.write_tensor(path, &tensor)?;
            }
        }
        let timing = *session.timing();
        let working = session.working();
        let report = Report {
            recording: files.name(),
            device: session.description(),
            on_model: session.device().is_some_and(|device| device.is_model()),
            layers: self.layers.chosen().then(|| selection.clone()),
            recorded_values: selection.takes_recorded_values(),
            inputs: inputs
                .into_iter()
                .map(|(name, file)| (name, files.shown(&file)))
                .collect(),
            jobs: counts.0,
            setup_jobs: counts.1,
            chains: timing.chains,
            load: prepared + timing.load,
            replay: timing.run,
            device_seconds: working.map(|time| time.as_secs_f64()),
            retries,
            outputs,
            per_job,
        };
        match self.json {
            true => terminal::json(&mut terminal::stdout(), &report)?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                report.print(&mut out, session.bindings(), &classes)?;
            }
        }
        Ok(report.outcome())
    }

    /// Closes the device. Returns failed attempts.
    fn replay(
        &self,
        session: &mut Session,
        selection: &Selection,
        (jobs, setup_jobs): (u64, u64),
        mut watch: Option<&mut JobWatch>,
    ) -> Result<u32> {
        let device = session.device().filter(|device| device.is_model());
        let _progress = device.map(|device| {
            Progress::start(
                "replaying",
                device.job_counter(),
                Some(jobs + setup_jobs),
                "jobs",
            )
        });
        if let Some(watch) = watch.as_deref_mut() {
            let started = Instant::now();
            if session.prepare().is_ok() {
                watch.loaded(session, started.elapsed());
            }
        }
        let result = session.run_layers(selection.running());
        if let Some(watch) = watch {
            watch.ran(session, selection.running(), true);
        }
        result?;
        let mut retries = session.timing().retries;
        if let Err(error) = session.close() {
            if retries >= self.retry {
                return Err(error.into());
            }
            retries += 1;
        }
        if let Some(inject) = self.inject {
            inject.must_have_happened(session.device())?;
        }
        Ok(retries)
    }
}

fn named(
    given: &[TensorFile],
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

fn want(name: &str, (layers, running): (&[Layer], &[Layer]), session: &mut Session) -> Result<()> {
    let (index, info) = session.bindings().named(name)?;
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
    session.keep(name)?;
    Ok(())
}

fn reported<'a>(session: &'a Session, running: &'a [Layer]) -> impl Iterator<Item = &'a String> {
    let computed = running.iter().flat_map(|layer| &layer.outputs);
    let tensors = session.bindings().tensors();
    let computed = computed.filter_map(|index| tensors.get(*index as usize));
    let outputs = computed.filter(|info| info.kind == TensorKind::Output);
    outputs.map(|info| &info.name)
}

fn jobs(recording: &Recording, running: &[Layer]) -> (u64, u64) {
    let recording = recording.verified().recording();
    let segments = recording.segments().iter();
    let other = segments.filter(|segment| segment.kind != SegmentKind::Run.code());
    (
        running.iter().map(|layer| u64::from(layer.jobs)).sum(),
        other
            .map(|segment| u64::from(recording.count(segment, Opcode::Rearm)))
            .sum(),
    )
}
