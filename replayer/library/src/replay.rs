// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays of any GPU.
//!
//! [`Recording`] and [`Session`] implement these traits for Mali, `gpureplay-cuda-replay` for CUDA. C and Python
//! use only the traits.

use std::ops::Range;
use std::path::Path;

use gpureplay_tensors::Tensor;

use crate::error::{Error, Result};
use crate::recording::Recording;
use crate::session::{Options, Session};
use crate::tensors::{Layer, TensorInfo, layers_named};
use crate::timing::Timing;
use crate::values;

/// A checked recording. Threads may share it.
pub trait Recorded: Send + Sync {
    /// All tensors.
    fn tensors(&self) -> &[TensorInfo];

    /// Separately runnable parts, in order.
    fn layers(&self) -> &[Layer];

    /// Loads nothing before the first run.
    ///
    /// # Errors
    /// No such device, or it cannot replay the recording.
    fn replay(&self, options: Options) -> Result<Box<dyn Replay>>;
}

/// Recording on a device, for one thread at a time. All as in [`Session`].
pub trait Replay: Send {
    /// A tensor by name.
    ///
    /// # Errors
    /// No tensor of this name.
    fn tensor(&self, name: &str) -> Result<&TensorInfo>;

    /// The layers.
    fn layers(&self) -> &[Layer];

    /// Gives a tensor a value.
    ///
    /// # Errors
    /// No such tensor, it takes no value, or the value does not fit.
    fn bind(&mut self, name: &str, value: Tensor) -> Result<()>;

    /// Gives a tensor a value from a file.
    ///
    /// # Errors
    /// As for [`Replay::bind`], or the file cannot be read.
    fn bind_file(&mut self, name: &str, path: &Path) -> Result<()> {
        let value = values::read(path, self.tensor(name)?, None)?;
        self.bind(name, value)
    }

    /// Replaces every weight.
    ///
    /// # Errors
    /// No weights, or one is missing or does not fit.
    fn bind_weights(&mut self, path: &Path) -> Result<()>;

    /// Takes a value away.
    ///
    /// # Errors
    /// No such tensor.
    fn unbind(&mut self, name: &str) -> Result<()>;

    /// Resets every state to its value at opening.
    ///
    /// # Errors
    /// The device fails.
    fn reset_states(&mut self) -> Result<()>;

    /// Runs all layers.
    ///
    /// # Errors
    /// An input has no value, or the replay failed.
    fn run(&mut self) -> Result<()>;

    /// Runs layers, counted from 0.
    ///
    /// # Errors
    /// As for [`Replay::run`], or no such layers.
    fn run_layers(&mut self, layers: Range<usize>) -> Result<()> {
        Err(Error::NoLayer {
            name: format!("{}..{}", layers.start, layers.end),
            known: layers_named(self.layers()),
        })
    }

    /// Whether layers may read what was neither computed nor bound.
    fn use_recorded_values(&mut self, _yes: bool) {}

    /// Keeps an intermediate's value when its layer ends.
    ///
    /// # Errors
    /// No such tensor.
    fn keep(&mut self, name: &str) -> Result<()> {
        self.tensor(name).map(drop)
    }

    /// Reads a tensor's value.
    ///
    /// # Errors
    /// No such tensor, nothing has run yet, or the device fails.
    fn read(&mut self, name: &str) -> Result<Tensor>;

    /// Times of the last run.
    fn timing(&self) -> &Timing;
}

impl Recorded for Recording {
    fn tensors(&self) -> &[TensorInfo] {
        Self::tensors(self)
    }

    fn layers(&self) -> &[Layer] {
        Self::layers(self)
    }

    fn replay(&self, options: Options) -> Result<Box<dyn Replay>> {
        Ok(Box::new(self.session(options)?))
    }
}

impl Replay for Session {
    fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        Self::tensor(self, name)
    }

    fn layers(&self) -> &[Layer] {
        self.recording().layers()
    }

    fn bind(&mut self, name: &str, value: Tensor) -> Result<()> {
        Self::bind(self, name, value)
    }

    fn bind_file(&mut self, name: &str, path: &Path) -> Result<()> {
        Self::bind_file(self, name, path)
    }

    fn bind_weights(&mut self, path: &Path) -> Result<()> {
        Self::bind_weights(self, path)
    }

    fn unbind(&mut self, name: &str) -> Result<()> {
        Self::unbind(self, name)
    }

    fn reset_states(&mut self) -> Result<()> {
        Self::reset_states(self);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        Self::run(self)
    }

    fn run_layers(&mut self, layers: Range<usize>) -> Result<()> {
        Self::run_layers(self, layers)
    }

    fn use_recorded_values(&mut self, yes: bool) {
        Self::use_recorded_values(self, yes);
    }

    fn keep(&mut self, name: &str) -> Result<()> {
        Self::keep(self, name)
    }

    fn read(&mut self, name: &str) -> Result<Tensor> {
        Self::read(self, name)
    }

    fn timing(&self) -> &Timing {
        Self::timing(self)
    }
}
