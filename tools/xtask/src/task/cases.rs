// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hard OpenCL cases, recorded or refused.

use std::{fs, path::Path, process::Command};

use crate::{Error, Result, files, output};

const COUNT: usize = 256;

enum Expect {
    Replays {
        inputs: &'static [Named],
        outputs: &'static [Named],
        says: &'static str,
    },
    Says(&'static str),
    Refuses(&'static [&'static str]),
    /// Two threads race: if equally fast in both runs, a recording of either order; else none.
    Races {
        inputs: &'static [Named],
        orders: [&'static [Named]; 2],
        reasons: &'static [&'static str],
    },
}

/// Expected number from a picture, at an index.
type Values = fn(&[f32], usize) -> f32;

type Named = (&'static str, Values);

fn same(x: &[f32], i: usize) -> f32 {
    x[i]
}

fn reversed(x: &[f32], i: usize) -> f32 {
    x[COUNT - 1 - i]
}

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

const fn replays(inputs: &'static [Named], outputs: &'static [Named]) -> Expect {
    Expect::Replays {
        inputs,
        outputs,
        says: "",
    }
}

const SRC: &[Named] = &[("scale.src", same)];
const DST: &[Named] = &[("scale.dst", scaled)];
const SUM: &[Named] = &[("add.sum", sum)];

macro_rules! rows {
    ($($name:literal => $expect:expr;)*) => { &[$(($name, $expect)),*] };
}

const CASES: &[(&str, Expect)] = rows! {
    "read-back" => replays(SRC, DST);
    "written-twice" => replays(
        &[("scale.src", same), ("add.term", reversed)],
        &[("add.sum", |x, i| scaled(x, i) + reversed(x, i))],
    );
    "by-number" => Expect::Refuses(&["launch 0 (power)", "'times'", "depends on the input"]);
    "by-size" => Expect::Refuses(&["launch 0 (add, 128 x 1 x 1)", "depends on its input's values"]);
    "by-kernel" => Expect::Refuses(&["(speak,", "(add,", "depends on its input's values"]);
    "image" => Expect::Refuses(&["'texels.image' is an image"]);
    "shared-memory" => Expect::Says("clSVMAlloc");
    "user-pointers" => replays(SRC, DST);
    "sub-buffers" => replays(SRC, DST);
    "print" => replays(&[("speak.src", same)], &[("speak.dst", |x, i| x[i] + 1.0)]);
    "out-of-order" => replays(SRC, SUM);
    "two-queues" => replays(SRC, SUM);
    "two-contexts" => Expect::Replays {
        inputs: &[("scale.src", scaled)],
        outputs: &[("scale.dst", |x, i| scaled(x, i) * factor(i))],
        says: "what the app read before",
    };
    "two-threads" => Expect::Races {
        inputs: &[("power.base", same), ("power.base-2", same)],
        orders: [
            &[("power.dst", square), ("power.dst-2", cube)],
            &[("power.dst", cube), ("power.dst-2", square)],
        ],
        reasons: &[
            "which of its threads is first",
            "if the app's threads race",
            "several jobs of this size could be its own",
        ],
    };
    "sampler" => replays(&[("paint.src", same)], &[("sampled.dst", |x, i| 2.0 * (x[i] + 1.0))]);
    "image-read" => Expect::Refuses(&["'paint.image' is an image", "no output"]);
    // Mesa copies and fills on the CPU: no replay repeats it.
    "copied" => COPIED;
    "once-copied" => COPIED;
    "bare-copied" => Expect::Refuses(&["'input-2'", "is what job 0 computed"]);
    "copied-rectangle" => Expect::Refuses(&["clEnqueueCopyBufferRect", "launch 0 (scale)"]);
    "copied-image" => Expect::Refuses(&["clEnqueueCopyImage", "launch 0 (paint)"]);
    "copied-both-ways" => Expect::Refuses(&["clEnqueueCopyBufferToImage", "launch 0 (paint)"]);
    "copied-input" => replays(SRC, DST);
    "copied-too" => replays(SRC, SUM);
    "bare-copied-too" => replays(&[("input", same)], &[("output", sum)]);
    "copied-result" => replays(SRC, DST);
    "filled-result" => Expect::Refuses(&["clEnqueueFillBuffer overwrites a part", "no output"]);
};

/// The app sees the same as without the recorder; ordinary work is recorded.
const MISUSED: &[(&str, Expect)] = rows! {
    "misuse-no-handles" => replays(SRC, DST);
    "misuse-sizes" => replays(SRC, DST);
    "misuse-wraps" => Expect::Refuses(&["ended with exit code 2", "no recording was made"]);
    "misuse-other-kinds" => replays(SRC, DST);
    "misuse-freed" => Expect::Refuses(&["was killed by signal", "no recording was made"]);
    "misuse-callbacks" => replays(SRC, DST);
    "misuse-threads" => Expect::Races {
        inputs: SRC,
        orders: [DST, DST],
        reasons: &["which of its threads is first", "if the app's threads race"],
    };
    "misuse-events" => replays(SRC, DST);
    "misuse-timed" => replays(SRC, DST);
    "misuse-long-names" => replays(SRC, DST);
    "misuse-rubbish" => replays(SRC, DST);
    "misuse-maps" => replays(SRC, DST);
    "misuse-unawaited" => replays(SRC, DST);
};

/// A GPU with streams may also refuse them: if the driver tells the GPU's time, a stream stores it.
const ON_STREAMS: &[(&str, &str)] = &[(
    "misuse-timed",
    "STORE_STATE stores a time, as a queue with profiling asks for",
)];

const COPIED: Expect = Expect::Refuses(&[
    "launch 1 (scale) reads its argument 'src'",
    "clEnqueueCopyBuffer filled with what launch 0 (scale) computed",
]);

/// One of each kind.
pub const SAMPLE: [&str; 7] = [
    "read-back",
    "by-number",
    "image",
    "two-threads",
    "sampler",
    "copied",
    "copied-input",
];

/// Arguments: cases; `RECORD`: options of `record`. `once-`: one run; `bare-`: two without the layer; `misuse-`: two
/// of another app, first alone behind `ALONE`.
pub const SCRIPT: &str = r#"
for case; do
	app="opencl_cases ${case#*-}"
	case $case in
	once-*) set -- -- $app a.bin a.out ;;
	misuse-*)
		app="opencl_misuse ${case#*-}"
		$ALONE $app a.bin alone.out > "$case.alone" 2> /dev/null
		set -- --twice -- $app a.bin a.out -- $app b.bin b.out
		;;
	bare-*) set -- --twice --no-layer -- $app a.bin a.out -- $app b.bin b.out ;;
	*) set -- --twice -- opencl_cases $case a.bin a.out -- opencl_cases $case b.bin b.out ;;
	esac
	gpureplay record $RECORD -o "recording-$case" "$@" > "$case.said" 2>&1
	echo "$case $?"
done
"#;

/// All cases.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}

/// The recorder must outlive these as the runtime does.
pub fn misused() -> impl Iterator<Item = &'static str> {
    MISUSED.iter().map(|(name, _)| *name)
}

/// Writes both recorded inputs of [`SCRIPT`].
///
/// # Errors
/// A file cannot be written.
pub fn write_inputs(work: &Path) -> Result<()> {
    write(&work.join("a.bin"), &numbers(3))?;
    write(&work.join("b.bin"), &numbers(12))
}

/// Whether a case ended rightly; `printed` is the script's output. `command` replays a third input.
///
/// # Errors
/// What is wrong.
pub fn judge(
    command: &Path,
    work: &Path,
    (name, streams): (&str, bool),
    printed: &str,
) -> std::result::Result<(), String> {
    let mut all = CASES.iter().chain(MISUSED);
    let found = all.find(|(known, _)| *known == name);
    let (_, expect) = found.ok_or_else(|| format!("there is no case {name}"))?;
    let code = printed
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
        .unwrap_or("nothing");
    let path = work.join(format!("{name}.said"));
    let said = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    if MISUSED.iter().any(|(known, _)| *known == name) {
        let path = work.join(format!("{name}.alone"));
        let alone = fs::read_to_string(&path);
        sees_the_same(
            &alone.map_err(|error| format!("{}: {error}", path.display()))?,
            &said,
        )?;
    }
    let mut refusals = ON_STREAMS.iter().filter(|_| streams && code != "0");
    match refusals.any(|(known, words)| *known == name && said.contains(words)) {
        true => Ok(()),
        false => judged(command, work, (name, code, &said), expect),
    }
}

fn sees_the_same(alone: &str, said: &str) -> std::result::Result<(), String> {
    let answers = |text| str::lines(text).filter(|line| line.starts_with("> "));
    let alone: Vec<&str> = answers(alone).collect();
    let recorded: Vec<&str> = answers(said).collect();
    if recorded.len() < alone.len() {
        return Err(format!("{} answers of {}", recorded.len(), alone.len()));
    }
    for (wanted, found) in alone.iter().cycle().zip(&recorded) {
        if wanted != found {
            return Err(format!("alone '{wanted}', recorded '{found}'"));
        }
    }
    Ok(())
}

fn judged(
    command: &Path,
    work: &Path,
    (name, code, said): (&str, &str, &str),
    expect: &Expect,
) -> std::result::Result<(), String> {
    let recorded = code == "0";
    let wrong = |what: &str| Err(format!("{what} (exit code {code}): {}", said.trim()));
    match expect {
        // The guest's runtime may lack the feature: the app says so.
        _ if name == "shared-memory" && said.contains("ended with exit code 3") => Ok(()),
        Expect::Refuses(words) => match !recorded && words.iter().all(|word| said.contains(word)) {
            true => Ok(()),
            false => wrong("not refused as expected"),
        },
        Expect::Races { reasons, .. } if !recorded => {
            match reasons.iter().any(|it| said.contains(it)) {
                true => Ok(()),
                false => wrong("not refused as expected"),
            }
        }
        _ if !recorded => wrong("not recorded"),
        Expect::Races { inputs, orders, .. } => {
            // Threads one after the other look like turns of a loop.
            let turns = said.contains("the app does the same 2 times");
            let tensors = if turns { 1 } else { inputs.len() };
            if inputs_in(said) != tensors {
                return wrong("other inputs");
            }
            let [first, second] = orders.map(|outputs| {
                let tensors = (&inputs[..tensors], &outputs[..tensors]);
                replay(command, work, name, tensors)
            });
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
            replay(command, work, name, (inputs, outputs))
        }
    }
}

fn inputs_in(said: &str) -> usize {
    let is_input = |line: &&str| line.trim_start().starts_with("input ");
    said.lines().filter(is_input).count()
}

fn replay(
    command: &Path,
    work: &Path,
    name: &str,
    (inputs, outputs): (&[Named], &[Named]),
) -> std::result::Result<(), String> {
    let third = numbers(40);
    let all = |values: Values| (0..COUNT).map(|i| values(&third, i)).collect::<Vec<f32>>();
    let text = |error: Error| error.to_string();
    let mut run = Command::new(command);
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
    output(&mut run).map_err(text)?;
    for (tensor, values) in outputs {
        let path = work.join(format!("{name}-{tensor}.out.bin"));
        let found = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if found != bytes(&all(*values)) {
            return Err(format!("{tensor} is not what the CPU computes"));
        }
    }
    Ok(())
}

/// Exact after one product.
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
    files::write(path, bytes(values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timed_queue_is_refused_by_name_where_streams_store_times() {
        let work = tempfile::tempdir().expect("folder");
        let name = "misuse-timed";
        let judged = |streams, ended: u32, said: &str| {
            for (kind, text) in [("alone", "> 0\n"), ("said", said)] {
                let path = work.path().join(format!("{name}.{kind}"));
                fs::write(path, text).expect("file");
            }
            let code = format!("{name} {ended}\n");
            judge(Path::new("no"), work.path(), (name, streams), &code)
        };
        let timed =
            "> 0\n> 0\njob 0: STORE_STATE stores a time, as a queue with profiling asks for";
        assert_eq!(judged(true, 3, timed), Ok(()));
        assert!(judged(false, 3, timed).is_err(), "a GPU without streams");
        assert!(judged(true, 0, timed).is_err(), "nothing to replay");
        assert!(judged(true, 3, "> 0\n> 0\njob 0: another").is_err());
        assert!(judged(true, 3, &timed.replace("> 0", "> 1")).is_err());
    }
}
