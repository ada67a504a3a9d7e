// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays in the secure world.

use std::{process::ExitCode, time::Instant};

use super::{
    beside, build, clients, leftovers, refusals,
    rig::{Rig, Share, failed},
    test_key, values,
};
use crate::{error::Result, folder::Folder, run::session::End};

type Test = fn(&Rig<'_>) -> Result<String>;

const TESTS: [(&str, Test); 12] = [
    (
        "held-out digits and lenet answer bit for bit",
        values::answers,
    ),
    (
        "the command with --device optee answers bit for bit and says why not",
        values::by_the_command,
    ),
    ("many runs do not drift", values::many_runs),
    ("two clients at once both end", clients::two),
    ("a run is cancelled", clients::cancelled),
    ("Ctrl-C ends a run", clients::interrupted),
    (
        "nothing stays in the GPU or its memory after any end of a session",
        leftovers::nothing_stays,
    ),
    (
        "a pack that changes while it is taken is refused or runs as it was signed",
        clients::changed_meanwhile,
    ),
    (
        "what is unsigned, foreign, old or changed is refused",
        refusals::refusals,
    ),
    (
        "the normal world reads no secure memory and knows no GPU",
        isolation,
    ),
    ("a client that means harm gets error codes", beside::hostile),
    ("xtest passes beside it", beside::xtest),
];

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
        let result = test(&rig);
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

pub(crate) fn short(folder: &Folder) -> Result<()> {
    let rig = Rig {
        folder,
        built: build::build(folder, &test_key()?.public())?,
        full: false,
    };
    for test in [values::by_the_command as Test, refusals::refusals] {
        test(&rig)?;
    }
    Ok(())
}

fn isolation(rig: &Rig<'_>) -> Result<String> {
    let share = Share::new()?;
    // Places of BL31, OP-TEE's core (code, and heap with the recording) and applications, in QEMU's 16 MiB of secure
    // memory.
    let places = [
        "0x0e000000",
        "0x0e100000",
        "0x0e400000",
        "0x0e800000",
        "0x0efff000",
    ];
    let reads: String = places
        .iter()
        .map(|place| format!("busybox devmem {place} 32 2>&1; echo read $?\n"))
        .collect();
    let script = reads
        + "find /sys/firmware/devicetree/base -iname '*gpu*' -o -iname '*mali*' | sed 's/^/node /'\n\
        grep -rls mali /sys/firmware/devicetree/base | sed 's/^/node /'\n\
        grep -c . /sys/firmware/devicetree/base/firmware/optee/compatible > /dev/null && echo optee\n\
        ls /dev/dri 2> /dev/null | sed 's/^/device /'\n\
        true";
    let outcome = rig.script(&share, &script)?;
    let output = outcome.said().into_owned();
    // A shell's exit code of SIGBUS, 128 + 7.
    let refused = output.lines().filter(|line| *line == "read 135").count() == places.len();
    if outcome.end != End::Exit(0)
        || !refused
        || output.contains("node ")
        || output.contains("device ")
    {
        return Err(format!("{output}; {}", failed(&outcome)).into());
    }
    if !output.contains("optee") {
        return Err("the device tree names no OP-TEE: this was not the secure machine".into());
    }
    Ok(format!(
        "bus errors at {}; no node of a GPU, no driver of one",
        places.join(", ")
    ))
}
