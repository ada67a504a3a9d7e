// SPDX-License-Identifier: MIT OR Apache-2.0
//! HeCBench programs, replayed with another seed's inputs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Bench, Found,
    crew::some_at_a_time,
    embedded,
    programs::{HECBENCH, build_one},
    replays::start,
};
use gpureplay_task::{Error, Result, output};

const AT_A_TIME: usize = 6;
/// Their inputs are the C library's random numbers.
const PROGRAMS: [&str; 14] = [
    "asta",
    "binomial",
    "convolutionSeparable",
    "entropy",
    "floydwarshall",
    "heat2d",
    "hellinger",
    "hypterm",
    "keogh",
    "lif",
    "maxpool3d",
    "ntt",
    "pathfinder",
    "projectile",
];

struct Twice<'a> {
    bench: &'a Bench,
    name: &'static str,
    said: String,
}

impl<'a> Twice<'a> {
    fn record(bench: &'a Bench, name: &'static str, folder: &Path) -> Result<Self> {
        let mut said = String::new();
        let arguments = HECBENCH.iter().find(|(known, _)| *known == name);
        let arguments = arguments.map_or("", |(_, arguments)| arguments);
        for seed in ["1", "2"] {
            let recording = format!("{name}-{seed}");
            let words = format!("record --run=launches=0..1000000 -o {recording} --");
            let mut record = bench.gpureplay(&words);
            record
                .arg(folder.join("main"))
                .args(arguments.split_whitespace())
                .env("SEED", seed)
                .env("LD_PRELOAD", bench.work.path().join("random.so"));
            said += &start(&mut record)?.1;
            if bench
                .work
                .path()
                .join(&recording)
                .join("runs/0.toml")
                .exists()
            {
                let mut ports = Command::new("python3");
                ports
                    .current_dir(bench.work.path())
                    .arg(bench.programs.join("ports.py"))
                    .args([&recording, &format!("{recording}-ports")]);
                output(&mut ports)?;
            }
        }
        Ok(Self { bench, name, said })
    }

    fn ports(&self, seed: u32) -> PathBuf {
        let name = format!("{}-{seed}-ports", self.name);
        self.bench.work.path().join(name)
    }

    fn named(&self, kind: &str) -> Vec<String> {
        let entries = fs::read_dir(self.ports(2)).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(kind)).collect();
        names.sort();
        names
    }

    /// Replays the first with the second's inputs; counts outputs, differing ones, right ones.
    fn replayed(&self) -> Result<[usize; 3]> {
        let mut run = self.bench.gpureplay(&format!("run {}-1", self.name));
        for input in self.named("in") {
            let path = self.ports(2).join(&input);
            run.arg("--input")
                .arg(format!("{input}={}", path.display()));
        }
        let outputs = self.named("out");
        for name in &outputs {
            run.arg("--output")
                .arg(format!("{name}={}-found-{name}", self.name));
        }
        let (ran, said) = start(&mut run)?;
        let read = |path: PathBuf| fs::read(path).ok();
        let mut counts = [outputs.len(), 0, 0];
        for name in &outputs {
            let wanted = read(self.ports(2).join(name));
            counts[1] += usize::from(wanted != read(self.ports(1).join(name)));
            let found = self.bench.work.path();
            let found = read(found.join(format!("{}-found-{name}", self.name)));
            counts[2] += usize::from(ran && found.is_some() && found == wanted);
        }
        if counts[2] != counts[0] {
            eprintln!("{}: {}{said}", self.name, self.said);
        }
        Ok(counts)
    }

    fn embedded(&self) -> Found {
        let [inputs, outputs] = [self.named("in"), self.named("out")];
        let ([input], [output]) = (&*inputs, &*outputs) else {
            return Ok(("–".into(), 0));
        };
        for (port, name) in [(input, "x0"), (output, "y0")] {
            let _ = std::os::unix::fs::symlink(port, self.ports(2).join(name));
        }
        let recording = self.bench.work.path().join(format!("{}-1", self.name));
        embedded::equal(self.bench, [&recording, &self.ports(2)], 0, 1)
    }
}

pub(super) fn of_hecbench(bench: &Bench, folder: &Path) -> Found {
    let mut compile = Command::new("gcc");
    compile
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .arg(bench.work.path().join("random.so"))
        .arg(bench.programs.join("random.c"));
    output(&mut compile)?;
    let work = |name: &&'static str| {
        let folder = folder.join(format!("{name}-cuda"));
        if !build_one(&folder) {
            return Ok::<_, Error>(None);
        }
        let twice = Twice::record(bench, name, &folder)?;
        if twice.named("out").is_empty() {
            return Ok(Some((twice, [0; 3], Default::default())));
        }
        let (counts, embedded) = (twice.replayed()?, twice.embedded()?);
        Ok(Some((twice, counts, embedded)))
    };
    let mut text = String::from(
        "| Program of HeCBench, from its first copy on | Inputs | Outputs | Differ between two seeds | Equal to the program's with the other seed's inputs, bit for bit | Embedded |\n| --- | --: | --: | --: | --: | --- |\n",
    );
    let mut wrong = 0;
    for (name, found) in PROGRAMS
        .iter()
        .zip(some_at_a_time(AT_A_TIME, &PROGRAMS, work))
    {
        let Some((twice, [outputs, differ, right], (embedded, unequal))) = found? else {
            text += &format!("| {name} | does not build | | | | |\n");
            continue;
        };
        if outputs == 0 {
            let line = twice
                .said
                .lines()
                .find(|line| line.contains("recorded: "))
                .unwrap_or("nothing was said")
                .replace('|', "/");
            text += &format!("| {name} | {line} | | | | |\n");
            continue;
        }
        wrong += outputs - right + usize::from(differ == 0) + unequal;
        let inputs = twice.named("in").len();
        text += &format!("| {name} | {inputs} | {outputs} | {differ} | {right} | {embedded} |\n");
    }
    eprint!("{text}");
    Ok((text, wrong))
}
