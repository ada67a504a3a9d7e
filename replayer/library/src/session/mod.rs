// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording on a device.

mod attempt;
mod checkpoint;
mod secure;

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use gpureplay_core::{DeviceError, ErrorKind, Workspace};
use gpureplay_format::TensorKind;
use gpureplay_linux::panfrost;
use gpureplay_tensors::Tensor;
use self_cell::{MutBorrow, self_cell};

use self::checkpoint::Checkpoint;
use self::secure::Secure;
use crate::bindings::Bindings;
use crate::device::{Choice, Device, ModelOptions};
use crate::error::{Error, Result};
use crate::family::Engine;
use crate::recording::Recording;
use crate::selection::{Selection, steps as steps_of};
use crate::signals::HeldSignals;
use crate::tensors::{TensorInfo, layers_named};
use crate::timing::{Clock, Events, Timed, Timing, sizes};

/// Choices for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Default: [`Choice::Best`].
    pub device: Choice,
    /// Options of the model.
    pub model: ModelOptions,
    /// Allow another GPU.
    pub ignore_identity: bool,
    /// Per run; from the last layer boundary reached.
    pub retries: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            device: Choice::Best,
            model: ModelOptions::default(),
            ignore_identity: false,
            retries: 0,
        }
    }
}

struct Parts {
    recording: Recording,
    workspace: MutBorrow<Box<Workspace>>,
    device: MutBorrow<Timed>,
}

type Running<'a> = Engine<'a, &'a mut Timed>;

self_cell!(
    struct Loaded {
        owner: Parts,
        #[not_covariant]
        dependent: Running,
    }
);

enum State {
    Idle(Box<Timed>),
    Loaded(Loaded),
    Secure(Box<Secure>),
    /// Between `Idle` and `Loaded`; stays only after a panic.
    Lost,
}

fn is_too_long(error: &Error) -> bool {
    const TOO_LONG: ErrorKind = ErrorKind::Device(DeviceError::Refused(panfrost::TOO_LONG));
    matches!(error, Error::Replay { error, .. } if error.kind == TOO_LONG)
}

/// A recording on a device.
///
/// The first run loads the recording; later runs restore only what a run changes. The next run after an error or
/// after binding a weight starts afresh. An error resets the GPU.
///
/// States are those after the last complete run: neither an error nor an unfinished inference changes them.
///
/// While a session uses a GPU through /dev/mem, signals that would end the process wait: see [`HeldSignals`].
pub struct Session {
    recording: Recording,
    bindings: Bindings,
    ignore_identity: bool,
    counts_gpu: bool,
    retries: u32,
    state: State,
    next_layer: usize,
    recorded_values: bool,
    holds_signals: bool,
    clock: Clock,
    sizes: Vec<u64>,
    timing: Timing,
    /// False once some layers ran alone: each change of form loads the recording anew.
    joins: bool,
    is_joined: bool,
    checkpoint: Option<Checkpoint>,
}

impl Recording {
    /// Loads nothing before the first run.
    ///
    /// # Errors
    /// No such device.
    pub fn session(&self, options: Options) -> Result<Session> {
        Session::new(self.clone(), options)
    }
}

impl Session {
    fn new(recording: Recording, options: Options) -> Result<Self> {
        let choice = options.device.resolved(&recording);
        if choice == Choice::Optee {
            let mut session = Self::in_secure_world(recording)?;
            session.ignore_identity(options.ignore_identity);
            session.set_retries(options.retries);
            return Ok(session);
        }
        let gpu_id = recording.verified().recording().gpu_id();
        let mut device = Device::open(&choice, gpu_id, options.model)?;
        let recording = recording.for_device(&mut device)?;
        if !options.ignore_identity {
            let checked = device.check_identity(recording.verified().recording());
            checked
                .map_err(|error| attempt::failed(&recording, error, attempt::Around::default()))?;
        }
        let mut session = Self::on(recording, device);
        session.ignore_identity(options.ignore_identity);
        session.set_retries(options.retries);
        Ok(session)
    }

    /// The first run checks that it is the recorded GPU.
    pub fn on(recording: Recording, device: Device) -> Self {
        let holds_signals = device.writes_to_process();
        let clock = Clock::default();
        let state = State::Idle(Box::new(Timed::new(device, clock.clone())));
        let mut session = Self::with(recording, state, clock);
        session.holds_signals = holds_signals;
        session
    }

    fn with(recording: Recording, state: State, clock: Clock) -> Self {
        let view = recording.verified().recording();
        let bindings = Bindings::new(view, &recording.files().path);
        let sizes = sizes(view);
        Self {
            bindings,
            ignore_identity: false,
            counts_gpu: false,
            retries: 0,
            holds_signals: false,
            state,
            next_layer: 0,
            recorded_values: false,
            clock,
            sizes,
            timing: Timing::default(),
            joins: true,
            is_joined: false,
            checkpoint: None,
            recording,
        }
    }

    /// Allows another GPU than the recorded one; results may be wrong and jobs may fault.
    pub fn ignore_identity(&mut self, yes: bool) {
        self.ignore_identity = yes;
    }

    /// Reads GPU counters around each chain, from the next loading on: see [`crate::ChainSpan::counters`]. Costs some
    /// register accesses.
    pub fn count_gpu(&mut self, yes: bool) {
        self.counts_gpu = yes;
    }

    /// Joins layers for complete runs, as by default. Saves submissions per run, may cost more before the first.
    pub fn join_layers(&mut self, yes: bool) {
        self.joins = yes;
    }

    /// Attempts after a failed one, per run.
    pub fn set_retries(&mut self, retries: u32) {
        self.retries = retries;
    }

    /// Bound values and results.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Binds all values from another session of this recording.
    pub fn bind_all(&mut self, bindings: Bindings) {
        self.bindings = bindings;
        self.unload();
    }

    /// `None` after a panic in it, and in the secure world.
    pub fn device(&mut self) -> Option<&mut Device> {
        match &mut self.state {
            State::Idle(timed) => Some(&mut timed.device),
            State::Loaded(loaded) => {
                Some(loaded.with_dependent_mut(|_, engine| &mut engine.gpu().device))
            }
            State::Secure(_) | State::Lost => None,
        }
    }

    /// Times of the last run.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Of the last run, over all attempts.
    pub fn events(&self) -> Events {
        self.clock.events().1
    }

    /// Events of loading the recording.
    pub fn setup_events(&self) -> Events {
        self.clock.events().0
    }

    /// Whether [`Session::events`] has writes to GPU memory.
    pub fn keep_transfers(&mut self, yes: bool) {
        self.clock.keep_transfers(yes);
    }

    /// The layers to run for a range: for [`Session::run_layers`].
    ///
    /// # Errors
    /// Only a part of what the range reads is bound.
    pub fn select(&self, range: Range<usize>) -> Result<Selection> {
        let layers = self.recording.layers();
        Selection::new(layers, range, &self.bindings, self.recorded_values)
    }

    fn uninterrupted<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut held = HeldSignals::if_needed(self.holds_signals);
        let result = work(self);
        if held.is_signal_waiting() {
            self.unload();
        }
        result
    }

    /// Of the recording and bound external weights; the model's default work limit follows from them.
    pub fn bytes(&self) -> u64 {
        (self.recording.files().bytes.len() + self.bindings.external_bytes()) as u64
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Binds an input, weight or intermediate for all later runs, a state for the next.
    ///
    /// An intermediate's value replaces its layer's result.
    ///
    /// # Errors
    /// No such tensor, an output, or another type or shape.
    pub fn bind(&mut self, name: &str, value: Tensor) -> Result<()> {
        self.bindings.bind(name, value, "the value")?;
        self.reload_if_weight(name)
    }

    /// Takes `.npy`, `.bin`, `.safetensors`, `.png`, `.jpg`; see [`crate::values::read`].
    ///
    /// # Errors
    /// As for [`Session::bind`], or the file cannot be read.
    pub fn bind_file(&mut self, name: &str, path: impl AsRef<Path>) -> Result<()> {
        self.bindings
            .bind_file(self.recording.files(), name, path.as_ref())?;
        self.reload_if_weight(name)
    }

    /// The manifest's first case, if any.
    ///
    /// # Errors
    /// As for [`Session::bind_file`].
    pub fn bind_case(&mut self) -> Result<()> {
        let recording = self.recording.clone();
        let files = recording.files();
        for (name, path) in files.case().into_iter().flat_map(|case| &case.inputs) {
            self.bind_file(name, files.directory.join(path))?;
        }
        Ok(())
    }

    /// Every weight from a `.safetensors` file, or a directory with a `NAME.npy` for each.
    ///
    /// # Errors
    /// No weights, or one is missing or does not fit.
    pub fn bind_weights(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.bindings.bind_all_weights(path.as_ref())?;
        self.unload();
        Ok(())
    }

    /// Weights get the recording's value, states set-up's, intermediates their layer's.
    ///
    /// # Errors
    /// No such tensor.
    pub fn unbind(&mut self, name: &str) -> Result<()> {
        self.bindings.unbind(name)?;
        self.reload_if_weight(name)
    }

    fn reload_if_weight(&mut self, name: &str) -> Result<()> {
        if self.bindings.named(name)?.1.kind == TensorKind::Weight {
            self.unload();
        }
        Ok(())
    }

    /// Every state, from files as for [`Session::bind_weights`].
    ///
    /// # Errors
    /// No states, or one is missing or does not fit.
    pub fn bind_states(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.bindings.bind_all_of(TensorKind::State, path.as_ref())
    }

    /// States that the next run starts from, by name. Loads the recording if only set-up knows them.
    ///
    /// # Errors
    /// As for [`Session::prepare`].
    pub fn states(&mut self) -> Result<Vec<(String, Tensor)>> {
        let states = self.recording.tensors().iter();
        let states = states.filter(|info| info.kind == TensorKind::State);
        let names: Vec<String> = states.map(|info| info.name.clone()).collect();
        let value = |name: String| {
            let value = self.read(&name)?;
            Ok((name, value))
        };
        names.into_iter().map(value).collect()
    }

    /// Resets all states to the values at opening.
    pub fn reset_states(&mut self) {
        for (tensor, _) in self.bindings.states.sizes() {
            self.bindings.states.set(tensor, None);
        }
    }

    /// # Errors
    /// An input has no value, a weight file is wrong, or the replay failed.
    pub fn run(&mut self) -> Result<()> {
        self.run_layers(0..self.recording.layers().len())
    }

    /// Runs layers, counted from 0.
    ///
    /// If `layers` begins after the layer that ran last, those between are skipped; only the app's own writes for
    /// them are loaded. Tensors that they would compute and `layers` read must be bound. A range that begins at 0,
    /// or not after the last layer run, begins a new inference.
    ///
    /// # Errors
    /// As for [`Session::run`], no such layers, a part in the secure world, or values neither computed nor bound
    /// ([`Error::Crossing`]).
    pub fn run_layers(&mut self, layers: Range<usize>) -> Result<()> {
        let count = self.recording.layers().len();
        if layers.is_empty() || layers.end > count {
            return Err(Error::NoLayer {
                name: format!("{}..{}", layers.start, layers.end),
                known: layers_named(self.recording.layers()),
            });
        }
        if self.is_secure() && layers != (0..count) {
            return Err(Error::SecureWorld(
                "it runs all layers of a recording, not a part of them",
            ));
        }
        let first = if layers.start >= self.next_layer && self.next_layer > 0 {
            self.next_layer
        } else {
            0
        };
        let shared = self.recording.clone();
        let known = shared.layers();
        let runs = known.get(layers.clone()).unwrap_or_default();
        self.bindings.bind_weights(shared.files())?;
        let read: HashSet<u32> = runs
            .iter()
            .flat_map(|layer| &layer.inputs)
            .copied()
            .collect();
        self.bindings
            .require(|tensor| read.contains(&(tensor as u32)))?;
        if !self.recorded_values {
            self.bindings
                .require_crossing(known, layers.clone(), first)?;
        }
        self.next_layer = 0;
        let all = layers == (0..count);
        self.joins &= all;
        let joined = match self.may_join() {
            true => shared.joined(),
            false => None,
        };
        if self.is_joined != joined.is_some() {
            self.uninterrupted(|session| {
                session.unload();
                Ok(())
            })?;
            self.is_joined = joined.is_some();
        }
        let steps = match joined {
            Some(joined) => steps_of(joined.layers(), 0, &(0..joined.layers().len())),
            None => steps_of(known, first, &layers),
        };
        let mut result = self.uninterrupted(|session| session.attempts(&steps));
        while let Err(error) = &result
            && is_too_long(error)
            && self.cut()?
        {
            let shared = self.recording.clone();
            let steps = steps_of(shared.layers(), first, &layers);
            result = self.uninterrupted(|session| session.attempts(&steps));
        }
        result?;
        self.next_layer = if layers.end < count { layers.end } else { 0 };
        Ok(())
    }

    /// In a joined chain no value can go in or out between layers, and no attempt can start there.
    fn may_join(&self) -> bool {
        let wanted = || {
            let tensors = self.bindings.tensors().iter().enumerate();
            let mut between = tensors.filter(|(_, info)| info.kind == TensorKind::Intermediate);
            between
                .any(|(index, _)| self.bindings.is_bound(index) || self.bindings.is_wanted(index))
        };
        self.joins && self.retries == 0 && !wanted()
    }

    fn loaded_form(&self) -> Recording {
        match self.is_joined {
            true => self.recording.joined().unwrap_or(&self.recording).clone(),
            false => self.recording.clone(),
        }
    }

    /// Shortens chains to single layers, then to single jobs, for all later runs. False if nothing is shorter.
    fn cut(&mut self) -> Result<bool> {
        let shorter = match self.is_joined {
            true => self.recording.clone(),
            false => self.recording.apart()?,
        };
        if !self.is_joined && shorter.files().bytes == self.recording.files().bytes {
            return Ok(false);
        }
        self.uninterrupted(|session| {
            session.unload();
            Ok(())
        })?;
        (self.joins, self.is_joined) = (false, false);
        self.recording = shorter;
        Ok(true)
    }

    /// Loads the recording, as the first run does.
    ///
    /// # Errors
    /// A wrong weight file, another GPU, or the device fails.
    pub fn prepare(&mut self) -> Result<()> {
        if !matches!(self.state, State::Loaded(_)) {
            self.is_joined = self.may_join() && self.recording.joined().is_some();
        }
        self.uninterrupted(Self::load)
    }

    /// Runs the recorded app's end, switches the GPU off and resets it. A later run loads the recording again.
    ///
    /// # Errors
    /// The device fails. The GPU is reset all the same, if possible.
    pub fn close(&mut self) -> Result<()> {
        self.uninterrupted(|session| {
            let result = match &session.state {
                State::Loaded(_) => session.engine(|engine, _| engine.close()),
                // The secure world's unloading resets the GPU and clears memory.
                _ => Ok(()),
            };
            session.unload();
            result
        })
    }

    /// Allows layers to read values neither computed nor bound: memory of the recorded app or of an earlier
    /// inference. For measuring, and for values known not to matter.
    pub fn use_recorded_values(&mut self, yes: bool) {
        self.recorded_values = yes;
    }

    /// Finds a layer by name or number from 1 (`gpureplay info`); returns it from 0 ([`Session::run_layers`]).
    ///
    /// # Errors
    /// There is none.
    pub fn layer(&self, name: &str) -> Result<usize> {
        crate::tensors::layer_named(self.recording.layers(), name)
    }

    /// An output's value after a run, a state's for the next run, any other tensor's in GPU memory now.
    ///
    /// # Errors
    /// No such tensor, nothing has run yet, or the device fails.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        let (index, info) = self.bindings.named(name)?;
        let info = info.clone();
        if let Some(tensor) = self.bindings.found(index) {
            return Ok(tensor);
        }
        if info.kind == TensorKind::State {
            self.prepare()?;
        }
        if let Some(tensor) = self.bindings.found(index) {
            return Ok(tensor);
        }
        if self.is_secure() {
            return Err(Error::SecureWorld(
                "it gives outputs, and states that were given to it, and nothing before a run",
            ));
        }
        if !matches!(self.state, State::Loaded(_)) || info.kind == TensorKind::Output {
            return Err(Error::WrongKind {
                name: name.to_owned(),
                kind: info.kind.name(),
                known: "no layer that computes it has run yet".into(),
            });
        }
        let mut bytes = vec![0; info.bytes];
        self.uninterrupted(|session| {
            session.engine(|engine, _| engine.read_tensor(index as u32, &mut bytes))
        })?;
        let path = &self.recording.files().path;
        Tensor::new(info.dtype, &info.shape, bytes).map_err(|error| Error::file(path, error))
    }

    /// Keeps an intermediate at its layer's end, for [`Session::read`]: later layers may reuse its memory.
    ///
    /// # Errors
    /// No such tensor.
    pub fn keep(&mut self, name: &str) -> Result<()> {
        self.bindings.want(name)
    }

    /// Of the last run, by name.
    pub fn outputs(&self) -> Vec<(String, Tensor)> {
        self.bindings.outputs()
    }

    /// Moves outputs out instead of copying.
    pub fn take_outputs(&mut self) -> impl Iterator<Item = (String, Tensor)> {
        let outputs = self.bindings.tensors().iter().enumerate();
        let outputs: Vec<(usize, String)> = outputs
            .filter(|(_, info)| info.kind != TensorKind::State)
            .map(|(index, info)| (index, info.name.clone()))
            .collect();
        let taken = outputs.into_iter();
        taken.filter_map(|(index, name)| Some((name, self.bindings.take(index)?)))
    }

    /// Device time of jobs; `None` if unknown.
    pub fn working(&mut self) -> Option<Duration> {
        self.device()?.working()
    }

    /// # Errors
    /// No tensor of this name.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        Ok(self.bindings.named(name)?.1)
    }

    /// Inputs without a value.
    pub fn missing(&self) -> Vec<&str> {
        let tensors = self.bindings.tensors().iter().enumerate();
        tensors
            .filter(|(index, info)| {
                info.kind == TensorKind::Input && !self.bindings.is_bound(*index)
            })
            .map(|(_, info)| info.name.as_str())
            .collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _held = HeldSignals::if_needed(self.holds_signals);
        self.unload();
        // Drops the device while signals wait: its GPU could still write to pages of this process.
        self.state = State::Lost;
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("recording", &self.recording)
            .finish_non_exhaustive()
    }
}

const _: () = {
    const fn moves<T: Send>() {}
    const fn shared<T: Send + Sync>() {}
    moves::<Session>();
    shared::<Recording>();
};
