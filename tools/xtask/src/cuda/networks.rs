// SPDX-License-Identifier: MIT OR Apache-2.0
//! Networks beside PyTorch's times, and unprepared programs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Bench, Found,
    crew::some_at_a_time,
    embedded::{self, STACK},
    replays::{disk, start},
    watched::{Ran, watched},
};
use crate::{
    error::{Error, Result},
    files,
};

/// From torch_nets.py: name, description, turns, whether memory continues.
const NETWORKS: [(&str, &str, u32, bool); 6] = [
    ("resnet50", "ResNet-50, f32", 9, false),
    ("vit", "ViT-B/16, f32", 9, false),
    ("bert", "BERT-base, f16, 128 tokens", 9, false),
    ("unet", "U-Net, f32", 9, false),
    (
        "gpt",
        "Decoder, 12 layers, bf16, cache on the GPU",
        220,
        true,
    ),
    ("train", "A step of training, AdamW", 120, true),
];
const PROGRAMS: [(&str, &str); 22] = [
    ("turns.py", "cupy"),
    ("turns.py", "fft"),
    ("turns.py", "solver"),
    ("turns.py", "jax"),
    ("turns.py", "triton"),
    ("others.py", "jax-cnn"),
    ("others.py", "jax-gradient"),
    ("others.py", "equinox"),
    ("others.py", "diffrax"),
    ("others.py", "mobilevit"),
    ("others.py", "gcn"),
    ("others.py", "cupy-raw"),
    ("others.py", "columns"),
    ("others.py", "lstm"),
    ("others.py", "gpt2"),
    ("others.py", "t5"),
    ("others.py", "compiled"),
    ("others.py", "captured"),
    ("others.py", "swin_t"),
    ("others.py", "convnext_tiny"),
    ("others.py", "efficientnet_b0"),
    ("others.py", "segmentation"),
];
const AT_A_TIME: usize = 6;
const TURNS: u32 = 9;
const STARTS: usize = 4;
/// Turns after the recorded one, where memory continues.
const LATER: [u32; 4] = [2, 50, 100, 200];

fn number(said: &str, before: &str) -> f64 {
    let rest = said.split_once(before).map_or("", |(_, rest)| rest);
    let word = rest.split_whitespace().next().unwrap_or("");
    word.parse().unwrap_or(f64::NAN)
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((fs::read(one), fs::read(other)), (Ok(one), Ok(other)) if one == other)
}

struct Recorded<'a> {
    bench: &'a Bench,
    name: String,
    said: String,
}

impl<'a> Recorded<'a> {
    fn new(bench: &'a Bench, script: &str, kind: &str, turns: u32, weights: bool) -> Result<Self> {
        let path = bench.work.path().join(kind);
        files::create_dir(&path)?;
        let mut record = bench.gpureplay(&format!("record --run=turn -o {kind}-run"));
        if weights {
            let file = format!("{kind}.safetensors");
            record.args(["--weights", &file]).env("WEIGHTS", &file);
        }
        let script = bench.programs.join(script);
        record.args(["--", "python3"]).arg(script).arg(kind);
        record.arg(&path).arg(turns.to_string());
        let (_, said) = start(&mut record)?;
        Ok(Self {
            bench,
            name: kind.to_owned(),
            said,
        })
    }

    fn is_there(&self) -> bool {
        self.recording().join("runs/0.toml").exists()
    }

    fn recording(&self) -> PathBuf {
        self.bench.work.path().join(format!("{}-run", self.name))
    }

    fn answer(&self, kind: char, number: u32) -> PathBuf {
        let folder = self.bench.work.path().join(&self.name);
        folder.join(format!("{kind}{number}"))
    }

    fn run(&self, words: &str) -> Result<Ran> {
        let name = &self.name;
        let words = format!("run {name}-run --output found-{name} {words}");
        watched(&mut self.bench.gpureplay(&words))
    }

    fn is(&self, number: u32) -> bool {
        let found = format!("found-{}", self.name);
        same(
            &self.bench.work.path().join(found),
            &self.answer('y', number),
        )
    }

    fn inputs(&self) -> Result<(u32, u32, String)> {
        let (mut right, mut refused, mut reason) = (0, 0, String::new());
        let name = &self.name;
        for number in 0..TURNS {
            let mut run = self
                .bench
                .gpureplay(&format!("run {name}-run --output found-{name}"));
            run.arg("--input").arg(self.answer('x', number));
            let (ran, said) = start(&mut run)?;
            right += u32::from(ran && self.is(number));
            if !ran {
                refused += 1;
                reason = said.lines().next_back().unwrap_or_default().to_owned();
            }
        }
        Ok((right, refused, reason))
    }

    fn later(&self, turns: u32) -> Result<(u32, usize, usize)> {
        self.run("")?;
        let first = (0..turns).find(|number| self.is(*number)).unwrap_or(0);
        let (mut right, mut of) = (0, 0);
        // With an input per turn only an embedding program continues.
        if self.answer('x', 0).exists() {
            return Ok((first, 0, 0));
        }
        for later in LATER.into_iter().filter(|later| first + later <= turns) {
            let ran = self.run(&format!("--repeat {later}"))?;
            right += usize::from(ran.right && self.is(first + later - 1));
            of += 1;
        }
        Ok((first, right, of))
    }

    fn embedded(&self, first: u32, count: u32) -> Found {
        let answers = self.bench.work.path().join(&self.name);
        embedded::equal(self.bench, [&self.recording(), &answers], first, count)
    }

    fn refusal(&self) -> &str {
        let lines = self.said.lines();
        let mut lines = lines.filter(|line| line.contains("recorded: "));
        lines.next_back().unwrap_or("nothing was said")
    }
}

fn network(of: &Recorded<'_>, what: &str, turns: u32, continues: bool) -> Found {
    let bench = of.bench;
    // Its answers would overwrite the recorded ones.
    let other = bench.work.path().join("alone");
    let _ = fs::create_dir_all(&other);
    let mut alone = Command::new("python3");
    alone
        .current_dir(&other)
        .arg(bench.programs.join("torch_nets.py"));
    alone.args([&of.name, ".", "9", "--time"]);
    let alone = watched(&mut alone)?;
    let (mut wrong, mut first) = (0, 0);
    let found = if continues {
        let (recorded, right, all) = of.later(turns)?;
        first = recorded;
        wrong += all - right;
        match all {
            0 => "–".to_owned(),
            _ => format!("{right} of {all} turns, the last one 200 later"),
        }
    } else {
        let (right, ..) = of.inputs()?;
        wrong += (TURNS - right) as usize;
        format!("{right} of {TURNS} inputs")
    };
    let mut best = Ran::default();
    for _ in 0..STARTS {
        let ran = watched(&mut bench.gpureplay(&format!("bench {}-run --runs 100", of.name)))?;
        if best.said.is_empty() || number(&ran.said, "after ") < number(&best.said, "after ") {
            best = ran;
        }
    }
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        starts.push(of.run("")?);
    }
    let stack = starts.iter().flat_map(|ran| &ran.libraries);
    wrong += stack
        .filter(|path| STACK.iter().any(|name| path.contains(name)))
        .count();
    let seconds = number(&best.said, "after ") / 1e3;
    let memory = starts.iter().map(|ran| ran.memory).max().unwrap_or(0);
    let graph = number(&best.said, "median ");
    let own = number(&alone.said, "graph ");
    let eager = number(&alone.said, "first ");
    let pytorch = number(&alone.said, "memory ");
    let weights = fs::metadata(bench.work.path().join(format!("{}.safetensors", of.name)));
    let count = if continues {
        turns.min(first + 200) - first
    } else {
        TURNS
    };
    let (embedded, bad) = of.embedded(first, count)?;
    wrong += bad;
    eprintln!("{}: {embedded}", of.name);
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let row = format!(
        "| {what} | {found} | {} | {graph:.0} | {own:.0} | {:.0} | {:.2} | {seconds:.2} | {eager:.1} | {:.1} | {memory} | {pytorch:.0} | {:.2} | {:.1}, {:.0} |\n",
        embedded,
        number(&alone.said, "eager "),
        graph / own,
        eager / seconds,
        memory as f64 / pytorch,
        disk(&of.recording()),
        weights.map_or(0, |data| data.len()) as f64 / 1e6,
    );
    Ok((row, wrong))
}

pub(super) fn networks(bench: &Bench) -> Found {
    let recorded = some_at_a_time(AT_A_TIME, &NETWORKS, |(kind, _, turns, _)| {
        Recorded::new(bench, "torch_nets.py", kind, *turns, *kind != "train")
    });
    let programs = some_at_a_time(AT_A_TIME, &PROGRAMS, |(script, kind)| {
        let of = Recorded::new(bench, script, kind, TURNS, false)?;
        let right = match of.is_there() {
            true => Some(of.inputs()?),
            false => None,
        };
        let embedded = match right {
            Some((TURNS, ..)) => of.embedded(0, TURNS)?,
            _ => ("–".into(), 0),
        };
        Ok::<_, Error>((of, right, embedded))
    });
    let mut wrong = 0;
    let mut text = String::from(
        "| Network | Equal bit for bit | Embedded | One graph, µs | `torch.cuda.graph`, µs | Eager, µs | Relative to `torch.cuda.graph` | Start to first output, s | Eager's, s | Times faster | Peak host memory, MB | PyTorch's, MB | Relative | Recording without weights, weights, MB |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (of, (_, what, turns, continues)) in recorded.into_iter().zip(NETWORKS) {
        let of = of?;
        if !of.is_there() {
            eprintln!("{}", of.said);
            wrong += 1;
            continue;
        }
        let (row, bad) = network(&of, what, turns, continues)?;
        wrong += bad;
        eprint!("{row}");
        text += &row;
    }
    text += "\n| Program | Inputs equal bit for bit, or why it is not recorded | Embedded |\n| --- | --- | --- |\n";
    for program in programs {
        let (of, right, (embedded, unequal)) = program?;
        let said = match &right {
            Some((right, 0, _)) => format!("{right} of {TURNS}"),
            Some((right, refused, reason)) => {
                format!("{right} of {TURNS}; {refused} refused: {reason}")
            }
            None => of.refusal().to_owned(),
        };
        let said = said.replace('|', "/").replace("gpureplay: ", "");
        let bad = right.as_ref();
        let bad = bad.map_or(0, |(right, refused, _)| TURNS - right - refused);
        if bad > 0 {
            eprintln!("{}: {}", of.name, of.said);
        }
        wrong += bad as usize + unequal;
        text += &format!("| {} | {said} | {embedded} |\n", of.name);
    }
    Ok((text, wrong))
}
