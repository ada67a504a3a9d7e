// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations in no sample kernel.

use crate::support::*;
use mali_facts::Architecture;
use mali_isa::*;
use mali_shader::Dispatch;
use mali_shader::image::RegisterFormat as Converted;

use Source::{FauHigh, FauLow, Port0, Port1};

const ID: u8 = 60;

/// Stores a thread's number plus 1. The number is also the word's index from the address in slot 0 on.
fn store_number() -> Vec<u8> {
    let number = instruction(Unit::Add, "IADD.u32", &[Port1, FauLow]);
    let address = instruction(Unit::Fma, "IMAD.i32", &[Port1, FauHigh, FauLow]);
    let store = instruction(Unit::Add, "STORE.i32", &[Port0, FauHigh]);
    [
        alone(
            HEADER,
            block(0x82, [0, ID, 3], Some((Unit::Add, 4))),
            number,
        ),
        alone(
            HEADER,
            block(0x81, [0, ID, 3], Some((Unit::Fma, 5))),
            address,
        ),
        alone(
            last(message(&store, 4)),
            block(0x80, [5, 6, 3], None),
            store,
        ),
    ]
    .concat()
}

/// Of 20 threads, those not branching to the end. `leaves`: the first thread goes around.
fn survivors(branch: Instruction, architecture: Architecture, leaves: bool) -> Vec<usize> {
    let space = Flat::new(64);
    let out = space.put(&[0; 256]);
    let mut code = Vec::new();
    let branch = alone(HEADER, block(0x83, [0, ID, 3], None), branch);
    let entry = space.put(&[0; 4096]);
    if leaves {
        let away = instruction(Unit::Add, "BRANCHZ.i32", &[Port1, FauHigh]);
        let away = with(away, &[(Modifier::Compare, Compare::Eq as u8)]);
        code = alone(HEADER, block(0x82, [0, ID, 3], None), away);
    }
    let store = entry + (code.len() + branch.len()) as u64;
    code.extend(branch);
    code.extend(store_number());
    gpureplay_memory::Bus::write(&space.0, entry, &code).unwrap();
    let [low, high] = halves(out);
    let uniforms = [low, high, low, 4, 1, store as u32, 0, 0];
    let dispatch = Dispatch {
        architecture,
        ..dispatch(&space, entry, &uniforms, 20)
    };
    launch(&dispatch, &space).unwrap();
    let words = space.words(out, 20);
    for (at, word) in words.iter().enumerate() {
        assert!(*word == 0 || *word == at as u32 + 1);
    }
    (0..20).filter(|at| words[*at] != 0).collect()
}

#[test]
fn branches_of_whole_warps() {
    let combined = |name, combine| {
        let branch = instruction(Unit::Add, name, &[Port1, FauLow]);
        with(branch, &[(Modifier::Combine, combine as u8)])
    };
    let plain = |name| instruction(Unit::Add, name, &[FauLow]);
    // The condition is zero in the first thread alone.
    for (architecture, warp) in [(Architecture::V6, 4), (Architecture::V7, 8)] {
        let check = |branch, leaves, expected: Vec<usize>| {
            assert_eq!(
                survivors(branch, architecture, leaves),
                expected,
                "{branch}"
            );
        };
        check(combined("BRANCHC.i32", Combine::Any), false, vec![]);
        for name in ["BRANCHC.i32", "BRANCHC.i16"] {
            check(combined(name, Combine::All), false, (0..warp).collect());
        }
        check(combined("BRANCHC.i32", Combine::All), true, vec![0]);
        check(plain("BRANCH_DIVERG"), false, (0..20).collect());
        check(plain("BRANCH_NO_DIVERG"), false, vec![]);
        let others = std::iter::once(0).chain(warp..20).collect();
        check(plain("BRANCH_DIVERG"), true, others);
        check(plain("BRANCH_NO_DIVERG"), true, (0..warp).collect());
    }
}

#[test]
fn special_cases_of_half_precision_powers() {
    let halves = [
        (0.0f32, 0x0000u32),
        (-0.0, 0x8000),
        (1.0, 0x3c00),
        (-1.0, 0xbc00),
        (2.0, 0x4000),
        (-2.0, 0xc000),
        (-3.0, 0xc200),
        (2.5, 0x4100),
        (f32::INFINITY, 0x7c00),
        (f32::NEG_INFINITY, 0xfc00),
        (f32::NAN, 0x7e00),
    ];
    let applied = |plain: f32, code: u32| {
        let apply = instruction(Unit::Add, "FPOW_SC_APPLY", &[Port0, Port1]);
        f32::from_bits(add(apply, [plain.to_bits(), code, 0]))
    };
    let detect = |power: Power, lanes: Lanes, [base, exponent]: [u32; 2]| {
        let modifiers = [
            (Modifier::Power, power as u8),
            (Modifier::Lanes0, Lanes::H1 as u8),
            (Modifier::Lanes1, lanes as u8),
        ];
        let detect = instruction(Unit::Add, "FPOW_SC_DET.f16", &[Port0, Port1]);
        add(with(detect, &modifiers), [base, exponent, 0])
    };
    let same =
        |got: f32, want: f32| got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
    for (x, x16) in halves {
        for (y, y16) in halves {
            let code = detect(
                Power::Pow,
                Lanes::H0,
                [x16 << 16 | 0x1234, y16 | 0x4321 << 16],
            );
            let got = applied(x.abs().powf(y), code);
            assert!(same(got, x.powf(y)), "pow({x}, {y}) is {got}");
        }
        for n in [0i32, 1, 2, 3, -1, -2, -3] {
            let code = detect(Power::Pown, Lanes::None, [x16 << 16, n as u32]);
            let got = applied(x.abs().powi(n), code);
            assert!(same(got, x.powi(n)), "pown({x}, {n}) is {got}");
        }
    }
}

#[test]
fn addresses_of_texels_of_a_texture() {
    // RGBA8 unsigned normalised, 40 by 24, three layers.
    const FORMAT: u32 = 187 << 12;
    const SURFACE: u64 = 0x1_2345_0000;
    let texture = |layout: u32, volume: bool, surfaces: u64| {
        let dimension = if volume { 3 } else { 2 };
        [
            2 | dimension << 4 | FORMAT << 10,
            39 | 23 << 16,
            0o3210 | layout << 12,
            0,
            surfaces as u32,
            (surfaces >> 32) as u32,
            if volume { 0 } else { 2 },
            if volume { 2 } else { 0 },
        ]
    };
    let records = |row: u32| {
        let records = (0..3).flat_map(|layer| {
            let [low, high] = halves(SURFACE + 0x1_0000 * layer);
            [low, high, row, 0x8000]
        });
        records.collect::<Vec<u32>>()
    };
    let ask = |op: &str, layout: u32, volume: bool, [x, y, z]: [u32; 3]| {
        let lea = instruction(Unit::Add, op, &[Port0, Port1, FauLow]);
        let lea = with(lea, &[(Modifier::IndexFormat, IndexFormat::U16 as u8)]);
        let row = if layout == 2 { 0x200 } else { 3 * 1024 };
        let space = Flat::new(64);
        let surfaces = space.put_words(&records(row));
        let more = Dispatch {
            textures: space.put_words(&texture(layout, volume, surfaces)),
            texture_count: 1,
            ..Dispatch::default()
        };
        let middle = alone(message(&lea, 4), block(0x82, [1, 2, 3], None), lea);
        let [low, high, conversion] =
            run_between(&space, [x | y << 16, z, 0], [0, 0], &middle, more);
        assert_eq!(conversion & 0x3f_ffff, FORMAT);
        assert_eq!(conversion >> 24, Converted::F32 as u32);
        u64::from(low) | u64::from(high) << 32
    };
    for op in ["LEA_TEX", "LEA_TEX_IMM"] {
        let linear = SURFACE + 0x1_0000 * 2 + 0x200 * 7 + 4 * 33;
        assert_eq!(ask(op, 2, false, [33, 7, 2]), linear, "{op}");
        assert_eq!(
            ask(op, 2, true, [33, 7, 2]),
            SURFACE + 0x8000 * 2 + 0x200 * 7 + 4 * 33
        );
        // Tile (2, 1): texel (1, 0) is its second, texel (1, 1) its third.
        let tile = SURFACE + 3 * 1024 + 2 * 1024;
        assert_eq!(ask(op, 1, false, [33, 16, 0]), tile + 4);
        assert_eq!(ask(op, 1, false, [33, 17, 0]), tile + 8);
        for outside in [[40, 0, 0], [0, 24, 0], [0, 0, 3]] {
            assert_eq!(ask(op, 2, false, outside) >> 60, 8, "{outside:?}");
            assert_eq!(ask(op, 2, true, outside) >> 60, 8, "{outside:?}");
        }
    }
}
