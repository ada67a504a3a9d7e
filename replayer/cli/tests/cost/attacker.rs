// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes cases, and mutates the most expensive.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gpureplay_trials::soundness::{Source, mutate};
use gpureplay_trials::{Parts, review, shipped};
use nix::time::{ClockId, clock_gettime};

use crate::case::{Case, Random, damage};
use crate::commands::{COMMANDS, Command, Given};
use crate::drawings::Drawing;
use crate::place::Place;
use crate::report::{Row, report};
use crate::{originals, recordings, values, variable};

/// Cases at most, per kind of input. Each used more of a budget than all before.
const KEPT: usize = 48;
/// Seed recordings, in bytes.
const LARGEST: usize = 600 << 10;
const SAVED: Duration = Duration::from_secs(20);

pub(crate) struct Attacker {
    place: Place,
    number: u64,
    /// Others that attack at the same time use the seeds between.
    stride: u64,
    rows: Vec<Row>,
    before: Vec<f64>,
    kept: BTreeMap<Given, Vec<Case>>,
    shipped: Vec<Case>,
    reviewed: Vec<Vec<u8>>,
    jpegs: Vec<Vec<u8>>,
    trace: Case,
    drawing: Drawing,
    silicon: Option<Case>,
}

impl Attacker {
    pub(crate) fn new(place: Place, number: u64, stride: u64) -> Self {
        let small = |one: &shipped::Shipped| one.bytes.len() < LARGEST;
        let reviewed = review::all(6).into_iter();
        Self {
            place,
            number,
            stride,
            rows: vec![Row::default(); COMMANDS.len()],
            before: variable("BEFORE").map_or_else(|| vec![0.0; COMMANDS.len()], spent),
            kept: BTreeMap::new(),
            shipped: shipped::all()
                .unwrap()
                .iter()
                .filter(|one| small(one))
                .map(whole)
                .collect(),
            reviewed: reviewed
                .map(|one| one.file)
                .filter(|file| file.len() < LARGEST)
                .collect(),
            jpegs: values::jpegs(),
            trace: originals::trace(),
            drawing: Drawing::new(),
            silicon: originals::silicon(),
        }
    }

    /// Gives all commands equal time. Returns what exceeded a budget.
    pub(crate) fn attack(&mut self, seconds: u64) -> Vec<String> {
        let (began, limit) = (Instant::now(), Duration::from_secs(seconds));
        let mut saved = Instant::now();
        let mut broken = Vec::new();
        let numbers = chosen();
        assert!(!numbers.is_empty(), "no command is called so");
        while began.elapsed() < limit {
            let spent = |which: usize| self.before[which] + self.rows[which].seconds;
            let least = numbers
                .iter()
                .min_by(|a, b| spent(**a).total_cmp(&spent(**b)));
            let Some(&which) = least else { break };
            broken.extend(self.once(which));
            self.number += self.stride;
            if saved.elapsed() > SAVED {
                saved = Instant::now();
                self.save();
            }
        }
        broken
    }

    fn save(&self) {
        if let Some(path) = variable::<PathBuf>("REPORT") {
            let (_, text) = report(&self.rows, self.number);
            let temporary = path.with_extension("tmp");
            fs::write(&temporary, text).unwrap();
            fs::rename(&temporary, &path).unwrap();
        }
    }

    pub(crate) fn finish(self) -> (String, String) {
        report(&self.rows, self.number)
    }

    fn once(&mut self, which: usize) -> Option<String> {
        let before = processor_seconds();
        let command = &COMMANDS[which];
        let mut random = Random::new(self.number);
        let case = self.make(command.given, &mut random);
        if let Some(path) = variable::<String>("REPORT") {
            fs::write(
                path + ".now",
                format!("{}\n{}\n", command.name, self.number),
            )
            .unwrap();
        }
        let (cost, outcome) = self.place.cost(command, &case);
        let row = &mut self.rows[which];
        let more = row.add(command, &cost, case.bytes(), case.declared);
        row.inputs += 1;
        let panicked = (outcome.code < 0).then(|| format!("a panic: {}", outcome.text));
        let beyond = panicked.or_else(|| match variable::<u8>("MEASURE") {
            Some(_) => None,
            None => command.exceeded(&cost, case.bytes(), case.declared),
        });
        if beyond.is_some() {
            row.findings += 1;
        }
        row.seconds += processor_seconds() - before;
        let found = beyond.map(|what| self.keep_finding(command, &case, what));
        if more {
            let kept = self.kept.entry(command.given).or_default();
            if kept.len() >= KEPT {
                kept.swap_remove(random.below(KEPT as u64) as usize);
            }
            kept.push(case);
        }
        found
    }

    fn keep_finding(&self, command: &Command, case: &Case, what: String) -> String {
        let name = command.name.replace([' ', '.'], "-");
        let at = variable::<PathBuf>("FINDINGS").map(|folder| {
            let folder = folder.join(format!("{name}-{}", self.number));
            case.write(&folder).unwrap();
            folder.display().to_string()
        });
        format!(
            "input {}, {} bytes, {} declared, {}: {what} {}",
            self.number,
            case.bytes(),
            case.declared,
            command.name,
            at.unwrap_or_default()
        )
    }

    fn make(&self, given: Given, random: &mut Random) -> Case {
        let kept = self.kept.get(&given).map_or(&[][..], Vec::as_slice);
        if !kept.is_empty() && random.once_in(3) {
            let mut case = random.choose(kept).clone();
            change(&mut case, random);
            return case;
        }
        match given {
            Given::Recording => self.recording(random),
            Given::Manifest => self.manifest(random),
            Given::State => state(random),
            Given::Pack => self.pack(random),
            Given::Trace => {
                let mut case = self.trace.clone();
                if !random.once_in(16) {
                    damage(&mut case.files[0].1, random);
                }
                case
            }
            Given::Original => match &self.silicon {
                Some(silicon) if random.once_in(8) => {
                    let mut case = silicon.clone();
                    change(&mut case, random);
                    case
                }
                _ => originals::original(random),
            },
            Given::Png => values::png(random),
            Given::Jpeg => values::jpeg(random, &self.jpegs),
            Given::Npy => values::npy(random),
            Given::Safetensors => values::safetensors(random),
        }
    }

    fn recording(&self, random: &mut Random) -> Case {
        let mut case = match random.below(6) {
            0 => random.choose(&self.shipped).clone(),
            1 => Case::of("rec/recording.gpr", random.choose(&self.reviewed).clone()),
            2 => return Case::of("rec/recording.gpr", self.drawing.recording(random)),
            _ => Case::of("rec/recording.gpr", recordings::expensive(random)),
        };
        if random.once_in(2) {
            change(&mut case, random);
        }
        case
    }

    fn manifest(&self, random: &mut Random) -> Case {
        let mut case = random.choose(&self.shipped).clone();
        let manifest = case
            .files
            .iter_mut()
            .find(|(name, _)| name.ends_with("manifest.toml"));
        if let Some((_, text)) = manifest {
            let deep = random.up_to(14) as usize;
            match random.below(4) {
                0 => text
                    .splice(
                        0..0,
                        format!("x = {}1{}\n", "[".repeat(deep), "]".repeat(deep)).into_bytes(),
                    )
                    .count(),
                1 => text
                    .splice(0..0, format!("x{} = 1\n", ".a".repeat(deep)).into_bytes())
                    .count(),
                2 => {
                    let end = text.len();
                    let entry = "[[case]]\ninputs = { x = \"inputs/x.npy\" }\n".repeat(deep);
                    text.splice(end..end, entry.into_bytes()).count()
                }
                _ => {
                    damage(text, random);
                    0
                }
            };
        }
        case
    }

    fn pack(&self, random: &mut Random) -> Case {
        let mut files = BTreeMap::new();
        for (name, bytes) in self.recording(random).files {
            files.insert(name.trim_start_matches("rec/").to_owned(), bytes);
        }
        let more = random.up_to(11);
        if random.once_in(2) {
            files.extend((0..more).map(|index| (format!("f/{index}"), Vec::new())));
        }
        let mut pack = gpureplay_sign::pack(&files).unwrap_or_default();
        if random.once_in(3) {
            damage(&mut pack, random);
        }
        Case::of("x.pack", pack)
    }
}

fn chosen() -> Vec<usize> {
    let Some(only) = variable::<String>("COMMAND") else {
        return (0..COMMANDS.len()).collect();
    };
    let wanted = |command: &Command, name: &str| match COMMANDS.iter().any(|one| one.name == name) {
        true => command.name == name,
        false => command.name.contains(name),
    };
    (0..COMMANDS.len())
        .filter(|which| only.split(',').any(|name| wanted(&COMMANDS[*which], name)))
        .collect()
}

fn spent(path: PathBuf) -> Vec<f64> {
    let all: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let seconds = |command: &Command| all["commands"][command.name]["seconds"].as_f64();
    COMMANDS
        .iter()
        .map(|command| seconds(command).unwrap_or(0.0))
        .collect()
}

fn state(random: &mut Random) -> Case {
    let (recording, names) = recordings::with_states(random);
    let files = BTreeMap::from([("recording.gpr".to_owned(), recording.clone())]);
    let pack = gpureplay_sign::pack(&files).unwrap();
    let mut case = Case::new(vec![
        ("rec/recording.gpr".into(), recording),
        ("x.pack".into(), pack),
        ("s.safetensors".into(), values::states(&names, random)),
    ]);
    if random.once_in(4) {
        change(&mut case, random);
    }
    case
}

/// Recordings in tables, so that checksums stay right, others in bytes.
fn change(case: &mut Case, random: &mut Random) {
    let which = random.below(case.files.len() as u64) as usize;
    let bytes = &mut case.files[which].1;
    match Parts::of(bytes) {
        Some(mut parts) if !random.once_in(16) => {
            mutate(&mut parts, &mut Source(&random.bytes(64)));
            *bytes = parts.file();
        }
        _ => damage(bytes, random),
    }
    *case = Case::new(std::mem::take(&mut case.files));
}

fn whole(one: &shipped::Shipped) -> Case {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../recordings")
        .join(&one.name);
    let mut files = Vec::new();
    for folder in ["", "inputs", "expected"] {
        let entries = fs::read_dir(root.join(folder))
            .into_iter()
            .flatten()
            .flatten();
        for path in entries
            .map(|entry| entry.path())
            .filter(|path| path.is_file())
        {
            let name = path.strip_prefix(&root).unwrap().display();
            files.push((format!("rec/{name}"), fs::read(&path).unwrap()));
        }
    }
    files.sort();
    Case::new(files)
}

fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap();
    time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9
}
