// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording on a device: values in, runs, values out.

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use gpureplay_core::{ReplayError, Session as Engine, Workspace};
use gpureplay_format::TensorKind;
use gpureplay_io::Tensor;
use self_cell::{MutBorrow, self_cell};

use crate::bindings::Bindings;
use crate::device::{Choice, Device, ModelOptions};
use crate::error::{Error, Result};
use crate::explain;
use crate::recording::Recording;
use crate::tensors::{TensorInfo, layers_named};

/// Choices for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The device; the model of the recorded GPU if nothing else is said.
    pub device: Choice,
    /// Options of the model.
    pub model: ModelOptions,
    /// Replay even though the GPU is not the one that was recorded.
    pub ignore_identity: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            device: Choice::Model(None),
            model: ModelOptions::default(),
            ignore_identity: false,
        }
    }
}

/// What the engine borrows.
struct Parts {
    recording: Recording,
    workspace: MutBorrow<Box<Workspace>>,
    device: MutBorrow<Device>,
}

type Running<'a> = Engine<'a, 'a, &'a mut Device>;

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
    Idle(Box<Device>),
    /// It is.
    Loaded(Loaded),
    /// Between the two; stays only after a panic.
    Lost,
}

/// A recording on a device.
///
/// The first run loads the recording; the following ones restore only what a run changes. A weight that is bound later is
/// loaded by the next run, which then starts afresh. After an error the GPU is reset, and the next run starts afresh too.
pub struct Session {
    recording: Recording,
    bindings: Bindings,
    ignore_identity: bool,
    state: State,
    /// The layer that runs next if the values before it are to be those of this inference.
    next: usize,
    /// Layers may read what skipped layers would have computed as the recording's own memory has it.
    recorded_values: bool,
}

impl Session {
    pub(crate) fn new(recording: Recording, options: Options) -> Result<Self> {
        let gpu_id = recording.verified().recording().gpu_id();
        let device = Device::open(&options.device, gpu_id, options.model)?;
        let mut session = Self::on(recording, device);
        session.ignore_identity = options.ignore_identity;
        Ok(session)
    }

    /// A session on a device of the caller's own.
    pub fn on(recording: Recording, device: Device) -> Self {
        let bindings = Bindings::new(recording.verified().recording(), &recording.files().path);
        Self {
            recording,
            bindings,
            ignore_identity: false,
            state: State::Idle(Box::new(device)),
            next: 0,
            recorded_values: false,
        }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Gives an input, a weight or an intermediate tensor a value, for all runs that follow.
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

    /// Gives every weight another value: from a `.safetensors` file, or from a directory with a `NAME.npy` for each.
    ///
    /// # Errors
    /// The recording has no weights, one of them is not there, or a value does not fit.
    pub fn bind_weights(&mut self, path: impl AsRef<Path>) -> Result<()> {
        self.bindings.bind_all_weights(path.as_ref())?;
        self.unload();
        Ok(())
    }

    /// Takes a value away: a weight has the recording's again, an intermediate what its layer computes.
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
    /// As for [`Session::run`], or there are no such layers, or they read something that nobody computed or bound:
    /// [`Error::Crossing`] names it.
    pub fn run_layers(&mut self, layers: Range<usize>) -> Result<()> {
        let count = self.recording.layers().len();
        if layers.is_empty() || layers.end > count {
            return Err(Error::NoLayer {
                name: format!("{}..{}", layers.start, layers.end),
                known: layers_named(self.recording.layers()),
            });
        }
        let first = if layers.start >= self.next && self.next > 0 {
            self.next
        } else {
            0
        };
        let shared = self.recording.clone();
        let known = shared.layers();
        let runs = known.get(layers.clone()).unwrap_or_default();
        self.bindings.require(|tensor| {
            runs.iter()
                .any(|layer| layer.inputs.contains(&(tensor as u32)))
        })?;
        if !self.recorded_values {
            let cure = "Session::use_recorded_values";
            self.bindings
                .require_crossing(known, layers.clone(), first, cure)?;
        }
        self.next = 0;
        self.load()?;
        self.bindings.begin();
        if first == 0 {
            self.engine(|engine, _| {
                engine.gpu().begin_run();
                Ok(())
            })?;
        }
        for (number, layer) in known.iter().enumerate().take(layers.end).skip(first) {
            let segment = layer.segment;
            let runs = layers.contains(&number);
            self.engine(|engine, bindings| match runs {
                true => engine.run_segment(segment, bindings),
                false => engine.skip_segment(segment, bindings),
            })?;
        }
        self.next = if layers.end < count { layers.end } else { 0 };
        Ok(())
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

    /// The value of an output after a run, or of any other tensor as it is in GPU memory now.
    ///
    /// # Errors
    /// There is no such tensor, nothing has run yet, or the device fails.
    pub fn read(&mut self, name: &str) -> Result<Tensor> {
        let (index, info) = self.bindings.named(name)?;
        let info = info.clone();
        if let Some(tensor) = self.bindings.found(index) {
            return Ok(tensor);
        }
        if !matches!(self.state, State::Loaded(_)) || info.kind == TensorKind::Output {
            return Err(Error::WrongKind {
                name: name.to_owned(),
                kind: info.kind.name(),
                known: "no layer that computes it has run yet".into(),
            });
        }
        let mut bytes = vec![0; info.bytes];
        self.engine(|engine, _| engine.read_tensor(index as u32, &mut bytes))?;
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

    /// Time that the device has spent running jobs; `None` where it cannot tell.
    pub fn working(&mut self) -> Option<Duration> {
        match &mut self.state {
            State::Idle(device) => device.working(),
            State::Loaded(loaded) => loaded.with_dependent_mut(|_, engine| engine.gpu().working()),
            State::Lost => None,
        }
    }

    /// Puts the recording on the device, unless it is there.
    fn load(&mut self) -> Result<()> {
        if matches!(self.state, State::Loaded(_)) {
            return Ok(());
        }
        let shared = self.recording.clone();
        self.bindings.bind_weights(shared.files())?;
        let State::Idle(device) = std::mem::replace(&mut self.state, State::Lost) else {
            return Err(Error::NoDevice(
                "the session's device was lost in a panic; open another session".into(),
            ));
        };
        let parts = Parts {
            recording: self.recording.clone(),
            workspace: MutBorrow::new(Box::default()),
            device: MutBorrow::new(*device),
        };
        let options = gpureplay_core::Options {
            ignore_identity: self.ignore_identity,
        };
        let bindings = &mut self.bindings;
        let loaded = Loaded::try_new_or_recover(parts, |parts| {
            Engine::open(
                parts.device.borrow_mut(),
                *parts.recording.verified(),
                parts.workspace.borrow_mut(),
                options,
                bindings,
            )
        });
        match loaded {
            Ok(loaded) => {
                self.state = State::Loaded(loaded);
                Ok(())
            }
            Err((parts, error)) => {
                self.state = State::Idle(Box::new(parts.device.into_inner()));
                Err(self.failed(error))
            }
        }
    }

    /// Takes the recording off the device, which resets the GPU.
    fn unload(&mut self) {
        self.next = 0;
        self.state = match std::mem::replace(&mut self.state, State::Lost) {
            State::Loaded(loaded) => State::Idle(Box::new(loaded.into_owner().device.into_inner())),
            other => other,
        };
    }

    /// Lets the engine do something; a failure of the engine ends the inference.
    fn engine(
        &mut self,
        work: impl FnOnce(&mut Running<'_>, &mut Bindings) -> std::result::Result<(), ReplayError>,
    ) -> Result<()> {
        let State::Loaded(loaded) = &mut self.state else {
            return Err(Error::NoDevice("the recording is not loaded".into()));
        };
        let bindings = &mut self.bindings;
        let result = loaded.with_dependent_mut(|_, engine| work(engine, bindings));
        result.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: ReplayError) -> Error {
        replay_failed(&self.recording, error)
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

fn replay_failed(recording: &Recording, error: ReplayError) -> Error {
    Error::Replay {
        path: recording.files().path.clone(),
        text: explain::replay_error(recording.verified().recording(), &error),
        error,
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
