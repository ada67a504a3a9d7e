// SPDX-License-Identifier: MIT OR Apache-2.0
//! What apps do with OpenCL that makes recording hard: each is recorded with the right tensors, or refused with a reason.

use std::{fs, path::Path, process::Command};

use super::{runner::Verdict, scene::temporary};
use crate::{
    build::{payload, step::logged},
    error::{Error, Result},
    folder::Folder,
    run::driver::Driver,
    run::session::{self, Checked, Options},
};

/// Numbers in each file.
const COUNT: usize = 256;

/// What `gpureplay record` must make of a case.
enum Expect {
    /// A recording with these inputs and these outputs, whose replay gives what the CPU computes.
    Replays {
        inputs: &'static [Named],
        outputs: &'static [Named],
        /// What it says besides.
        says: &'static str,
    },
    /// A recording without these tensors, and a remark.
    Says(&'static str),
    /// No recording, and the reason.
    Refuses(&'static [&'static str]),
    /// Two threads race: a recording with these inputs if they were as fast in both runs, whose outputs are of either order; else no
    /// recording and this reason.
    Races {
        inputs: &'static [Named],
        orders: [&'static [Named]; 2],
        reason: &'static str,
    },
}

/// What the CPU makes of a picture's number at an index.
type Values = fn(&[f32], usize) -> f32;

/// A tensor and its values.
type Named = (&'static str, Values);

fn same(x: &[f32], i: usize) -> f32 {
    x[i]
}

fn reversed(x: &[f32], i: usize) -> f32 {
    x[COUNT - 1 - i]
}

/// The program's own factors: the same in every run.
fn factor(i: usize) -> f32 {
    0.5 + (i * 29 % 64) as f32 / 32.0
}

fn scaled(x: &[f32], i: usize) -> f32 {
    x[i] * factor(i)
}

fn square(x: &[f32], i: usize) -> f32 {
    x[i] * x[i]
}

fn cube(x: &[f32], i: usize) -> f32 {
    x[i] * x[i] * x[i]
}

fn sum(x: &[f32], i: usize) -> f32 {
    scaled(x, i) + x[i]
}

const CASES: &[(&str, Expect)] = &[
    (
        "read-back",
        replays(&[("scale.src", same)], &[("scale.dst", scaled)]),
    ),
    (
        "written-twice",
        replays(
            &[("scale.src", same), ("add.term", reversed)],
            &[("add.sum", |x, i| scaled(x, i) + reversed(x, i))],
        ),
    ),
    (
        "by-number",
        Expect::Refuses(&["launch 0 (power)", "'times'", "depends on the input"]),
    ),
    (
        "by-size",
        Expect::Refuses(&[
            "launch 0 (add, 128 x 1 x 1)",
            "depends on its input's values",
        ]),
    ),
    (
        "by-kernel",
        Expect::Refuses(&["(speak,", "(add,", "depends on its input's values"]),
    ),
    ("image", Expect::Refuses(&["'texels.image' is an image"])),
    ("shared-memory", Expect::Says("clSVMAlloc")),
    (
        "user-pointers",
        replays(&[("scale.src", same)], &[("scale.dst", scaled)]),
    ),
    (
        "sub-buffers",
        replays(&[("scale.src", same)], &[("scale.dst", scaled)]),
    ),
    (
        "print",
        replays(&[("speak.src", same)], &[("speak.dst", |x, i| x[i] + 1.0)]),
    ),
    (
        "out-of-order",
        replays(&[("scale.src", same)], &[("add.sum", sum)]),
    ),
    (
        "two-queues",
        replays(&[("scale.src", same)], &[("add.sum", sum)]),
    ),
    (
        "two-contexts",
        Expect::Replays {
            inputs: &[("scale.src", scaled)],
            outputs: &[("scale.dst", |x, i| scaled(x, i) * factor(i))],
            says: "what the app read before",
        },
    ),
    (
        "two-threads",
        Expect::Races {
            inputs: &[("power.base", same), ("power.base-2", same)],
            orders: [
                &[("power.dst", square), ("power.dst-2", cube)],
                &[("power.dst", cube), ("power.dst-2", square)],
            ],
            reason: "which of its threads is first",
        },
    ),
    (
        "sampler",
        replays(
            &[("paint.src", same)],
            &[("sampled.dst", |x, i| 2.0 * (x[i] + 1.0))],
        ),
    ),
    (
        "image-read",
        Expect::Refuses(&["'paint.image' is an image", "no output"]),
    ),
    // Mesa copies and fills on the CPU, which no replay repeats.
    ("copied", COPIED),
    ("once-copied", COPIED),
    (
        "bare-copied",
        Expect::Refuses(&["'input-2'", "is what job 0 computed"]),
    ),
    (
        "copied-rectangle",
        Expect::Refuses(&["clEnqueueCopyBufferRect", "launch 0 (scale)"]),
    ),
    (
        "copied-image",
        Expect::Refuses(&["clEnqueueCopyImage", "launch 0 (paint)"]),
    ),
    (
        "copied-both-ways",
        Expect::Refuses(&["clEnqueueCopyBufferToImage", "launch 0 (paint)"]),
    ),
    (
        "copied-input",
        replays(&[("scale.src", same)], &[("scale.dst", scaled)]),
    ),
    (
        "copied-too",
        replays(&[("scale.src", same)], &[("add.sum", sum)]),
    ),
    (
        "bare-copied-too",
        replays(&[("input", same)], &[("output", sum)]),
    ),
    (
        "copied-result",
        replays(&[("scale.src", same)], &[("scale.dst", scaled)]),
    ),
    (
        "filled-result",
        Expect::Refuses(&["clEnqueueFillBuffer overwrites a part", "no output"]),
    ),
];

/// A recording of which nothing else is said.
const fn replays(inputs: &'static [Named], outputs: &'static [Named]) -> Expect {
    Expect::Replays {
        inputs,
        outputs,
        says: "",
    }
}

/// A launch reads what the runtime copied from another one's result.
const COPIED: Expect = Expect::Refuses(&[
    "launch 1 (scale) reads its argument 'src'",
    "clEnqueueCopyBuffer filled with what launch 0 (scale) computed",
]);

/// Names of the cases are the script's arguments: `once-` is one run, `bare-` two without the layer.
const SCRIPT: &str = r#"
for case in CASES; do
	app="opencl_cases ${case#*-}"
	case $case in
	once-*) set -- -- $app a.bin a.out ;;
	bare-*) set -- --twice --no-layer -- $app a.bin a.out -- $app b.bin b.out ;;
	*) set -- --twice -- opencl_cases $case a.bin a.out -- opencl_cases $case b.bin b.out ;;
	esac
	gpureplay record -o "recording-$case" "$@" > "$case.said" 2>&1
	echo "$case $?"
done
"#;

/// Records every case in one guest, and replays what was recorded with a third input.
pub(super) fn all(folder: &Folder) -> Result<Verdict> {
    let share = temporary()?;
    let work = share.path();
    for (name, start) in [("a", 3), ("b", 12), ("c", 40)] {
        write(&work.join(format!("{name}.bin")), &numbers(start))?;
    }
    let options = Options {
        timeout: std::time::Duration::from_secs(1800),
        ..Options::sharing(Driver::Patched, work)
    };
    let names: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    let outcome = session::script(folder, &options, &SCRIPT.replace("CASES", &names.join(" ")))?;
    if let Err(reason) = outcome.clean() {
        return Ok(Verdict::fail(reason));
    }
    let ended = outcome.said();
    let mut verdict = Verdict::default();
    for (name, expect) in CASES {
        let code = ended
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .unwrap_or("nothing");
        let path = work.join(format!("{name}.said"));
        let said = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        match judge(folder, work, (name, code, &said), expect) {
            Ok(()) => verdict.passed += 1,
            Err(reason) => {
                verdict.failed += 1;
                verdict.reason += &format!("{name}: {reason}; ");
            }
        }
    }
    Ok(verdict)
}

fn judge(
    folder: &Folder,
    work: &Path,
    (name, code, said): (&str, &str, &str),
    expect: &Expect,
) -> Checked {
    let recorded = code == "0";
    let wrong = |what: &str| Err(format!("{what} (exit code {code}): {}", said.trim()));
    match expect {
        // The guest's runtime may lack what the case needs: then the app itself says so.
        _ if name == "shared-memory" && said.contains("ended with exit code 3") => Ok(()),
        Expect::Refuses(words) => match !recorded && words.iter().all(|word| said.contains(word)) {
            true => Ok(()),
            false => wrong("not refused as expected"),
        },
        Expect::Races { reason, .. } if !recorded => match said.contains(reason) {
            true => Ok(()),
            false => wrong("not refused as expected"),
        },
        _ if !recorded => wrong("not recorded"),
        Expect::Races { inputs, .. } if inputs_in(said) != inputs.len() => wrong("other inputs"),
        Expect::Races { inputs, orders, .. } => {
            let [first, second] =
                orders.map(|outputs| replay(folder, work, name, (inputs, outputs)));
            first.or(second)
        }
        Expect::Says(text) => match said.contains(text) {
            true => Ok(()),
            false => wrong("the remark is missing"),
        },
        Expect::Replays {
            inputs,
            outputs,
            says,
        } => {
            if !said.contains(says) {
                return wrong("the remark is missing");
            }
            if inputs_in(said) != inputs.len() {
                return wrong("other inputs");
            }
            replay(folder, work, name, (inputs, outputs))
        }
    }
}

/// Inputs in the table of a recording.
fn inputs_in(said: &str) -> usize {
    let is_input = |line: &&str| line.trim_start().starts_with("input ");
    said.lines().filter(is_input).count()
}

/// Replays with the third input; all outputs are what the CPU computes.
fn replay(
    folder: &Folder,
    work: &Path,
    name: &str,
    (inputs, outputs): (&[Named], &[Named]),
) -> Checked {
    let third = numbers(40);
    let all = |values: Values| (0..COUNT).map(|i| values(&third, i)).collect::<Vec<f32>>();
    let text = |error: Error| error.to_string();
    let mut run = Command::new(payload::host_command(folder));
    run.args(["run", "--force"]);
    run.arg(work.join(format!("recording-{name}")));
    for (tensor, values) in inputs {
        let path = work.join(format!("{name}-{tensor}.bin"));
        write(&path, &all(*values)).map_err(text)?;
        run.arg(format!("--input={tensor}={}", path.display()));
    }
    for (tensor, _) in outputs {
        let path = work.join(format!("{name}-{tensor}.out.bin"));
        run.arg(format!("--output={tensor}={}", path.display()));
    }
    logged(&mut run, "replaying", &folder.local.join("log/cases.log")).map_err(text)?;
    for (tensor, values) in outputs {
        let path = work.join(format!("{name}-{tensor}.out.bin"));
        let found = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if found != bytes(&all(*values)) {
            return Err(format!("{tensor} is not what the CPU computes"));
        }
    }
    Ok(())
}

/// Numbers that a product with a factor keeps exact.
fn numbers(start: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7 + start) % 251) as f32 / 64.0 - 125.0 / 64.0;
    (0..COUNT).map(number).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn write(path: &Path, values: &[f32]) -> Result<()> {
    fs::write(path, bytes(values)).map_err(Error::io("write", path))
}
