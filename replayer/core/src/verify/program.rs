// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for segments and actions.

use gpureplay_format::layout::Segment;
use gpureplay_format::lz4::{self, Level};
use gpureplay_format::{
    Access, Action, ActionFault, Actions, Payload, Recording, RegionKind, Section, SegmentKind,
    TensorKind,
};
use mali_regs::{GpuInterrupt, JobConfigFlags};

use super::{Limits, Rule, Violation, require};
use crate::allow;

/// Bytes of a job header.
const JOB_HEADER: u64 = 32;
/// Job slots of every GPU with a job manager.
const SLOTS: u8 = 3;
/// JS_CONFIG bits that a recording may choose.
const CONFIG: u32 = JobConfigFlags::START_FLUSH_CLEAN.bits()
    | JobConfigFlags::START_FLUSH_INVALIDATE.bits()
    | JobConfigFlags::START_MMU.bits()
    | JobConfigFlags::CHAIN_FLAG.bits()
    | JobConfigFlags::END_FLUSH_CLEAN.bits()
    | JobConfigFlags::END_FLUSH_INVALIDATE.bits();
/// Bits of the GPU line that a recording may wait for.
const WAITABLE: u32 = GpuInterrupt::CLEAN_CACHES_COMPLETED.bits()
    | GpuInterrupt::POWER_CHANGED_SINGLE.bits()
    | GpuInterrupt::POWER_CHANGED_ALL.bits();
/// The GPU's interrupt line in [`Action::WaitIrq`].
const GPU_LINE: u8 = 2;

/// Sums over the whole program.
struct Totals {
    time_us: u64,
    bytes: u64,
}

pub(super) fn check(recording: &Recording<'_>, limits: &Limits) -> Result<(), Violation> {
    let mut totals = Totals {
        time_us: 0,
        bytes: 0,
    };
    let mut actions = 0u32;
    let mut before = SegmentKind::Setup;
    let mut runs = false;
    for (index, segment) in (0u32..).zip(recording.segments()) {
        let check = |holds, rule, value| require(holds, rule, Section::Segments, index, value);
        let first = segment.first_action.get();
        let kind = SegmentKind::from_code(segment.kind.into());
        let named = recording
            .name_bytes(segment.name.get())
            .is_some_and(|name| !name.is_empty());
        let Some(kind) = kind.filter(|_| named && segment.zero == [0; 3] && first == actions)
        else {
            return check(false, Rule::SegmentTable, first.into());
        };
        check(kind >= before, Rule::SegmentOrder, kind as u64)?;
        before = kind;
        runs |= kind == SegmentKind::Run;
        actions = actions.wrapping_add(segment.actions.get());
        check(
            actions >= first && actions as usize <= recording.action_entries().len(),
            Rule::SegmentTable,
            actions.into(),
        )?;
        let walk = Walk {
            recording,
            limits,
            kind,
            first,
        };
        let (submits, jobs) = walk.check(segment, &mut totals)?;
        let counted = submits == segment.submits.get() && jobs == segment.jobs.get();
        check(counted, Rule::SegmentTable, submits.into())?;
    }
    let all = actions as usize == recording.action_entries().len();
    require(
        all,
        Rule::SegmentTable,
        Section::Segments,
        0,
        actions.into(),
    )?;
    require(runs, Rule::SegmentOrder, Section::Segments, 0, 0)
}

/// The check of one segment.
struct Walk<'r, 'a> {
    recording: &'r Recording<'a>,
    limits: &'r Limits,
    kind: SegmentKind,
    first: u32,
}

impl<'a> Walk<'_, 'a> {
    /// Checks all actions and returns the numbers of submits and of rearmed headers.
    fn check(&self, segment: &Segment, totals: &mut Totals) -> Result<(u32, u32), Violation> {
        let (mut submits, mut jobs) = (0, 0);
        let mut level = Level::default();
        let mut settings_over = self.kind != SegmentKind::Setup;
        // Actions since the last submit: what may have made the next chain ready.
        let mut since = self.recording.segment_actions(segment);
        let mut rearmed = None;
        let mut actions = since.clone();
        let mut at = self.first;
        while let Some(action) = actions.next() {
            let fail = |rule, value| {
                Err(Violation {
                    rule,
                    section: Section::Actions,
                    index: at,
                    value,
                })
            };
            let action = match action {
                Ok(action) => action,
                Err(ActionFault::Data) => return fail(Rule::UploadData, actions.cursor() as u64),
                Err(_) => return fail(Rule::ActionForm, 0),
            };
            match action {
                Action::Write { .. } if settings_over => {
                    return fail(Rule::RegisterWriteOrder, 0);
                }
                Action::Write { .. } => {}
                _ => settings_over = true,
            }
            match action {
                Action::Upload {
                    length,
                    payload: Payload::Lz4(block),
                    ..
                } => match lz4::check(block, level, length as usize) {
                    Some(after) => level = after,
                    None => return fail(Rule::UploadData, length.into()),
                },
                Action::Rearm { va } => {
                    jobs += 1;
                    rearmed = Some(va);
                }
                Action::Submit { chain, .. } => {
                    submits += 1;
                    rearmed = None;
                    if !makes_ready(&mut since, chain) {
                        return fail(Rule::JobRestored, chain);
                    }
                    since = actions.clone();
                }
                _ => {}
            }
            if let Err((rule, value)) = self.check_action(&action, totals) {
                return fail(rule, value);
            }
            at = at.wrapping_add(1);
        }
        if let Some(va) = rearmed {
            require(false, Rule::JobSubmitted, Section::Actions, at, va)?;
        }
        Ok((submits, jobs))
    }

    /// Checks what an action does by itself.
    fn check_action(&self, action: &Action<'a>, totals: &mut Totals) -> Result<(), (Rule, u64)> {
        let mut wait = None;
        let mut moved = 0u64;
        match *action {
            Action::Write { register, value } => {
                let forbidden = !allow::writable(register.into()).unwrap_or(0);
                let known = allow::writable(register.into()).is_some();
                ensure(
                    known && value & forbidden == 0,
                    Rule::RegisterWrite,
                    register.into(),
                )?;
            }
            Action::Poll {
                register,
                mask,
                value,
                timeout_us,
            } => {
                wait = Some(timeout_us);
                ensure(
                    readable(register, mask, value),
                    Rule::RegisterRead,
                    register.into(),
                )?;
            }
            Action::Expect {
                register,
                mask,
                value,
            } => {
                ensure(
                    readable(register, mask, value),
                    Rule::RegisterRead,
                    register.into(),
                )?;
            }
            Action::WaitIrq {
                line,
                bits,
                timeout_us,
            } => {
                wait = Some(timeout_us);
                let allowed = line == GPU_LINE && bits != 0 && bits & !WAITABLE == 0;
                ensure(allowed, Rule::InterruptBits, bits.into())?;
            }
            Action::Upload { va, length, .. } | Action::Fill { va, length, .. } => {
                moved = length.into();
                let region = self.recording.region_of(va, length.into());
                let kind = region.and_then(|region| RegionKind::from_code(region.kind.into()));
                let fits = match kind {
                    Some(RegionKind::Data | RegionKind::Descriptors) => true,
                    Some(RegionKind::Code) => self.kind == SegmentKind::Setup,
                    Some(RegionKind::Scratch) | None => false,
                };
                ensure(fits && length != 0, Rule::UploadRegion, va)?;
            }
            Action::Rearm { va } => ensure(self.is_header(va), Rule::JobHeader, va)?,
            Action::Submit {
                slot,
                config,
                timeout_us,
                chain,
            } => {
                wait = Some(timeout_us);
                let allowed = slot < SLOTS && u32::from(config) & !CONFIG == 0;
                ensure(allowed, Rule::JobConfiguration, config.into())?;
                ensure(self.is_header(chain), Rule::JobHeader, chain)?;
            }
            Action::BindInput { tensor } | Action::BindOutput { tensor } => {
                let input = matches!(action, Action::BindInput { .. });
                let entry = usize::try_from(tensor)
                    .ok()
                    .and_then(|tensor| self.recording.tensors().get(tensor));
                let kind = entry.and_then(|entry| TensorKind::from_code(entry.kind.into()));
                let suits = match (self.kind, kind) {
                    (SegmentKind::Setup, Some(kind)) => input && kind == TensorKind::Weight,
                    (SegmentKind::Run, Some(TensorKind::Input)) => input,
                    (SegmentKind::Run, Some(TensorKind::Output)) => !input,
                    (SegmentKind::Run, Some(TensorKind::Intermediate)) => true,
                    _ => false,
                };
                ensure(suits, Rule::BoundTensor, tensor.into())?;
                moved = entry
                    .and_then(|entry| self.recording.tensor_bytes(entry))
                    .unwrap_or(0)
                    .into();
            }
            Action::FlushCaches { timeout_us } => wait = Some(timeout_us),
            Action::Seek { .. } => {}
        }
        if let Some(time) = wait {
            ensure(
                time != 0 && time <= self.limits.wait_us,
                Rule::BoundedWait,
                time.into(),
            )?;
            totals.time_us += u64::from(time);
            ensure(
                totals.time_us <= self.limits.total_us,
                Rule::TotalTime,
                totals.time_us,
            )?;
        }
        totals.bytes = totals.bytes.saturating_add(moved);
        ensure(
            totals.bytes <= self.limits.moved_bytes,
            Rule::TotalBytes,
            totals.bytes,
        )
    }

    /// Whether a job header may lie here.
    fn is_header(&self, va: u64) -> bool {
        va.is_multiple_of(64)
            && self
                .recording
                .region_of(va, JOB_HEADER)
                .is_some_and(|region| {
                    region.kind == RegionKind::Descriptors.code()
                        && Access(region.access).contains(Access::WRITE)
                })
    }
}

fn ensure(holds: bool, rule: Rule, value: u64) -> Result<(), (Rule, u64)> {
    if holds { Ok(()) } else { Err((rule, value)) }
}

fn readable(register: u16, mask: u32, value: u32) -> bool {
    allow::readable(register.into()) && value & !mask == 0 && mask != 0
}

/// Whether one of the actions up to the next submit writes what the GPU wrote into the header at `chain`.
fn makes_ready(since: &mut Actions<'_>, chain: u64) -> bool {
    for action in since {
        let (va, length) = match action {
            Ok(Action::Rearm { va }) => (va, JOB_HEADER),
            Ok(Action::Upload { va, length, .. } | Action::Fill { va, length, .. }) => {
                (va, length.into())
            }
            Ok(Action::Submit { .. }) | Err(_) => return false,
            Ok(_) => continue,
        };
        if va <= chain && chain - va <= length && length - (chain - va) >= JOB_HEADER / 2 {
            return true;
        }
    }
    false
}
