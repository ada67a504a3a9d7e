// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs' manifests: `region.cu` from an H100, and refused ones.

use fastrand::Rng;
use gpureplay_cuda_launch::recording::{Operation, Recording, Run, StreamKind, Writer};

const GOLDEN: &str = include_str!("golden/run.toml");

#[test]
fn a_run_reads_as_it_was_recorded() {
    let run = Run::parse(GOLDEN).unwrap();
    let kinds = [StreamKind::Blocking, StreamKind::Free, StreamKind::Default];
    assert!(run.streams.iter().map(|stream| stream.kind).eq(kinds));
    assert_eq!((run.launches(), run.operations.len()), (7, 23));
    // 5 MiB, 3 small pieces, 1 MiB of the region's, variables, inputs, outputs.
    assert_eq!(
        run.bytes(),
        6 * (1 << 20) + 256 + 256 + 24 + 1032 + 2 * (1 << 20) + (1 << 20) + 520
    );
    assert_eq!(run.memory[8].contents, None);
    let Operation::Launch {
        kernel, parameters, ..
    } = &run.operations[2]
    else {
        panic!("the third operation is a launch");
    };
    assert_eq!(run.kernels[*kernel as usize].name, "_Z10polynomialiiPKfPf");
    assert_eq!(parameters[4..8], 2000u32.to_le_bytes());
}

#[test]
fn a_run_is_written_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let run = Run::parse(GOLDEN).unwrap();
    assert_eq!(writer.add_run(&run).unwrap(), 0);
    assert_eq!(writer.add_run(&run).unwrap(), 1);
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.runs().unwrap(), [0, 1]);
    assert!(recording.numbers().unwrap().is_empty());
    let back = recording.run(1).unwrap();
    assert_eq!(back.operations, run.operations);
    assert!(recording.run(2).is_err());
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (old, new, reason) in [
        ("format = 1", "format = 2", "format 2"),
        ("name = \"in1\"", "name = \"in0\"", "in0 is there twice"),
        (
            "name = \"in1\"",
            "name = \"../x\"",
            "has a name that is not of letters",
        ),
        ("name = \"weights\"", "name = \"\\u001b[2J\"", "has no name"),
        (
            "stream = 2\nkernel = 4",
            "stream = 3\nkernel = 4",
            "stream has a number",
        ),
        (
            "stream = 2\nkernel = 4",
            "stream = 2\nkernel = 6",
            "kernel has a number",
        ),
        (
            "image = 0\nname = \"weights\"",
            "image = 1\nname = \"weights\"",
            "image has a number",
        ),
        (
            "input = 1",
            "input = 0",
            "input 0 is not copied exactly once",
        ),
        (
            "output = 3",
            "output = 4",
            "output 4 is not copied exactly once",
        ),
        (
            "event = 0\n\n[[operation]]\ndo = \"set\"",
            "event = 9\n\n[[operation]]\ndo = \"set\"",
            "event 0 is waited for before",
        ),
        (
            "grid = [64, 1, 1]",
            "grid = [64, 0, 1]",
            "has a dimension of 0",
        ),
        (
            "parameters = \"00000400",
            "parameters = \"0400",
            "has parameters that are not its kernel's",
        ),
        (
            "attributes = \"02",
            "attributes = \"07",
            "attributes that a replay does not keep",
        ),
        (
            "layout = [[0, 4], [4, 4]",
            "layout = [[0, 4], [2, 4]",
            "has parameters that cannot be",
        ),
        (
            "to = 17592189190144",
            "to = 17592189190145",
            "a copy uses 1048576 bytes at 0x100000300001",
        ),
        (
            "pitch = 4096",
            "pitch = 4611686018427387904",
            "a memset uses 0 bytes",
        ),
        ("pitch = 4096", "pitch = 127", "a memset uses 0 bytes"),
        ("height = 16", "height = 257", "a memset uses 1048704 bytes"),
        ("element = 1", "element = 3", "a memset uses 0 bytes"),
        ("size = 24", "size = 0", "is empty or reaches beyond"),
        ("size = 24", "size = 1048577", "lies over other memory"),
        (
            "address = 17592191287808\nsize",
            "address = 17592186044416\nsize",
            "does not ascend",
        ),
        (
            "address = 140185851397120\nsize = 8",
            "address = 17592186044420\nsize = 8",
            "lies over another one",
        ),
        ("size = 19840", "size = 1099511627776", "an image is larger"),
        ("do = \"host-all\"", "do = \"host-call\"", "unknown variant"),
        (
            "do = \"host-all\"",
            "do = \"host-all\"\nmore = 1",
            "unknown field",
        ),
    ] {
        assert!(GOLDEN.contains(old), "{old}");
        let error = Run::parse(&GOLDEN.replacen(old, new, 1)).unwrap_err();
        assert!(error.to_string().contains(reason), "{new}: {error}");
    }
    let (without, _) = GOLDEN.split_once("[[output]]").unwrap();
    let error = Run::parse(without).unwrap_err().to_string();
    assert!(
        error.contains("nothing would show that a replay is right"),
        "{error}"
    );
}

fn damaged(random: &mut Rng) -> String {
    let mut lines: Vec<String> = GOLDEN.lines().map(str::to_owned).collect();
    for _ in 0..random.usize(1..=3) {
        let at = random.usize(..lines.len());
        let other = lines[random.usize(..lines.len())].clone();
        match random.u8(..4) {
            0 => _ = lines.remove(at),
            1 => lines.insert(at, other),
            _ => {
                if let (Some((key, _)), Some((_, value))) =
                    (lines[at].split_once('='), other.split_once('='))
                {
                    lines[at] = format!("{key}={value}");
                }
            }
        }
    }
    lines.join("\n")
}

#[test]
fn a_damaged_run_is_refused_or_keeps_the_rules() {
    let mut random = Rng::with_seed(39);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let Ok(run) = Run::parse(&damaged(&mut random)) else {
            refused += 1;
            continue;
        };
        accepted += 1;
        let memory = run.memory.iter().map(|one| (one.address, one.size));
        let variables = run.variables.iter().map(|one| (one.address, one.size));
        let mut ranges: Vec<(u64, u64)> = memory.chain(variables).collect();
        ranges.sort_unstable();
        assert!(
            ranges
                .windows(2)
                .all(|pair| pair[0].0 + pair[0].1 <= pair[1].0)
        );
        let inside = |address: u64, size: u64| {
            let holds =
                |range: &&(u64, u64)| address >= range.0 && address + size <= range.0 + range.1;
            ranges.iter().any(|range| holds(&range))
        };
        for operation in &run.operations {
            assert!(
                operation
                    .stream()
                    .is_none_or(|stream| (stream as usize) < run.streams.len())
            );
            match operation {
                Operation::Launch { kernel, .. } => assert!((*kernel as usize) < run.kernels.len()),
                Operation::In { address, input, .. } => {
                    assert!(inside(*address, run.inputs[*input as usize].size));
                }
                Operation::Out {
                    address, output, ..
                } => {
                    assert!(inside(*address, run.outputs[*output as usize].size));
                }
                Operation::Copy { to, from, size, .. } => {
                    assert!(inside(*to, *size) && inside(*from, *size))
                }
                _ => {}
            }
        }
    }
    assert!(
        accepted > 60 && refused > 1_000,
        "{accepted} accepted, {refused} refused"
    );
}

#[test]
fn what_later_turns_numbers_and_tensors_cannot_be_is_refused() {
    let named = GOLDEN.replacen("process = 600", "process = 600\nweights = \"w\"", 1);
    let of = |text: &str, part: &str| {
        let text = text.replacen("[[operation]]", &format!("{part}\n[[operation]]"), 1);
        let run = Run::parse(&text);
        run.map(drop).map_err(|error| error.to_string())
    };
    let with = |part: &str| of(GOLDEN, part);
    let weights = |part: &str| of(&named, part);
    let hash = "0".repeat(64);
    let hashes = |count: usize| vec![format!("\"{hash}\""); count].join(",");
    let turn = |inputs, words: &str| {
        format!(
            "[[turn]]\ninputs = [{}]\noutputs = [{}]\nwords = {words}",
            hashes(inputs),
            hashes(4)
        )
    };
    let number =
        |name: &str, places: &str| format!("[[number]]\nname = \"{name}\"\nplaces = {places}");
    let tensor = |places: &str| {
        format!(
            "[[tensor]]\nname = \"t\"\nform = \"F32[4]\"\nsize = 16\nhash = \"{hash}\"\nplaces = {places}"
        )
    };
    // Refused before the check of tensors, which adds addresses and sizes.
    let beyond = named.replacen("17592186044416", "18446744073709551615", 1);
    let beyond = format!("{beyond}\n{}", tensor("[17592187092992]"));
    let error = Run::parse(&beyond).map(drop).unwrap_err().to_string();
    assert!(
        error.contains("reaches beyond the address space"),
        "{error}"
    );
    // The first launch, with 24 bytes of parameters; memory begins at 2^44.
    let first = 1u64 << 44;
    assert_eq!(with(&turn(2, "[[2, 20, 7]]")), Ok(()));
    assert_eq!(with(&number("host0", "[[2, 4]]")), Ok(()));
    assert_eq!(weights(&tensor(&format!("[{first}]"))), Ok(()));
    for (found, reason) in [
        (with(&turn(1, "[]")), "turn has other inputs or outputs"),
        (
            with(&turn(2, "[[2, 24, 7]]")),
            "has a place that is no parameter",
        ),
        (
            with(&turn(2, "[[2, 2, 7]]")),
            "has a place that is no parameter",
        ),
        (
            with(&turn(2, "[[9999, 0, 7]]")),
            "has a place that is no parameter",
        ),
        (with(&number("host0", "[]")), "number has no places"),
        (with(&number("in0", "[[2, 4]]")), "in0 is there twice"),
        (
            with(&tensor("[]")),
            "weights are named without tensors, or the other way round",
        ),
        (
            weights(&tensor("[4096]")),
            "a tensor uses 16 bytes at 0x1000",
        ),
        (
            weights(&tensor(&format!("[{first}, {}]", first + 8))),
            "lies over another one",
        ),
    ] {
        let said = found.unwrap_err();
        assert!(said.contains(reason), "{reason}: {said}");
    }
}
