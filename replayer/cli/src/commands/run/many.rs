// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs per input, or each from the last one's states.

use gpureplay_library::device::Choice;
use gpureplay_library::{HeldSignals, Recording, TensorKind};

use super::{Run, named};
use crate::Result;
use crate::common::evaluation::{How, Others, only_output};
use crate::common::failure::{Failure, Outcome};
use crate::common::interrupt::Interrupt;
use crate::common::repeat;
use crate::common::rows;
use crate::common::terminal;

/// Bytes, of all parallel sessions.
const MOST_MEMORY: u64 = 256 << 20;

impl Run {
    pub(super) fn execute_repeatedly(&self, recording: &Recording) -> Result {
        let runs = self.states.repeat.unwrap_or(1);
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
            true => terminal::json(&mut terminal::stdout(), &result)?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                result.print(&mut out)?;
            }
        }
        Ok(Outcome::Done)
    }

    pub(super) fn execute_many(&self, recording: &Recording) -> Result {
        if self.inject.is_some() || self.states.state_out.is_some() {
            return Err(Failure::Usage(
                "--inputs without --repeat takes no --inject and --state-out: each input is a run of its own; --repeat N keeps state"
                    .into(),
            ));
        }
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
            true => terminal::json(&mut terminal::stdout(), &evaluation)?,
            false => {
                let mut out = terminal::report(destinations.takes_standard_output());
                evaluation.print(&mut out)?;
            }
        }
        Ok(Outcome::Done)
    }

    pub(super) fn sessions(&self, recording: &Recording) -> usize {
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
}
