// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command streams: Mesa's samples and traces, and another decoder.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use mali_isa::valhall::streams::{Compute, Instruction, Kind, Op, WalkError, text, walk};

use crate::support::{binaries, shared};

/// From Mesa 25.0.7, for `scale_add` of tools/guest/apps/kernels/basic.cl.
const SCALE_ADD: &[u8] = include_bytes!("../golden/dispatch.bin");

fn words(code: &[u8]) -> Vec<u64> {
    let words = code.as_chunks().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

pub(crate) fn walked(words: &[u64], bytes: u32) -> (Vec<Compute>, Result<(), WalkError>) {
    let mut found = Vec::new();
    let read = |at: u64| words.get(at as usize / 8).copied();
    let end = walk(0, bytes, 100, read, |_, compute| found.push(*compute));
    (found, end)
}

#[test]
fn a_dispatch_has_its_text_and_operands() {
    let printed = text(&SCALE_ADD[..SCALE_ADD.len() - 3]).to_string();
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines.len(), 20);
    assert_eq!(
        lines[5],
        "   28  01107fffffffd2e0  MOVE Immediate=0x7fffffffd2e0 Destination=d16"
    );
    assert_eq!(
        lines[15],
        "   78  0400000000008001  RUN_COMPUTE Task increment=0x1 Task axis=Z"
    );
    assert_eq!(lines[19], "5 bytes are no instruction");
    let (found, end) = walked(&words(SCALE_ADD), 160);
    assert_eq!(end, Ok(()));
    assert_eq!(
        found,
        [Compute {
            resources: 0x7fff_fff9_8207,
            uniforms: 0x0300_7fff_fff9_8180,
            program: 0x7fff_ffff_d2e0,
            storage: 0x7fff_fff9_81c0,
            attribute_offset: 0,
            size: 0x8000_000f,
            tasks: 0x8001,
            offset: [0; 3],
            count: [4, 1, 1],
        }]
    );
}

#[test]
fn samples_have_the_reference_text() {
    let Some(folder) = shared("reference/valhall/samples/streams") else {
        return;
    };
    let (mut compared, mut dispatches) = (0, 0);
    for file in binaries(folder) {
        let theirs = fs::read_to_string(file.with_extension("txt")).unwrap();
        let code = words(&fs::read(&file).unwrap());
        for (word, theirs) in code.iter().zip(theirs.lines()) {
            let instruction = Instruction::decode(*word).unwrap();
            assert_eq!(
                format!("{word:016x}  {instruction}"),
                theirs.trim_end(),
                "{}",
                file.display()
            );
            assert_eq!(
                (instruction.unexplained(), instruction.reserved()),
                (0, None)
            );
            compared += 1;
        }
        // After the first five words is a handler, which only a full heap reaches.
        let init = file.file_stem().is_some_and(|name| name == "init");
        let bytes = if init { 40 } else { 8 * code.len() as u32 };
        let (found, end) = walked(&code, bytes);
        assert_eq!(end, Ok(()), "{}", file.display());
        assert_eq!(found.len(), usize::from(!init));
        dispatches += found.len();
    }
    assert_eq!((compared, dispatches), (309, 11));
}

#[test]
fn walks_find_what_mesa_printed() {
    let Some(folder) = shared("reference/valhall/samples/traces") else {
        return;
    };
    let mut compared = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if !file.to_string_lossy().contains("a867.") {
            continue;
        }
        let Ok(output) = Command::new("xz").arg("-dc").arg(&file).output() else {
            return eprintln!("SKIPPED: no xz");
        };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let (mut words, mut registers) = (Vec::new(), [0u32; 96]);
        for line in text.lines() {
            let line = line.strip_prefix("  ").unwrap_or_default();
            let Some((bytes, theirs)) = line.split_at_checked(23) else {
                continue;
            };
            let bytes: Vec<u8> = bytes
                .split(' ')
                .map_while(|byte| u8::from_str_radix(byte, 16).ok())
                .collect();
            let Ok(bytes) = <[u8; 8]>::try_from(bytes) else {
                continue;
            };
            let theirs = theirs.trim();
            if !theirs.starts_with(|first: char| first.is_ascii_uppercase()) {
                continue;
            }
            let word = u64::from_le_bytes(bytes);
            let name = theirs.split(['.', ' ']).next().unwrap();
            assert_eq!(Instruction::decode(word).unwrap().op().row().name, name);
            if name == "REQ_RESOURCE" {
                // The dispatch's stream begins, after the context's first stream and a handler.
                (words, registers) = (Vec::new(), [0; 96]);
            }
            words.push(word);
            if let Some((register, value)) = theirs
                .strip_prefix("MOVE")
                .and_then(|rest| rest.trim_start_matches("32").trim().split_once(", #0x"))
            {
                let (kind, number) = register.split_at(1);
                let number: usize = number.parse().unwrap();
                let value = u64::from_str_radix(value, 16).unwrap();
                registers[number] = value as u32;
                if kind == "d" {
                    registers[number + 1] = (value >> 32) as u32;
                }
            }
        }
        let (found, end) = walked(&words, 8 * words.len() as u32);
        assert_eq!(end, Ok(()), "{}", file.display());
        let pair = |at: usize| u64::from(registers[at]) | u64::from(registers[at + 1]) << 32;
        let [compute] = found[..] else {
            panic!("{}: {}", file.display(), found.len());
        };
        assert_eq!(
            [
                compute.resources,
                compute.uniforms,
                compute.program,
                compute.storage
            ],
            [pair(0), pair(8), pair(16), pair(24)]
        );
        assert_eq!(
            [compute.size, compute.count[0]],
            [registers[33], registers[37]]
        );
        compared += 1;
    }
    assert_eq!(compared, 11);
}

pub(crate) fn printed(mut program: Command, words: &[u64]) -> Option<String> {
    let spawned = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = spawned
        .inspect_err(|error| eprintln!("SKIPPED: {program:?}: {error}"))
        .ok()?;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut input = child.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || input.write_all(&bytes).unwrap());
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn random_words_have_the_reference_text() {
    let Some(script) = shared("reference/valhall/decode.py") else {
        return;
    };
    const PRINT: &str = "import struct, sys; sys.path.insert(0, sys.argv[1]); import decode\n\
        for word, in struct.iter_unpack('<Q', sys.stdin.buffer.read()):\n\
        \x20   print(decode.cs_text(word).rstrip(), hex(word & ~decode.cs_known(decode.cs_decode(word)[0])))";
    let mut source = fastrand::Rng::with_seed(0x610);
    let ops = std::iter::repeat_n(Op::ALL, 500).flatten();
    let words: Vec<u64> = ops
        .map(|op| u64::from(op.row().opcode) << 56 | source.u64(..) >> source.u32(8..64))
        .collect();
    let mut python = Command::new("python3");
    python.args(["-c", PRINT]).arg(script.parent().unwrap());
    let Some(theirs) = printed(python, &words) else {
        return;
    };
    assert_eq!(theirs.lines().count(), words.len());
    for (word, theirs) in words.iter().zip(theirs.lines()) {
        let ours = Instruction::decode(*word).unwrap();
        let ours = format!("{ours} {:#x}", ours.unexplained());
        assert_eq!(ours, theirs, "{word:#018x}");
    }
}

#[test]
fn the_table_is_whole() {
    let mut opcodes = [false; 256];
    for op in Op::ALL {
        let row = op.row();
        assert!(!std::mem::replace(
            &mut opcodes[usize::from(row.opcode)],
            true
        ));
        let decoded = Instruction::decode(u64::from(row.opcode) << 56).unwrap();
        assert_eq!(decoded.op(), *op);
        let mut taken = 0xff_u64 << 56;
        for field in row.fields {
            assert_eq!(taken & field.mask(), 0, "{} {}", row.name, field.name);
            taken |= field.mask();
            let pair = matches!(field.kind, Kind::Pair | Kind::Register);
            assert!(!pair || field.bits == 8, "{} {}", row.name, field.name);
        }
        assert_eq!(taken, row.explained());
    }
    assert_eq!(Op::ALL.len(), 39);
    let unknown = (0..256).filter(|it| !opcodes[*it]);
    for opcode in unknown {
        assert_eq!(Instruction::decode((opcode as u64) << 56), None);
    }
}
