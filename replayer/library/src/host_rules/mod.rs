// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for a recording's cost on the host, and its tensors. Firmware lacks them: a host verifies its recordings.

pub mod rule;

use std::collections::BTreeSet;

use gpureplay_core::Limits;
use gpureplay_format::layout::AxisEntry;
use gpureplay_format::{Action, ElementType, Opcode, PAGE_SIZE, Recording, TensorKind};

pub use rule::{Broken, HostRule};

use crate::state_rules;
use crate::tensors::TensorInfo;

/// Bytes of a name, as many as of a file's.
pub const MAX_NAME: usize = 255;
/// Stretches of memory per pass. Each costs a device call, however short.
pub const MAX_RUNS: u64 = 1 << 26;
/// Drivers write fewer than ten.
pub const MAX_SETTINGS: usize = 256;
/// Elements visited one by one to prove coverage by pieces with gaps.
pub const MAX_SCATTERED: u64 = 1 << 26;

/// Result of a check.
pub type Result<T = ()> = std::result::Result<T, Broken>;

fn require(holds: bool, rule: HostRule, reason: impl FnOnce() -> String) -> Result {
    match holds {
        true => Ok(()),
        false => Err(Broken {
            rule,
            reason: reason(),
        }),
    }
}

/// Checks all host rules and returns the tensors. The recording keeps the `gpureplay-core` rules.
///
/// # Errors
/// The first broken rule.
pub fn check(recording: &Recording<'_>) -> Result<Vec<TensorInfo>> {
    settings_are_few(recording)?;
    names_are_short(recording)?;
    let tensors = TensorInfo::all(recording);
    names_differ(&tensors)?;
    outputs_have_room(recording, &tensors)?;
    tensors_are_used(recording, &tensors)?;
    tensors_are_covered(recording, &tensors)?;
    state_rules::check(recording, &tensors)?;
    Ok(tensors)
}

fn settings_are_few(recording: &Recording<'_>) -> Result {
    let entries = recording.action_entries().iter();
    let count = entries
        .filter(|entry| entry.op == Opcode::Write.code())
        .count();
    require(count <= MAX_SETTINGS, HostRule::Settings, || {
        format!("it writes {count} settings, more than {MAX_SETTINGS}")
    })
}

/// Tensors may share one long name in the file, and each gets a copy.
fn names_are_short(recording: &Recording<'_>) -> Result {
    let names = recording.strings().split(|&byte| byte == 0);
    let longest = names.map(<[u8]>::len).max().unwrap_or(0);
    require(longest <= MAX_NAME, HostRule::NameLength, || {
        format!("a name has {longest} bytes, more than the {MAX_NAME} that one may have")
    })
}

fn names_differ(tensors: &[TensorInfo]) -> Result {
    let mut names = BTreeSet::new();
    match tensors.iter().find(|tensor| !names.insert(&tensor.name)) {
        None => Ok(()),
        Some(twice) => require(false, HostRule::TensorNames, || {
            format!("two tensors are called {}", twice.name)
        }),
    }
}

fn outputs_have_room(recording: &Recording<'_>, tensors: &[TensorInfo]) -> Result {
    let outputs = tensors.iter().filter(|t| t.kind == TensorKind::Output);
    let bytes: u64 = outputs.map(|tensor| tensor.bytes as u64).sum();
    let pages = recording.regions().iter();
    let pages: u64 = pages.map(|region| u64::from(region.pages.get())).sum();
    let pages = (Limits::OUTPUT_COPIES * pages).min(Limits::DEFAULT.pages);
    let limit = pages * u64::from(PAGE_SIZE);
    require(bytes <= limit, HostRule::OutputBytes, || {
        format!(
            "its outputs have {bytes} bytes together, more than {limit}: {} times the memory that the recording has, and 4 GiB",
            Limits::OUTPUT_COPIES
        )
    })
}

fn tensors_are_used(recording: &Recording<'_>, tensors: &[TensorInfo]) -> Result {
    let per_copy: Vec<u64> = recording
        .tensors()
        .iter()
        .map(|tensor| {
            let pieces = recording.pieces(tensor).unwrap_or(&[]).iter();
            let size = ElementType::from_code(tensor.element.into()).map_or(1, ElementType::size);
            pieces
                .map(|piece| runs(recording.axes(piece).unwrap_or(&[]), size))
                .fold(0, u64::saturating_add)
        })
        .collect();
    // By tensor: chains submitted before its first bind, and before its last read.
    let (mut bound, mut read) = (vec![None; tensors.len()], vec![None; tensors.len()]);
    let (mut copied, mut chains) = (0u64, 0u64);
    for segment in recording.segments() {
        for action in recording.segment_actions(segment).flatten() {
            let tensor = match action {
                Action::BindInput { tensor } => {
                    if let Some(first) = bound.get_mut(tensor as usize) {
                        first.get_or_insert(chains);
                    }
                    tensor
                }
                Action::BindOutput { tensor } => {
                    if let Some(last) = read.get_mut(tensor as usize) {
                        *last = Some(chains);
                    }
                    tensor
                }
                Action::Submit { .. } | Action::Launch { .. } => {
                    chains += 1;
                    continue;
                }
                _ => continue,
            };
            let runs = per_copy.get(tensor as usize).copied().unwrap_or(0);
            copied = copied.saturating_add(runs);
        }
    }
    for ((info, bound), read) in tensors.iter().zip(bound).zip(read) {
        let wrong = match (info.kind, info.external) {
            (TensorKind::Input, _) | (TensorKind::Weight, true) => match bound {
                None => format!("nothing binds {} {}", info.kind.name(), info.name),
                Some(before) if before == chains => format!(
                    "no job runs after {} {} is bound",
                    info.kind.name(),
                    info.name
                ),
                Some(_) => continue,
            },
            (TensorKind::Output, _) => match read {
                None => format!("nothing reads output {}", info.name),
                Some(0) => format!("no job runs before output {} is read", info.name),
                Some(_) => continue,
            },
            (TensorKind::Weight | TensorKind::Intermediate | TensorKind::State, _) => continue,
        };
        require(false, HostRule::TensorUse, || wrong)?;
    }
    require(copied <= MAX_RUNS, HostRule::CopyRuns, || {
        format!("its tensors are copied in {copied} stretches, more than {MAX_RUNS}")
    })
}

/// Stretches to copy: innermost rows if contiguous on both sides, or else elements.
fn runs(axes: &[AxisEntry], size: u32) -> u64 {
    let outer = match axes.split_last() {
        Some((inner, outer)) if inner.element_stride == 1 && inner.byte_stride == size => outer,
        _ => axes,
    };
    visited(outer)
}

fn visited(axes: &[AxisEntry]) -> u64 {
    let extents = axes.iter().map(|axis| u64::from(axis.extent.get()));
    extents.fold(1, u64::saturating_mul)
}

/// No piece repeats an element or leaves the tensor (rules of `gpureplay-core`), so one that visits as many
/// elements as it spans has no gaps.
fn tensors_are_covered(recording: &Recording<'_>, tensors: &[TensorInfo]) -> Result {
    let mut budget = MAX_SCATTERED;
    for (entry, info) in recording.tensors().iter().zip(tensors) {
        let elements = info.bytes as u64 / u64::from(info.dtype.size());
        let pieces = recording.pieces(entry).unwrap_or(&[]);
        let axes = |piece| recording.axes(piece).unwrap_or(&[]);
        // An input may have several copies.
        let once = matches!(info.kind, TensorKind::Output | TensorKind::State);
        let dense = |piece| visited(axes(piece)) == span(axes(piece));
        let wrong = if pieces.iter().all(dense) {
            let stretches = pieces.iter().map(|piece| {
                let first = u64::from(piece.element.get());
                (first, first.saturating_add(visited(axes(piece))))
            });
            uncovered_by_stretches(stretches.collect(), elements, once)
        } else {
            let counts = pieces.iter().map(|piece| visited(axes(piece)));
            let cost = counts.fold(elements, u64::saturating_add);
            budget = budget.checked_sub(cost).ok_or_else(|| Broken {
                rule: HostRule::TensorCoverage,
                reason: format!(
                    "the pieces of {} have gaps, and more than {MAX_SCATTERED} elements would have to be looked at one by one",
                    info.name
                ),
            })?;
            let places = pieces
                .iter()
                .map(|piece| (u64::from(piece.element.get()), axes(piece)));
            uncovered_by_elements(places, elements, once)
        };
        if let Some(element) = wrong {
            let how = if once {
                "not exactly once"
            } else {
                "not at all"
            };
            return Err(Broken {
                rule: HostRule::TensorCoverage,
                reason: format!("the pieces of {} cover element {element} {how}", info.name),
            });
        }
    }
    Ok(())
}

fn span(axes: &[AxisEntry]) -> u64 {
    let reach = axes.iter().map(|axis| {
        let steps = u64::from(axis.extent.get()).saturating_sub(1);
        steps.saturating_mul(axis.element_stride.get().into())
    });
    reach.fold(1, u64::saturating_add)
}

/// First element that no stretch (first and end) covers, or with `once` the first that two cover.
fn uncovered_by_stretches(
    mut stretches: Vec<(u64, u64)>,
    elements: u64,
    once: bool,
) -> Option<u64> {
    stretches.sort_unstable();
    let mut covered = 0;
    for (first, end) in stretches {
        if first > covered || once && first < covered {
            return Some(first.min(covered));
        }
        covered = covered.max(end);
    }
    (covered < elements).then_some(covered)
}

fn uncovered_by_elements<'a>(
    places: impl Iterator<Item = (u64, &'a [AxisEntry])>,
    elements: u64,
    once: bool,
) -> Option<u64> {
    let mut covered = vec![false; elements as usize];
    for (first, axes) in places {
        let mut steps = vec![0u32; axes.len()];
        let mut at = first;
        loop {
            match covered.get_mut(at as usize) {
                Some(covered) if !(once && *covered) => *covered = true,
                _ => return Some(at),
            }
            if !advance(&mut at, axes, &mut steps) {
                break;
            }
        }
    }
    let missing = covered.iter().position(|covered| !covered);
    missing.map(|element| element as u64)
}

fn advance(at: &mut u64, axes: &[AxisEntry], steps: &mut [u32]) -> bool {
    for (axis, step) in axes.iter().zip(steps).rev() {
        let stride = u64::from(axis.element_stride.get());
        *step += 1;
        if *step < axis.extent.get() {
            *at += stride;
            return true;
        }
        *at -= u64::from(*step - 1) * stride;
        *step = 0;
    }
    false
}

#[cfg(test)]
mod tests {
    use gpureplay_format::{Access, Axis, Builder, Piece, RegionKind, SegmentKind, Tensor};
    use mali_drive::{Verified, verify};

    use super::*;

    const GPU: u32 = 0x7212_0000;
    const DATA: u64 = 0x300_0000;
    const CHAIN: u64 = 0x1_0000_0000;
    const SHADER_CONFIG: u16 = mali_facts::registers::gpu::SHADER_CONFIG as u16;

    fn checked(kind: TensorKind, shape: &[u32], pieces: &[Piece], binds: u32) -> Result {
        let mut builder = Builder::new(GPU);
        builder.identity(0, 0xffff_0000, GPU);
        builder.region(DATA, 1 << 15, Access::READ_WRITE, RegionKind::Data);
        builder.region(CHAIN, 1, Access::READ_WRITE, RegionKind::Descriptors);
        let mut tensor = Tensor::dense("t", kind, ElementType::U8, shape, DATA);
        tensor.pieces = pieces.to_vec();
        let tensor = builder.tensor(tensor);
        builder.segment("run", SegmentKind::Run);
        let binds = 0..binds;
        match kind {
            TensorKind::Output => {
                job(&mut builder);
                binds.for_each(|_| builder.bind_output(tensor));
            }
            _ => {
                binds.for_each(|_| builder.bind_input(tensor));
                job(&mut builder);
            }
        }
        ruled(builder)
    }

    fn job(builder: &mut Builder) {
        builder.rearm(CHAIN);
        builder.submit(1, CHAIN, 1000);
    }

    fn ruled(builder: Builder) -> Result {
        let bytes = builder.finish().unwrap();
        let recording = Recording::parse(&bytes).unwrap();
        let sound = verify(&recording, &Limits::DEFAULT);
        assert!(sound.is_ok(), "{sound:?}");
        check(sound.as_ref().map(Verified::recording).unwrap()).map(drop)
    }

    fn rule(result: Result) -> Option<HostRule> {
        result.err().map(|broken| broken.rule)
    }

    fn piece(element: u32, axes: &[(u32, u32, u32)]) -> Piece {
        let axes = axes
            .iter()
            .map(|&(extent, element_stride, byte_stride)| Axis {
                extent,
                element_stride,
                byte_stride,
            });
        Piece {
            va: DATA + u64::from(element),
            element,
            axes: axes.collect(),
        }
    }

    #[test]
    fn settings_are_as_many_as_they_may_be() {
        let written = |count: usize| {
            let mut builder = Builder::new(GPU);
            builder.identity(0, 0xffff_0000, GPU);
            builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
            builder.segment("setup", SegmentKind::Setup);
            (0..count).for_each(|_| builder.write(SHADER_CONFIG, 0));
            builder.segment("run", SegmentKind::Run);
            rule(ruled(builder))
        };
        assert_eq!(written(MAX_SETTINGS), None);
        assert_eq!(written(MAX_SETTINGS + 1), Some(HostRule::Settings));
    }

    #[test]
    fn pieces_that_are_counted_only_do_not_cover() {
        let covered = |kind, pieces: &[Piece]| rule(checked(kind, &[64], pieces, 1));
        let (input, output) = (TensorKind::Input, TensorKind::Output);
        let whole = piece(0, &[(64, 1, 1)]);
        let first = vec![piece(0, &[]); 64];
        let halves = [piece(0, &[(32, 1, 1)]), piece(32, &[(32, 1, 1)])];
        let combs = [piece(0, &[(32, 2, 2)]), piece(1, &[(32, 2, 2)])];
        let twice = [piece(0, &[(32, 2, 2)]), piece(0, &[(32, 2, 2)])];
        let over = [piece(0, &[(40, 1, 1)]), piece(30, &[(34, 1, 1)])];
        let tiles = [
            piece(0, &[(8, 8, 8), (4, 1, 1)]),
            piece(4, &[(8, 8, 8), (4, 1, 1)]),
        ];
        for kind in [input, output] {
            for good in [&[whole.clone()][..], &halves, &combs, &tiles] {
                assert_eq!(covered(kind, good), None, "{good:?}");
            }
            for bad in [&first[..], &twice] {
                assert_eq!(
                    covered(kind, bad),
                    Some(HostRule::TensorCoverage),
                    "{bad:?}"
                );
            }
        }
        for again in [&[whole.clone(), whole][..], &over] {
            assert_eq!(covered(input, again), None);
            assert_eq!(covered(output, again), Some(HostRule::TensorCoverage));
        }
    }

    #[test]
    fn scattered_elements_are_looked_at_within_a_bound() {
        // The cost is elements plus visits: twice 2^25 here.
        let combs = |elements: u32| {
            let half = elements / 2;
            let pieces = [piece(0, &[(half, 2, 2)]), piece(1, &[(half, 2, 2)])];
            checked(TensorKind::Input, &[elements], &pieces, 1)
        };
        assert_eq!(rule(combs(1 << 25)), None);
        assert_eq!(rule(combs((1 << 25) + 2)), Some(HostRule::TensorCoverage));
    }

    #[test]
    fn a_tensor_that_nothing_uses_is_refused() {
        let used = |kind, binds| rule(checked(kind, &[4], &[piece(0, &[(4, 1, 1)])], binds));
        for kind in [TensorKind::Input, TensorKind::Output] {
            assert_eq!(used(kind, 0), Some(HostRule::TensorUse));
            assert_eq!(used(kind, 1), None);
        }
        assert_eq!(used(TensorKind::Intermediate, 0), None);
    }

    #[test]
    fn a_tensor_without_a_job_between_is_refused() {
        let placed = |kind, external, order: &[char]| {
            let mut builder = Builder::new(GPU);
            builder.identity(0, 0xffff_0000, GPU);
            builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
            builder.region(CHAIN, 1, Access::READ_WRITE, RegionKind::Descriptors);
            let mut tensor = Tensor::dense("t", kind, ElementType::U8, &[4], DATA);
            tensor.external = external;
            let tensor = builder.tensor(tensor);
            for step in order {
                builder.segment("run", SegmentKind::Run);
                match step {
                    'i' => builder.bind_input(tensor),
                    'o' => builder.bind_output(tensor),
                    _ => job(&mut builder),
                }
            }
            rule(ruled(builder))
        };
        let wrong = Some(HostRule::TensorUse);
        for (kind, external) in [(TensorKind::Input, false), (TensorKind::Weight, true)] {
            assert_eq!(placed(kind, external, &['i', 'j']), None);
            assert_eq!(placed(kind, external, &['j', 'i', 'j', 'i']), None);
            assert_eq!(placed(kind, external, &['j', 'i']), wrong);
            assert_eq!(placed(kind, external, &['i']), wrong);
        }
        assert_eq!(placed(TensorKind::Weight, false, &['j', 'i']), None);
        assert_eq!(placed(TensorKind::Output, false, &['j', 'o']), None);
        assert_eq!(placed(TensorKind::Output, false, &['o', 'j', 'o']), None);
        assert_eq!(placed(TensorKind::Output, false, &['o', 'j']), wrong);
        assert_eq!(placed(TensorKind::Output, false, &['o']), wrong);
    }

    #[test]
    fn copies_in_small_stretches_are_counted() {
        let transposed = piece(0, &[(8192, 1, 8192), (8192, 8192, 1)]);
        let copied = |binds| {
            let shape = [8192, 8192];
            rule(checked(
                TensorKind::Output,
                &shape,
                std::slice::from_ref(&transposed),
                binds,
            ))
        };
        assert_eq!(copied(1), None);
        assert_eq!(copied(2), Some(HostRule::CopyRuns));
        // Such a file of 17 kB copied 64 GiB for hours.
        assert_eq!(copied(1024), Some(HostRule::CopyRuns));
        let rows = [piece(0, &[(8192, 8192, 8192), (8192, 1, 1)])];
        assert_eq!(
            rule(checked(TensorKind::Output, &[8192, 8192], &rows, 1024)),
            None
        );
    }

    #[test]
    fn a_name_is_one_tensors() {
        let info = |name: &str| TensorInfo {
            name: name.into(),
            kind: TensorKind::Input,
            dtype: ElementType::U8,
            shape: vec![1],
            external: false,
            bytes: 1,
        };
        assert_eq!(names_differ(&[info("a"), info("b")]), Ok(()));
        let error = names_differ(&[info("a"), info("b"), info("a")]).unwrap_err();
        assert!(error.reason.contains("two tensors are called a"), "{error}");
    }
}
