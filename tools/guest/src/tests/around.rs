// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is around the nano driver.

use crate::{
    build::payload,
    devices::expect,
    error::Result,
    files,
    folder::Folder,
    run::driver::Driver,
    run::{
        board::Board,
        session::End,
        session::{self, Options},
    },
};

const SCRIPT: &str = include_str!("around.sh");
const RECORDINGS: [&str; 2] = ["digits-g52", "acl-conv-g52"];
/// Stops the GPU after the bus has detached the domain.
const LATE_UNBINDING: [(&str, &str); 3] = [
    (
        "\tmisc_deregister(&nano->misc);\n\tnano_revoke(nano);\n}\n",
        "\tmisc_deregister(&nano->misc);\n}\n\nstatic void nano_late(void *nano)\n{\n\tmsleep(100);\n\tnano_revoke(nano);\n}\n",
    ),
    (
        "\tnano->misc.minor =",
        "\tret = devm_add_action_or_reset(dev, nano_late, nano);\n\tif (ret)\n\t\treturn ret;\n\tnano->misc.minor =",
    ),
    (
        "#include \"compat.h\"",
        "#include <linux/delay.h>\n#include \"compat.h\"",
    ),
];

const NO_CLOCK: [(&str, &str); 1] = [(
    "static int nano_runtime_resume(struct device *dev)\n{\n",
    "static bool no_clock;\nmodule_param(no_clock, bool, 0600);\n\nstatic int nano_runtime_resume(struct device *dev)\n{\n\tif (no_clock)\n\t\treturn -EIO;\n",
)];

/// Of two mutants one must be noticed, one survive.
pub(super) fn nano(folder: &Folder) -> Result<()> {
    payload::board_modules(folder)?;
    payload::nano_driver(folder)?;
    let share = files::temporary()?;
    for name in RECORDINGS {
        expect(folder, name, share.path())?;
    }
    for (name, changes) in [
        ("late-unbinding.ko", &LATE_UNBINDING[..]),
        ("no-clock.ko", &NO_CLOCK),
    ] {
        payload::nano_mutant(folder, "device.c", changes, &share.path().join(name))?;
    }
    let options = Options {
        board: Board {
            power_domain: true,
            ..Board::default()
        },
        ..Options::sharing(Driver::None, share.path())
    };
    let outcome = session::script(folder, &options, SCRIPT)?;
    // A guest that slept has lost its disks and channel, so only the kernel's log tells.
    let log = files::text(outcome.logs.join("kernel.log"))?;
    let last = log.lines().rfind(|line| line.contains("around: "));
    let (end, logs) = (&outcome.end, outcome.logs.display());
    if *end != End::GuestDied || !last.is_some_and(|line| line.ends_with("SLEPT AND WOKE")) {
        return Err(format!("{end:?} after {last:?}, logs: {logs}").into());
    }
    match outcome.faults.first() {
        Some(fault) => Err(format!("{fault}, logs: {logs}").into()),
        None => Ok(()),
    }
}
