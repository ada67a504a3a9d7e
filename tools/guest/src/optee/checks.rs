// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of replays in the secure world: values, refusals, the counter, memory that the normal world cannot read.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::Path,
    process::{Command, ExitCode},
    time::Instant,
};

use gpureplay_io::{ElementType, Tensor, encode_npy, read_npy};
use gpureplay_sign::{SecretKey, sign};

use super::{
    build, clients,
    rig::{Checked, DIGIT, PROBABILITIES, Rig, Share, failed, npy, pack, packed, read, recording},
    test_key,
};
use crate::{
    build::payload,
    error::{Error, Result},
    folder::Folder,
    run::session::End,
};

type Test = fn(&Rig<'_>) -> Result<Checked>;

const TESTS: [(&str, Test); 9] = [
    ("held-out digits and lenet answer bit for bit", answers),
    ("many runs do not drift", many_runs),
    ("two clients at once both end", clients::two),
    ("a run is cancelled", clients::cancelled),
    (
        "a pack that changes while it is taken is refused or runs as it was signed",
        clients::changed_meanwhile,
    ),
    (
        "what is unsigned, foreign, old or changed is refused",
        refusals,
    ),
    (
        "the normal world reads no secure memory and knows no GPU",
        isolation,
    ),
    ("a client that means harm gets error codes", hostile),
    ("xtest passes beside it", xtest),
];

/// Runs the tests whose name contains `filter`; a line each, and a sum.
pub(crate) fn all(folder: &Folder, filter: Option<&str>, full: bool) -> Result<ExitCode> {
    let rig = Rig {
        folder,
        built: build::build(folder, &test_key()?.public())?,
        full,
    };
    let (mut passed, mut failed) = (0, 0);
    for (name, test) in TESTS {
        if filter.is_some_and(|part| !name.contains(part)) {
            continue;
        }
        let start = Instant::now();
        let result = test(&rig).unwrap_or_else(|error| Err(error.to_string()));
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(text) => {
                passed += 1;
                println!("ok   {name} ({seconds:.0} s): {text}");
            }
            Err(reason) => {
                failed += 1;
                println!("FAIL {name} ({seconds:.0} s): {reason}");
            }
        }
    }
    println!("{passed} passed, {failed} failed, 0 skipped");
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Values, and refusals over two boots: what `guest test` runs.
pub(crate) fn short(folder: &Folder) -> Result<std::result::Result<(), String>> {
    let rig = Rig {
        folder,
        built: build::build(folder, &test_key()?.public())?,
        full: false,
    };
    for test in [answers, refusals] {
        if let Err(reason) = test(&rig)? {
            return Ok(Err(reason));
        }
    }
    Ok(Ok(()))
}

/// What the command answers on the host's model, as bytes of the output.
fn on_the_command_line(folder: &Folder, name: &str, input: &Path, output: &str) -> Result<Vec<u8>> {
    let temporary = tempfile::tempdir().map_err(Error::io("create", std::env::temp_dir()))?;
    let file = temporary.path().join("output.npy");
    let mut assignment = std::ffi::OsString::from(format!("{output}="));
    assignment.push(&file);
    let program = payload::host_command(folder);
    let ended = Command::new(&program)
        .arg("run")
        .arg(recording(folder, name))
        .arg("--input")
        .arg(input)
        .arg("--output")
        .arg(assignment)
        .output()
        .map_err(|source| Error::Start {
            program: program.display().to_string(),
            source,
        })?;
    if !ended.status.success() {
        return Err(Error::Failed {
            what: "gpureplay run".into(),
            status: ended.status,
            log: String::from_utf8_lossy(&ended.stderr).into_owned(),
        });
    }
    let tensor =
        read_npy(&file).map_err(|error| Error::Usage(format!("{}: {error}", file.display())))?;
    Ok(tensor.bytes().to_vec())
}

/// Digits, all or some of those that training did not see, and lenet's cases: the bytes of the command on the host's model.
fn answers(rig: &Rig<'_>) -> Result<Checked> {
    let folder = rig.folder;
    payload::build_host_command(folder)?;
    let share = Share::new()?;
    let digits = recording(folder, "digits-g52");
    let images = npy(&folder.repository.join("tools/digits/held-out/images.npy"))?;
    let all = images.len() / DIGIT;
    let step = if rig.full { 1 } else { all / 20 };
    let chosen: Vec<&[u8]> = images.chunks_exact(DIGIT).step_by(step).collect();
    let mut expected = Vec::new();
    for image in &chosen {
        let path = share.path("one.npy");
        let image = Tensor::new(ElementType::F32, &[8, 8], image.to_vec())
            .map_err(|error| Error::Usage(error.to_string()))?;
        fs::write(&path, encode_npy(&image)).map_err(Error::io("write", &path))?;
        expected.extend(on_the_command_line(
            folder,
            "digits-g52",
            &path,
            "probabilities",
        )?);
    }
    let key = test_key()?;
    let file = read(&digits.join("recording.gpr"))?;
    share.write("digits.pack", &pack(&file, &key, 1)?)?;
    share.write("images.bin", &chosen.concat())?;
    let mut script = format!(
        "set -e; cd /share\n\
         gpureplay_tee digits.pack -n {} -i input:{DIGIT}=images.bin -o probabilities:{PROBABILITIES}=answers.bin\n",
        chosen.len()
    );
    let lenet = recording(folder, "lenet-g52");
    share.write(
        "lenet.pack",
        &pack(&read(&lenet.join("recording.gpr"))?, &key, 1)?,
    )?;
    let mut cases = Vec::new();
    for entry in fs::read_dir(lenet.join("expected")).map_err(Error::io("read", &lenet))? {
        let entry = entry.map_err(Error::io("read", &lenet))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let input = lenet
            .join("inputs")
            .join(name.replace("probabilities", "input"));
        let output = on_the_command_line(folder, "lenet-g52", &input, "probabilities")?;
        let input = npy(&input)?;
        share.write(&format!("{name}.bin"), &input)?;
        // Writing to a String does not fail.
        let _ = writeln!(
            script,
            "gpureplay_tee lenet.pack -i input:{}={name}.bin -o probabilities:{}={name}.out",
            input.len(),
            output.len()
        );
        cases.push((name, output));
    }
    if let Err(reason) = rig.clean(&share, &script)? {
        return Ok(Err(reason));
    }
    if share.read("answers.bin")? != expected {
        return Ok(Err("digits: other bytes than on the command line".into()));
    }
    for (name, output) in &cases {
        if share.read(&format!("{name}.out"))? != *output {
            return Ok(Err(format!(
                "lenet, {name}: other bytes than on the command line"
            )));
        }
    }
    Ok(Ok(format!(
        "{} digits, {} lenet cases",
        chosen.len(),
        cases.len()
    )))
}

/// Many runs in one session give one answer.
fn many_runs(rig: &Rig<'_>) -> Result<Checked> {
    let share = Share::new()?;
    let runs = if rig.full { 1000 } else { 50 };
    let digits = recording(rig.folder, "digits-g52");
    share.write(
        "digits.pack",
        &pack(&read(&digits.join("recording.gpr"))?, &test_key()?, 1)?,
    )?;
    let three = npy(&digits.join("inputs/3.npy"))?;
    share.write("three.bin", &three.repeat(runs))?;
    let script = format!(
        "set -e; cd /share\n\
         gpureplay_tee digits.pack -n {runs} -i input:{DIGIT}=three.bin -o probabilities:{PROBABILITIES}=three.out\n"
    );
    if let Err(reason) = rig.clean(&share, &script)? {
        return Ok(Err(reason));
    }
    let three = npy(&digits.join("expected/3.npy"))?;
    if share.read("three.out")? != three.repeat(runs) {
        return Ok(Err("an answer drifted".into()));
    }
    Ok(Ok(format!("{runs} runs")))
}

/// Packs that must not run, each with the message that names why; the counter is that of the last boot.
fn refusals(rig: &Rig<'_>) -> Result<Checked> {
    let share = Share::new()?;
    let digits = recording(rig.folder, "digits-g52");
    let good = read(&digits.join("recording.gpr"))?;
    let (key, other) = (
        test_key()?,
        SecretKey::from_seed([8; 32]).map_err(|error| Error::Usage(format!("{error:?}")))?,
    );
    let signature = sign(&key, 5, &good, &BTreeMap::new())
        .map_err(|error| Error::Usage(format!("cannot sign: {error:?}")))?;
    let mut changed = good.clone();
    let middle = changed.len() / 2;
    if let Some(byte) = changed.get_mut(middle) {
        *byte ^= 1;
    }
    // Signed by the owner of the key, and yet damaged: the parser names the section (status 1).
    let damaged = pack(&changed, &key, 5)?;
    share.write("unsigned", &packed(&good, None)?)?;
    share.write("foreign", &pack(&good, &other, 5)?)?;
    share.write("forged", &packed(&changed, Some(signature))?)?;
    share.write("damaged", &damaged)?;
    share.write("good", &pack(&good, &key, 5)?)?;
    share.write("old", &pack(&good, &key, 4)?)?;
    share.write("three.bin", &npy(&digits.join("inputs/3.npy"))?)?;
    let boot = "cd /share\nfor name in $(< order); do\n\
        gpureplay_tee $name -i input:256=three.bin -o probabilities:40=$name.out > $name.said 2>&1\n\
        echo $? >> $name.said\ndone\ntrue\n";
    share.write("order", b"unsigned foreign forged damaged good old")?;
    if let Err(reason) = rig.clean(&share, boot)? {
        return Ok(Err(reason));
    }
    let says = [
        ("unsigned", "the pack has no signature"),
        ("foreign", "signed with another key"),
        ("forged", "signature does not fit"),
        ("damaged", "breaks a rule"),
        ("good", "1 runs\n0\n"),
        ("old", "older than one that has run"),
    ];
    if let Err(reason) = said(&share, &says)? {
        return Ok(Err(reason));
    }
    if share.read("good.out")? != npy(&digits.join("expected/3.npy"))? {
        return Ok(Err("good: a wrong answer".into()));
    }
    share.write("order", b"old good")?;
    if let Err(reason) = rig.clean(&share, boot)? {
        return Ok(Err(reason));
    }
    let after = [
        ("old", "older than one that has run"),
        ("good", "1 runs\n0\n"),
    ];
    Ok(said(&share, &after)?.map(|()| "4 refusals, and the old pack in two boots".into()))
}

fn said(share: &Share, expected: &[(&str, &str)]) -> Result<std::result::Result<(), String>> {
    for (name, message) in expected {
        let text = share.read(&format!("{name}.said"))?;
        let text = String::from_utf8_lossy(&text);
        if !text.contains(message) {
            return Ok(Err(format!("{name}: expected `{message}`, got {text}")));
        }
    }
    Ok(Ok(()))
}

/// A read of OP-TEE's memory ends in a bus error; the device tree that the kernel got has no GPU and the kernel no driver for it.
fn isolation(rig: &Rig<'_>) -> Result<Checked> {
    let share = Share::new()?;
    let script = "busybox devmem 0x0e100000 32; echo read $?\n\
        find /sys/firmware/devicetree/base -iname '*gpu*' -o -iname '*mali*' | sed 's/^/node /'\n\
        grep -c . /sys/firmware/devicetree/base/firmware/optee/compatible > /dev/null && echo optee\n\
        ls /dev/dri 2> /dev/null | sed 's/^/device /'\n\
        true";
    let outcome = rig.script(&share, script)?;
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let refused = output.contains("read 135");
    if outcome.end != End::Exit(0)
        || !refused
        || output.contains("node ")
        || output.contains("device ")
    {
        return Ok(Err(format!("{output}; {}", failed(&outcome))));
    }
    if !output.contains("optee") {
        return Ok(Err(
            "the device tree names no OP-TEE: this was not the secure machine".into(),
        ));
    }
    Ok(Ok("bus error at 0x0e100000".into()))
}

/// Calls of all kinds for a while; then digits still answers right.
fn hostile(rig: &Rig<'_>) -> Result<Checked> {
    let share = Share::new()?;
    let seconds = if rig.full { 600 } else { 20 };
    let digits = recording(rig.folder, "digits-g52");
    share.write(
        "digits.pack",
        &pack(&read(&digits.join("recording.gpr"))?, &test_key()?, 1)?,
    )?;
    share.write("three.bin", &npy(&digits.join("inputs/3.npy"))?)?;
    let script = format!(
        "set -e; cd /share\ngpureplay_tee_hostile digits.pack {seconds} 1\n\
         gpureplay_tee digits.pack -i input:{DIGIT}=three.bin -o probabilities:{PROBABILITIES}=three.out > /dev/null\n"
    );
    let text = match rig.clean(&share, &script)? {
        Ok(text) => text,
        Err(reason) => return Ok(Err(reason)),
    };
    if share.read("three.out")? != npy(&digits.join("expected/3.npy"))? {
        return Ok(Err("a wrong answer afterwards".into()));
    }
    Ok(Ok(text.trim().to_owned()))
}

/// OP-TEE's own tests.
fn xtest(rig: &Rig<'_>) -> Result<Checked> {
    let share = Share::new()?;
    let which = if rig.full {
        "-t regression -l 0"
    } else {
        "-t regression 1001 1004 1005 1006"
    };
    let outcome = rig.script(
        &share,
        &format!("xtest {which} > /share/xtest.log 2>&1; tail -n 6 /share/xtest.log"),
    )?;
    let output = String::from_utf8_lossy(&outcome.stdout).into_owned();
    let passed = output
        .lines()
        .any(|line| line.ends_with("test cases of which 0 failed"));
    if outcome.end != End::Exit(0) || !passed {
        return Ok(Err(format!("{output}; {}", failed(&outcome))));
    }
    let line = output
        .lines()
        .find(|line| line.contains("subtests of which"));
    Ok(Ok(line.unwrap_or_default().to_owned()))
}
