// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels with and without races.
//!
//! A safe kernel races with one buffer twice: same code, another verdict.

/// Of 16,384 words.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data {
    /// From 1 on by 1/4, repeated.
    Floats,
    Word(u32),
    /// Low bytes of words.
    Bytes,
}

impl Data {
    pub(crate) fn words(self) -> Vec<u32> {
        let word = |i: u32| match self {
            Data::Floats => ((i % 97) as f32 * 0.25 + 1.0).to_bits(),
            Data::Word(word) => word,
            Data::Bytes => i.wrapping_mul(0x9e37_79b9) >> 8 & 0x3f3f_3f3f,
        };
        (0..0x4000).map(word).collect()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Buffer(Data),
    /// An earlier argument's buffer.
    Same(usize),
    Local(u32),
    Int(i32),
    Float(f32),
}

pub(crate) struct Case {
    pub(crate) file: &'static str,
    pub(crate) kernel: &'static str,
    pub(crate) global: [u32; 3],
    pub(crate) local: [u32; 3],
    pub(crate) args: &'static [Arg],
    pub(crate) racy: bool,
    /// Bytes equal Oclgrind's.
    pub(crate) bytes: bool,
}

const LINE: ([u32; 3], [u32; 3]) = ([64, 1, 1], [16, 1, 1]);
const PLANE: ([u32; 3], [u32; 3]) = ([16, 8, 1], [4, 2, 1]);
const TILES: ([u32; 3], [u32; 3]) = ([16, 8, 1], [8, 8, 1]);

use Arg::{Buffer, Float, Int, Local, Same};
use Data::{Bytes, Floats, Word};

const fn case(
    file: &'static str,
    kernel: &'static str,
    (global, local): ([u32; 3], [u32; 3]),
    args: &'static [Arg],
    racy: bool,
) -> Case {
    Case {
        file,
        kernel,
        global,
        local,
        args,
        racy,
        bytes: true,
    }
}

/// Oclgrind does not count atomics' bytes; loops may depend on the race.
const fn other_bytes(case: Case) -> Case {
    Case {
        bytes: false,
        ..case
    }
}

const F: Arg = Buffer(Floats);

pub(crate) const CASES: &[Case] = &[
    case("basic.cl", "vecadd", LINE, &[F, F, F], false),
    case("basic.cl", "vecadd", LINE, &[F, F, Same(0)], false),
    case("basic.cl", "saxpy4", LINE, &[F, F, Float(0.5)], false),
    case("basic.cl", "copy_char", LINE, &[F, F], false),
    case("basic.cl", "copy_short", LINE, &[F, Same(0)], false),
    case("basic.cl", "div_loop", LINE, &[Buffer(Word(31)), F], false),
    case(
        "basic.cl",
        "early",
        LINE,
        &[Buffer(Bytes), F, Int(16)],
        false,
    ),
    case("nn.cl", "softmax", LINE, &[F, Same(0), Int(16)], false),
    case("nn.cl", "qgemm", PLANE, &[F, F, F, Int(16)], false),
    case("nn.cl", "qgemm4", LINE, &[F, F, Same(1), Int(16)], false),
    case(
        "nn.cl",
        "conv3x3",
        PLANE,
        &[F, F, F, Int(16), Int(16), Int(16)],
        false,
    ),
    case("sync.cl", "reduce", LINE, &[F, F, Local(1024)], false),
    case("sync.cl", "gemm_tiled", TILES, &[F, F, F, Int(16)], false),
    // After a barrier, a work group writes what only it read.
    case(
        "sync.cl",
        "gemm_tiled",
        TILES,
        &[F, F, Same(1), Int(16)],
        false,
    ),
    other_bytes(case("sync.cl", "hist", LINE, &[Buffer(Bytes), F], false)),
    other_bytes(case("sync.cl", "atom_noret", LINE, &[F], false)),
    other_bytes(case("sync.cl", "atom_l", LINE, &[F], false)),
    other_bytes(case(
        "basic.cl",
        "div_loop",
        LINE,
        &[Buffer(Word(31)), Same(0)],
        true,
    )),
    case("basic.cl", "sw", LINE, &[Buffer(Word(5)), F], true),
    case("nn.cl", "gemm4", PLANE, &[F, F, F, Int(16), Int(16)], true),
    case("nn.cl", "maxpool", PLANE, &[F, F, Int(16)], true),
    case("nn.cl", "maxpool", PLANE, &[F, Same(0), Int(16)], true),
    case("nn.cl", "qgemm", PLANE, &[F, F, Same(0), Int(16)], true),
    case(
        "nn.cl",
        "conv3x3",
        PLANE,
        &[F, F, Same(0), Int(16), Int(16), Int(16)],
        true,
    ),
    case(
        "nn.cl",
        "conv3x3",
        PLANE,
        &[F, F, Same(1), Int(16), Int(16), Int(16)],
        true,
    ),
    case("math.cl", "m_dot", LINE, &[F, Same(0)], true),
    // Another work group reads this one's columns.
    case(
        "sync.cl",
        "gemm_tiled",
        TILES,
        &[F, F, Same(0), Int(16)],
        true,
    ),
    other_bytes(case(
        "sync.cl",
        "atom_f",
        LINE,
        &[Buffer(Word(0)), Float(0.5)],
        true,
    )),
];
