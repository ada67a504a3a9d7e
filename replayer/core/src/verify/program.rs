// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for segments and actions.

use gpureplay_format::layout::{ActionEntry, Segment};
use gpureplay_format::lz4::{self, Level};
use gpureplay_format::{
    ActionFault, Encoding, Opcode, RegionKind, Section, SegmentKind, TensorKind,
};

use super::{Checker, Rule};
use crate::family::Family;
use crate::gpu::Submission;

/// Bytes of a header that the GPU writes.
const JOB_RESULT: u64 = 16;

struct Walk {
    kind: SegmentKind,
    time_us: u64,
    bytes: u64,
}

impl Checker<'_, '_> {
    pub(super) fn check_program<F: Family>(&mut self) -> Result<(), Rule> {
        let recording = self.recording;
        let mut walk = Walk {
            kind: SegmentKind::Setup,
            time_us: 0,
            bytes: 0,
        };
        let mut actions = 0u32;
        let mut runs = false;
        for (index, segment) in (0..).zip(recording.segments()) {
            self.section = Section::Segments;
            self.index = index;
            self.value = actions.into();
            let entries = recording.segment_entries(segment);
            let kind = SegmentKind::from_code(segment.kind.into());
            let sound = segment.first_action == actions
                && segment.actions == entries.len() as u32
                && segment.zero == [0; 3]
                && recording.has_name(segment.name.get());
            let Some(kind) = kind.filter(|_| sound) else {
                return Err(Rule::SegmentTable);
            };
            if kind < walk.kind {
                return Err(Rule::SegmentOrder);
            }
            walk.kind = kind;
            runs |= kind == SegmentKind::Run;
            self.section = Section::Actions;
            self.index = actions;
            self.check_actions::<F>(segment, entries, &mut walk)?;
            actions = actions.wrapping_add(entries.len() as u32);
        }
        self.section = Section::Segments;
        let all = actions as usize == recording.action_entries().len();
        self.ensure(all, Rule::SegmentTable, actions.into())?;
        self.ensure(runs, Rule::SegmentOrder, 0)
    }

    #[inline(never)]
    fn check_actions<F: Family>(
        &mut self,
        segment: &Segment,
        entries: &[ActionEntry],
        walk: &mut Walk,
    ) -> Result<(), Rule> {
        let recording = self.recording;
        let mut cursor = recording.cursor(segment);
        let mut level = Level::default();
        let mut settings_over = walk.kind != SegmentKind::Setup;
        // Actions since the last submit: they may make the next chain ready.
        let mut since = entries;
        let mut rearmed = None;
        let mut rest = entries.iter();
        while let Some(entry) = rest.next() {
            let (register, c, va) = (u32::from(entry.b.get()), entry.c.get(), entry.d.get());
            self.value = va;
            let (opcode, payload) = cursor.step(entry).map_err(|fault| match fault {
                ActionFault::Data => Rule::UploadData,
                _ => Rule::ActionForm,
            })?;
            let mut moved = 0u64;
            match opcode {
                Opcode::Write => {
                    if settings_over {
                        return Err(Rule::RegisterWriteOrder);
                    }
                    let allowed = F::may_write(recording.gpu_id(), register, c);
                    self.ensure(allowed, Rule::RegisterWrite, register.into())?;
                }
                Opcode::Upload | Opcode::Fill => {
                    if opcode == Opcode::Upload && entry.a == Encoding::Lz4.code() {
                        let after = lz4::check(payload, level, c as usize);
                        level = after.ok_or(Rule::UploadData)?;
                    }
                    moved = c.into();
                    let region = recording.region_of(va, moved);
                    let fits = match region.and_then(|it| RegionKind::from_code(it.kind.into())) {
                        Some(RegionKind::Data | RegionKind::Descriptors) => true,
                        Some(RegionKind::Code) => walk.kind == SegmentKind::Setup,
                        Some(RegionKind::Scratch) | None => false,
                    };
                    if !fits || c == 0 {
                        return Err(Rule::UploadRegion);
                    }
                }
                Opcode::Rearm | Opcode::Submit if F::LAUNCHES => return Err(Rule::ActionForm),
                Opcode::Launch if !F::LAUNCHES => return Err(Rule::ActionForm),
                Opcode::Rearm | Opcode::Submit | Opcode::Launch => {
                    if !F::LAUNCHES {
                        self.ensure(F::may_rearm(recording, va), Rule::JobHeader, va)?;
                        rearmed = Some(va);
                    }
                    if F::LAUNCHES || opcode == Opcode::Submit {
                        rearmed = None;
                        if !F::LAUNCHES && !makes_ready(since, va) {
                            return Err(Rule::JobRestored);
                        }
                        since = rest.as_slice();
                        self.value = register.into();
                        let words = payload;
                        F::check(recording, &Submission { entry, words })?;
                        let bounded = c != 0 && c <= self.limits.wait_us;
                        self.ensure(bounded, Rule::BoundedWait, c.into())?;
                        // At most 2^32 actions of 32 bits each.
                        walk.time_us += u64::from(c);
                        let time_us = walk.time_us;
                        self.ensure(time_us <= self.limits.total_us, Rule::TotalTime, time_us)?;
                    }
                }
                Opcode::BindInput | Opcode::BindOutput => {
                    self.value = c.into();
                    moved = self.bound_bytes(c, opcode == Opcode::BindInput, walk.kind)?;
                }
                Opcode::Seek => {}
            }
            settings_over |= opcode != Opcode::Write;
            walk.bytes = walk.bytes.saturating_add(moved);
            let bytes = walk.bytes;
            self.ensure(bytes <= self.limits.moved_bytes, Rule::TotalBytes, bytes)?;
            self.index = self.index.wrapping_add(1);
        }
        match rearmed {
            Some(va) => self.ensure(false, Rule::JobSubmitted, va),
            None => Ok(()),
        }
    }

    fn bound_bytes(&self, tensor: u32, input: bool, segment: SegmentKind) -> Result<u64, Rule> {
        let tensors = self.recording.tensors();
        let tensor = tensors.get(tensor as usize).ok_or(Rule::BoundTensor)?;
        let suits = match (segment, TensorKind::from_code(tensor.kind.into())) {
            (SegmentKind::Setup | SegmentKind::Run, Some(TensorKind::Weight)) => input,
            (SegmentKind::Run, Some(TensorKind::Input)) => input,
            (SegmentKind::Run, Some(TensorKind::Output)) => !input,
            (SegmentKind::Run, Some(TensorKind::Intermediate | TensorKind::State)) => true,
            _ => false,
        };
        if !suits {
            return Err(Rule::BoundTensor);
        }
        // Each piece may hold the whole tensor; both factors have at most 32 bits.
        let bytes = self.recording.tensor_bytes(tensor).unwrap_or(0);
        Ok(u64::from(bytes).wrapping_mul(tensor.pieces.get().into()))
    }
}

/// Whether overwriting the GPU's result makes a chain ready before the next submit.
#[inline(never)]
fn makes_ready(since: &[ActionEntry], chain: u64) -> bool {
    let mut actions = since
        .iter()
        .take_while(|entry| entry.op != Opcode::Submit.code());
    actions.any(|entry| {
        let length = match Opcode::from_code(entry.op.into()) {
            Some(Opcode::Rearm) => JOB_RESULT,
            Some(Opcode::Upload | Opcode::Fill) => entry.c.get().into(),
            _ => 0,
        };
        let offset = chain.wrapping_sub(entry.d.get());
        offset <= length && length - offset >= JOB_RESULT
    })
}
