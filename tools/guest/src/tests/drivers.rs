// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drivers: nano, /dev/mem, Arm's own.

use std::{path::Path, time::Duration};

use super::runner::Verdict;
use crate::{
    build::payload,
    devices::{Devices, panfrost::Panfrost},
    error::Result,
    files,
    folder::Folder,
    kbase,
    run::{
        driver::Driver,
        session::{self, End, Options},
    },
};

const LISTS: &str = include_str!("lists.sh");
/// Before May 2024 (Linux 6.5 and 6.6) `__free(kfree)` frees error pointers.
const FORMER_CLASS: [(&str, &str); 2] = [
    (
        "#include <linux/fs.h>\n",
        "#define __free_kfree __free_kfree_mended\n#include <linux/fs.h>\n",
    ),
    (
        "#include \"nano.h\"\n",
        "#include \"nano.h\"\n\n#undef __free_kfree\nDEFINE_FREE(kfree, void *, if (_T) kfree(_T))\n",
    ),
];
const FREED_LIST: [(&str, &str); 2] = [
    (
        "\tvoid *accesses = NULL;\n",
        "\tvoid *accesses __free(kfree) = NULL;\n",
    ),
    ("\tkfree(accesses);\n", ""),
];

const COPIES: &str = include_str!("copies.sh");

pub(super) fn silence(complaints: &[String]) -> Result<()> {
    match complaints {
        [] => Ok(()),
        _ => Err(complaints.join("; ").into()),
    }
}

pub(super) fn devices(folder: &Folder) -> Result<()> {
    let short = Devices {
        runs: 20,
        kills: 5,
        seconds: 10,
        seed: 1,
        repeat: 1,
        sanitized: false,
        linux: None,
        kernel_options: Vec::new(),
        write: false,
        no_build: false,
    };
    Ok(short.test(folder, false)??)
}

pub(super) fn panfrost(folder: &Folder) -> Result<()> {
    let short = Panfrost {
        recording: [
            "saxpy",
            "digits",
            "perceptron",
            "decode",
            "train-perceptron",
        ]
        .map(String::from)
        .to_vec(),
        ..Panfrost::short("stock", "g52")
    };
    Ok(short.test(folder, false)??)
}

pub(super) fn panfrost_elsewhere(folder: &Folder) -> Result<()> {
    let machines = [("old", false), ("new", false), ("stock", true)];
    for (kernel, non_coherent) in machines {
        let machine = Panfrost {
            non_coherent,
            ..Panfrost::short(kernel, "g52")
        };
        if let Err(reason) = machine.test(folder, false)? {
            return Err(format!("kernel {kernel}, non-coherent {non_coherent}: {reason}").into());
        }
    }
    Ok(())
}

pub(super) fn panfrost_repaired(folder: &Folder) -> Result<()> {
    let repaired = Panfrost {
        recording: ["saxpy", "digits", "perceptron"].map(String::from).to_vec(),
        wrong: 7,
        repaired: true,
        ..Panfrost::short("stock", "g52")
    };
    Ok(repaired.test(folder, false)??)
}

pub(super) fn copies(folder: &Folder) -> Result<()> {
    payload::nano_driver(folder)?;
    let options = Options {
        driver: Driver::None,
        kernel_options: vec!["swiotlb=force".into()],
        ..Options::default()
    };
    let outcome = session::script(folder, &options, COPIES)?;
    Ok(outcome.clean()?)
}

pub(super) fn lists(folder: &Folder) -> Result<()> {
    payload::hostile(folder)?;
    let share = files::temporary()?;
    let freed = [&FORMER_CLASS[..], &FREED_LIST].concat();
    for (name, changes) in [("former.ko", &FORMER_CLASS[..]), ("freed.ko", &freed)] {
        payload::nano_mutant(folder, "file.c", changes, &share.path().join(name))?;
    }
    let options = Options {
        timeout: Duration::from_secs(900),
        ..Options::sharing(Driver::None, share.path())
    };
    let outcome = session::script(folder, &options, LISTS)?;
    let (said, logs) = (outcome.said(), outcome.logs.display());
    if !said.contains("TAKES BAD LISTS\n") {
        Err(format!("{said}, logs: {logs}").into())
    } else if outcome.faults.is_empty() {
        Err(format!("no crash by a list that is freed so, logs: {logs}").into())
    } else {
        Ok(())
    }
}

pub(super) fn own_driver(folder: &Folder) -> Result<Verdict> {
    let Some(source) = std::env::var_os(kbase::SOURCE_VARIABLE) else {
        let reason = format!("{} names no source of Arm's driver", kbase::SOURCE_VARIABLE);
        return Ok(Verdict::skip(reason));
    };
    let work = files::temporary()?;
    let trial = kbase::Trial::new(folder, work.path());
    let outcome = trial.run(&kbase::driver(Path::new(&source))?)?;
    if outcome.end != End::Exit(0) {
        let logs = outcome.logs.display();
        return Err(format!("{:?}, logs: {logs}", outcome.end).into());
    }
    trial.check()?;
    Ok(().into())
}
