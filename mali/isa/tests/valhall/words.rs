// SPDX-License-Identifier: MIT OR Apache-2.0
//! Any word means one thing; its text says all.

use mali_isa::valhall::{AssembleError, Broken, Instruction, Op, Shader, ShaderError, assemble};

pub(crate) fn random(random: &mut fastrand::Rng, op: Op) -> u64 {
    let row = op.row();
    let fixed = 0x1ff << 48 | row.secondary.mask() | 1 << 63;
    random.u64(..) & !fixed | u64::from(row.opcode) << 48 | row.secondary.value()
}

#[test]
fn texts_of_words_that_keep_the_limits_assemble_to_the_words() {
    let mut source = fastrand::Rng::with_seed(41);
    let mut kept = 0;
    for round in 0..400 {
        for op in Op::ALL {
            let mut word = random(&mut source, *op);
            // Most random words break a limit.
            word &= !Instruction::decode(word).unwrap().unexplained();
            if round % 2 == 0 {
                word &= !(0x3f << 57);
            }
            let instruction = Instruction::decode(word).unwrap();
            assert_eq!(instruction.op(), *op);
            let text = instruction.to_string();
            let Ok(again) = assemble(&text) else {
                let why = instruction.check();
                let broken = matches!(
                    why,
                    Err(Broken::Reserved(_) | Broken::Group { .. } | Broken::Control(_))
                );
                assert!(broken, "{word:#x} {text}: {:?}, {why:?}", assemble(&text));
                continue;
            };
            let decoded = Instruction::decode(again).unwrap();
            assert_eq!(decoded.to_string(), text);
            if instruction.check().is_ok() {
                kept += 1;
                let hidden = word ^ again;
                assert_eq!(hidden & !not_shown(instruction), 0, "{word:#x} {text}");
            }
        }
    }
    assert!(kept > 5_000, "{kept} words kept the limits");
}

/// Bits of an unused page, the second of two equal constants, the register of an empty group.
fn not_shown(instruction: Instruction) -> u64 {
    let mut bits = 3 << 57;
    for byte in 0..4 {
        let code = instruction.source(byte).map(|source| source.code);
        if code.and_then(|code| code.constant()) == Some(0) {
            bits |= 0xff << (8 * byte);
        }
    }
    if instruction.staging().any(|group| group.count == 0) {
        bits |= 0x3f << 40;
    }
    bits
}

#[test]
fn no_word_panics() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200_000 {
        let word = random.u64(..);
        if let Some(instruction) = Instruction::decode(word) {
            let _ = (instruction.check(), instruction.branch());
            let _ = instruction.to_string();
        }
        let code = word.to_le_bytes();
        let _ = Shader::decode(&code).map(|shader| shader.to_string());
    }
}

#[test]
fn texts_that_are_no_instruction_say_why() {
    let cases = [
        ("FDD.f32 r0, r1, r2", AssembleError::Name("FDD.f32")),
        ("FADD.f32.x r0, r1, r2", AssembleError::Modifiers(".x")),
        ("FADD.f32 r0, r1", AssembleError::NoOperand("a source")),
        ("FADD.f32 r0, r1, r2, r3", AssembleError::Surplus("r3")),
        ("FADD.f32 r0, r1, r64", AssembleError::Operand("r64")),
        ("FADD.f32 r0, r1, 0x7", AssembleError::Operand("0x7")),
        ("FADD.f32 r0, u0, u64", AssembleError::Pages(0, 1)),
        ("BARRIER", AssembleError::Missing("slot", "")),
        (
            "IADD_IMM.i32 r0, r1, #0x100000000",
            AssembleError::Operand("#0x100000000"),
        ),
        (
            "STORE.i32.slot0 @r0:r2, r4, offset:0",
            AssembleError::Operand("@r0:r2"),
        ),
    ];
    for (text, error) in cases {
        assert_eq!(assemble(text), Err(error), "{text}");
    }
}

#[test]
fn limits_have_a_case_each() {
    let check = |text: &str| {
        Instruction::decode(assemble(text).unwrap())
            .unwrap()
            .check()
    };
    assert_eq!(check("FADD.f32 r0, u0, u1"), Ok(()));
    assert_eq!(check("FADD.f32 r0, u0, u2"), Err(Broken::UniformPairs(2)));
    assert_eq!(
        check("CSEL.u32.eq r0, u0, u1, 0x0, 0xFFFFFFFF"),
        Err(Broken::Words(4))
    );
    assert_eq!(
        check("IADD.u32 r0, lane_id.w0, core_id.w0"),
        Err(Broken::Specials)
    );
    assert!(matches!(
        check("LOAD.i32.slot0 @r0, r3, offset:0"),
        Err(Broken::Odd(_))
    ));
    assert_eq!(
        check("LOAD.i32.slot0 @r0, lane_id.w0, offset:0"),
        Err(Broken::MessageSpecial("lane_id"))
    );
    let add = assemble("FADD.f32 r0, r1, r2").unwrap();
    let changed = |bits: u64| Instruction::decode(add ^ bits).unwrap().check();
    assert_eq!(changed(1 << 34), Err(Broken::Unexplained(1 << 34)));
    assert_eq!(changed(11 << 59), Err(Broken::Reserved("flow")));
    assert_eq!(changed(3 << 46), Err(Broken::Reserved("a destination")));
    let load = assemble("LOAD.i64.slot0 @r62:r63, r2, offset:0").unwrap();
    let changed = |bits: u64| Instruction::decode(load ^ bits).unwrap().check();
    assert_eq!(changed(1 << 46), Err(Broken::Control(0xfe)));
    assert_eq!(
        changed(1 << 33),
        Err(Broken::Group {
            first: 62,
            count: 3
        })
    );
}

#[test]
fn shaders_end_where_nothing_goes_on() {
    let code = |texts: &[&str]| -> Vec<u8> {
        let words = texts.iter().map(|text| assemble(text).unwrap());
        words.flat_map(u64::to_le_bytes).collect()
    };
    let good = code(&["BRANCHZ r0, offset:1", "NOP.end", "NOP.end", "NOP"]);
    let shader = Shader::decode(&good).unwrap();
    assert_eq!((shader.words(), shader.bytes().len()), (3, 24));
    assert_eq!(
        shader.to_string(),
        "    0  BRANCHZ r0, offset:1  -> 2\n    1  NOP.end\n    2  NOP.end\n"
    );
    // Nothing goes on after the jump: an endless loop is a shader.
    let endless = code(&["NOP", "BRANCHZ.eq 0x0, offset:-2"]);
    assert_eq!(Shader::decode(&endless).unwrap().words(), 2);
    assert_eq!(
        Shader::decode(&code(&["NOP"])),
        Err(ShaderError::Truncated { word: 1 })
    );
    assert_eq!(
        Shader::decode(&code(&["BRANCHZ r0, offset:-2", "NOP.end"])),
        Err(ShaderError::Target {
            word: 0,
            target: -1
        })
    );
    let unknown = 0xffu64 << 48;
    assert_eq!(
        Shader::decode(&unknown.to_le_bytes()),
        Err(ShaderError::Unknown {
            word: 0,
            value: unknown
        })
    );
    let long = code(&["NOP"]).repeat(mali_isa::valhall::MAX_WORDS as usize + 1);
    assert_eq!(Shader::decode(&long), Err(ShaderError::Long));
}
