// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors: places, loops, and bindings.

use gpureplay_core::Rule;
use gpureplay_format::{
    Axis, ElementType, Piece, Section, SegmentKind, Tensor, TensorId, TensorKind,
};

use super::{PAGE, SCRATCH, changed, longer, program, run, segment};
use crate::support::{DATA, DESCRIPTORS, OUTPUT};

#[test]
fn tensors_are_bound_in_their_direction() {
    use SegmentKind::{Finish, Run, Setup};
    use TensorKind::{Input, Intermediate, Output, State, Weight};
    let table: [(TensorKind, &[SegmentKind], &[SegmentKind]); 5] = [
        (Input, &[Run], &[]),
        (Output, &[], &[Run]),
        (Weight, &[Setup, Run], &[]),
        (Intermediate, &[Run], &[Run]),
        (State, &[Run], &[Run]),
    ];
    for ((kind, inputs, outputs), place) in table
        .into_iter()
        .flat_map(|row| [Setup, Run, Finish].map(|place| (row, place)))
    {
        for (is_input, places) in [(true, inputs), (false, outputs)] {
            let found = segment(place, |builder| {
                let tensor = Tensor::dense("t", kind, ElementType::F32, &[4], OUTPUT);
                let tensor = builder.tensor(tensor);
                match is_input {
                    true => builder.bind_input(tensor),
                    false => builder.bind_output(tensor),
                }
            });
            let expected = (!places.contains(&place)).then_some(Rule::BoundTensor);
            assert_eq!(found, expected, "{kind:?} in {place:?}, input: {is_input}");
        }
    }
    assert_eq!(run(|it| it.bind_input(TensorId(0))), None);
    assert_eq!(
        run(|it| it.bind_input(TensorId(2))),
        Some(Rule::BoundTensor)
    );
}

#[test]
fn tensors() {
    let tensor = |at: usize, value: u8| changed(Section::Tensors, at, [value]);
    for (at, value) in [
        (0, 200),
        (4, 99),
        (5, 99),
        (6, 0),
        (6, 2),
        (6, 7),
        (7, 2),
        (8, 0),
        (12, 1),
        (28, 1),
    ] {
        assert_eq!(tensor(at, value), Some(Rule::TensorShape), "{at}: {value}");
    }
    for (at, value) in [
        (32, 1),
        (36, 0),
        (36, 2),
        (40 + 32, 0),
        (40 + 32, 2),
        (40 + 36, 2),
    ] {
        assert_eq!(tensor(at, value), Some(Rule::TensorTables), "{at}: {value}");
    }
    let piece = |at: usize, value: u8| changed(Section::Pieces, at, [value]);
    for (at, value) in [(12, 1), (20 + 12, 0), (20 + 16, 2), (20 + 16, 9)] {
        assert_eq!(piece(at, value), Some(Rule::TensorTables), "{at}: {value}");
    }
    assert_eq!(piece(8, 1), Some(Rule::TensorElements));
    assert_eq!(longer(Section::Pieces, 20), Some(Rule::TensorTables));
    assert_eq!(longer(Section::Axes, 12), Some(Rule::TensorTables));
    let axis = |at: usize, value: u8| changed(Section::Axes, at, [value]);
    assert_eq!(axis(0, 16), None);
    for (at, value, expected) in [
        (0, 15, Rule::TensorElements),
        (0, 17, Rule::TensorElements),
        (4, 2, Rule::TensorElements),
        (4, 0, Rule::TensorOverlap),
        (8, 0, Rule::TensorOverlap),
        (8, 3, Rule::TensorOverlap),
        (8, 6, Rule::TensorRegion),
    ] {
        assert_eq!(axis(at, value), Some(expected), "{at}: {value}");
    }
    assert_eq!(axis(8, 8), None);
    let place = |va: u64| changed(Section::Pieces, 0, va.to_le_bytes());
    assert_eq!(place(DATA + PAGE - 64), None);
    for va in [DATA + PAGE - 60, DATA + 2, DATA - 4, DESCRIPTORS, SCRATCH] {
        assert_eq!(place(va), Some(Rule::TensorRegion), "{va:#x}");
    }
}

#[test]
fn loops_of_a_tensor_do_not_overlap() {
    let loops = |axes: &[(u32, u32, u32)]| {
        let count = axes.iter().map(|axis| axis.0).product::<u32>();
        program(|builder| {
            let axes = axes
                .iter()
                .map(|&(extent, element_stride, byte_stride)| Axis {
                    extent,
                    element_stride,
                    byte_stride,
                });
            builder.tensor(Tensor {
                name: "t".into(),
                kind: TensorKind::Output,
                element: ElementType::U16,
                shape: vec![count],
                pieces: vec![Piece {
                    va: DATA,
                    element: 0,
                    axes: axes.collect(),
                }],
                external: false,
            });
            builder.segment("run", SegmentKind::Run);
        })
    };
    // Rows of four: dense, with a gap, transposed, a byte too near.
    assert_eq!(loops(&[(3, 4, 8), (4, 1, 2)]), None);
    assert_eq!(loops(&[(3, 4, 10), (4, 1, 2)]), None);
    assert_eq!(loops(&[(3, 4, 2), (4, 1, 6)]), None);
    assert_eq!(loops(&[(3, 4, 6), (4, 1, 2)]), Some(Rule::TensorOverlap));
    assert_eq!(loops(&[(3, 4, 2), (4, 1, 4)]), Some(Rule::TensorOverlap));
    assert_eq!(loops(&[(3, 3, 8), (4, 1, 2)]), Some(Rule::TensorOverlap));
    assert_eq!(loops(&[(1, 0, 0), (4, 1, 2)]), None);
    assert_eq!(loops(&[(2, 4, 8), (2, 4, 8)]), Some(Rule::TensorOverlap));
    let many = [(1, 1, 2); 8];
    assert_eq!(loops(&many), None);
}
