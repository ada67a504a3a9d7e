// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON lines of tries, for later searches to continue.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::{GpuInfo, Times, Verdict};
use gpureplay_cuda_launch::recording::{Hash, Launch};
use gpureplay_host::{beneath, csv};
use serde::{Deserialize, Serialize};

use super::space::Candidate;
use crate::command::failure::{Failure, file, json, written};
use crate::command::report;

const MOST_BYTES: u64 = 1 << 30;

/// One candidate and what became of it.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Try {
    #[serde(flatten)]
    pub(super) candidate: Candidate,
    /// Registers of a thread that the kernel has.
    registers: u32,
    /// `exact`, `within`, `differs`, `inconclusive` or `refused`.
    pub(super) verdict: String,
    /// Microseconds; none if it was refused.
    pub(super) median_us: Option<f64>,
    least_us: Option<f64>,
    /// The range in which the middle half of the runs lies, in microseconds.
    spread_us: Option<f64>,
    /// Why it was refused.
    note: String,
}

pub(super) const HEADER: &str = "image,max_registers,optimisation,max_threads,min_blocks,carveout,grid,block,registers,verdict,median_us,least_us,spread_us,note";

impl Try {
    pub(super) fn new(
        candidate: Candidate,
        registers: u32,
        result: Result<(Verdict, Times), String>,
    ) -> Self {
        let times = result.as_ref().ok().map(|(_, times)| times);
        Self {
            candidate,
            registers,
            verdict: match &result {
                Ok((verdict, _)) => verdict.word().to_owned(),
                Err(_) => "refused".to_owned(),
            },
            median_us: times.map(Times::median),
            least_us: times.map(Times::least),
            spread_us: times.map(Times::spread),
            note: result.err().unwrap_or_default(),
        }
    }

    /// Median and spread in microseconds, if right.
    pub(super) fn right(&self) -> Option<[f64; 2]> {
        let is_right = matches!(&*self.verdict, "exact" | "within");
        is_right.then_some([self.median_us?, self.spread_us?])
    }

    pub(super) fn is_inconclusive(&self) -> bool {
        self.verdict == "inconclusive"
    }

    pub(super) fn csv(&self) -> String {
        let Candidate {
            image,
            max_registers,
            optimisation,
            max_threads,
            min_blocks,
            carveout,
            grid,
            block,
        } = &self.candidate;
        let time = |time: Option<f64>| time.map_or_else(String::new, |time| format!("{time:.2}"));
        csv::line([
            image.clone(),
            max_registers.to_string(),
            optimisation.to_string(),
            max_threads.to_string(),
            min_blocks.to_string(),
            carveout.to_string(),
            report::sizes(*grid),
            report::sizes(*block),
            self.registers.to_string(),
            self.verdict.clone(),
            time(self.median_us),
            time(self.least_us),
            time(self.spread_us),
            // One line per candidate, whatever the driver's linker says.
            self.note.replace('\n', " "),
        ])
    }
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Subject {
    kernel: String,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    image: String,
    /// Hash of all that was recorded of the launch.
    launch: String,
    checking: String,
    gpu: String,
    driver: i32,
    /// Names and hashes.
    images: Vec<[String; 2]>,
}

impl Subject {
    pub(super) fn new(
        launch: &Launch,
        checking: String,
        gpu: &GpuInfo,
        images: &[(String, Vec<u8>)],
    ) -> Result<Self, Failure> {
        let manifest = serde_json::to_vec(launch).map_err(json)?;
        Ok(Self {
            kernel: launch.kernel.clone(),
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            image: launch.image.hash.to_string(),
            launch: Hash::of(&manifest).to_string(),
            checking,
            gpu: gpu.name.clone(),
            driver: gpu.driver,
            images: images
                .iter()
                .map(|(name, bytes)| [name.clone(), Hash::of(bytes).to_string()])
                .collect(),
        })
    }

    fn differs(&self, other: &Self) -> Option<&'static str> {
        // Images that only one tries are no contradiction.
        let contradicts = self.images.iter().any(|[name, hash]| {
            let others = other.images.iter();
            others
                .clone()
                .any(|[other, theirs]| other == name && theirs != hash)
        });
        [
            (self.kernel != other.kernel, "kernel"),
            (
                (self.grid, self.block, self.shared) != (other.grid, other.block, other.shared),
                "size of launch",
            ),
            (self.image != other.image, "recorded image"),
            (
                self.launch != other.launch,
                "launch: parameters or memory are others",
            ),
            (self.checking != other.checking, "way to compare or time"),
            (self.gpu != other.gpu, "GPU"),
            (self.driver != other.driver, "driver"),
            (contradicts, "image of the same name"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

pub(super) struct Tries {
    path: PathBuf,
    file: File,
    pub(super) all: Vec<Try>,
    known: BTreeSet<Candidate>,
}

impl Tries {
    pub(super) fn open(path: &Path, subject: &Subject) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(file(path))?;
        let copy = file.try_clone().map_err(self::file(path))?;
        let text = beneath::contents(copy, MOST_BYTES).map_err(self::file(path))?;
        // A killed process leaves an unended line.
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let damaged = |number: usize, reason: String| Failure::File {
            path: path.to_owned(),
            source: std::io::Error::new(
                ErrorKind::InvalidData,
                format!("line {}: {reason}", number + 1),
            ),
        };
        let mut lines = text[..whole]
            .split_inclusive(|byte| *byte == b'\n')
            .enumerate();
        let mut tries = Self {
            path: path.to_owned(),
            file,
            all: Vec::new(),
            known: BTreeSet::new(),
        };
        tries.file.set_len(whole as u64).map_err(written(path))?;
        match lines.next() {
            None => tries.write(subject)?,
            Some((number, line)) => {
                let theirs: Subject = serde_json::from_slice(line)
                    .map_err(|error| damaged(number, error.to_string()))?;
                if let Some(what) = theirs.differs(subject) {
                    return Err(Failure::Usage(format!(
                        "{}: its tries are of another {what}",
                        path.display()
                    )));
                }
            }
        }
        for (number, line) in lines {
            let one =
                serde_json::from_slice(line).map_err(|error| damaged(number, error.to_string()))?;
            tries.keep(one);
        }
        Ok(tries)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(line).map_err(json)? + "\n";
        self.file
            .write_all(text.as_bytes())
            .map_err(written(&self.path))
    }

    pub(super) fn knows(&self, candidate: &Candidate) -> bool {
        self.known.contains(candidate)
    }

    fn keep(&mut self, one: Try) {
        self.known.insert(one.candidate.clone());
        self.all.push(one);
    }

    pub(super) fn push(&mut self, one: Try) -> Result<(), Failure> {
        self.write(&one)?;
        self.keep(one);
        Ok(())
    }

    pub(super) fn right(&self, candidate: &Candidate) -> Option<[f64; 2]> {
        let mut all = self.all.iter();
        all.find(|one| one.candidate == *candidate)?.right()
    }

    pub(super) fn best(
        &self,
        recorded: &Candidate,
        is_asked_for: impl Fn(&Candidate) -> bool,
    ) -> Option<(&Try, f64)> {
        let [base, spread] = self.right(recorded)?;
        let asked = self.all.iter().filter(|one| is_asked_for(&one.candidate));
        let right = asked.filter_map(|one| Some((one, one.right()?)));
        let (best, [median, own]) = right.min_by(|a, b| a.1[0].total_cmp(&b.1[0]))?;
        (median + own + spread < base).then_some((best, base / median))
    }
}
