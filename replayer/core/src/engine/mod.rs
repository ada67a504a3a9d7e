// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a verified recording.

mod program;
mod submit;
mod tensor;

use gpureplay_format::layout::IdentityCheck;
use gpureplay_format::lz4::History;
use gpureplay_format::{Access, SegmentKind};

use crate::error::{ErrorKind, NO_ACTION, ReplayError};
use crate::family::{Driver, Failed, Family};
use crate::gpu::Gpu;
use crate::verify::Verified;

/// Tensor values: dense, C order, little-endian.
pub trait Tensors {
    /// Value for GPU memory. `None` keeps what is there: an error for inputs and for weights without recorded
    /// value. Set-up asks for weights, and so do runs that restore their memory: give replaced ones every time.
    fn input(&mut self, tensor: u32) -> Option<&[u8]>;
    /// Room for a readable tensor; `None` skips it.
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]>;
}

/// For recordings that need no values.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTensors;

impl Tensors for NoTensors {
    fn input(&mut self, _tensor: u32) -> Option<&[u8]> {
        None
    }
    fn output(&mut self, _tensor: u32) -> Option<&mut [u8]> {
        None
    }
}

/// Working memory of a session, about 32 KiB; static in firmware.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    history: History,
}

impl Workspace {
    /// Fresh working memory.
    pub const fn new() -> Self {
        Self {
            history: History::new(),
        }
    }
}

/// Choices at opening.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Replay on another GPU than recorded.
    pub ignore_identity: bool,
}

/// An open recording, ready for runs.
///
/// After an error the GPU is reset, and the next run sets up again: [`Tensors`] must bring replaced weights again.
#[derive(Debug)]
pub struct Session<'a, 'w, G: Gpu, F: Family> {
    driver: Driver<G, F::State>,
    recording: Verified<'a, F>,
    workspace: &'w mut Workspace,
    options: Options,
    ready: bool,
    powered: bool,
    action: u32,
    submits: u32,
}

impl<'a, 'w, G: Gpu, F: Family> Session<'a, 'w, G, F> {
    /// Resets, checks, maps, powers up, sets up.
    ///
    /// # Errors
    /// What failed; the GPU's memory is released.
    pub fn open(
        gpu: G,
        recording: Verified<'a, F>,
        workspace: &'w mut Workspace,
        options: Options,
        tensors: &mut dyn Tensors,
    ) -> Result<Self, ReplayError> {
        let mut session = Self::new(gpu, recording, workspace, options);
        session.prepare(tensors)?;
        Ok(session)
    }

    /// Does not touch the GPU; [`Session::prepare`] or the first run does. [`Session::open`] moves the session
    /// twice.
    pub const fn new(
        gpu: G,
        recording: Verified<'a, F>,
        workspace: &'w mut Workspace,
        options: Options,
    ) -> Self {
        Self {
            driver: Driver {
                gpu,
                state: F::RESET,
                space: 0,
                error: ErrorKind::Internal,
            },
            recording,
            workspace,
            options,
            ready: false,
            powered: false,
            action: NO_ACTION,
            submits: 0,
        }
    }

    /// The work of [`Session::open`], once.
    ///
    /// # Errors
    /// As for [`Session::open`].
    pub fn prepare(&mut self, tensors: &mut dyn Tensors) -> Result<(), ReplayError> {
        let result = self.set_up(tensors);
        self.conclude(result)
    }

    /// The recording.
    pub const fn recording(&self) -> &Verified<'a, F> {
        &self.recording
    }

    /// The device.
    pub const fn gpu(&mut self) -> &mut G {
        &mut self.driver.gpu
    }

    /// Chains submitted in the last run so far.
    pub const fn submits(&self) -> u32 {
        self.submits
    }

    /// All run segments, in order.
    ///
    /// # Errors
    /// What failed. The GPU is reset; the next run starts afresh.
    pub fn run(&mut self, tensors: &mut dyn Tensors) -> Result<(), ReplayError> {
        self.submits = 0;
        let mut result = self.set_up(tensors);
        if result.is_ok() {
            result = self.run_kind(SegmentKind::Run, tensors);
        }
        self.conclude(result)
    }

    /// Runs one segment, by its index among all segments; the caller keeps their order.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub fn run_segment(
        &mut self,
        index: u32,
        tensors: &mut dyn Tensors,
    ) -> Result<(), ReplayError> {
        self.one_segment(index, tensors, false)
    }

    /// A run segment's uploads and given tensors, without jobs. The caller gives what later segments need.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub fn skip_segment(
        &mut self,
        index: u32,
        tensors: &mut dyn Tensors,
    ) -> Result<(), ReplayError> {
        self.one_segment(index, tensors, true)
    }

    fn one_segment(
        &mut self,
        index: u32,
        tensors: &mut dyn Tensors,
        skip: bool,
    ) -> Result<(), ReplayError> {
        let segments = self.recording.recording().segments();
        let segment = segments.get(index as usize);
        let Some(segment) = segment.filter(|segment| segment.kind == SegmentKind::Run.code())
        else {
            let kind = ErrorKind::NoSuchSegment(index);
            return Err(ReplayError {
                action: NO_ACTION,
                submits: self.submits,
                kind,
            });
        };
        let mut result = self.set_up(tensors);
        if result.is_ok() {
            result = self.run_one(segment, tensors, skip);
        }
        self.conclude(result)
    }

    /// Runs finish segments, resets the GPU (which switches it off), and releases memory.
    ///
    /// # Errors
    /// A segment or the reset failed. Only without reset the GPU keeps its memory.
    pub fn finish(mut self) -> Result<(), ReplayError> {
        self.close()
    }

    /// [`Session::finish`] that keeps the device; a later run reopens it.
    ///
    /// # Errors
    /// As for [`Session::finish`].
    pub fn close(&mut self) -> Result<(), ReplayError> {
        let result = self.shut_down();
        self.conclude(result)
    }

    fn shut_down(&mut self) -> Result<(), Failed> {
        if self.ready {
            self.run_kind(SegmentKind::Finish, &mut NoTensors)?;
            self.ready = false;
        }
        self.reset()
    }

    fn conclude(&mut self, result: Result<(), Failed>) -> Result<(), ReplayError> {
        if result.is_ok() {
            self.action = NO_ACTION;
            return Ok(());
        }
        let error = ReplayError {
            action: self.action,
            submits: self.submits,
            kind: self.driver.error,
        };
        self.action = NO_ACTION;
        self.ready = false;
        // The first error says more.
        let _ = self.reset();
        Err(error)
    }

    /// A GPU that does not reset keeps its pages.
    fn reset(&mut self) -> Result<(), Failed> {
        self.powered = false;
        self.driver.state = F::RESET;
        let reset = self.driver.gpu.reset();
        self.driver.take(reset)?;
        self.driver.gpu.release();
        Ok(())
    }

    fn set_up(&mut self, tensors: &mut dyn Tensors) -> Result<(), Failed> {
        if self.ready {
            return Ok(());
        }
        self.reset()?;
        let recording = self.recording.recording();
        if !self.options.ignore_identity {
            for check in recording.identity() {
                self.check_identity(check)?;
            }
        }
        let regions = recording.regions().last();
        let last = regions.map_or(0, |region| region.end().wrapping_sub(1));
        F::fits(&mut self.driver, last)?;
        for region in recording.regions() {
            let access = Access(region.access);
            let (va, pages) = (region.va.get(), region.pages.get());
            let mapped = self.driver.gpu.map(va, pages, access);
            self.driver.take(mapped)?;
        }
        self.run_kind(SegmentKind::Setup, tensors)?;
        self.power_up()?;
        self.ready = true;
        Ok(())
    }

    fn check_identity(&mut self, check: &IdentityCheck) -> Result<(), Failed> {
        let (register, mask, expected) =
            (check.register.get(), check.mask.get(), check.value.get());
        let found = self.driver.gpu.read32(register) & mask;
        if found == expected {
            return Ok(());
        }
        self.driver.fail(ErrorKind::Identity {
            register,
            mask,
            expected,
            found,
        })
    }
}

impl<G: Gpu, F: Family> Drop for Session<'_, '_, G, F> {
    fn drop(&mut self) {
        if self.ready {
            // No caller is left.
            let _ = self.reset();
        }
    }
}
