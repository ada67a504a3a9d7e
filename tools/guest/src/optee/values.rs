// SPDX-License-Identifier: MIT OR Apache-2.0
//! The secure world's answers equal the host model's.

use std::{
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_task::output_of;
use gpureplay_tensors::{ElementType, Tensor, encode_npy};

use super::{
    rig::{DIGIT, PROBABILITIES, Rig, Share, npy, pack, recording},
    test_key,
};
use crate::{
    build::payload,
    error::{Error, Result},
    files,
    folder::Folder,
};

const SAMPLE: usize = 20;
const CHARACTERS: usize = 10;

fn on_the_host(folder: &Folder, arguments: &[OsString]) -> Result<()> {
    let mut run = Command::new(payload::host_command(folder));
    run.args(["run", "--force"]).args(arguments);
    output_of("gpureplay run", &mut run).map(drop)
}

fn assigned(name: &str, path: &Path) -> OsString {
    let mut assignment = OsString::from(format!("{name}="));
    assignment.push(path);
    assignment
}

fn on_the_command_line(folder: &Folder, name: &str, input: &Path, output: &str) -> Result<Vec<u8>> {
    let temporary = files::temporary()?;
    let file = temporary.path().join("output.npy");
    let words = [
        recording(folder, name).into(),
        "--input".into(),
        input.into(),
        "--output".into(),
        assigned(output, &file),
    ];
    on_the_host(folder, &words)?;
    npy(&file)
}

/// Digits outside of training, with the host model's answers.
struct Digits {
    count: usize,
    answers: Vec<u8>,
}

impl Digits {
    fn new(rig: &Rig<'_>, share: &Share) -> Result<Digits> {
        let folder = rig.folder;
        let all = npy(&folder.repository.join("tools/digits/held-out/images.npy"))?;
        let step = match rig.full {
            true => 1,
            false => all.len() / DIGIT / SAMPLE,
        };
        let chosen: Vec<&[u8]> = all.chunks_exact(DIGIT).step_by(step).collect();
        let images = chosen.concat();
        let shape = [chosen.len() as u64, 8, 8];
        let tensor = Tensor::new(ElementType::F32, &shape, images.clone())
            .map_err(|error| Error::Usage(error.to_string()))?;
        let inputs = share.path("inputs");
        files::create_dir(&inputs)?;
        files::write(inputs.join("input.npy"), encode_npy(&tensor))?;
        let answers = share.path("expected.npy");
        let words = [
            recording(folder, "digits-g52").into(),
            "--repeat".into(),
            chosen.len().to_string().into(),
            "--inputs".into(),
            inputs.into(),
            "--output".into(),
            assigned("probabilities", &answers),
        ];
        on_the_host(folder, &words)?;
        share.write("images.bin", &images)?;
        pack_recording(rig, share, "digits")?;
        Ok(Digits {
            count: chosen.len(),
            answers: npy(&answers)?,
        })
    }
}

pub(super) fn pack_recording(rig: &Rig<'_>, share: &Share, name: &str) -> Result<PathBuf> {
    let folder = recording(rig.folder, &format!("{name}-g52"));
    let file = files::read(folder.join("recording.gpr"))?;
    share.write(&format!("{name}.pack"), &pack(&file, &test_key()?, 1)?)?;
    Ok(folder)
}

struct Case {
    name: String,
    input: PathBuf,
    answer: Vec<u8>,
}

fn lenet_cases(rig: &Rig<'_>, lenet: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in files::entries(lenet.join("expected"))? {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let input = lenet
            .join("inputs")
            .join(name.replace("probabilities", "input"));
        let answer = on_the_command_line(rig.folder, "lenet-g52", &input, "probabilities")?;
        cases.push(Case {
            name,
            input,
            answer,
        });
    }
    Ok(cases)
}

pub(super) fn answers(rig: &Rig<'_>) -> Result<String> {
    payload::build_host_command(rig.folder)?;
    let share = Share::new()?;
    let digits = Digits::new(rig, &share)?;
    let mut script = format!(
        "set -e; cd /share\n\
         gpureplay_tee digits.pack -n {} -i input:{DIGIT}=images.bin -o probabilities:{PROBABILITIES}=answers.bin\n",
        digits.count
    );
    let lenet = pack_recording(rig, &share, "lenet")?;
    let cases = lenet_cases(rig, &lenet)?;
    for case in &cases {
        let input = npy(&case.input)?;
        share.write(&format!("{}.bin", case.name), &input)?;
        let _ = writeln!(
            script,
            "gpureplay_tee lenet.pack -i input:{}={name}.bin -o probabilities:{}={name}.out",
            input.len(),
            case.answer.len(),
            name = case.name
        );
    }
    rig.clean(&share, &script)?;
    if share.read("answers.bin")? != digits.answers {
        return Err("digits: other bytes than on the command line".into());
    }
    for case in &cases {
        if share.read(&format!("{}.out", case.name))? != case.answer {
            return Err(
                format!("lenet, {}: other bytes than on the command line", case.name).into(),
            );
        }
    }
    Ok(format!(
        "{} digits, {} lenet cases",
        digits.count,
        cases.len()
    ))
}

pub(super) fn many_runs(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let runs = if rig.full { 1000 } else { 50 };
    let digits = pack_recording(rig, &share, "digits")?;
    let three = npy(&digits.join("inputs/3.npy"))?;
    share.write("three.bin", &three.repeat(runs))?;
    let script = format!(
        "set -e; cd /share\n\
         gpureplay_tee digits.pack -n {runs} -i input:{DIGIT}=three.bin -o probabilities:{PROBABILITIES}=three.out\n"
    );
    rig.clean(&share, &script)?;
    let three = npy(&digits.join("expected/3.npy"))?;
    if share.read("three.out")? != three.repeat(runs) {
        return Err("an answer drifted".into());
    }
    Ok(format!("{runs} runs"))
}

pub(super) fn by_the_command(rig: &Rig<'_>) -> Result<String> {
    payload::build_host_command(rig.folder)?;
    payload::static_command(rig.folder)?;
    let share = Share::new()?;
    let digits = Digits::new(rig, &share)?;
    let lenet = pack_recording(rig, &share, "lenet")?;
    let cases = lenet_cases(rig, &lenet)?;
    let song = song(rig, &share)?;
    let mut script = format!(
        "cd /share; run() {{ gpureplay run \"$@\" --device optee; }}\n\
         run digits.pack --repeat {} --inputs inputs --output probabilities=answers.npy --json > digits.json || exit 1\n\
         run generate.pack --input forced.npy --repeat {CHARACTERS} --state-in state.safetensors --output song.npy || exit 1\n\
         gpureplay doctor | grep OP-TEE > doctor; echo $? >> doctor\n",
        digits.count
    );
    for case in &cases {
        share.write(&format!("in-{}", case.name), &files::read(&case.input)?)?;
        let _ = writeln!(
            script,
            "run lenet.pack --input in-{name} --output out-{name} --json > {name}.json || exit 1",
            name = case.name
        );
    }
    script += &super::refusals::by_the_command(rig, &share)?;
    rig.clean(&share, &script)?;
    let text = |name: &str| share.text(name);
    if npy(&share.path("answers.npy"))? != digits.answers {
        return Err("digits: other bytes than on the model".into());
    }
    if npy(&share.path("song.npy"))? != song {
        return Err("a recording with states: other bytes than on the model".into());
    }
    for case in &cases {
        if npy(&share.path(&format!("out-{}", case.name)))? != case.answer {
            return Err(format!("lenet, {}: other bytes than on the model", case.name).into());
        }
    }
    let device = "\"device\": \"Mali-G52 r0p0, OP-TEE\"";
    let said = [text("digits.json")?, text("doctor")?];
    if !said[0].contains(device) || !said[1].starts_with("ok   OP-TEE") {
        return Err(format!("{said:?}").into());
    }
    super::refusals::said_by_the_command(&share)?;
    Ok(format!(
        "{} digits, {} lenet cases, {CHARACTERS} characters from one state to the next",
        digits.count,
        cases.len()
    ))
}

fn song(rig: &Rig<'_>, share: &Share) -> Result<Vec<u8>> {
    let generate = pack_recording(rig, share, "generate")?;
    let forced = generate.join("inputs/forced2.npy");
    share.write("forced.npy", &files::read(&forced)?)?;
    let state = share.path("state.safetensors");
    let begin: [OsString; 7] = [
        generate.clone().into(),
        "--input".into(),
        forced.clone().into(),
        "--repeat".into(),
        "3".into(),
        "--state-out".into(),
        state.clone().into(),
    ];
    on_the_host(rig.folder, &begin)?;
    let expected = share.path("expected-song.npy");
    let words: [OsString; 9] = [
        generate.into(),
        "--input".into(),
        forced.into(),
        "--repeat".into(),
        CHARACTERS.to_string().into(),
        "--state-in".into(),
        state.into(),
        "--output".into(),
        expected.clone().into(),
    ];
    on_the_host(rig.folder, &words)?;
    npy(&expected)
}
