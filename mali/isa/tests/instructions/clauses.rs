// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random clauses, and random bytes, which never panic.

use std::collections::BTreeSet;

use fastrand::Rng;
use mali_isa::*;

const ZERO_HEADER: ClauseHeader = ClauseHeader {
    flow_control: FlowControl::End,
    ..ClauseHeader::PLAIN
};

fn header(random: &mut Rng, wide: bool) -> ClauseHeader {
    let messages = [
        None,
        Some(Message::Load),
        Some(Message::Atomic),
        Some(Message::Job),
        Some(Message::ZStencil),
    ];
    ClauseHeader {
        flush_to_zero: FlushToZero::ALL[random.u64(..4) as usize],
        suppress_infinity: random.bool(),
        suppress_nan: random.bool(),
        float_exceptions: random.u64(..4) as u8,
        flow_control: FlowControl::ALL[random.u64(..8) as usize],
        terminate_discarded: random.bool(),
        next_clause_prefetch: random.bool(),
        staging_barrier: random.bool(),
        staging_register: random.u64(..64) as u8,
        dependency_wait: random.u64(..) as u8,
        dependency_slot: random.u64(..8) as u8,
        message: if wide {
            Some(Message::Wide)
        } else {
            messages[random.u64(..5) as usize]
        },
        next_message: messages[random.u64(..5) as usize],
    }
}

fn instruction(random: &mut Rng, op: Op) -> Instruction {
    loop {
        let mut instruction = Instruction::new(op);
        for (slot, modifier) in instruction.modifiers.iter_mut().zip(op.info().modifiers) {
            let options: Vec<u8> = modifier.options.iter().flatten().copied().collect();
            *slot = options[random.u64(..options.len() as u64) as usize];
        }
        for (slot, source) in instruction.sources.iter_mut().zip(op.info().sources) {
            let selector = random.u64(..8) as u32;
            if source.allowed >> selector & 1 == 1 {
                *slot = Source::from_selector(selector);
            }
        }
        for (slot, immediate) in instruction.immediates.iter_mut().zip(op.info().immediates) {
            *slot = random.u64(..1 << immediate.position.size) as u8;
        }
        // Some immediates' highest indices are other operations.
        if encode_word(&instruction)
            .is_ok_and(|w| decode_word(op.unit(), w, op.info().wide) == Some(instruction))
        {
            return instruction;
        }
    }
}

fn registers(random: &mut Rng, first: bool, wide: bool, constants: usize) -> RegisterBlock {
    let fau = match random.u64(..3) {
        0 => fau_index(Fau::Uniform(random.u64(..128) as u8)),
        1 if constants > 0 => {
            let index = random.u64(..constants.min(6) as u64) as u8;
            fau_index(Fau::Constant {
                value: random.u64(..16),
                relative: Relative::None,
                index,
            })
        }
        _ => random.u64(..4) as u8,
    };
    let field = |value: u64, start: u32| value << start;
    if wide {
        let (p0, p1) = (random.u64(..16), random.u64(..16));
        let ports = field(p0.min(p1), 18) | field(p0.max(p1), 22);
        return RegisterBlock(
            u64::from(fau)
                | field(random.u64(..32), 8)
                | field(random.u64(..32), 13)
                | ports
                | field(0xfa, 27),
        );
    }
    // Modes 1-6: slot 2 read, slot 3 written. After the first tuple the slots must differ (mode 20: be equal).
    let (slot3, mut slot2) = (random.u64(..64), random.u64(..64));
    if !first && slot2 == slot3 {
        slot2 ^= 1;
    }
    let mode = 1 + random.u64(..6);
    let (port0, port1) = if random.bool() {
        let a = random.u64(..32);
        (a, a + random.u64(..64 - a))
    } else {
        let b = random.u64(..31);
        (b + 1 + random.u64(..31 - b), b) // descending: both are 63 - x
    };
    RegisterBlock(
        u64::from(fau)
            | field(slot3, 8)
            | field(slot2, 14)
            | field(port0, 20)
            | field(port1, 25)
            | field(mode, 31),
    )
}

fn build(
    random: &mut Rng,
    count: usize,
    constants: usize,
    wide: bool,
    ops: &mut dyn FnMut(Unit) -> Op,
) -> Clause {
    let mut clause = Clause {
        header: header(random, wide),
        tuples: Vec::new(),
        constants: Vec::new(),
    };
    for index in 0..count {
        let (fma, add) = (ops(Unit::Fma), ops(Unit::Add));
        let registers = registers(random, index == 0, wide, constants);
        let (fma, add) = (instruction(random, fma), instruction(random, add));
        clause.tuples.push(Tuple::new(registers, fma, add));
    }
    for _ in 0..constants {
        // Equal top nibbles: no modifiers.
        clause.constants.push(Constant {
            value: random.u64(..) << 4 & !(0xf << 60 | 0xf << 28),
            relative: Relative::None,
        });
    }
    clause
}

fn text(clause: &Clause) -> String {
    ClauseText { clause, offset: 0 }.to_string()
}

const MOST_CONSTANTS: [usize; 9] = [0, 2, 2, 3, 4, 5, 7, 6, 5];

#[test]
fn random_clauses_of_every_shape_survive_encoding() {
    let random = &mut Rng::with_seed(1);
    let mut at = [0usize; 2];
    let narrow: Vec<Op> = Op::ALL.into_iter().filter(|op| !op.info().wide).collect();
    let by_unit = [Unit::Fma, Unit::Add].map(|u| {
        narrow
            .iter()
            .copied()
            .filter(|op| op.unit() == u)
            .collect::<Vec<_>>()
    });
    let (mut shapes, mut used) = (BTreeSet::new(), BTreeSet::new());
    for round in 0..4000 {
        let wide = round % 10 == 9;
        let count = 1 + random.u64(..8) as usize;
        let constants = random.u64(..MOST_CONSTANTS[count] as u64 + 1) as usize;
        let mut ops = |unit: Unit| {
            if wide {
                return Op::find(unit, "IMAD.i64").unwrap();
            }
            let list = &by_unit[unit as usize];
            at[unit as usize] += 1;
            list[at[unit as usize] % list.len()]
        };
        let clause = build(random, count, constants, wide, &mut ops);
        let bytes = encode_clause(&clause).unwrap();
        let (decoded, size) = decode_clause(&bytes).unwrap_or_else(|e| panic!("{e}: {bytes:02x?}"));
        assert_eq!(size, bytes.len());
        assert_eq!(decoded.header, clause.header);
        // A constant that a format always has, or the second of a pair, appears as zero.
        assert_eq!(decoded.constants[..constants], clause.constants);
        assert!(decoded.constants[constants..].iter().all(|c| c.value == 0));
        for (ours, theirs) in clause.tuples.iter().zip(&decoded.tuples) {
            assert_eq!(
                (ours.registers, ours.fma, ours.add),
                (theirs.registers, theirs.fma, theirs.add)
            );
            used.extend([ours.fma.op, ours.add.op]);
        }
        assert_eq!(encode_clause(&decoded).unwrap(), bytes);
        shapes.insert((count, constants));
        let _ = text(&decoded);
    }
    assert_eq!(
        shapes.len(),
        MOST_CONSTANTS[1..].iter().map(|n| n + 1).sum::<usize>()
    );
    assert_eq!(used.len(), Op::ALL.len());
}

#[test]
fn relative_constants_survive_encoding() {
    use Relative::{Both, High, None as Plain, Whole};
    let nop = |unit, name| Instruction::new(Op::find(unit, name).unwrap());
    let registers = RegisterBlock(0x2_0000_0000 | 3 << 25 << 2);
    let tuple = Tuple::new(registers, nop(Unit::Fma, "NOP"), nop(Unit::Add, "NOP"));
    let random = &mut Rng::with_seed(2);
    let clause = |constants: [Constant; 2]| Clause {
        header: ZERO_HEADER,
        tuples: vec![tuple; 2],
        constants: constants.to_vec(),
    };
    let pairs = [
        [High, Plain],
        [High, High],
        [Whole, Plain],
        [Whole, Whole],
        [Both, Plain],
        [Both, High],
        [Both, Both],
    ];
    for pair in pairs {
        let constants = pair.map(|relative| Constant {
            value: random.u64(..) << 4,
            relative,
        });
        let bytes = encode_clause(&clause(constants)).unwrap();
        let (decoded, _) = decode_clause(&bytes).unwrap();
        for (ours, theirs) in constants.iter().zip(&decoded.constants) {
            assert_eq!(ours.relative, theirs.relative);
            let at = 0x1234_5678_9ab0;
            assert_eq!(
                ours.relative.resolve(ours.value, at),
                theirs.relative.resolve(theirs.value, at),
                "{pair:?}"
            );
        }
    }
    // The second alone cannot be relative: they must be exchanged.
    let plain = Constant {
        value: 0x10,
        relative: Plain,
    };
    let high = Constant {
        value: 0x30 << 32,
        relative: High,
    };
    assert_eq!(
        encode_clause(&clause([plain, high])),
        Err(EncodeError::ConstantOrder { index: 0 })
    );
    assert!(encode_clause(&clause([high, plain])).is_ok());
}

#[test]
fn relative_values() {
    let at = 0xffff_1234_0000_0100;
    for (relative, value, expected) in [
        (Relative::None, 7, 7),
        (Relative::High, 0x0000_0020_0000_0003, 0x0000_0120_0000_0003),
        (Relative::High, 0x4fff_fff0_0000_0003, 0x0000_00f0_0000_0003),
        (
            Relative::Whole,
            0x0fff_ffff_ffff_fff0,
            0xffff_1234_0000_00f0,
        ),
        (Relative::Both, 0x0000_0010_0fff_fff0, 0x0000_0110_0000_00f0),
    ] {
        assert_eq!(
            relative.resolve(value, at),
            expected,
            "{relative:?} {value:#x}"
        );
    }
}

#[test]
fn random_bytes_never_panic() {
    let random = &mut Rng::with_seed(3);
    let (mut clauses, mut shaders) = (0, 0);
    for _ in 0..200_000 {
        let mut bytes = [0u8; 160];
        for word in bytes.chunks_exact_mut(8) {
            word.copy_from_slice(&random.u64(..).to_le_bytes());
        }
        // Half with a plausible start, to reach the rest.
        if random.bool() {
            bytes[0] = [0x49, 0x29, 0x2b, 0x4d][random.u64(..4) as usize];
            let high = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) & 0x7ffff;
            bytes[8..16].copy_from_slice(&high.to_le_bytes());
        }
        if let Ok((clause, size)) = decode_clause(&bytes) {
            clauses += 1;
            assert!((16..=128).contains(&size) && size % 16 == 0);
            assert!(!text(&clause).is_empty());
            let again = encode_clause(&clause).unwrap();
            assert_eq!(decode_clause(&again).map(|(c, _)| c), Ok(clause));
        }
        let length = random.u64(..160) as usize;
        shaders += usize::from(Shader::decode(&bytes[..length]).is_ok());
    }
    println!("{clauses} clauses and {shaders} shaders by chance");
    assert!(clauses > 100);
}

#[test]
fn errors_say_where() {
    assert_eq!(
        decode_clause(&[]),
        Err(DecodeError::Truncated { offset: 0 })
    );
    let error = decode_clause(&[0xff; 16]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "clause word at byte 0x0 has invalid tag 0xff"
    );
    let mut word = 0x49u128 | 0x7f_ffffu128 << (8 + 35);
    word |= 0b0110u128 << (8 + 25); // control 0, no ports, mode 1 of a first tuple
    let error = decode_clause(&word.to_le_bytes()).unwrap_err();
    assert!(error.to_string().contains("0x7fffff"), "{error}");
}
