// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a verified recording.

mod job;
mod power;
mod tensor;

use gpureplay_format::layout::{IdentityCheck, Segment};
use gpureplay_format::lz4::History;
use gpureplay_format::{Access, Action, Payload, SegmentKind, TensorKind};
use mali_regs::gpu::{GPU_CMD, GPU_INT_CLEAR, GPU_INT_RAWSTAT};
use mali_regs::{GpuCommand, GpuInterrupt};

use crate::error::{ErrorKind, NO_ACTION, ReplayError};
use crate::gpu::{Gpu, Lines};
use crate::verify::Verified;

/// Values of tensors, as the caller keeps them: dense, in C order, little-endian.
pub trait Tensors {
    /// Bytes of a tensor that the engine is about to write into GPU memory. `None` leaves what is there; that is an error
    /// for inputs and for weights without a value in the recording.
    fn input(&mut self, tensor: u32) -> Option<&[u8]>;
    /// Room for a tensor that could be read from GPU memory now. `None` skips it.
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]>;
}

/// No tensors: for recordings without inputs, or to open one whose weights are all inside.
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

/// Working memory of a session, about 32 KiB; firmware puts it into a static.
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

/// Choices that a caller makes when opening a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Replay even though the GPU is not the one that was recorded.
    pub ignore_identity: bool,
}

/// An open recording on a GPU: memory mapped and filled, GPU powered, ready for runs.
///
/// After an error the GPU is reset. The next run then starts from set-up again, with nothing left of the failed one, so the same
/// [`Tensors`] must bring the weights that were replaced.
#[derive(Debug)]
pub struct Session<'a, 'w, G: Gpu> {
    gpu: G,
    recording: Verified<'a>,
    workspace: &'w mut Workspace,
    options: Options,
    ready: bool,
    powered: bool,
    address_space: u8,
    affinity: u32,
    /// Index of the action that runs.
    action: u32,
    /// Chains submitted in this run.
    submits: u32,
    /// Slot and configuration that the NEXT registers hold.
    loaded: Option<(u8, u16)>,
}

impl<'a, 'w, G: Gpu> Session<'a, 'w, G> {
    /// Resets the GPU, checks that it is the right one, maps memory, powers the GPU and runs the set-up segments.
    ///
    /// # Errors
    /// What failed; the GPU is reset and its memory released.
    pub fn open(
        gpu: G,
        recording: Verified<'a>,
        workspace: &'w mut Workspace,
        options: Options,
        tensors: &mut impl Tensors,
    ) -> Result<Self, ReplayError> {
        let mut session = Self {
            gpu,
            recording,
            workspace,
            options,
            ready: false,
            powered: false,
            address_space: 0,
            affinity: 0,
            action: NO_ACTION,
            submits: 0,
            loaded: None,
        };
        session.guarded(|session| session.set_up(tensors))?;
        Ok(session)
    }

    /// The recording.
    pub const fn recording(&self) -> &Verified<'a> {
        &self.recording
    }

    /// The device.
    pub const fn gpu(&mut self) -> &mut G {
        &mut self.gpu
    }

    /// Chains submitted by the last run so far.
    pub const fn submits(&self) -> u32 {
        self.submits
    }

    /// Runs all run segments in order.
    ///
    /// # Errors
    /// What failed. The GPU is reset; the next run starts afresh.
    pub fn run(&mut self, tensors: &mut impl Tensors) -> Result<(), ReplayError> {
        self.submits = 0;
        self.guarded(|session| {
            session.set_up_if_needed(tensors)?;
            session.run_kind(SegmentKind::Run, tensors)
        })
    }

    /// Runs one run segment, by its index among all segments. The caller keeps the order.
    ///
    /// # Errors
    /// As for [`Session::run`].
    pub fn run_segment(
        &mut self,
        index: u32,
        tensors: &mut impl Tensors,
    ) -> Result<(), ReplayError> {
        self.guarded(|session| {
            session.set_up_if_needed(tensors)?;
            let segments = session.recording.recording().segments();
            let segment = usize::try_from(index)
                .ok()
                .and_then(|index| segments.get(index));
            match segment {
                Some(segment) if segment.kind == SegmentKind::Run.code() => {
                    session.run_one(segment, tensors)
                }
                _ => Err(ErrorKind::NoSuchSegment(index)),
            }
        })
    }

    /// Runs the finish segments, switches the GPU off, resets it, releases its memory and gives the device back.
    ///
    /// # Errors
    /// A finish segment or the reset failed. Only a GPU that cannot be reset keeps its memory.
    pub fn finish(mut self) -> Result<(), ReplayError> {
        let ready = self.ready;
        self.guarded(|session| {
            if ready {
                session.run_kind(SegmentKind::Finish, &mut NoTensors)?;
                session.power_down();
            }
            session.ready = false;
            session.gpu.reset()?;
            session.gpu.release();
            Ok(())
        })
    }

    /// Runs a step; after an error the GPU is reset and holds no memory.
    fn guarded(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<(), ErrorKind>,
    ) -> Result<(), ReplayError> {
        self.action = NO_ACTION;
        step(self).map_err(|kind| {
            let error = ReplayError {
                action: self.action,
                submits: self.submits,
                kind,
            };
            self.ready = false;
            // A GPU that does not even reset must keep its pages; the error that came first says more.
            if self.gpu.reset().is_ok() {
                self.gpu.release();
            }
            error
        })
    }

    fn set_up_if_needed(&mut self, tensors: &mut impl Tensors) -> Result<(), ErrorKind> {
        if self.ready {
            Ok(())
        } else {
            self.set_up(tensors)
        }
    }

    fn set_up(&mut self, tensors: &mut impl Tensors) -> Result<(), ErrorKind> {
        self.gpu.reset()?;
        self.gpu.release();
        self.powered = false;
        self.loaded = None;
        let recording = *self.recording.recording();
        if !self.options.ignore_identity {
            for check in recording.identity() {
                self.check_identity(check)?;
            }
        }
        self.check_address_range()?;
        for region in recording.regions() {
            self.gpu
                .map(region.va.get(), region.pages.get(), Access(region.access))?;
        }
        self.run_kind(SegmentKind::Setup, tensors)?;
        self.power_up()?;
        self.ready = true;
        Ok(())
    }

    fn check_identity(&mut self, check: &IdentityCheck) -> Result<(), ErrorKind> {
        let (register, mask, expected) =
            (check.register.get(), check.mask.get(), check.value.get());
        let found = self.gpu.read32(register) & mask;
        if found == expected {
            return Ok(());
        }
        Err(ErrorKind::Identity {
            register,
            mask,
            expected,
            found,
        })
    }

    fn run_kind(&mut self, kind: SegmentKind, tensors: &mut impl Tensors) -> Result<(), ErrorKind> {
        for segment in self.recording.recording().segments() {
            if segment.kind == kind.code() {
                self.run_one(segment, tensors)?;
            }
        }
        self.action = NO_ACTION;
        Ok(())
    }

    fn run_one(&mut self, segment: &Segment, tensors: &mut impl Tensors) -> Result<(), ErrorKind> {
        self.workspace.history.clear();
        self.action = segment.first_action.get();
        let mut actions = self.recording.recording().segment_actions(segment);
        // Actions since the last submit, to find the headers that the next one must leave DONE.
        let mut since = actions.clone();
        while let Some(action) = actions.next() {
            let action = action.map_err(|_| ErrorKind::Internal)?;
            if !self.powered && !matches!(action, Action::Write { .. }) {
                self.power_up()?;
            }
            self.perform(&action, tensors)?;
            if matches!(action, Action::Submit { .. }) {
                self.check_headers(&mut since)?;
                since = actions.clone();
            }
            self.action = self.action.wrapping_add(1);
        }
        Ok(())
    }

    fn perform(
        &mut self,
        action: &Action<'_>,
        tensors: &mut impl Tensors,
    ) -> Result<(), ErrorKind> {
        match *action {
            Action::Write { register, value } => self.gpu.write32(register.into(), value),
            Action::Poll {
                register,
                mask,
                value,
                timeout_us,
            } => {
                self.wait_register(register.into(), mask, value, timeout_us)?;
            }
            Action::Expect {
                register,
                mask,
                value: expected,
            } => {
                let register = register.into();
                let found = self.gpu.read32(register) & mask;
                if found != expected {
                    return Err(ErrorKind::Register {
                        register,
                        mask,
                        expected,
                        found,
                        timeout_us: 0,
                    });
                }
            }
            Action::WaitIrq {
                bits, timeout_us, ..
            } => self.wait_gpu(bits, timeout_us)?,
            Action::Upload {
                va,
                payload: Payload::Raw(bytes),
                ..
            } => {
                self.gpu.write_memory(va, bytes)?;
            }
            Action::Upload {
                va,
                length,
                payload: Payload::Lz4(block),
            } => {
                let bytes = self.workspace.history.decode(block, length as usize);
                self.gpu
                    .write_memory(va, bytes.ok_or(ErrorKind::Internal)?)?;
            }
            Action::Fill { va, length, byte } => {
                self.gpu.fill_memory(va, length.into(), byte)?;
            }
            Action::Rearm { va } => self.gpu.write_memory(va, &[0; 16])?,
            Action::Submit {
                slot,
                config,
                timeout_us,
                chain,
            } => {
                self.submit(slot, config, timeout_us, chain)?;
            }
            Action::BindInput { tensor } => self.bind_input(tensor, tensors)?,
            Action::BindOutput { tensor } => self.bind_output(tensor, tensors)?,
            Action::FlushCaches { timeout_us } => {
                let completed = GpuInterrupt::CLEAN_CACHES_COMPLETED.bits();
                self.gpu.write32(GPU_INT_CLEAR, completed);
                self.gpu
                    .write32(GPU_CMD, GpuCommand::CleanInvalidateCaches as u32);
                self.wait_gpu(completed, timeout_us)?;
            }
            Action::Seek { .. } => {}
        }
        Ok(())
    }

    fn wait_register(
        &mut self,
        register: u32,
        mask: u32,
        expected: u32,
        timeout_us: u32,
    ) -> Result<(), ErrorKind> {
        self.gpu
            .poll(register, mask, expected, timeout_us)
            .map_err(|found| ErrorKind::Register {
                register,
                mask,
                expected,
                found,
                timeout_us,
            })
    }

    /// Waits for bits of the GPU line and clears them.
    fn wait_gpu(&mut self, bits: u32, timeout_us: u32) -> Result<(), ErrorKind> {
        let start = self.gpu.now_us();
        loop {
            let passed = self.gpu.now_us().wrapping_sub(start);
            let found = self.gpu.read32(GPU_INT_RAWSTAT);
            if found & bits == bits {
                self.gpu.write32(GPU_INT_CLEAR, bits);
                return Ok(());
            }
            if passed > timeout_us.into() {
                let register = GPU_INT_RAWSTAT;
                return Err(ErrorKind::Interrupt {
                    register,
                    expected: bits,
                    found,
                    timeout_us,
                });
            }
            self.gpu.wait_irq(Lines::GPU, slice(timeout_us, passed));
        }
    }

    fn is_required(kind: u8, flags: u8) -> bool {
        kind == TensorKind::Input.code() || flags & gpureplay_format::layout::TENSOR_EXTERNAL != 0
    }
}

/// A session that is dropped instead of finished still leaves the GPU reset.
impl<G: Gpu> Drop for Session<'_, '_, G> {
    fn drop(&mut self) {
        if self.ready && self.gpu.reset().is_ok() {
            self.gpu.release();
        }
    }
}

/// How long to wait for an interrupt before asking the registers again: a lost interrupt costs no more than this.
fn slice(timeout_us: u32, passed: u64) -> u32 {
    const LONGEST_US: u32 = 20_000;
    let left = u64::from(timeout_us).saturating_sub(passed);
    u32::try_from(left)
        .unwrap_or(LONGEST_US)
        .clamp(1, LONGEST_US)
}
