// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session of a recorded run.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpureplay_cuda_launch::recording::Operation;
use gpureplay_library::{
    Class, Error, Layer, Phase, Recorded, Replay, Result, Tensor, TensorInfo, TensorKind, Timing,
    layers_named, list,
};

use super::{CudaRun, other};
use crate::run::Entered;
use crate::{Gpu, How, ReplayError, RunSession, weights};

const TIME_LIMIT: Duration = Duration::from_secs(30);

pub(super) struct CudaSession {
    of: CudaRun,
    gpu: Gpu,
    session: Option<RunSession>,
    values: Vec<Option<Tensor>>,
    weights: Option<PathBuf>,
    /// By output: copied out by a run.
    has_copied: Vec<bool>,
    timing: Timing,
}

impl CudaSession {
    pub(super) fn new(of: CudaRun, gpu: Gpu) -> Self {
        Self {
            values: vec![None; of.tensors.len()],
            gpu,
            session: None,
            weights: None,
            has_copied: vec![false; of.run.outputs.len()],
            of,
            timing: Timing::default(),
        }
    }

    fn named(&self, name: &str) -> Result<usize> {
        let found = self.of.tensors.iter().position(|info| info.name == name);
        found.ok_or_else(|| Error::NoTensor {
            name: name.to_owned(),
            known: list(&self.of.tensors, TensorKind::Input),
        })
    }

    fn weights(&self) -> Result<Option<crate::Weights>> {
        let of = &self.of;
        let given = weights::Given::of(&of.recording, &of.run, self.weights.as_deref());
        Ok(given.map_err(other)?.map(weights::Given::bytes))
    }

    fn loaded(&mut self) -> Result<&mut RunSession> {
        if self.session.is_none() {
            let began = Instant::now();
            let weights = self.weights()?;
            let of = &self.of;
            let (gpu, run) = (self.gpu.clone(), of.run.clone());
            let opened = RunSession::open(gpu, &of.recording, run, weights, TIME_LIMIT);
            self.session = Some(opened.map_err(other)?);
            self.timing.load = began.elapsed();
        }
        let lost = "the run is not in memory";
        let lost = || other(ReplayError::Impossible(lost));
        self.session.as_mut().ok_or_else(lost)
    }

    fn execute(&mut self, part: Option<Range<u32>>) -> Result<()> {
        let values = self.values.clone();
        let ports = self.of.run.inputs.len();
        let session = self.loaded()?;
        let began = Instant::now();
        for (index, value) in values.iter().enumerate() {
            let Some(value) = value else { continue };
            match index.checked_sub(ports) {
                None => session.set_input(index, value.bytes()).map_err(other)?,
                Some(number) => session.set_number(number, value.bits(0) as u32),
            }
        }
        let bound = began.elapsed();
        let copied = match part {
            None => {
                session.execute(How::Graph).map_err(other)?;
                0..self.of.run.operations.len()
            }
            Some(part) => {
                let copied = part.start as usize..part.end as usize;
                session.execute_part(part).map_err(other)?;
                copied
            }
        };
        let ended = began.elapsed();
        self.timing.run = ended;
        self.timing.set_phase(Phase::Bind, bound);
        self.timing
            .set_phase(Phase::Device, ended.saturating_sub(bound));
        for operation in &self.of.run.operations[copied] {
            if let Operation::Out { output, .. } = operation {
                self.has_copied[*output as usize] = true;
            }
        }
        Ok(())
    }

    /// Changes memory; after a failure the next run loads anew.
    fn change(
        &mut self,
        how: impl FnOnce(&mut RunSession) -> std::result::Result<(), ReplayError>,
    ) -> Result<()> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let changed = session.enter().and_then(|entered| {
            let changed = how(session);
            drop(entered);
            changed
        });
        let changed = changed.map_err(other);
        if changed.is_err() {
            self.unload();
        }
        changed
    }

    fn take_weights(&mut self) -> Result<()> {
        match self.weights()? {
            Some(weights) => self.change(|session| session.set_weights(weights)),
            None => Ok(()),
        }
    }

    fn unload(&mut self) {
        let _kept = Entered::keep(&self.gpu);
        self.session = None;
        self.has_copied.fill(false);
    }
}

impl Replay for CudaSession {
    fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        Ok(&self.of.tensors[self.named(name)?])
    }

    fn layers(&self) -> &[Layer] {
        self.of.layers()
    }

    fn bind(&mut self, name: &str, value: Tensor) -> Result<()> {
        let index = self.named(name)?;
        let info = &self.of.tensors[index];
        if info.kind != TensorKind::Input {
            return Err(Error::WrongKind {
                name: name.to_owned(),
                kind: info.kind.name(),
                known: list(&self.of.tensors, TensorKind::Input),
            });
        }
        gpureplay_library::bindings::require(info, &value, "the value")?;
        self.values[index] = Some(value);
        Ok(())
    }

    fn bind_weights(&mut self, path: &Path) -> Result<()> {
        let before = self.weights.replace(path.to_owned());
        let bound = self.take_weights();
        if bound.is_err() {
            self.weights = before;
        }
        bound
    }

    fn unbind(&mut self, name: &str) -> Result<()> {
        let index = self.named(name)?;
        self.values[index] = None;
        Ok(())
    }

    fn reset_states(&mut self) -> Result<()> {
        self.change(|session| session.restore())
    }

    fn run(&mut self) -> Result<()> {
        self.run_part(None)
    }

    fn run_layers(&mut self, layers: Range<usize>) -> Result<()> {
        let parts = self.of.parts.get(layers.clone());
        let ends = parts.and_then(|parts| Some((parts.first()?.start, parts.last()?.end)));
        let Some((first, end)) = ends else {
            return Err(Error::NoLayer {
                name: format!("{}..{}", layers.start, layers.end),
                known: layers_named(&self.of.layers),
            });
        };
        self.run_part(Some(first..end))
    }

    fn read(&mut self, name: &str) -> Result<Tensor> {
        self.value(name)
    }

    fn timing(&self) -> &Timing {
        &self.timing
    }
}

impl CudaSession {
    fn run_part(&mut self, part: Option<Range<u32>>) -> Result<()> {
        let tensors = self.of.tensors.iter().zip(&self.values);
        let mut missing =
            tensors.filter(|(info, value)| info.kind == TensorKind::Input && value.is_none());
        if let Some((info, _)) = missing.next() {
            return Err(Error::Unbound {
                path: self.of.recording.folder().to_owned(),
                kind: info.kind.name(),
                name: info.name.clone(),
                shape: info.to_string(),
            });
        }
        self.timing = Timing::default();
        let _kept = Entered::keep(&self.gpu).map_err(other)?;
        let entered = self.session.as_ref().map(RunSession::enter);
        let entered = entered.transpose().map_err(other)?;
        let done = self.execute(part);
        drop(entered);
        if done.is_err() {
            self.unload();
        }
        done
    }

    fn value(&mut self, name: &str) -> Result<Tensor> {
        let index = self.named(name)?;
        let info = &self.of.tensors[index];
        let first = self.of.tensors.len() - self.of.run.outputs.len();
        let nothing = || Error::WrongKind {
            name: name.to_owned(),
            kind: info.kind.name(),
            known: "nothing has run yet".into(),
        };
        let Some(output) = index.checked_sub(first) else {
            return self.values[index].clone().ok_or_else(nothing);
        };
        let session = self.session.as_ref().filter(|_| self.has_copied[output]);
        let bytes = session.ok_or_else(nothing)?.output(output).to_vec();
        Tensor::new(info.dtype, &info.shape, bytes).map_err(|error| Error::Other {
            class: Class::Output,
            source: Box::new(error),
        })
    }
}

impl Drop for CudaSession {
    fn drop(&mut self) {
        self.unload();
    }
}
