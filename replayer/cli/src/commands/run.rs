// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay run`: replay a recording with new inputs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use gpureplay_format::{Opcode, SegmentKind};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::expectation::{Comparison, Expectations};
use gpureplay_library::values::picture_remark;
use gpureplay_library::{
    Bindings, ElementType, Files, HeldSignals, Layer, Recording, Selection, Session, TensorKind,
    escaped, layers_named, shown,
};

use crate::Result;
use crate::common::arguments::{tolerance, whole_number};
use crate::common::classification::Choice as ClassChoice;
use crate::common::constant;
use crate::common::destinations::{Destinations, Force};
use crate::common::device_option::DeviceOption;
use crate::common::evaluation::{How, ManyInputs, Others, only_output};
use crate::common::failure::{Failure, Outcome};
use crate::common::fault_argument::Inject;
use crate::common::interrupt::Interrupt;
use crate::common::job_watch::{JobWatch, WatchOptions};
use crate::common::layer_options::LayerOptions;
use crate::common::model_options::ModelOptions;
use crate::common::progress::Progress;
use crate::common::repeat::{self, StateOptions};
use crate::common::rows;
use crate::common::run_report::{OutputReport, Report, SpecialValues};
use crate::common::tensor_arguments::TensorFile;
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;

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

/// GPU memory of all sessions that run at the same time, in bytes at most.
const MOST_MEMORY: u64 = 256 << 20;

/// Replay a recording with your inputs
///
/// Inputs are .npy files of the declared type and shape. Outputs are compared with the expected ones where the manifest
/// knows a case with the same inputs.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Run {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// File for an input, weight or intermediate tensor: .npy, .bin, .safetensors, .png or .jpg; `-` is standard input. Other names: .npy if the file begins as one, else raw
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
    #[arg(short, long = "output", value_name = "[NAME=]FILE")]
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
        // Signals wait from before the device is opened until it is closed.
        let _held = HeldSignals::if_needed(matches!(self.on.device(), Choice::DevMem(_)));
        let constant = self.constant_outputs(&recording);
        let (mut session, inputs) = self.session(&recording, self.model, watch.as_ref())?;
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
        // A result that is written is not left behind by a failure that could be seen before.
        for name in reported(&session, running).chain(output_files.keys()) {
            let (_, info) = session.bindings().named(name)?;
            classes.fit(name, info.shape.iter().product())?;
        }
        // The manifest expects what the recorded weights give to a network whose layers all run.
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
            true => report.print_json(&mut terminal::stdout())?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                report.print(&mut out, session.bindings(), &classes)?;
            }
        }
        Ok(report.outcome())
    }

    /// Runs many times, each from what the run before left.
    fn execute_repeatedly(&self, recording: &Recording) -> Result {
        let runs = self.states.repeat.unwrap_or(1);
        // Threads that are started from here on leave Ctrl-C to it.
        let interrupt = Interrupt::watch();
        let _held = HeldSignals::if_needed(matches!(self.on.device(), Choice::DevMem(_)));
        self.constant_outputs(recording);
        let (mut session, inputs) = self.session(recording, self.model, None)?;
        let output_files = named(
            &self.outputs,
            session.bindings(),
            TensorKind::Output,
            "--output",
        )?;
        let files = recording.files();
        let destinations = self.destinations((files, &session), &inputs, output_files.values())?;
        self.has_standard_output(&destinations)?;
        let from = self.many.inputs_from.as_deref();
        let (result, values) = repeat::run(&mut session, (runs, from), &output_files, &interrupt)?;
        session.close()?;
        if let Some(inject) = self.inject {
            inject.must_have_happened(session.device())?;
        }
        self.states.write(&destinations, &mut session)?;
        for (path, value) in values {
            destinations.write_tensor(&path, &value)?;
        }
        match self.json {
            true => result.print_json(&mut terminal::stdout())?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                result.print(&mut out)?;
            }
        }
        Ok(Outcome::Done)
    }

    /// Runs once for each of many inputs.
    fn execute_many(&self, recording: &Recording) -> Result {
        if self.inject.is_some() || self.states.state_out.is_some() {
            return Err(Failure::Usage(
                "--inputs without --repeat takes no --inject and --state-out: each input is an inference of its own; --repeat N goes on from run to run"
                    .into(),
            ));
        }
        // Threads that are started from here on leave Ctrl-C to it.
        let interrupt = Interrupt::watch();
        let _held = HeldSignals::if_needed(matches!(self.on.device(), Choice::DevMem(_)));
        let sessions = self.sessions(recording);
        let model = self
            .model
            .with_threads(self.model.thread_count() / sessions);
        self.constant_outputs(recording);
        let (mut session, inputs) = self.session(recording, model, None)?;
        let output = only_output(&session)?;
        let output_files = named(
            &self.outputs,
            session.bindings(),
            TensorKind::Output,
            "--output",
        )?;
        let file = output_files.get(&output.name);
        let none = std::iter::empty();
        let mut destinations = self.destinations((recording.files(), &session), &inputs, none)?;
        if let Some(path) = file {
            rows::claim(path, &mut destinations)?;
        }
        self.has_standard_output(&destinations)?;
        let open = || {
            let mut session = self.session_here(recording, model, None)?;
            session.ignore_identity(self.wrong_gpu);
            session.set_retries(self.retry);
            Ok(session)
        };
        let others = Others {
            count: sessions - 1,
            open: &open,
        };
        let files = recording.files();
        let classes = self.classes.read()?;
        let how = How {
            interrupt: &interrupt,
            rows: file.is_some(),
        };
        let mut evaluation =
            self.many
                .evaluate(&mut session, &others, classes.labels(files), how)?;
        if let Some(path) = file {
            let (names, bytes) = evaluation.take_rows();
            rows::write(&destinations, path, &output, &names, bytes)?;
        }
        match self.json {
            true => evaluation.print_json(&mut terminal::stdout())?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                evaluation.print(&mut out)?;
            }
        }
        Ok(Outcome::Done)
    }

    /// How many sessions to run many inputs in at the same time: on the model one for each host thread, as far as their GPU memory is small. States
    /// pass from one inference to the next.
    fn sessions(&self, recording: &Recording) -> usize {
        let mut states = recording.tensors().iter();
        let states = states.any(|tensor| tensor.kind == TensorKind::State);
        if states || !matches!(self.on.device(), Choice::Model(_)) {
            return 1;
        }
        let regions = recording.verified().recording().regions().iter();
        let memory = regions
            .map(|region| region.bytes())
            .fold(1, u64::saturating_add);
        let room = MOST_MEMORY / memory;
        self.model.thread_count().min(room as usize).max(1)
    }

    /// A session with all values bound, and the files of its inputs.
    fn session(
        &self,
        recording: &Recording,
        model: ModelOptions,
        watch: Option<&JobWatch>,
    ) -> Result<(Session, BTreeMap<String, PathBuf>)> {
        let mut session = match self.on.device() {
            Choice::Optee if self.inject.is_some() || watch.is_some() => {
                return Err(Failure::Usage(
                    "--device optee: nothing disturbs or watches the GPU inside of the secure world; leave --inject, --trace, \
                     --trace-lines and --per-job out"
                        .into(),
                ));
            }
            Choice::Optee => {
                // The kernel ends no process in the middle of a call of the secure world.
                let interrupt = Interrupt::watch();
                let session = Session::in_secure_world(recording.clone())?;
                if let Some(canceller) = session.canceller() {
                    interrupt.cancels(canceller);
                }
                session
            }
            _ => self.session_here(recording, model, watch)?,
        };
        session.ignore_identity(self.wrong_gpu);
        session.set_retries(self.retry);
        session.use_recorded_values(self.layers.recorded_values);
        let inputs = self.chosen_inputs(recording.files(), session.bindings())?;
        if let Some(path) = &self.weights {
            session.bind_weights(path)?;
        }
        for (name, path) in &inputs {
            session.bind_file(name, path)?;
        }
        self.states.bind(&mut session)?;
        for remark in self.remarks(recording.files(), session.bindings(), &inputs)? {
            terminal::note(remark);
        }
        Ok((session, inputs))
    }

    /// Says which outputs are the same for all inputs. Only where the model runs the recording anyway, and all of it.
    fn constant_outputs(&self, recording: &Recording) -> Vec<String> {
        if !matches!(self.on.device(), Choice::Model(_)) || self.layers.chosen() {
            return Vec::new();
        }
        let found = constant::remarks(recording).into_iter();
        let said = found.map(|(name, remark)| {
            terminal::note(format!("{}: {remark}", shown(&self.recording)));
            name
        });
        said.collect()
    }

    /// What may make an answer worthless, although nothing failed.
    fn remarks(
        &self,
        files: &Files,
        bindings: &Bindings,
        inputs: &BTreeMap<String, PathBuf>,
    ) -> Result<Vec<String>> {
        let mut remarks = Vec::new();
        let manifest = files.manifest.as_ref();
        let weights = manifest.and_then(|manifest| manifest.provenance.get("weights"));
        let untrained = weights.filter(|text| text.contains("not trained"));
        if let (Some(text), None) = (untrained, &self.weights) {
            remarks.push(format!(
                "{}: weights {}: the answer says nothing about the input (--weights FILE puts others)",
                shown(&self.recording),
                escaped(text)
            ));
        }
        for (name, path) in inputs {
            let (index, info) = bindings.named(name)?;
            let format = manifest.and_then(|manifest| manifest.images.get(name));
            let remark = format.map(|format| picture_remark(path, info, format));
            if let Some(remark) = remark.transpose()?.flatten() {
                remarks.push(format!(
                    "input `{}`: {} is {remark}, as the manifest says",
                    escaped(name),
                    shown(path)
                ));
            }
            let float = matches!(
                info.dtype,
                ElementType::F16 | ElementType::F32 | ElementType::F64
            );
            let value = bindings.value(index).filter(|_| float);
            let count = value.map_or(0, |value| value.values().filter(|it| it.is_nan()).count());
            if count > 0 {
                remarks.push(format!(
                    "input `{}`: {count} elements are NaN",
                    escaped(name)
                ));
            }
        }
        Ok(remarks)
    }

    /// A session on a device that this process uses itself.
    fn session_here(
        &self,
        recording: &Recording,
        model: ModelOptions,
        watch: Option<&JobWatch>,
    ) -> Result<Session> {
        let observer = watch.and_then(JobWatch::observer);
        let id = recording.verified().recording().gpu_id();
        let mut device = Device::open_observed(self.on.device(), id, model.into(), observer)?;
        let recording = recording.for_device(&mut device)?;
        let device = match self.inject {
            Some(inject) => device.with_fault(inject.0),
            None => device,
        };
        Ok(Session::on(recording, device))
    }

    /// Replays, shows how far it is, and closes the device. Gives the number of attempts that failed.
    fn replay(
        &self,
        session: &mut Session,
        selection: &Selection,
        (jobs, setup_jobs): (u64, u64),
        mut watch: Option<&mut JobWatch>,
    ) -> Result<u32> {
        // Only the model counts jobs as they end.
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
            // What fails here is tried again below.
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

    /// Standard output is the report's or another result's.
    fn has_standard_output(&self, destinations: &Destinations) -> Result<()> {
        if self.json && destinations.takes_standard_output() {
            return Err(Failure::Usage(
                "--json and another result both want standard output; give the other one a file"
                    .into(),
            ));
        }
        Ok(())
    }

    /// Takes the places of all results, none of which is a file that is read.
    fn destinations<'a>(
        &self,
        (files, session): (&Files, &Session),
        inputs: &BTreeMap<String, PathBuf>,
        outputs: impl Iterator<Item = &'a PathBuf>,
    ) -> Result<Destinations> {
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads(&self.recording);
        destinations.reads_recording(files);
        let given = self.expected.iter().map(|given| &given.path);
        for path in inputs.values().chain(&self.weights).chain(given) {
            destinations.reads(path);
        }
        self.many.mark_read(&mut destinations);
        self.classes.reads(&mut destinations);
        for path in outputs {
            destinations.claim_tensor(path)?;
        }
        self.states.claim(&mut destinations, session)?;
        Ok(destinations)
    }

    /// What was given by name or by being the only one; the inputs of the manifest's first case if only weights were.
    fn chosen_inputs(
        &self,
        files: &Files,
        bindings: &Bindings,
    ) -> Result<BTreeMap<String, PathBuf>> {
        let mut inputs = named(&self.inputs, bindings, TensorKind::Input, "--input")?;
        let weight = |name: &String| {
            let mut tensors = bindings.tensors().iter();
            tensors.any(|t| t.name == *name && t.kind == TensorKind::Weight)
        };
        let many = self.many.given() || self.states.repeat.is_some() && !inputs.is_empty();
        if inputs.keys().all(weight) && !many {
            for (name, file) in files.case().into_iter().flat_map(|case| &case.inputs) {
                let file = files.directory.join(file);
                inputs.entry(name.clone()).or_insert(file);
            }
        }
        Ok(inputs)
    }
}

/// Gives every `[NAME=]FILE` its name.
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

/// Makes room for a tensor that one of the layers that run computes.
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

/// The outputs that layers compute.
fn reported<'a>(session: &'a Session, running: &'a [Layer]) -> impl Iterator<Item = &'a String> {
    let computed = running.iter().flat_map(|layer| &layer.outputs);
    let tensors = session.bindings().tensors();
    let computed = computed.filter_map(|index| tensors.get(*index as usize));
    let outputs = computed.filter(|info| info.kind == TensorKind::Output);
    outputs.map(|info| &info.name)
}

/// Jobs of the layers that run, and jobs of set-up and finish.
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
