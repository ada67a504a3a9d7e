// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layers of a whole run: ranges that its program named.

use std::ops::Range;

use gpureplay_cuda_launch::recording::{Operation, Range as Named, Run};
use gpureplay_library::Layer;
use gpureplay_tensors::Names;

pub(crate) fn parts(run: &Run) -> Vec<Range<u32>> {
    let layers = run.layers().into_iter();
    layers.map(|layer| layer.first..layer.end).collect()
}

/// A name's second layer gets `-2`.
pub(crate) fn layers(run: &Run) -> Vec<Layer> {
    let mut names = Names::default();
    let layers = run.layers().into_iter().zip(0..);
    let of = |(layer, number)| {
        let Named { first, end, name } = layer;
        let operations = run.operations.get(first as usize..end as usize);
        let operations = operations.unwrap_or_default().iter();
        let launches = operations.filter(|one| matches!(one, Operation::Launch { .. }));
        let launches = u32::try_from(launches.count()).unwrap_or(u32::MAX);
        Layer {
            name: names.unique(name),
            segment: number,
            chains: launches,
            jobs: launches,
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    };
    layers.map(of).collect()
}
