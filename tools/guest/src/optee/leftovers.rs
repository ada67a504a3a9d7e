// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session leaves nothing.

use super::{
    clients::{self, JOB, RUNS},
    rig::{DIGIT, PROBABILITIES, Rig, Share, UNTIL_IT_RUNS, npy, pack},
    test_key,
    values::pack_recording,
};
use crate::error::Result;

pub(super) const NOTHING: &str =
    "0 words; level-2 cache 0, shader cores 0, page table 0, interrupt masks 0 0 0";

/// The job's microseconds.
const TIMEOUT: u32 = 2_000_000;

/// It keeps all rules, but the GPU does not know the job's type.
fn faulty(gpu: u32) -> Result<Vec<u8>> {
    clients::of_jobs(gpu, 127, |builder| builder.submit(1, JOB, TIMEOUT))
}

const ENDS: [(&str, &str); 6] = [
    ("well", "1 runs\n0\n"),
    ("a job that fails", "the GPU failed"),
    ("another GPU", "the GPU failed"),
    (
        "a value of the wrong size",
        "(0xffff0006, status 4, code 12)",
    ),
    ("cancelled", "it was cancelled"),
    ("killed", "137\n"),
];

pub(super) fn nothing_stays(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    let digits = pack_recording(rig, &share, "digits")?;
    share.write("3.bin", &npy(&digits.join("inputs/3.npy"))?)?;
    share.write("x.bin", &b"8 bytes.".repeat(RUNS))?;
    let key = test_key()?;
    share.write("faulty.pack", &pack(&faulty(0x7212_0000)?, &key, 1)?)?;
    share.write("other.pack", &pack(&faulty(0x7211_0000)?, &key, 1)?)?;
    share.write(
        "long.pack",
        &pack(&clients::long(&clients::LONG)?, &key, 1)?,
    )?;
    share.write(
        "short.pack",
        &pack(&clients::long(&clients::SHORT)?, &key, 1)?,
    )?;
    let digit = format!("-i input:{DIGIT}=3.bin -o probabilities:{PROBABILITIES}=3.out");
    let eight = "-i x:8=x.bin -o y:8=y.out";
    let script = format!(
        "cd /share\n\
         end() {{ local number=$1; shift; \"$@\" > $number.said 2>&1; echo $? >> $number.said; gpureplay_tee_memory > $number.left; }}\n\
         end 0 gpureplay_tee digits.pack {digit}\n\
         end 1 gpureplay_tee faulty.pack {eight}\n\
         end 2 gpureplay_tee other.pack {eight}\n\
         end 3 gpureplay_tee digits.pack -i input:128=3.bin -o probabilities:{PROBABILITIES}=3.out\n\
         end 4 gpureplay_tee long.pack -c 500 {eight}\n\
         gpureplay_tee short.pack -n {RUNS} {eight} > 5.said 2>&1 & client=$!\n\
         {UNTIL_IT_RUNS}\
         kill -9 $client; wait $client; echo $? >> 5.said; gpureplay_tee_memory > 5.left\n\
         gpureplay_tee digits.pack {digit}\n"
    );
    rig.clean(&share, &script)?;
    for (number, (end, message)) in ENDS.iter().enumerate() {
        let said = share.text(&format!("{number}.said"))?;
        if !said.contains(message) {
            let during = share.text("during")?;
            return Err(format!(
                "{end}: expected `{message}`, got {said}; while one ran: {during}"
            )
            .into());
        }
        let left = share.text(&format!("{number}.left"))?;
        if left.trim() != NOTHING {
            return Err(format!("{end}: it left {left}").into());
        }
    }
    // All these must be in use during a run, or the check shows nothing.
    let during = share.text("during")?;
    let used = ["0 words", "cache 0,", "cores 0,", "table 0,"];
    if used
        .iter()
        .any(|nothing| during.starts_with(nothing) || during.contains(&format!(" {nothing}")))
    {
        return Err(format!("during a run: {during}").into());
    }
    if share.read("3.out")? != npy(&digits.join("expected/3.npy"))? {
        return Err("a wrong answer afterwards".into());
    }
    Ok(format!(
        "{} ends; during a run {}",
        ENDS.len(),
        during.lines().next().unwrap_or_default()
    ))
}
