// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the bare-metal image: answers and errors.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use gpureplay_format::checksum::{Checksum, checksum};
use gpureplay_sign::{RECORDING, SIGNATURE, SecretKey, sign};

use crate::{
    error::{Error, Result},
    files,
    firmware::{
        Gpu, Machine,
        bare::{self, Linked},
        boot,
    },
    folder::Folder,
};

/// Bytes, as in `firmware.ld`.
const STACK: u64 = 32 << 10;

fn digits(folder: &Folder) -> PathBuf {
    folder.repository.join("recordings/digits-g52")
}

pub(crate) fn answers(folder: &Folder) -> Result<()> {
    for (gpu, linked) in [("g52", true), ("g52", false), ("g57", true)] {
        let recording = folder.repository.join(format!("recordings/digits-{gpu}"));
        let file = recording.join("recording.gpr");
        let inputs = [recording.join("inputs/3.npy")];
        let stack = files::read(recording.join("expected/3.npy"))?;
        let (bits, expected) = (bits(&stack), index_of_largest(&stack));
        let parts = Linked {
            recording: linked.then_some(&file),
            inputs: &inputs,
            ..Linked::default()
        };
        let image = bare::firmware(folder, &parts, &[])?;
        let has = Machine {
            loaded: (!linked).then_some(&file),
            ..Machine::of(Gpu::Model(gpu))
        };
        let said = boot(folder, &image, &has)?;
        let answer = format!(" bits{bits}\nanswer {expected}\n");
        if !said.contains(&answer) || !said.contains("\nDONE\n") {
            return Err(format!(
                "{gpu}, linked {linked}: expected{answer}, the image said: {said}"
            )
            .into());
        }
        let bound = crate::size::stack_bound(folder, &image)?;
        match reported(&said, "stack ") {
            Some(bytes) if bytes <= bound && bound <= STACK / 2 => {}
            found => {
                return Err(format!("stack {found:?}, bound {bound}, room {STACK}").into());
            }
        }
        if reported(&said, "start-up ").is_none() {
            return Err(format!("no start-up time: {said}").into());
        }
    }
    Ok(())
}

pub(crate) fn submits_once(folder: &Folder, recording: &Path) -> Result<()> {
    let original = digits(folder);
    let expected = files::read(original.join("expected/3.npy"))?;
    let parts = Linked {
        recording: Some(&recording.join("recording.gpr")),
        inputs: &[original.join("inputs/3.npy")],
        ..Linked::default()
    };
    let image = bare::firmware(folder, &parts, &[])?;
    let has = Machine::of(Gpu::Model("g52"));
    let said = boot(folder, &image, &has)?;
    let bits = bits(&expected);
    let counts = (reported(&said, "chains "), reported(&said, "interrupts "));
    match counts {
        (Some(1), Some(interrupts @ 2..=4))
            if said.contains(&format!(" bits{bits}\n")) && said.contains("\nDONE\n") =>
        {
            println!("     bare metal: 1 chain, {interrupts} interrupts, set-up included");
            Ok(())
        }
        _ => Err(format!("expected 1 chain and{bits}, the image said: {said}").into()),
    }
}

struct Writer {
    recording: &'static str,
    inputs: &'static [&'static str],
    text: &'static str,
}

const GENERATE: Writer = Writer {
    recording: "recordings/generate-g52",
    inputs: &["recordings/generate-g52/inputs/forced2.npy"],
    text: "tools/generation/written.txt",
};
const DECODE: Writer = Writer {
    recording: "recordings/decode-g52",
    inputs: &[
        "tools/decoding/steps/forced.npy",
        "tools/decoding/steps/mask.npy",
        "tools/decoding/steps/place.npy",
    ],
    text: "tools/decoding/written.txt",
};

fn go_on(folder: &Folder, writer: &Writer, runs: u32, faults: u32) -> Result<String> {
    let at = |path: &&str| folder.repository.join(path);
    let recording = folder.repository.join(writer.recording);
    let inputs: Vec<PathBuf> = writer.inputs.iter().map(at).collect();
    let parts = Linked {
        recording: Some(&recording.join("recording.gpr")),
        inputs: &inputs,
        trust: None,
        runs,
        faults,
    };
    let image = bare::firmware(folder, &parts, &[])?;
    let has = Machine {
        long: true,
        ..Machine::of(Gpu::Model("g52"))
    };
    Ok(boot(folder, &image, &has)?.replace('\r', ""))
}

pub(crate) fn writes(folder: &Folder) -> Result<()> {
    for writer in [GENERATE, DECODE] {
        let written = files::read(folder.repository.join(writer.text))?;
        let runs = u32::try_from(written.len()).unwrap_or(u32::MAX);
        let said = go_on(folder, &writer, runs, 0)?;
        let expected = format!("text {}\n", String::from_utf8_lossy(&written));
        if !said.contains(&expected) || !said.contains("\nDONE\n") {
            return Err(format!("{}: the image said: {said}", writer.recording).into());
        }
    }
    Ok(())
}

pub(crate) fn recovers(folder: &Folder, stride: u32) -> Result<()> {
    let said = go_on(folder, &GENERATE, 2, stride)?;
    let counts = (
        reported(&said, "faults "),
        reported(&said, "runs that failed "),
    );
    match counts {
        (Some(tried), Some(failed))
            if failed * 2 > tried && said.contains("states equal\nDONE\n") =>
        {
            println!("     {tried} faults, {failed} runs failed, the states are equal");
            Ok(())
        }
        _ => Err(format!("the image said: {said}").into()),
    }
}

fn reported(said: &str, word: &str) -> Option<u64> {
    let (_, rest) = said.split_once(word)?;
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

fn index_of_largest(npy: &[u8]) -> usize {
    let values: Vec<f32> = last_ten(npy).collect();
    (0..values.len())
        .max_by(|&a, &b| values[a].total_cmp(&values[b]))
        .unwrap_or(0)
}

fn last_ten(npy: &[u8]) -> impl Iterator<Item = f32> {
    let start = npy.len().saturating_sub(40);
    let values = npy.get(start..).unwrap_or_default().as_chunks::<4>().0;
    values.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

fn bits(npy: &[u8]) -> String {
    let word = |value: f32| format!(" {:#x}", value.to_bits());
    last_ten(npy).map(word).collect()
}

struct Case {
    name: &'static str,
    recording: Vec<u8>,
    gpu: Gpu<'static>,
    message: &'static str,
}

pub(crate) fn refuses(folder: &Folder) -> Result<()> {
    let good = files::read(digits(folder).join("recording.gpr"))?;
    let mut damaged = good.clone();
    let middle = damaged.len() / 2;
    if let Some(byte) = damaged.get_mut(middle) {
        *byte ^= 1;
    }
    let case = |name, recording: &[u8], gpu, message| Case {
        name,
        recording: recording.to_vec(),
        gpu,
        message,
    };
    let g52 = Gpu::Model("g52");
    let without_inputs = [
        case("damaged", &damaged, g52, "REFUSED damaged section"),
        case("empty", &[0; 64], g52, "REFUSED damaged section"),
        case(
            "another GPU",
            &good,
            Gpu::Model("g31"),
            "FAILED another GPU",
        ),
        case("no input", &good, g52, "FAILED"),
        case("no GPU", &good, Gpu::None, "FAILED no GPU on the PCI bus"),
        case("dead GPU", &good, Gpu::Dead, "FAILED GPU does not reset"),
    ];
    let image = bare::firmware(folder, &Linked::default(), &[])?;
    check(folder, &image, &without_inputs, None)?;
    let inputs = [digits(folder).join("inputs/3.npy")];
    let parts = Linked {
        inputs: &inputs,
        ..Linked::default()
    };
    let image = bare::firmware(folder, &parts, &[])?;
    let fault = [
        case("job fault", &read_only(&good), g52, "GPU reset"),
        case("after a fault", &good, g52, "DONE"),
    ];
    check(folder, &image, &fault, None)
}

fn check(folder: &Folder, image: &Path, cases: &[Case], flash: Option<&Path>) -> Result<()> {
    let dir = files::temporary()?;
    let file = dir.path().join("recording");
    for case in cases {
        files::write(&file, &case.recording)?;
        let has = Machine {
            loaded: Some(&file),
            flash,
            ..Machine::of(case.gpu)
        };
        let said = boot(folder, image, &has)?;
        let done = case.message == "DONE";
        if !said.contains(case.message) || said.contains("DONE") != done || said.contains("HANGS") {
            let (name, message) = (case.name, case.message);
            return Err(format!("{name}: expected `{message}`, got: {said}").into());
        }
    }
    Ok(())
}

/// Read-only buffers: well-formed and allowed, but the first job faults.
fn read_only(recording: &[u8]) -> Vec<u8> {
    const HEADER: usize = 64;
    const TABLE: usize = 9 * 32;
    const REGION: usize = 16;
    let mut bytes = recording.to_vec();
    let entry = HEADER + 32;
    let number = |bytes: &[u8], at: usize| {
        let field = bytes[at..at + 8].try_into().unwrap_or_default();
        u64::from_le_bytes(field) as usize
    };
    let (start, length) = (number(&bytes, entry + 8), number(&bytes, entry + 16));
    for region in bytes[start..start + length].chunks_exact_mut(REGION) {
        // Kind 0: data. Access 3: reading and writing, 1: reading.
        if region[13] == 0 && region[12] == 3 {
            region[12] = 1;
        }
    }
    let sum = checksum(&bytes[start..start + length.next_multiple_of(8)]);
    bytes[entry + 24..entry + 32].copy_from_slice(&sum.to_le_bytes());
    bytes[32..40].fill(0);
    let sum = Checksum::new().update(&bytes[..HEADER + TABLE]).value();
    bytes[32..40].copy_from_slice(&sum.to_le_bytes());
    bytes
}

pub(crate) fn embedding(folder: &Folder) -> Result<()> {
    let recording = digits(folder);
    let file = recording.join("recording.gpr");
    let expected = index_of_largest(&files::read(recording.join("expected/3.npy"))?);
    for language in ["c", "rs"] {
        let image = bare::embedding(folder, language, &recording.join("inputs/3.npy"))?;
        let has = Machine {
            loaded: Some(&file),
            ..Machine::of(Gpu::Model("g52"))
        };
        let said = boot(folder, &image, &has)?;
        if said != format!("answer {expected}\nDONE\n") {
            return Err(format!("{language}: expected answer {expected}: {said}").into());
        }
    }
    Ok(())
}

fn flash(dir: &Path) -> Result<PathBuf> {
    const BANK: u64 = 64 << 20;
    const BLOCK: usize = 256 << 10;
    let path = dir.join("flash");
    files::write(&path, vec![0xff; BLOCK])?;
    let file = fs::OpenOptions::new().write(true).open(&path);
    file.and_then(|file| file.set_len(BANK))
        .map_err(Error::io("extend", &path))?;
    Ok(path)
}

pub(crate) fn signature(folder: &Folder) -> Result<()> {
    let good = files::read(digits(folder).join("recording.gpr"))?;
    let pack = |seed: u8, counter: u64| -> Result<Vec<u8>> {
        let fail = |error| Error::Usage(format!("cannot sign: {error:?}"));
        let key = SecretKey::from_seed([seed; 32]).map_err(fail)?;
        let signature = sign(&key, counter, &good, &BTreeMap::new()).map_err(fail)?;
        let files = BTreeMap::from([
            (RECORDING.to_owned(), good.clone()),
            (SIGNATURE.to_owned(), signature),
        ]);
        gpureplay_sign::pack(&files).map_err(fail)
    };
    let key = SecretKey::from_seed([7; 32]).map_err(|error| Error::Usage(format!("{error:?}")))?;
    let key: String = key
        .public()
        .bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let inputs = [digits(folder).join("inputs/3.npy")];
    let parts = Linked {
        recording: None,
        inputs: &inputs,
        trust: Some((&key, 5)),
        runs: 1,
        faults: 0,
    };
    let image = bare::firmware(folder, &parts, &["signature"])?;
    let mut forged = pack(7, 5)?;
    let middle = forged.len() / 2;
    forged[middle] ^= 1;
    let case = |name, recording, message| Case {
        name,
        recording,
        gpu: Gpu::Model("g52"),
        message,
    };
    let cases = [
        case("unsigned", good.clone(), "REFUSED not a signed pack"),
        case("another key", pack(8, 5)?, "REFUSED signature: another key"),
        case("rolled back", pack(7, 4)?, "REFUSED signature: older"),
        case("damaged", forged, "REFUSED not a signed pack"),
        case("signed", pack(7, 5)?, "DONE"),
        case("newer", pack(7, 6)?, "DONE"),
        case(
            "older than the last",
            pack(7, 5)?,
            "REFUSED signature: older",
        ),
        case("the last again", pack(7, 6)?, "DONE"),
    ];
    let dir = files::temporary()?;
    let flash = flash(dir.path())?;
    check(folder, &image, &cases, Some(&flash))?;
    let nowhere = case("no flash", pack(7, 6)?, "REFUSED no place for the counter");
    check(folder, &image, &[nowhere], None)
}
