// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording on a device: values in, runs, values out.

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
    /// The device; [`Choice::Best`] if nothing else is said.
    pub device: Choice,
    /// Options of the model.
    pub model: ModelOptions,
    /// Replay even though the GPU is not the one that was recorded.
    pub ignore_identity: bool,
    /// Attempts after a failed one, for each run; they go on from the last boundary of layers that was reached.
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

/// What the engine borrows.
struct Parts {
    recording: Recording,
    workspace: MutBorrow<Box<Workspace>>,
    device: MutBorrow<Timed>,
}

type Running<'a> = Engine<'a, &'a mut Timed>;

self_cell!(
    /// An engine and what it borrows.
    struct Loaded {
        owner: Parts,
        #[not_covariant]
        dependent: Running,
    }
);

/// Whether the recording is on the device.
enum State {
    /// Not yet, or not any more.
    Idle(Box<Timed>),
    Loaded(Loaded),
    /// Engine and device are the secure world's.
    Secure(Box<Secure>),
    /// Between the two; stays only after a panic.
    Lost,
}

/// Whether a device ended a chain because it took too long.
fn is_too_long(error: &Error) -> bool {
    const TOO_LONG: ErrorKind = ErrorKind::Device(DeviceError::Refused(panfrost::TOO_LONG));
    matches!(error, Error::Replay { error, .. } if error.kind == TOO_LONG)
}

/// A recording on a device.
///
/// The first run loads the recording; the following ones restore only what a run changes. A weight that is bound later is
/// loaded by the next run, which then starts afresh. After an error the GPU is reset, and the next run starts afresh too.
///
/// States are what they were after the last run of all layers that ended well: neither an error nor an inference that is given up
/// between two layers changes them.
///
/// While a session uses a GPU through /dev/mem, signals that would end the process wait: see [`HeldSignals`].
pub struct Session {
    recording: Recording,
    bindings: Bindings,
    ignore_identity: bool,
    counts_gpu: bool,
    retries: u32,
    state: State,
    /// The layer that runs next if the values before it are to be those of this inference.
    next: usize,
    /// Layers may read what skipped layers would have computed as the recording's own memory has it.
    recorded_values: bool,
    /// The device is one for which signals are held back.
    holds_signals: bool,
    clock: Clock,
    /// By tensor: bytes in GPU memory.
    sizes: Vec<u64>,
    timing: Timing,
    /// Layers are joined when all of them run, unless the caller does not want it. Not any more once some were run by themselves: each change
    /// of form loads the recording anew.
    joins: bool,
    /// What is loaded, or will be, is [`Recording::joined`].
    is_joined: bool,
    /// The last boundary of layers in this inference, if attempts may follow.
    checkpoint: Option<Checkpoint>,
}

impl Recording {
    /// A device with this recording on it. Nothing is loaded before the first run.
    ///
    /// # Errors
    /// There is no such device.
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

    /// A session on a device of the caller's own, or on one that was opened before. The first run checks that it is the GPU that was
    /// recorded.
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
            next: 0,
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

    /// Whether to replay on a GPU that is not the one that was recorded; results may be wrong and jobs may fault.
    pub fn ignore_identity(&mut self, yes: bool) {
        self.ignore_identity = yes;
    }

    /// Whether the GPU's own counters are read around each chain from the next loading on: see [`crate::ChainSpan::counters`]. It costs some
    /// register accesses for each chain.
    pub fn count_gpu(&mut self, yes: bool) {
        self.counts_gpu = yes;
    }

    /// Whether layers are joined when all of them run, as they are if nothing is said. It saves submissions in each run, and may cost more
    /// than them before the first.
    pub fn join_layers(&mut self, yes: bool) {
        self.joins = yes;
    }

    /// How many attempts may follow a failed one, in each run.
    pub fn set_retries(&mut self, retries: u32) {
        self.retries = retries;
    }

    /// Values that are bound, and those that came out.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Takes all values from elsewhere: those of another session of this recording.
    pub fn bind_all(&mut self, bindings: Bindings) {
        self.bindings = bindings;
        self.unload();
    }

    /// The device; `None` after a panic in it, and in the secure world.
    pub fn device(&mut self) -> Option<&mut Device> {
        match &mut self.state {
            State::Idle(timed) => Some(&mut timed.device),
            State::Loaded(loaded) => {
                Some(loaded.with_dependent_mut(|_, engine| &mut engine.gpu().device))
            }
            State::Secure(_) | State::Lost => None,
        }
    }

    /// Times of the last run, and what it asked of the device.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// What happened in the last run, in order; in all attempts, if there were several.
    pub fn events(&self) -> Events {
        self.clock.events().1
    }

    /// What happened when the recording was put on the device.
    pub fn setup_events(&self) -> Events {
        self.clock.events().0
    }

    /// Whether to keep when bytes are put into GPU memory, for [`Session::events`].
    pub fn keep_transfers(&mut self, yes: bool) {
        self.clock.keep_transfers(yes);
    }

    /// The layers that must run for a range, with the values that are bound: for [`Session::run_layers`].
    ///
    /// # Errors
    /// Some of what the range reads is bound, but not all.
    pub fn select(&self, range: Range<usize>) -> Result<Selection> {
        let layers = self.recording.layers();
        Selection::new(layers, range, &self.bindings, self.recorded_values)
    }

    /// Uses the device. A signal that ends the process waits until this is done and the GPU is reset.
    fn uninterrupted<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut held = HeldSignals::if_needed(self.holds_signals);
        let result = work(self);
        if held.is_signal_waiting() {
            self.unload();
        }
        result
    }

    /// Bytes of the recording and of the values of its external weights, as far as they are bound. By these the model decides what a
    /// run may do if the caller does not.
    pub fn bytes(&self) -> u64 {
        (self.recording.files().bytes.len() + self.bindings.external_bytes()) as u64
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Gives an input, a weight or an intermediate tensor a value, for all runs that follow, or a state the value that the next run
    /// starts from.
    ///
    /// The value of an intermediate replaces what the layer before it computed.
    ///
    /// # Errors
    /// There is no such tensor, it is an output, or the value has another type or shape.
    pub fn bind(&mut self, name: &str, value: Tensor) -> Result<()> {
        self.bindings.bind(name, value, "the value")?;
        self.reload_if_weight(name)
    }

    /// Binds what is in a file: `.npy`, `.bin`, `.safetensors`, `.png`, `.jpg`; see [`crate::values::read`].
    ///
    /// # Errors
    /// As for [`Session::bind`], or the file cannot be read.
    pub fn bind_file(&mut self, name: &str, path: impl AsRef<Path>) -> Result<()> {
        self.bindings
            .bind_file(self.recording.files(), name, path.as_ref())?;
        self.reload_if_weight(name)
    }

    /// Binds the inputs of the manifest's first case, if there is one.
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

    /// Gives every weight another value: from a `.safetensors` file, or from a directory with a `NAME.npy` for each.
    ///
    /// # Errors
    /// The recording has no weights, one of them is not there, or a value does not fit.
    pub fn bind_weights(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.bindings.bind_all_weights(path.as_ref())?;
        self.unload();
        Ok(())
    }

    /// Takes a value away: a weight has the recording's again, a state what set-up gives it, an intermediate what its layer computes.
    ///
    /// # Errors
    /// There is no such tensor.
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

    /// Gives every state the value that it has in a `.safetensors` file, or in a directory with a `NAME.npy` for each.
    ///
    /// # Errors
    /// The recording has no states, one of them is not there, or a value does not fit.
    pub fn bind_states(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.bindings.bind_all_of(TensorKind::State, path.as_ref())
    }

    /// What the next run starts from: all states by name. Loads the recording if only set-up knows them.
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

    /// Gives every state the value again that it has when the recording is opened.
    pub fn reset_states(&mut self) {
        for (tensor, _) in self.bindings.states.sizes() {
            self.bindings.states.set(tensor, None);
        }
    }

    /// Runs the whole network.
    ///
    /// # Errors
    /// An input has no value, a file with weights is not the right one, or the replay failed.
    pub fn run(&mut self) -> Result<()> {
        self.run_layers(0..self.recording.layers().len())
    }

    /// Runs some layers, by their numbers from 0.
    ///
    /// Layers follow each other: when `layers` begins after the layer that ran last, those between do not run, only what the
    /// app itself wrote for them is loaded. The tensors that they would have computed, and that these layers read, must
    /// be bound. A range that begins at 0, or not after the last one, begins a new inference.
    ///
    /// # Errors
    /// As for [`Session::run`], or there are no such layers, they are a part only in the secure world, or they read something that nobody computed or bound:
    /// [`Error::Crossing`] names it.
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
        let first = if layers.start >= self.next && self.next > 0 {
            self.next
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
        self.next = 0;
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
        self.next = if layers.end < count { layers.end } else { 0 };
        Ok(())
    }

    /// Whether all layers may run as one: nobody wants or gives a value between them, and no attempt starts between them.
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

    /// Takes a form of the recording with shorter chains, for this and all later runs: layers by themselves, then jobs. False if it has none.
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

    /// Puts the recording on the device, unless it is there. The first run does it by itself.
    ///
    /// # Errors
    /// A file with weights is not the right one, it is not the GPU that was recorded, or the device fails.
    pub fn prepare(&mut self) -> Result<()> {
        if !matches!(self.state, State::Loaded(_)) {
            self.is_joined = self.may_join() && self.recording.joined().is_some();
        }
        self.uninterrupted(Self::load)
    }

    /// Runs what the recorded app did at its end, switches the GPU off and resets it. A run afterwards loads the recording again.
    ///
    /// # Errors
    /// The device fails. The GPU is reset all the same, unless it cannot be.
    pub fn close(&mut self) -> Result<()> {
        self.uninterrupted(|session| {
            let result = match &session.state {
                State::Loaded(_) => session.engine(|engine, _| engine.close()),
                // Resetting and clearing is the secure world's, whatever the recorded app did.
                _ => Ok(()),
            };
            session.unload();
            result
        })
    }

    /// Whether layers may read what nobody computed or bound: they find what the recording itself has in that memory, from the
    /// recorded app or from an inference before. For measuring, and for values that are known not to matter.
    pub fn use_recorded_values(&mut self, yes: bool) {
        self.recorded_values = yes;
    }

    /// The layer of a name or of a number (from 1, as `gpureplay info` counts them), as [`Session::run_layers`] counts.
    ///
    /// # Errors
    /// There is none.
    pub fn layer(&self, name: &str) -> Result<usize> {
        crate::tensors::layer_named(self.recording.layers(), name)
    }

    /// The value of an output after a run; what the next run starts from, of a state; of any other tensor what it is in GPU memory now.
    ///
    /// # Errors
    /// There is no such tensor, nothing has run yet, or the device fails.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        let (index, info) = self.bindings.named(name)?;
        let info = info.clone();
        if let Some(tensor) = self.bindings.found(index) {
            return Ok(tensor);
        }
        if info.kind == TensorKind::State {
            // Only set-up knows it.
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

    /// Keeps the value that an intermediate has when its layer ends, for [`Session::read`]: later layers may reuse its memory.
    ///
    /// # Errors
    /// There is no such tensor.
    pub fn keep(&mut self, name: &str) -> Result<()> {
        self.bindings.want(name)
    }

    /// Everything that came out in the last run, by name.
    pub fn outputs(&self) -> Vec<(String, Tensor)> {
        self.bindings.outputs()
    }

    /// As [`Session::outputs`], one by one, and forgets them: nothing is copied.
    pub fn take_outputs(&mut self) -> impl Iterator<Item = (String, Tensor)> {
        let outputs = self.bindings.tensors().iter().enumerate();
        let outputs: Vec<(usize, String)> = outputs
            .filter(|(_, info)| info.kind != TensorKind::State)
            .map(|(index, info)| (index, info.name.clone()))
            .collect();
        let taken = outputs.into_iter();
        taken.filter_map(|(index, name)| Some((name, self.bindings.take(index)?)))
    }

    /// Time that the device has spent running jobs; `None` where it cannot tell.
    pub fn working(&mut self) -> Option<Duration> {
        self.device()?.working()
    }

    /// The tensor of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        Ok(self.bindings.named(name)?.1)
    }

    /// Inputs that have no value yet.
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

/// The GPU is reset before signals have their effect.
impl Drop for Session {
    fn drop(&mut self) {
        let _held = HeldSignals::if_needed(self.holds_signals);
        self.unload();
        // A device that stays open could still write to pages of this process.
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

/// A session may move to another thread; a recording may be used by several at once.
const _: () = {
    const fn moves<T: Send>() {}
    const fn shared<T: Send + Sync>() {}
    moves::<Session>();
    shared::<Recording>();
};
