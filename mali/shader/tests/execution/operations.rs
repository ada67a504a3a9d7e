// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations in clauses made by hand.

use crate::support::*;
use mali_isa::*;
use mali_shader::Dispatch;

use Source::{FauHigh, FauLow, Port0, Port1, Port2, Stage};

fn fma(ins: Instruction, registers: [u32; 3]) -> u32 {
    tuple(ins, nop(Unit::Add), registers, [0, 0])
}

fn between(space: &Flat, registers: [u32; 3], fau: [u32; 2], middle: &[u8]) -> u32 {
    run_between(space, registers, fau, middle, Dispatch::default())[0]
}

#[test]
fn three_operands_come_from_three_ports() {
    for (name, registers, expected) in [
        ("IMAD.i32", [7, 9, 100], 163),
        ("IMULSUB.i32", [7, 9, 100], 37u32.wrapping_neg()),
        ("IMSUB.i32", [7, 9, 100], 37),
        ("IMAX3.s32", [7, u32::MAX, 100], 100),
        ("IMIN3.s32", [7, u32::MAX, 100], u32::MAX),
        ("IMIN3.u32", [7, u32::MAX, 100], 7),
        (
            "ICLAMP.s32",
            [-50i32 as u32, -9i32 as u32, 20],
            -9i32 as u32,
        ),
        ("LSHIFT_ADD.i32", [3, 1000, 4], 1048),
        ("LSHIFT_SUB.i32", [3, 1000, 4], 952u32.wrapping_neg()),
        ("LSHIFT_RSUB.i32", [3, 1000, 4], 952),
        ("ARSHIFT_ADD.i32", [-64i32 as u32, 10, 3], 2),
        (
            "FMA.f32",
            [1.5, 2.5, -0.75].map(f32::to_bits),
            3f32.to_bits(),
        ),
    ] {
        let three = instruction(Unit::Fma, name, &[Port0, Port1, Port2]);
        assert_eq!(fma(three, registers), expected, "{name}");
    }
    let left = instruction(Unit::Add, "LSHIFT_OR.i32", &[Port0, Port1, Port2]);
    assert_eq!(add(left, [3, 0x100, 4]), 0x130);
    let right = instruction(Unit::Add, "ARSHIFT.i32", &[Port0, Port1]);
    assert_eq!(add(right, [-64i32 as u32, 3, 0]), -8i32 as u32);
}

#[test]
fn modifiers_change_operands_and_results() {
    let sum = instruction(Unit::Fma, "FADD.f32", &[Port0, Port1]);
    let [a, b] = [1.25f32.to_bits(), 4.0f32.to_bits()];
    let minus = with(sum, &[(Modifier::Neg1, 1)]);
    assert_eq!(f32::from_bits(fma(minus, [a, b, 0])), -2.75);
    let absolute = with(sum, &[(Modifier::Neg1, 1), (Modifier::Abs1, 1)]);
    assert_eq!(
        f32::from_bits(fma(absolute, [a, (-4.0f32).to_bits(), 0])),
        -2.75
    );
    let clamped = with(minus, &[(Modifier::Clamp, Clamp::ClampM11 as u8)]);
    assert_eq!(f32::from_bits(fma(clamped, [a, b, 0])), -1.0);
    let widened = with(sum, &[(Modifier::Lanes1, Lanes::H1 as u8)]);
    assert_eq!(f32::from_bits(fma(widened, [a, 0x4200_7fff, 0])), 4.25);
    let down = with(sum, &[(Modifier::Round, Round::Rtn as u8)]);
    assert_eq!(fma(down, [1.0f32.to_bits(), 0xb000_0000, 0]), 0x3f7f_ffff);
    let byte = with(
        instruction(Unit::Add, "IADD.s32", &[Port0, Port1]),
        &[(Modifier::Lanes1, Lanes::B2 as u8)],
    );
    assert_eq!(add(byte, [100, 0x00fe_0000, 0]), 98);
    let saturating = with(
        instruction(Unit::Add, "IADD.s32", &[Port0, Port1]),
        &[(Modifier::Saturate, 1)],
    );
    assert_eq!(add(saturating, [0x7fff_fff0, 0x20, 0]), 0x7fff_ffff);
    let inverted = with(
        instruction(Unit::Fma, "LSHIFT_AND.i32", &[Port0, Port1, Port2]),
        &[(Modifier::Not1, 1)],
    );
    assert_eq!(fma(inverted, [0x0ff0, 0x0f0f, 4]), 0xf000);
    let lane = with(
        instruction(Unit::Fma, "LSHIFT_OR.i32", &[Port0, Port1, Port2]),
        &[(Modifier::Lanes2, Lanes::B1 as u8)],
    );
    assert_eq!(fma(lane, [1, 0, 0x0c03]), 1 << 12);
    let halves = instruction(Unit::Fma, "MKVEC.v2i16", &[Port0, Port1]);
    let halves = with(
        halves,
        &[
            (Modifier::Lanes0, Lanes::H1 as u8),
            (Modifier::Lanes1, Lanes::H0 as u8),
        ],
    );
    assert_eq!(fma(halves, [0xaaaa_1111, 0x2222_bbbb, 0]), 0xbbbb_aaaa);
}

#[test]
fn subnormals_are_flushed_where_the_clause_says_so() {
    let sum = instruction(Unit::Fma, "FADD.f32", &[Port0, Port1]);
    for (mode, want) in [(FlushToZero::None, 0x0000_0300), (FlushToZero::Always, 0)] {
        let header = ClauseHeader {
            flush_to_zero: mode,
            ..HEADER
        };
        let middle = alone(header, block(0x82, [1, 2, 3], Some((Unit::Fma, 4))), sum);
        let found = between(&Flat::new(64), [0x100, 0x200, 0], [0, 0], &middle);
        assert_eq!(found, want, "{mode:?}");
    }
}

#[test]
fn pairs_of_instructions_share_what_no_register_holds() {
    let low = instruction(Unit::Fma, "ICMPI.u32", &[Port0, Port1]);
    let high = instruction(Unit::Add, "ICMPF.i32", &[FauLow, FauHigh, Stage]);
    let low = with(low, &[(Modifier::Compare, Compare::Gt as u8)]);
    assert_eq!(tuple(low, high, [1, 2, 0], [5, 4]), 1);
    assert_eq!(tuple(low, high, [2, 1, 0], [5, 5]), 1);
    assert_eq!(tuple(low, high, [2, 2, 0], [5, 5]), 0);
    assert_eq!(tuple(low, high, [9, 1, 0], [4, 5]), 0);
    let first = instruction(Unit::Fma, "RSHIFT_DOUBLE.i32", &[Port0, Port1, Port2]);
    let second = instruction(Unit::Add, "SHIFT_DOUBLE.i32", &[Port0, Port1, Port2]);
    assert_eq!(fma(first, [0x1111_2222, 0x3333_4444, 0x28]), 0x0033_3344);
    for (shift, expected) in [(8, 0x0033_3344), (0x28, 0)] {
        let registers = [0x1111_2222, 0x3333_4444, shift];
        assert_eq!(
            tuple(first, second, registers, [0, 0]),
            expected,
            "{shift:#x}"
        );
    }
    let upper = instruction(Unit::Add, "SHADDXH.i32", &[FauLow, FauHigh]);
    for (name, [low, high], expected) in [
        // {10, 0xffff_fff0} + ({7, 0x4000_0001} << 3): 2 shifted out, 1 carried.
        ("SHADDXL.i64", [0xffff_fff0, 0x4000_0001], 10 + 56 + 2),
        ("SHADDXL.i64", [0xffff_fff8, 0x4000_0001], 10 + 56 + 2 + 1),
        ("SHADDXL.u32", [0, 0xffff_ffff], 17),
        ("SHADDXL.s32", [8, 0xffff_ffff], 10),
        ("SHADDXL.s32", [7, 0xffff_ffff], 9),
    ] {
        let mut shifted = instruction(Unit::Fma, name, &[Port0, Port1]);
        shifted.immediates[0] = 3;
        let found = tuple(shifted, upper, [low, high, 0], [10, 7]);
        assert_eq!(found, expected, "{name} {low:#x}");
    }
}

#[test]
fn a_64_bit_tuple_multiplies_and_adds_pairs() {
    // r4:r5 = r0:r1 * r2:r3 + r2:r3.
    let multiply = instruction(Unit::Fma, "IMAD.i64", &[Port0, Port1, Port2]);
    let registers = RegisterBlock(1 << 8 | 2 << 13 | 1 << 22 | 0xfa << 27);
    let header = ClauseHeader {
        message: Some(Message::Wide),
        ..HEADER
    };
    let second = instruction(Unit::Add, "IMAD.i64", &[]);
    let wide = coded(header, registers, multiply, second);
    let (a, b) = (5u64 << 32, 0x1234_5678_9abc_def0u64);
    let [b0, b1] = halves(b);
    let low = between(&Flat::new(64), [5, b0, b1], [0, 0], &wide);
    assert_eq!(low, a.wrapping_mul(b).wrapping_add(b) as u32);
}

#[test]
fn a_load_completes_the_address_that_shaddxl_begins() {
    let space = Flat::new(64);
    let table: Vec<u32> = (0..64).map(|i| i * 3 + 1).collect();
    let [end, high] = halves(space.put_words(&table) + 40 * 4);
    // Port 2: the pointer's high word, which borrows for a negative index. The load's first source is the index's high
    // word.
    for (name, first) in [("SHADDXL.s32", Stage), ("SHADDXL.i64", FauLow)] {
        let mut low = instruction(Unit::Fma, name, &[Port0, Port1]);
        low.immediates[0] = 2;
        let load = instruction(Unit::Add, "LOAD.i32", &[first, Port2]);
        let middle = coded(message(&load, 4), block(0x82, [1, 2, 3], None), low, load);
        let registers = [end, -7i32 as u32, high];
        let found = between(&space, registers, [u32::MAX, 0], &middle);
        assert_eq!(found, 33 * 3 + 1, "{name}");
    }
}

#[test]
fn branches_compare_as_their_names_say() {
    // Address 0: a branching thread ends without a store.
    let taken = |name: &str, compare: Compare, a: u32, b: u32| {
        // The table decides the operands' order.
        let mut tried = 0;
        for sources in [[Port0, Port1, FauLow], [Port1, Port0, FauLow]] {
            let ins = with(
                instruction(Unit::Add, name, &sources),
                &[(Modifier::Compare, compare as u8)],
            );
            if encode_word(&ins).is_err() {
                continue;
            }
            tried += 1;
            let middle = alone(HEADER, block(0, [1, 2, 3], None), ins);
            let registers = if sources[0] == Port0 {
                [a, b, 0]
            } else {
                [b, a, 0]
            };
            if between(&Flat::new(64), registers, [0, 0], &middle) == UNTOUCHED {
                return true;
            }
        }
        assert!(tried > 0, "{name} {compare:?}");
        false
    };
    let minus = -3i32 as u32;
    let [minus_one, half] = [-1.0, 0.5].map(f32::to_bits);
    for (name, compare, [a, b], expected) in [
        ("BRANCH.s32", Compare::Lt, [minus, 2], true),
        ("BRANCH.s32", Compare::Lt, [2, 2], false),
        ("BRANCH.s32", Compare::Ge, [2, 2], true),
        ("BRANCH.u32", Compare::Lt, [minus, 2], false),
        ("BRANCH.u32", Compare::Gt, [minus, 2], true),
        ("BRANCH.i32", Compare::Eq, [7, 7], true),
        ("BRANCH.i32", Compare::Ne, [7, 8], true),
        ("BRANCH.f32", Compare::Lt, [minus_one, half], true),
        ("BRANCH.f32", Compare::Gt, [minus_one, half], false),
    ] {
        assert_eq!(taken(name, compare, a, b), expected, "{name} {compare:?}");
    }
}

#[test]
fn local_storage_lies_where_the_descriptors_say() {
    use gpureplay_shader::{Control, ThreadStorage, Threads, WorkgroupStorage};
    let space = Flat::new(256);
    // Threads store their id (r60) at offset 8 of their storage, the work group (r57) in the group's.
    let mut code = Vec::new();
    for (segment, register, flow_control) in [
        (Segment::Tl, 60, FlowControl::Continue),
        (Segment::Wls, 57, FlowControl::End),
    ] {
        let store = instruction(Unit::Add, "STORE.i32", &[FauLow, FauHigh]);
        let store = with(store, &[(Modifier::Segment, segment as u8)]);
        let header = ClauseHeader {
            flow_control,
            ..message(&store, register)
        };
        code.extend(alone(header, block(0x80, [1, 2, 3], None), store));
    }
    let (threads, groups) = (space.put(&[0; 4096]), space.put(&[0; 4096]));
    let mut dispatch = dispatch(&space, space.put(&code), &[8], 5);
    dispatch.grid.workgroup_count[0] = 7;
    dispatch.grid.thread_storage = ThreadStorage {
        base: threads,
        bytes_per_thread: 16,
        threads: 12,
    };
    dispatch.grid.workgroup_storage = WorkgroupStorage {
        base: groups,
        bytes: 128,
        instances: 3,
    };
    launch(&dispatch, &space).unwrap();
    let own = space.words(threads, 1024);
    assert!(
        own[12 * 4..].iter().all(|&word| word == 0),
        "outside of 12 threads' storage"
    );
    let used: Vec<_> = (0..12)
        .map(|thread| own[thread * 4 + 2])
        .filter(|&id| id != 0)
        .collect();
    assert!(
        used.len() >= 5 && used.iter().all(|&id| id < 35),
        "{used:?}"
    );
    assert!(
        space.words(groups, 1024)[96..]
            .iter()
            .all(|&word| word == 0),
        "outside of three groups' storage"
    );
    // Rows prepared for one storage must not serve another.
    let host = Threads::new(1);
    let other = space.put(&[0; 4096]);
    for base in [threads, other, threads] {
        for storage in [threads, other] {
            gpureplay_memory::Bus::write(&space.0, storage, &[0; 4096]).unwrap();
        }
        dispatch.grid.thread_storage.base = base;
        mali_shader::run(&dispatch, &space, &host, &Control::default()).unwrap();
        let words = |at| space.words(at, 1024);
        assert_eq!(words(base), own);
        assert_eq!(words(threads + other - base), vec![0; 1024]);
    }
    dispatch.grid.thread_storage.threads = 4;
    let fault = launch(&dispatch, &space).unwrap_err();
    assert!(
        fault.to_string().contains("thread storage for 4 threads"),
        "{fault}"
    );
}

#[test]
fn a_shader_that_changed_is_decoded_again() {
    use gpureplay_memory::Bus;
    use gpureplay_shader::{Control, Threads};
    let space = Flat::new(64);
    let store = instruction(Unit::Add, "STORE.i32", &[FauLow, FauHigh]);
    let code = |register| {
        let registers = block(0x80, [1, 2, 3], None);
        alone(last(message(&store, register)), registers, store)
    };
    let (out, shader) = (space.put(&[0; 4]), space.put(&code(60)));
    let mut dispatch = dispatch(&space, shader, &halves(out), 1);
    let threads = Threads::new(1);
    mali_shader::run(&dispatch, &space, &threads, &Control::default()).unwrap();
    assert_eq!(space.words(out, 1), [0]);
    space.0.write(shader, &code(61)).unwrap();
    dispatch.grid.workgroup_count[1] = 2;
    mali_shader::run(&dispatch, &space, &threads, &Control::default()).unwrap();
    assert_eq!(space.words(out, 1), [1]);
}

struct Watched {
    flat: Flat,
    fetched: std::sync::Mutex<Vec<u64>>,
}

impl gpureplay_shader::AddressSpace for Watched {
    fn translate(
        &self,
        va: u64,
        access: gpureplay_shader::Access,
    ) -> Result<gpureplay_memory::Page<'_>, gpureplay_shader::MmuFault> {
        if access == gpureplay_shader::Access::Execute {
            self.fetched.lock().unwrap().push(va & !0xfff);
        }
        self.flat.translate(va, access)
    }
}

/// 16 bytes; with a constant, 32.
fn idle_clause(flow_control: FlowControl, constants: Vec<Constant>) -> Vec<u8> {
    let header = ClauseHeader {
        flow_control,
        ..HEADER
    };
    let registers = block(0, [1, 2, 3], None);
    let mut idle = clause(header, registers, nop(Unit::Fma), nop(Unit::Add));
    idle.constants = constants;
    encode_clause(&idle).unwrap()
}

#[test]
fn only_pages_with_code_that_can_run_are_fetched() {
    use gpureplay_memory::Bus;
    use gpureplay_shader::{Control, Threads};

    let flat = Flat::new(16);
    let base = flat.put(&[0; 2 * 4096]);
    let space = Watched {
        flat,
        fetched: Default::default(),
    };
    let threads = Threads::new(1);
    let pages = |shader: u64, code: &[u8]| {
        space.flat.0.write(shader, code).unwrap();
        let dispatch = dispatch(&space.flat, shader, &[], 1);
        mali_shader::run(&dispatch, &space, &threads, &Control::new(100)).unwrap();
        let mut fetched = std::mem::take(&mut *space.fetched.lock().unwrap());
        fetched.sort_unstable();
        fetched.dedup();
        fetched
    };
    let last = idle_clause(FlowControl::End, Vec::new());
    let constant = Constant {
        value: 0x1230,
        ..Constant::default()
    };
    let long = idle_clause(FlowControl::Continue, vec![constant]);
    assert_eq!((last.len(), long.len()), (16, 32));

    let whole = [long.clone(), last.clone()].concat();
    assert_eq!(pages(base + 4096 - 48, &whole), [base]);
    let crossing = base + 4096 - 16;
    assert_eq!(pages(crossing, &whole), [base, base + 4096]);
    assert_eq!(pages(crossing, &whole), [base, base + 4096]);
    assert_eq!(pages(crossing, &last), [base]);
}

#[test]
fn an_empty_kernel_has_no_address() {
    let space = Flat::new(1);
    let mut dispatch = dispatch(&space, 0, &[], 7);
    dispatch.grid.workgroup_count[0] = 3;
    assert!(launch(&dispatch, &space).is_ok());
    dispatch.grid.shader = 1 << 30;
    assert!(launch(&dispatch, &space).is_err());
}
