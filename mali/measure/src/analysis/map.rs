// SPDX-License-Identifier: MIT OR Apache-2.0
//! Regions and tensors, for analyses.

use gpureplay_analysis::{Area, AreaKind, Map};
use gpureplay_format::layout::{PieceEntry, TensorEntry};
use gpureplay_format::{ElementType, Recording, RegionKind, TensorKind};

/// A tensor with more counts as one range, without gaps.
const MOST_RUNS: u64 = 1 << 16;

/// Regions and tensors of a recording.
pub fn map_of(recording: &Recording<'_>) -> Map {
    let regions = recording.regions().iter().map(|region| {
        let kind = RegionKind::from_code(region.kind.into());
        Area {
            name: format!(
                "{} {:#x}",
                kind.map_or("region", RegionKind::name),
                region.va.get()
            ),
            kind: match kind {
                Some(RegionKind::Descriptors) => AreaKind::Descriptors,
                Some(RegionKind::Code) => AreaKind::Code,
                Some(RegionKind::Scratch) => AreaKind::Scratch,
                _ => AreaKind::Data,
            },
            address: region.va.get(),
            bytes: u64::from(region.pages.get()) * 4096,
        }
    });
    let mut covered = Vec::new();
    let mut tensors = Vec::new();
    for tensor in recording.tensors() {
        let ranges = ranges(recording, tensor);
        let start = ranges.iter().map(|range| range.0).min();
        let end = ranges.iter().map(|(at, bytes)| at.saturating_add(*bytes));
        if let (Some(start), Some(end)) = (start, end.max()) {
            tensors.push(Area {
                name: recording.name(tensor.name.get()).to_owned(),
                kind: AreaKind::Tensor,
                address: start,
                bytes: end - start,
            });
        }
        covered.extend(ranges);
    }
    Map::new(regions.collect(), tensors, covered)
}

/// The recording or its user gives each byte of inputs and weights.
pub(crate) fn given(recording: &Recording<'_>) -> Vec<(u64, u64)> {
    let tensors = recording.tensors().iter();
    let given = tensors.filter(|tensor| {
        let kind = TensorKind::from_code(tensor.kind.into());
        matches!(kind, Some(TensorKind::Input | TensorKind::Weight))
    });
    given.flat_map(|tensor| ranges(recording, tensor)).collect()
}

fn ranges(recording: &Recording<'_>, tensor: &TensorEntry) -> Vec<(u64, u64)> {
    let element = ElementType::from_code(tensor.element.into());
    let bytes = element.map_or(1, |element| u64::from(element.size()));
    let pieces = recording.pieces(tensor).unwrap_or_default();
    let all = pieces.iter().map(|piece| of_piece(recording, piece, bytes));
    all.flatten().collect()
}

fn of_piece(recording: &Recording<'_>, piece: &PieceEntry, element: u64) -> Vec<(u64, u64)> {
    let axes = recording.axes(piece).unwrap_or_default();
    let axes: Vec<(u64, u64)> = axes
        .iter()
        .map(|axis| (axis.extent.get().into(), axis.byte_stride.get().into()))
        .collect();
    // Innermost axes without gaps join.
    let mut bytes = element;
    let mut outer = axes.as_slice();
    while let [rest @ .., (extent, stride)] = outer
        && (*stride == bytes || *extent == 1)
    {
        bytes = bytes.saturating_mul(*extent);
        outer = rest;
    }
    let runs = outer
        .iter()
        .fold(1u64, |runs, axis| runs.saturating_mul(axis.0));
    let start = piece.va.get();
    if runs > MOST_RUNS {
        let reach =
            |(extent, stride): &(u64, u64)| extent.saturating_sub(1).saturating_mul(*stride);
        let reach = outer.iter().map(reach).fold(bytes, u64::saturating_add);
        return vec![(start, reach)];
    }
    let mut starts = vec![start];
    for &(extent, stride) in outer {
        let steps = |at: u64| (0..extent).map(move |n| at.saturating_add(n.saturating_mul(stride)));
        starts = starts.into_iter().flat_map(steps).collect();
    }
    starts.into_iter().map(|at| (at, bytes)).collect()
}
