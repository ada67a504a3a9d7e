// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/networks.md: the page that `guest networks` writes from what was measured.

use std::{fmt::Write as _, fs, path::PathBuf};

use crate::{
    error::{Error, Result},
    folder::Folder,
    networks::{MEASURED, Measured},
    record::{app::App, network_dir},
};

/// The columns of the table.
const COLUMNS: &str = "\
| Network | Jobs | Recording | Without weights | GPU memory | Recording it | Reading | Loading | Set-up | One run | From the reference | As the live stack |
| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: | --- |
";

/// One row of the table.
pub(crate) fn row(name: &str, app: &App, m: &Measured) -> String {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let difference = if app.exact {
        format!("{} steps", m.difference)
    } else {
        format!("{:.1e}", m.difference)
    };
    format!(
        "| {name} | {} | {} | {} | {} | {:.0} s | {:.1} ms | {:.1} ms ({:.0} %) | {:.2} s | {:.2} s | {difference} | {} |",
        m.jobs,
        megabytes(m.bytes),
        megabytes(m.bytes_without_weights),
        megabytes(m.memory),
        m.record,
        m.read * 1e3,
        m.load * 1e3,
        m.read / m.load * 100.0,
        m.open,
        m.run,
        if m.identical {
            "bit for bit"
        } else {
            "differs"
        },
    )
}

/// The page for people, from what lies in the networks' folders.
pub(crate) fn document(
    folder: &Folder,
    apps: &std::collections::BTreeMap<String, App>,
) -> Result<String> {
    let mut out = String::from(HEAD);
    out += COLUMNS;
    let (mut missing, mut others) = (Vec::new(), Vec::new());
    for (name, app) in apps.iter().filter(|(_, app)| app.network) {
        let path: PathBuf = network_dir(folder, name).join(MEASURED);
        let Ok(text) = fs::read_to_string(&path) else {
            missing.push(name.as_str());
            continue;
        };
        let measured: Measured = toml::from_str(&text)
            .map_err(|error| Error::Usage(format!("{}: {}", path.display(), error.message())))?;
        others.push(measured.others);
        out += &row(name, app, &measured);
        out.push('\n');
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "\nNot measured yet: {}.", missing.join(", "));
    }
    out += TAIL;
    out += &busy(&others);
    Ok(out)
}

/// What else the machine did.
fn busy(others: &[Option<f64>]) -> String {
    let mut text = String::from(
        "\nRecording times are from a machine that did other work besides, and vary with it (squeezenet-1.0: 33 s, and 298 s at a worse time). ",
    );
    let known: Option<Vec<f64>> = others.iter().copied().collect();
    text += &match known.map(|parts| parts.into_iter().fold(0.0, f64::max)) {
        Some(most) => format!(
            "While set-up and run were measured, other programs had at most {:.0} % of its\nprocessor time (`guest networks --times` measures them again).\n",
            most * 100.0
        ),
        None => "Those of set-up and run may be, too.\n".into(),
    };
    text
}

const HEAD: &str = "\
# Networks

Whole networks by Arm Compute Library's graph API on Mesa's OpenCL, recorded in the guest and replayed on the GPU model with an
input that was not recorded. With the guest built (`cargo xtask guest build`, see [the guest](../tools/guest/README.md)) one command makes a recording:

    cargo xtask guest record squeezenet-1.1
    R=target/guest/networks/squeezenet-1.1/squeezenet-1.1-g52
    cargo run --release -- info $R                                      # layers, tensors, weights
    cargo run --release -- run $R --input $R/inputs/input2.npy --top 3  # compares with the reference

It runs the network three times in the guest: unrecorded, recorded, and recorded with another input. Traces and everything else stay in
`target/guest/networks/NAME`: ten times the size of the recording and more (VGG-16: 6 GB). LeNet's recording is in the repository (`recordings/lenet-g52`).
`cargo xtask guest networks` does the same for all networks, one after another, and measures; with `--write-doc` it makes this page.

The layers are in `tools/networks/networks.py`; `tools/guest/apps/acl_network.cpp` builds them for the library, `tools/networks/layers.py`
computes them in NumPy, in double precision. Weights come from a seed: the networks are not trained, their answers mean nothing, and
every number of them can be checked.

";

const TAIL: &str = "
| Column | What it is |
| --- | --- |
| Jobs | of set-up (weights into the library's own form, once) and of one run together |
| Without weights | the recording with its weights in files of their own (`gpureplay compile --external-weights`): it serves every model of that shape |
| GPU memory | what the recording maps |
| Recording it | wall-clock time of the app in the guest, on an emulated CPU, with the recorder on and compiled shaders in the cache |
| Reading | the file from the page cache into new memory (`std::fs::read`) |
| Loading | reading it, its checksums, and every rule of the verifier; in brackets the speed of that as a part of the speed of reading |
| Set-up | reset, memory, set-up jobs, on the GPU model |
| One run | the other jobs, on the GPU model |
| From the reference | the largest difference of an output element, relative to the larger of its magnitude and the mean magnitude |
| As the live stack | the replay's outputs against those of the app in the guest, unrecorded, for the same input |

Reading and loading are CPU time, the median of some rounds, in turns, in one process (`gpureplay bench DIR`), into memory that the process did not have
before. Loading compares the file's SHA-256 with the manifest's, which is the largest part of it. Rules cost time for each action, and LZ4 blocks are walked to their ends: the speed is less where a file is small for what it does
(`gpureplay info` counts actions), or mostly compressed.

The largest difference from the reference that is allowed is 1e-4 for 32-bit floats and 1e-2 for 16. For 8 bits it is in steps of the output's scale,
from a reference that rounds to 8 bits after every layer but not in the library's way; there the replay must equal the live stack.

Each recording was checked against a second one with another input. The compiler refuses a recording if the two do not do the same work, as in a network
whose shapes depend on values of its input (`job 7 computes 1024 x 1 x 1 and 512 x 1 x 1 work-items`), or if anything that the app wrote differs and belongs to no tensor.
Each is also compiled without a file of the app's: if its OpenCL calls show other tensors than its files (place, type, size), `guest networks` fails.
Only in 8 bits they may show more: multipliers and shifts that the library computes from the files are weights too, and a bias is as long as the buffer that the library writes.

Weights are tensors of the recording by the names of their layers. They can be replaced (`gpureplay run --bind conv1.weight=w.npy`) or kept
outside the recording. [Replays inside other programs](embedding.md) says what layers and jobs as segments cost.
";
