// SPDX-License-Identifier: MIT OR Apache-2.0
//! Performs the actions of segments.

use gpureplay_format::layout::{ActionEntry, Segment};
use gpureplay_format::{Encoding, Opcode, SegmentKind};

use super::{Session, Tensors};
use crate::error::{ErrorKind, NO_ACTION};
use crate::family::{Failed, Family};
use crate::gpu::{Gpu, Submission};

impl<G: Gpu, F: Family> Session<'_, '_, G, F> {
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
        // Actions since the last submit; the next one must leave their headers DONE.
        let mut since = entries;
        let mut rest = entries.iter();
        while let Some(entry) = rest.next() {
            let Ok((opcode, payload)) = cursor.step(entry) else {
                return self.driver.fail(ErrorKind::Internal);
            };
            if !self.powered && opcode != Opcode::Write {
                self.power_up()?;
            }
            if skip && left_out::<F>(opcode, entry.c.get(), tensors) {
                self.action = self.action.wrapping_add(1);
                continue;
            }
            self.perform(entry, opcode, payload, tensors)?;
            if opcode == work::<F>() {
                if !F::LAUNCHES {
                    self.check_headers(since)?;
                }
                since = rest.as_slice();
                self.lend()?;
            }
            self.action = self.action.wrapping_add(1);
        }
        Ok(())
    }

    fn lend(&mut self) -> Result<(), Failed> {
        match self.driver.gpu.lend() {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(error) => return self.driver.fail(ErrorKind::Device(error)),
        }
        self.powered = false;
        self.driver.state = F::RESET;
        let recording = self.recording.recording();
        // Set-up's first (rule `register-write-order`): lending walks nothing else.
        for segment in recording.segments() {
            let later = segment.first_action.get() > self.action;
            if later || segment.kind != SegmentKind::Setup.code() {
                break;
            }
            for entry in recording.segment_entries(segment) {
                if entry.op != Opcode::Write.code() {
                    break;
                }
                self.apply(entry)?;
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
        let (c, va) = (entry.c.get(), entry.d.get());
        let result = match opcode {
            Opcode::Write => return self.apply(entry),
            Opcode::Upload => {
                let bytes = if entry.a == Encoding::Raw.code() {
                    Some(payload)
                } else {
                    self.workspace.history.decode(payload, c as usize)
                };
                let Some(bytes) = bytes else {
                    return self.driver.fail(ErrorKind::Internal);
                };
                self.driver.gpu.write_memory(va, bytes)
            }
            Opcode::Fill => self.driver.gpu.fill_memory(va, c.into(), entry.a),
            Opcode::Rearm if !F::LAUNCHES => self.driver.gpu.write_memory(va, &[0; 16]),
            Opcode::Submit | Opcode::Launch if opcode == work::<F>() => {
                let words = payload;
                return self.submit(&Submission { entry, words });
            }
            // The verifier refuses other families' work.
            Opcode::Rearm | Opcode::Submit | Opcode::Launch => {
                return self.driver.fail(ErrorKind::Internal);
            }
            Opcode::BindInput => return self.bind_input(c, tensors),
            Opcode::BindOutput => return self.bind_output(c, tensors),
            Opcode::Seek => return Ok(()),
        };
        self.driver.take(result)
    }
}

const fn work<F: Family>() -> Opcode {
    if F::LAUNCHES {
        Opcode::Launch
    } else {
        Opcode::Submit
    }
}

fn left_out<F: Family>(opcode: Opcode, tensor: u32, tensors: &mut dyn Tensors) -> bool {
    match opcode {
        Opcode::Submit | Opcode::Rearm | Opcode::BindOutput => true,
        Opcode::Launch => F::LAUNCHES,
        Opcode::BindInput => tensors.input(tensor).is_none(),
        _ => false,
    }
}
