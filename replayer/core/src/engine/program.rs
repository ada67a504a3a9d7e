// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs the actions of segments.

use gpureplay_format::layout::{ActionEntry, Segment};
use gpureplay_format::{Encoding, Opcode, SegmentKind};

use super::{Failed, Session, Tensors};
use crate::error::{ErrorKind, NO_ACTION};
use crate::gpu::Gpu;

impl<G: Gpu> Session<'_, '_, G> {
    pub(super) fn run_kind(
        &mut self,
        kind: SegmentKind,
        tensors: &mut dyn Tensors,
    ) -> Result<(), Failed> {
        for segment in self.recording.recording().segments() {
            if segment.kind == kind.code() {
                self.run_one(segment, tensors, false)?;
            }
        }
        self.action = NO_ACTION;
        Ok(())
    }

    /// Runs a segment; with `skip` without its jobs.
    pub(super) fn run_one(
        &mut self,
        segment: &Segment,
        tensors: &mut dyn Tensors,
        skip: bool,
    ) -> Result<(), Failed> {
        let recording = self.recording.recording();
        self.workspace.history.clear();
        self.action = segment.first_action.get();
        let entries = recording.segment_entries(segment);
        let mut cursor = recording.cursor(segment);
        // Actions since the last submit, to find the headers that the next one must leave DONE.
        let mut since = entries;
        let mut rest = entries.iter();
        while let Some(entry) = rest.next() {
            let Ok((opcode, payload)) = cursor.step(entry) else {
                return self.fail(ErrorKind::Internal);
            };
            if !self.powered && opcode != Opcode::Write {
                self.power_up()?;
            }
            if skip && left_out(opcode, entry.c.get(), tensors) {
                self.action = self.action.wrapping_add(1);
                continue;
            }
            self.perform(entry, opcode, payload, tensors)?;
            if opcode == Opcode::Submit {
                self.check_headers(since)?;
                since = rest.as_slice();
                self.lend()?;
            }
            self.action = self.action.wrapping_add(1);
        }
        Ok(())
    }

    /// Lets others have the GPU, and brings it back to where it was.
    fn lend(&mut self) -> Result<(), Failed> {
        match self.gpu.lend() {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(error) => return self.fail(ErrorKind::Device(error)),
        }
        self.powered = false;
        self.loaded = super::NOT_LOADED;
        let recording = self.recording.recording();
        // Settings come first in set-up (rule `register-write-order`): nothing else is walked, however often the GPU is lent.
        for segment in recording.segments() {
            let later = segment.first_action.get() > self.action;
            if later || segment.kind != SegmentKind::Setup.code() {
                break;
            }
            for entry in recording.segment_entries(segment) {
                if entry.op != Opcode::Write.code() {
                    break;
                }
                self.gpu.write32(entry.b.get().into(), entry.c.get());
            }
        }
        self.power_up()
    }

    fn perform(
        &mut self,
        entry: &ActionEntry,
        opcode: Opcode,
        payload: &[u8],
        tensors: &mut dyn Tensors,
    ) -> Result<(), Failed> {
        let (b, c, va) = (entry.b.get(), entry.c.get(), entry.d.get());
        let result = match opcode {
            Opcode::Write => {
                self.gpu.write32(b.into(), c);
                return Ok(());
            }
            Opcode::Upload => {
                let bytes = if entry.a == Encoding::Raw.code() {
                    Some(payload)
                } else {
                    self.workspace.history.decode(payload, c as usize)
                };
                let Some(bytes) = bytes else {
                    return self.fail(ErrorKind::Internal);
                };
                self.gpu.write_memory(va, bytes)
            }
            Opcode::Fill => self.gpu.fill_memory(va, c.into(), entry.a),
            Opcode::Rearm => self.gpu.write_memory(va, &[0; 16]),
            Opcode::Submit => return self.submit(entry.a, b, c, va),
            Opcode::BindInput => return self.bind_input(c, tensors),
            Opcode::BindOutput => return self.bind_output(c, tensors),
            Opcode::Seek => return Ok(()),
        };
        self.device(result)
    }
}

/// Whether an action belongs to jobs that do not run.
fn left_out(opcode: Opcode, tensor: u32, tensors: &mut dyn Tensors) -> bool {
    match opcode {
        Opcode::Submit | Opcode::Rearm | Opcode::BindOutput => true,
        Opcode::BindInput => tensors.input(tensor).is_none(),
        _ => false,
    }
}
