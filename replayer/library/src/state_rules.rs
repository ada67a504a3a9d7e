// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for states.
//!
//! A replayer copies each state after a good run, and restores it after a failure. So a run must take the whole
//! state from there, and only its jobs may change it.

use gpureplay_format::layout::TensorEntry;
use gpureplay_format::{Action, Recording, SegmentKind, TensorKind};

use crate::host_rules::rule::{Broken, HostRule};
use crate::tensors::TensorInfo;

type Result = std::result::Result<(), Broken>;

/// First address and end.
type Stretch = (u64, u64);

/// Furthest end so far, and its tensor.
type Reach = Option<(u64, usize)>;

/// Assumes the `gpureplay-core` rules.
pub(crate) fn check(recording: &Recording<'_>, tensors: &[TensorInfo]) -> Result {
    let states: Vec<usize> = (0..)
        .zip(tensors)
        .filter(|(_, info)| info.kind == TensorKind::State)
        .map(|(index, _)| index)
        .collect();
    if states.is_empty() {
        return Ok(());
    }
    for info in states.iter().filter_map(|index| tensors.get(*index)) {
        if info.external {
            let reason = format!("the recording has no value of state {}", info.name);
            return broken(HostRule::StateValue, reason);
        }
    }
    let memory = apart(recording, tensors)?;
    kept(recording, tensors, &memory)?;
    bound(recording, tensors)
}

fn broken(rule: HostRule, reason: String) -> Result {
    Err(Broken { rule, reason })
}

/// Memory of the states, ascending; no other tensor may share it. A tensor counts from its first to its last
/// element, gaps included.
fn apart(
    recording: &Recording<'_>,
    tensors: &[TensorInfo],
) -> std::result::Result<Vec<(Stretch, usize)>, Broken> {
    let mut all: Vec<(Stretch, usize)> = Vec::new();
    for (index, entry) in recording.tensors().iter().enumerate() {
        all.extend(stretches(recording, entry).map(|stretch| (stretch, index)));
    }
    all.sort_unstable();
    let is_state = |index: usize| {
        tensors
            .get(index)
            .is_some_and(|info| info.kind == TensorKind::State)
    };
    let (mut state, mut other): (Reach, Reach) = (None, None);
    for ((start, end), index) in &all {
        let mine = is_state(*index);
        let meets = |before: Reach| before.filter(|(end, _)| end > start);
        let met = meets(state).or_else(|| meets(other).filter(|_| mine));
        if let Some((_, before)) = met {
            let name = |index: usize| tensors.get(index).map_or("", |info| info.name.as_str());
            let reason = format!(
                "{} and {} share memory, and one of them is a state",
                name(before),
                name(*index)
            );
            return Err(Broken {
                rule: HostRule::StateApart,
                reason,
            });
        }
        let furthest = if mine { &mut state } else { &mut other };
        if furthest.is_none_or(|(before, _)| before < *end) {
            *furthest = Some((*end, *index));
        }
    }
    all.retain(|(_, index)| is_state(*index));
    Ok(all)
}

fn stretches<'a>(
    recording: &Recording<'a>,
    entry: &'a TensorEntry,
) -> impl Iterator<Item = Stretch> + use<'a> {
    let size = crate::text::element_of(entry).size();
    let recording = *recording;
    let pieces = recording.pieces(entry).unwrap_or(&[]).iter();
    pieces.map(move |piece| {
        let axes = recording.axes(piece).unwrap_or(&[]).iter();
        let reach = axes.map(|axis| {
            let steps = u64::from(axis.extent.get()).saturating_sub(1);
            steps.saturating_mul(axis.byte_stride.get().into())
        });
        let bytes = reach.fold(u64::from(size), u64::saturating_add);
        (piece.va.get(), piece.va.get().saturating_add(bytes))
    })
}

fn kept(recording: &Recording<'_>, tensors: &[TensorInfo], memory: &[(Stretch, usize)]) -> Result {
    let runs = recording.segments().iter();
    let mut runs = runs.filter(|segment| segment.kind == SegmentKind::Run.code());
    runs.try_for_each(|segment| {
        for action in recording.segment_actions(segment).flatten() {
            let (start, length) = match action {
                Action::Upload { va, length, .. } | Action::Fill { va, length, .. } => (va, length),
                _ => continue,
            };
            let end = start.saturating_add(length.into());
            // Memory of states is disjoint and ascending.
            let after = memory.partition_point(|((first, _), _)| *first < end);
            let before = after.checked_sub(1).and_then(|at| memory.get(at));
            if let Some((_, index)) = before.filter(|((_, last), _)| *last > start) {
                let name = tensors.get(*index).map_or("", |info| info.name.as_str());
                let reason =
                    format!("every run puts {length} bytes at {start:#x} into state {name}");
                return broken(HostRule::StateKept, reason);
            }
        }
        Ok(())
    })
}

#[derive(Clone, Copy, Default)]
struct Use {
    binds: u32,
    reads: u32,
    bound_late: bool,
    chains_before_read: u32,
}

fn bound(recording: &Recording<'_>, tensors: &[TensorInfo]) -> Result {
    let runs = recording.segments().iter();
    let runs = runs.filter(|segment| segment.kind == SegmentKind::Run.code());
    let mut uses = vec![Use::default(); tensors.len()];
    let mut submitted = 0u32;
    for action in runs.flat_map(|segment| recording.segment_actions(segment).flatten()) {
        match action {
            Action::BindInput { tensor } => {
                if let Some(its) = uses.get_mut(tensor as usize) {
                    its.binds = its.binds.saturating_add(1);
                    its.bound_late |= submitted > 0;
                }
            }
            Action::BindOutput { tensor } => {
                if let Some(its) = uses.get_mut(tensor as usize) {
                    if its.reads == 0 {
                        its.chains_before_read = submitted;
                    }
                    its.reads = its.reads.saturating_add(1);
                }
            }
            Action::Submit { .. } | Action::Launch { .. } => {
                submitted = submitted.saturating_add(1)
            }
            _ => {}
        }
    }
    let states = tensors.iter().zip(uses);
    let mut states = states.filter(|(info, _)| info.kind == TensorKind::State);
    states.try_for_each(|(info, its)| {
        let late = its.bound_late || its.reads > 0 && its.chains_before_read < submitted;
        let name = &info.name;
        let reason = match (its.binds, its.reads, late) {
            (1, 1, false) => return Ok(()),
            (_, _, true) => {
                format!("state {name} is bound after a job of the run, or read before one")
            }
            (binds, reads, false) => {
                format!("a run binds state {name} {binds} times and reads it {reads} times")
            }
        };
        broken(HostRule::StateBound, reason)
    })
}

#[cfg(test)]
mod tests {
    use gpureplay_core::Limits;
    use gpureplay_format::{
        Access, Builder, ElementType, Piece, RegionKind, SegmentKind, Tensor, TensorId,
    };
    use mali_drive::verify;

    use super::*;

    const GPU: u32 = 0x7212_0000;
    const DATA: u64 = 0x300_0000;
    const CHAIN: u64 = 0x400_0000;

    fn rule(also: Option<Tensor>, run: impl Fn(&mut Builder, TensorId)) -> Option<HostRule> {
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
        builder.region(CHAIN, 1, Access::READ_WRITE, RegionKind::Descriptors);
        let state = Tensor::dense("s", TensorKind::State, ElementType::F32, &[16], DATA + 64);
        let state = builder.tensor(state);
        let other = also.map(|tensor| (tensor.kind, builder.tensor(tensor)));
        builder.segment("setup", SegmentKind::Setup);
        builder.upload(DATA + 64, &[1; 64]);
        builder.segment("run", SegmentKind::Run);
        if let Some((_, other)) = other.filter(|(kind, _)| *kind != TensorKind::Output) {
            builder.bind_input(other);
        }
        run(&mut builder, state);
        if let Some((_, other)) = other.filter(|(kind, _)| *kind == TensorKind::Output) {
            builder.bind_output(other);
        }
        let bytes = builder.finish().unwrap();
        let recording = Recording::parse(&bytes).unwrap();
        let sound = verify(&recording, &Limits::DEFAULT);
        assert!(sound.is_ok(), "{sound:?}");
        let result = crate::host_rules::check(sound.unwrap().recording());
        result.err().map(|broken| broken.rule)
    }

    fn job(builder: &mut Builder) {
        builder.rearm(CHAIN);
        builder.submit(1, CHAIN, 1000);
    }

    fn whole(builder: &mut Builder, state: TensorId) {
        builder.bind_input(state);
        job(builder);
        builder.bind_output(state);
    }

    #[test]
    fn a_run_takes_a_state_at_its_start_and_gives_it_at_its_end() {
        assert_eq!(rule(None, whole), None);
        let wrong = Some(HostRule::StateBound);
        assert_eq!(rule(None, |b, s| (job(b), b.bind_output(s)).1), wrong);
        assert_eq!(rule(None, |b, s| (b.bind_input(s), job(b)).1), wrong);
        assert_eq!(rule(None, |b, s| (job(b), whole(b, s)).1), wrong);
        assert_eq!(rule(None, |b, s| (whole(b, s), job(b)).1), wrong);
        assert_eq!(rule(None, |b, s| (b.bind_input(s), whole(b, s)).1), wrong);
        assert_eq!(rule(None, |b, s| (whole(b, s), b.bind_output(s)).1), wrong);
    }

    #[test]
    fn only_jobs_change_a_state() {
        let wrong = Some(HostRule::StateKept);
        for (va, length, expected) in [
            (DATA, 64, None),
            (DATA, 65, wrong),
            (DATA + 100, 1, wrong),
            (DATA + 127, 9, wrong),
            (DATA + 128, 8, None),
            (DATA, 4096, wrong),
        ] {
            let filled = rule(None, |builder, state| {
                builder.fill(va, length, 0);
                whole(builder, state);
            });
            assert_eq!(filled, expected, "{va:#x} {length}");
            let uploaded = rule(None, |builder, state| {
                let bytes: Vec<u8> = (0..length).map(|at| at as u8 | 1).collect();
                builder.upload(va, &bytes);
                whole(builder, state);
            });
            assert_eq!(uploaded, expected, "{va:#x} {length}");
        }
    }

    #[test]
    fn no_tensor_shares_memory_with_a_state() {
        let apart = |kind, at: u64, length| {
            let tensor = Tensor::dense("t", kind, ElementType::U8, &[length], DATA + at);
            rule(Some(tensor), whole)
        };
        for kind in [TensorKind::Input, TensorKind::Output, TensorKind::Weight] {
            assert_eq!(apart(kind, 0, 64), None);
            assert_eq!(apart(kind, 128, 64), None);
            for (at, length) in [(0, 65), (64, 1), (127, 8), (0, 4096), (80, 4)] {
                assert_eq!(
                    apart(kind, at, length),
                    Some(HostRule::StateApart),
                    "{at} {length}"
                );
            }
        }
        let mut around = Tensor::dense("t", TensorKind::Input, ElementType::U8, &[2], DATA);
        around.pieces = vec![Piece::strided(&[2], &[4000], DATA)];
        assert_eq!(rule(Some(around), whole), Some(HostRule::StateApart));
    }

    #[test]
    fn a_state_has_a_value() {
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
        let mut state = Tensor::dense("s", TensorKind::State, ElementType::F32, &[16], DATA);
        state.external = true;
        let state = builder.tensor(state);
        builder.segment("run", SegmentKind::Run);
        builder.bind_input(state);
        builder.bind_output(state);
        let bytes = builder.finish().unwrap();
        let broken = crate::host_rules::check(&Recording::parse(&bytes).unwrap()).unwrap_err();
        assert_eq!(broken.rule, HostRule::StateValue);
    }
}
