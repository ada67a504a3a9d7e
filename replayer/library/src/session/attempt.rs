// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs: loading, attempts, the engine.

use std::time::{Duration, Instant};

use gpureplay_core::{Gpu, ReplayError, Tensors, UsedUp};
use self_cell::MutBorrow;

use super::checkpoint::{Checkpoint, Spacing};
use super::{Loaded, Parts, Running, Session, State};
use crate::error::{Error, Result};
use crate::explain;
use crate::family::Engine;
use crate::recording::Recording;
use crate::selection::Step;
use crate::timing::{Announced, Timed, Timing};
use crate::unfinished::Unfinished;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    used_up: Option<UsedUp>,
    unfinished: Option<Unfinished>,
}

impl Around {
    fn of(timed: &mut Timed) -> Self {
        Self {
            used_up: timed.used_up(),
            unfinished: timed.unfinished(),
        }
    }
}

pub(super) fn failed(recording: &Recording, error: ReplayError, around: Around) -> Error {
    let view = recording.verified().recording();
    Error::Replay {
        path: recording.files().path.clone(),
        text: match around.used_up {
            Some(used_up) => explain::used_up(view, &error, &used_up),
            None => explain::replay_error(view, &error, around.unfinished),
        },
        error,
    }
}

impl Session {
    /// A retry begins at the last boundary with a checkpoint. Without one, only runs that begin an inference are
    /// retried.
    pub(super) fn attempts(&mut self, steps: &[Step]) -> Result<()> {
        let recording = self.loaded_form();
        let begins = recording.layers().first().map(|layer| layer.segment);
        if steps.first().map(|step| step.segment) == begins {
            self.checkpoint = None;
            self.bindings.states.begin();
        }
        let ends = recording.layers().last().map(|layer| layer.segment);
        self.bindings.begin();
        self.clock.restart();
        let (mut load, mut run, mut retries) = (Duration::ZERO, Duration::ZERO, 0);
        let result = loop {
            let started = Instant::now();
            let mut result = self.load();
            load += started.elapsed();
            if retries == 0 {
                self.clock.restart();
            }
            if result.is_ok() {
                let started = Instant::now();
                result = self.attempt(steps, retries > 0);
                run += started.elapsed();
            }
            if result.is_err() {
                self.bindings.states.lost();
            }
            let again = match &result {
                Err(Error::Secure { error, .. }) => {
                    matches!(error, gpureplay_linux::optee::Error::Gpu { .. })
                        && retries < self.retries
                }
                Err(Error::Replay { .. }) => {
                    let complete = steps.first().map(|step| step.segment) == begins;
                    // Another attempt would use as much again.
                    let used_up = self
                        .device()
                        .is_some_and(|device| device.used_up().is_some());
                    retries < self.retries && !used_up && (complete || self.checkpoint.is_some())
                }
                _ => false,
            };
            if !again {
                break result;
            }
            retries += 1;
        };
        if result.is_ok() && steps.last().map(|step| step.segment) == ends {
            self.bindings.states.end();
        }
        self.timing = Timing {
            load,
            run,
            retries,
            ..self.clock.read()
        };
        result
    }

    fn attempt(&mut self, steps: &[Step], again: bool) -> Result<()> {
        if self.is_secure() {
            return self.run_in_secure_world();
        }
        let mut from = 0;
        if again {
            // After an error the engine starts from set-up.
            self.engine(|engine, tensors| engine.prepare(tensors))?;
            if let Some(checkpoint) = self.checkpoint.take() {
                from = checkpoint.next;
                let shared = self.loaded_form();
                let view = shared.verified().recording();
                let restored = self.engine(|engine, _| checkpoint.restore(engine.gpu(), view));
                self.checkpoint = Some(checkpoint);
                restored?;
            }
        }
        let recording = self.loaded_form();
        // Attempts share one run's work limit.
        let begins = recording.layers().first().map(|layer| layer.segment);
        if !again && steps.first().map(|step| step.segment) == begins {
            self.engine(|engine, _| {
                engine.gpu().device.begin_run();
                Ok(())
            })?;
        }
        let layers = recording.layers();
        let ends = layers.last().map(|layer| layer.segment);
        let mut spacing = Spacing::new(recording.verified().recording(), layers);
        for step in steps.iter().filter(|step| step.segment >= from) {
            self.engine(|engine, tensors| match step.skip {
                true => engine.skip_segment(step.segment, tensors),
                false => engine.run_segment(step.segment, tensors),
            })?;
            let number = layers.binary_search_by_key(&step.segment, |layer| layer.segment);
            let chains = number
                .ok()
                .and_then(|number| layers.get(number))
                .map_or(0, |layer| layer.chains);
            let due = match steps.last() == Some(step) {
                // No attempt begins at the end of an inference.
                true => Some(step.segment) != ends,
                false => spacing.is_due(chains),
            };
            if self.retries > 0 && due {
                let mut checkpoint = self.checkpoint.take();
                self.engine(|engine, _| {
                    let (view, before) = (recording.verified().recording(), checkpoint.take());
                    checkpoint = Checkpoint::save(before, engine.gpu(), view, step.segment + 1);
                    Ok(())
                })?;
                self.checkpoint = checkpoint;
            }
        }
        Ok(())
    }

    pub(super) fn load(&mut self) -> Result<()> {
        if matches!(self.state, State::Loaded(_)) {
            return Ok(());
        }
        let shared = self.loaded_form();
        self.bindings.bind_weights(shared.files())?;
        if self.is_secure() {
            return self.load_in_secure_world();
        }
        let bytes = self.bytes();
        if let State::Idle(timed) = &self.state {
            let fit = timed.device.check_fit(shared.verified().recording());
            fit.map_err(|misfit| Error::Misfit {
                path: shared.files().path.clone(),
                misfit,
            })?;
        }
        let State::Idle(mut device) = std::mem::replace(&mut self.state, State::Lost) else {
            return Err(Error::NoDevice(
                "the session's device was lost in a panic; open another session".into(),
            ));
        };
        device.expect_recording(bytes);
        device.may_be_another(self.ignore_identity);
        device.count_gpu(self.counts_gpu);
        let parts = Parts {
            recording: shared.clone(),
            workspace: MutBorrow::new(Box::default()),
            device: MutBorrow::new(*device),
        };
        let options = gpureplay_core::Options {
            ignore_identity: self.ignore_identity,
        };
        self.clock.restart();
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
                self.clock.loaded();
                self.state = State::Loaded(loaded);
                let read = self.read_states();
                if read.is_err() {
                    self.unload();
                }
                read
            }
            Err((parts, error)) => {
                let mut timed = parts.device.into_inner();
                let around = Around::of(&mut timed);
                self.state = State::Idle(Box::new(timed));
                Err(failed(&shared, error, around))
            }
        }
    }

    fn read_states(&mut self) -> Result<()> {
        for (tensor, bytes) in self.bindings.states.sizes() {
            let mut initial = self.bindings.states.forget_initial(tensor);
            initial.resize(bytes, 0);
            self.engine(|engine, _| engine.read_tensor(tensor as u32, &mut initial))?;
            self.bindings.states.loaded(tensor, initial);
        }
        Ok(())
    }

    /// Takes the recording off the device; this resets the GPU.
    pub(super) fn unload(&mut self) {
        self.next_layer = 0;
        self.checkpoint = None;
        if let State::Secure(secure) = &mut self.state {
            secure.unload();
        }
        self.state = match std::mem::replace(&mut self.state, State::Lost) {
            State::Loaded(loaded) => State::Idle(Box::new(loaded.into_owner().device.into_inner())),
            other => other,
        };
    }

    pub(super) fn engine(
        &mut self,
        work: impl FnOnce(&mut Running<'_>, &mut dyn Tensors) -> std::result::Result<(), ReplayError>,
    ) -> Result<()> {
        let State::Loaded(loaded) = &mut self.state else {
            return Err(Error::NoDevice("the recording is not loaded".into()));
        };
        let form = match self.is_joined {
            true => self.recording.joined().unwrap_or(&self.recording),
            false => &self.recording,
        };
        let mut tensors = Announced {
            bindings: &mut self.bindings,
            clock: &self.clock,
            sizes: &self.sizes,
        };
        loaded.with_dependent_mut(|_, engine| {
            let result = work(engine, &mut tensors);
            result.map_err(|error| failed(form, error, Around::of(engine.gpu())))
        })
    }
}
