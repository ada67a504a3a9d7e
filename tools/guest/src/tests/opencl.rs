// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network recorded by its OpenCL calls alone.

use std::{fs, path::Path, process::Command};

use crate::{
    build::{payload, step::logged},
    error::Result,
    files,
    folder::Folder,
    record::{app, registers},
    run::driver::Driver,
    run::session::{self, Checked, Options},
};

/// With those of set-up.
const JOBS: usize = 20;

/// One processor and fixed addresses, since libraries sort buffers by address.
const SCRIPT: &str = r#"set -e
run() { echo acl_network --network network.txt --weights weights --input "inputs/input$1.npy" --suffix "$2"; }
alike="taskset -c 0 chrt -f 1 setarch --addr-no-randomize"
$(run 2 live)
gpureplay record --twice -o recording --name im2col_generic_nhwc.src_ptr=image --tensor 'image=f32[28,28,1]' \
	--name softmax_x.dst_ptr=probabilities --tensor 'softmax_x.dst_ptr=f32[1,10]' -- $alike $(run '' one) -- $alike $(run 2 two)
gpureplay record --raw with -- $alike $(run 2 with)
gpureplay record --raw without --no-layer -- $alike $(run 2 without)
"#;

pub(super) fn names(folder: &Folder) -> Result<()> {
    let share = files::temporary()?;
    let work = share.path();
    app::write_files(folder, "lenet", work)?;
    let options = Options::sharing(Driver::Patched, work);
    let outcome = session::script(folder, &options, SCRIPT)?;
    outcome.clean()?;
    let replayed = work.join("replayed.npy");
    let mut replay = Command::new(payload::host_command(folder));
    replay.arg("run").arg(work.join("recording"));
    replay.arg(format!(
        "--input=image={}",
        work.join("inputs/input2.npy").display()
    ));
    replay.arg(format!("--output=probabilities={}", replayed.display()));
    logged(
        &mut replay,
        "replaying",
        &folder.local.join("log/replay.log"),
    )?;
    Ok(check(work, &replayed)?)
}

fn check(work: &Path, replayed: &Path) -> Checked {
    let manifest = fs::read_to_string(work.join("recording/manifest.toml"));
    let manifest = manifest.map_err(|error| format!("manifest.toml: {error}"))?;
    let named = manifest.lines().filter(|line| *line == "[[job]]").count();
    if named != JOBS {
        return Err(format!("{named} of {JOBS} jobs have names"));
    }
    for kernel in ["im2col_generic_nhwc", "pooling_layer_2x2_nhwc", "softmax_x"] {
        if !manifest.contains(&format!("kernel = \"{kernel}\"")) {
            return Err(format!("no job is called {kernel}"));
        }
    }
    let live = work.join("probabilitieslive.npy");
    for other in [
        replayed,
        &work.join("probabilitieswith.npy"),
        &work.join("probabilitieswithout.npy"),
    ] {
        if !app::identical(&live, other)? {
            return Err(format!(
                "{} is not what the live stack answers",
                other.display()
            ));
        }
    }
    let [with, without] = ["with", "without"].map(|trace| registers::starts(&work.join(trace)));
    match (with?, without?) {
        (with, without) if with == without && with.len() == JOBS => Ok(()),
        (with, without) => Err(format!(
            "with the layer the driver starts {} jobs, without it {}, or other ones",
            with.len(),
            without.len()
        )),
    }
}
