// SPDX-License-Identifier: MIT OR Apache-2.0
//! Clients against each other.

use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor, TensorKind};

use super::{
    rig::{DIGIT, PROBABILITIES, Rig, Share, UNTIL_IT_RUNS, npy, pack, recording},
    test_key,
};
use crate::{
    build::payload,
    error::{Error, Result},
    files,
};

const GPU: u32 = 0x7212_0000;
pub(super) const JOB: u64 = 0x200_0000;
const DATA: u64 = 0x300_0000;
/// Job starts, and microseconds for each; rules allow an hour in all.
pub(super) struct Length {
    chains: u32,
    timeout: u32,
}

/// Three seconds, or a minute on a busy machine.
pub(super) const LONG: Length = Length {
    chains: 12_000,
    timeout: 300_000,
};

/// Half a second. A busy machine may stop for a second.
pub(super) const SHORT: Length = Length {
    chains: 1_500,
    timeout: 2_000_000,
};

pub(super) const CANCELLED: &str =
    "the run was cancelled; the secure world has reset the GPU and cleared its memory";
/// Milliseconds before cancelling.
const PATIENCE: u32 = 1500;
/// Longest wait of a cancelling client with start, in seconds.
const LONGEST: u32 = 40;
/// On a busy machine a run may end between look and signal.
pub(super) const RUNS: usize = 100;

/// Runs `short.pack` with Ctrl-C while the GPU works, again if it ended before; sets `said`, `code`, and `waited`
/// in hundredths of a second.
pub(super) fn interrupt(said: &str) -> String {
    format!(
        "now() {{ read -r up _ < /proc/uptime; echo ${{up/./}}; }}\n\
         for try in 1 2 3 4 5; do\n\
         gpureplay run short.pack --device optee --input x.bin --repeat {RUNS} > {said} 2>&1 & client=$!\n\
         {UNTIL_IT_RUNS}\
         kill -INT $client; begun=$(now); wait $client; code=$?; waited=$(($(now) - begun))\n\
         grep -q '^→ stopped after' {said} || break; done\n"
    )
}

fn digits(rig: &Rig<'_>, share: &Share, names: &[&str]) -> Result<Vec<Vec<u8>>> {
    let folder = recording(rig.folder, "digits-g52");
    let file = files::read(folder.join("recording.gpr"))?;
    share.write("digits.pack", &pack(&file, &test_key()?, 1)?)?;
    let answer = |name: &&str| {
        share.write(
            &format!("{name}.bin"),
            &npy(&folder.join(format!("inputs/{name}.npy")))?,
        )?;
        npy(&folder.join(format!("expected/{name}.npy")))
    };
    names.iter().map(answer).collect()
}

fn client(input: &str, output: &str) -> String {
    format!(
        "gpureplay_tee digits.pack -i input:{DIGIT}={input}.bin -o probabilities:{PROBABILITIES}={output}.out"
    )
}

pub(super) fn two(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let names = ["3", "7"];
    let expected = digits(rig, &share, &names)?;
    let rounds = if rig.full { 50 } else { 5 };
    let script = format!(
        "cd /share\nfor round in $(seq {rounds}); do\n\
         {} > $round-3.said 2>&1 & first=$!\n\
         {} > $round-7.said 2>&1 & second=$!\n\
         wait $first && wait $second || exit 1\ndone\n",
        client("3", "$round-3"),
        client("7", "$round-7"),
    );
    rig.clean(&share, &script)?;
    for round in 1..=rounds {
        for (name, expected) in names.iter().zip(&expected) {
            if share.read(&format!("{round}-{name}.out"))? != *expected {
                return Err(format!("round {round}, digit {name}: a wrong answer").into());
            }
        }
    }
    Ok(format!("{rounds} times two"))
}

pub(super) fn long(length: &Length) -> Result<Vec<u8>> {
    of_jobs(GPU, 1, |builder| {
        for _ in 0..length.chains {
            builder.rearm(JOB);
            builder.submit(1, JOB, length.timeout);
        }
    })
}

pub(super) fn of_jobs(gpu: u32, job_type: u8, run: impl FnOnce(&mut Builder)) -> Result<Vec<u8>> {
    let mut builder = Builder::new(gpu);
    builder.identity(0, 0xffff_0000, gpu);
    builder.region(JOB, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    let tensor = |name, kind, va| Tensor::dense(name, kind, ElementType::U8, &[8], va);
    let input = builder.tensor(tensor("x", TensorKind::Input, DATA));
    let output = builder.tensor(tensor("y", TensorKind::Output, DATA + 8));
    let mut job = [0; 32];
    // Bit 0: the job has 64-bit addresses.
    job[16] = job_type << 1 | 1;
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(input);
    builder.upload(JOB, &job);
    run(&mut builder);
    builder.bind_output(output);
    builder
        .finish()
        .map_err(|error| Error::Usage(format!("{error:?}")))
}

pub(super) fn cancelled(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let expected = digits(rig, &share, &["3"])?;
    share.write("long.pack", &pack(&long(&LONG)?, &test_key()?, 1)?)?;
    share.write("x.bin", b"8 bytes.")?;
    let script = format!(
        "cd /share; {0} > /dev/null; gpureplay_tee_memory > before\n\
         for try in 1 2 3 4 5; do begun=$(date +%s)\n\
         gpureplay_tee long.pack -c {PATIENCE} -i x:8=x.bin -o y:8=y.out > said 2>&1 & client=$!\n\
         {UNTIL_IT_RUNS}\
         wait $client; echo $? >> said; echo $(($(date +%s) - begun)) > seconds\n\
         grep -q '^0 words' during || grep -qx 0 said || break; done\n\
         gpureplay_tee_memory > after\n{0}",
        client("3", "3")
    );
    rig.clean(&share, &script)?;
    let text = |name: &str| Ok::<_, Error>(share.text(name)?.trim().to_owned());
    let (said, seconds) = (text("said")?, text("seconds")?);
    if !said.contains("it was cancelled") || !said.ends_with("\n1") {
        return Err(format!("expected a cancellation, got: {said}").into());
    }
    if seconds
        .parse()
        .map_or(true, |seconds: u32| seconds > LONGEST)
    {
        return Err(format!("the client waited for {seconds} s").into());
    }
    let words = (text("before")?, text("during")?, text("after")?);
    let none = |text: &str| text.starts_with("0 words");
    if !none(&words.0) || none(&words.1) || !none(&words.2) {
        return Err(format!(
            "words of the GPU's memory that are not zero before, during, after: {words:?}"
        )
        .into());
    }
    if expected.first() != Some(&share.read("3.out")?) {
        return Err("a wrong answer afterwards".into());
    }
    Ok(format!(
        "after {seconds} s; of the GPU's memory cleared: {}",
        words.1.split(';').next().unwrap_or_default()
    ))
}

pub(super) fn interrupted(rig: &Rig<'_>) -> Result<String> {
    payload::static_command(rig.folder)?;
    let share = Share::new()?;
    share.write("short.pack", &pack(&long(&SHORT)?, &test_key()?, 1)?)?;
    share.write("x.bin", b"8 bytes.")?;
    let rounds = if rig.full { 50 } else { 3 };
    let interrupt = interrupt("said");
    let script = format!(
        "cd /share\nfor round in $(seq {rounds}); do\n\
         {interrupt} echo $waited >> waits\n\
         grep -q {CANCELLED:?} said && [ $code = 5 ] || {{ echo \"round $round, exit $code, $(< said), at the signal: $(< during)\" >&2; exit 1; }}\n\
         done\n"
    );
    rig.clean(&share, &script)?;
    let waits = share.text("waits")?;
    let mut waits: Vec<u32> = waits.lines().filter_map(|line| line.parse().ok()).collect();
    waits.sort_unstable();
    let hundredths = |at: usize| waits.get(at).map_or(0, |wait| wait * 10);
    Ok(format!(
        "{rounds} times, the end {} to {} ms after the signal",
        hundredths(0),
        hundredths(waits.len().saturating_sub(1))
    ))
}

pub(super) fn changed_meanwhile(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let expected = digits(rig, &share, &["3"])?;
    share.write("3.expected", &expected.concat())?;
    let loads = if rig.full { 1000 } else { 100 };
    let length = share.read("digits.pack")?.len();
    let script = format!(
        "cd /share; gpureplay_tee_race digits.pack {} input:3.bin probabilities:3.expected {loads}",
        length / 2
    );
    let said = rig.clean(&share, &script)?.trim().to_owned();
    let both = !said.starts_with("0 refused") && !said.contains(" 0 ran right");
    match both {
        true => Ok(said),
        false => Err(said.into()),
    }
}
