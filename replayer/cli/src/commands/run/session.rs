// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device, values and places of results.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Bindings, Files, Recording, Session, TensorKind};

use super::{Run, named};
use crate::Result;
use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::common::interrupt::Interrupt;
use crate::common::job_watch::JobWatch;
use crate::common::model_options::ModelOptions;
use crate::common::terminal;

impl Run {
    pub(super) fn session(
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
                // Ctrl-C must cancel the call: the kernel ends no process inside of it.
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

    pub(super) fn session_here(
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

    pub(super) fn has_standard_output(&self, destinations: &Destinations) -> Result<()> {
        if self.json && destinations.takes_standard_output() {
            return Err(Failure::Usage(
                "--json and another result both want standard output; give the other one a file"
                    .into(),
            ));
        }
        Ok(())
    }

    pub(super) fn destinations<'a>(
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

    /// With nothing or only weights given: the inputs of the manifest's first case.
    pub(super) fn chosen_inputs(
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
