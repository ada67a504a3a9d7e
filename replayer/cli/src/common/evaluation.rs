// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay run --inputs`: answers, and which are right.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::time::Instant;

use clap::Args;
use gpureplay_library::values::read_if;
use gpureplay_library::{
    Bindings, Element, ElementType, Number, Session, Tensor, TensorInfo, TensorKind, escaped, list,
    shown,
};
use serde::Serialize;

use crate::common::destinations::Destinations;
use crate::common::failure::Failure;
use crate::common::interrupt::{Interrupt, Stopped};
use crate::common::progress::Progress;
use crate::common::rows;
use crate::{Result, text};

const ENDINGS: [&str; 6] = ["npy", "bin", "raw", "png", "jpg", "jpeg"];
/// Most classes of a printed table.
const TABLE: usize = 16;
/// Classes; counts take the square of it.
const MAX_CLASSES: usize = 2048;
/// Inputs in one file.
const MAX_COUNT: u64 = 1 << 24;
/// Bytes of values in a file.
const MAX_INPUTS: u64 = 4 << 30;
/// Bytes of a line of classes.
const MAX_LINE: u64 = 1024;

/// Options about many inputs.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ManyInputs {
    /// Run once for each file of a directory, in the order of their names; or for each element of an .npy file with one more dimension; with
    /// --repeat a directory with a NAME.npy for each input
    #[arg(
        long = "inputs",
        value_name = "DIR|FILE",
        conflicts_with_all = ["expected", "trace", "output_layer", "layers", "until"]
    )]
    pub(crate) inputs_from: Option<PathBuf>,
    /// The right class of each of them: an .npy file of integers, or a text file with a number or a name per line
    #[arg(long, value_name = "FILE", requires = "inputs_from")]
    truth: Option<PathBuf>,
}

/// What is answered for one input.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Answer<'a> {
    input: String,
    /// Number of the largest element; nothing if none is a number.
    class: Option<usize>,
    label: Option<&'a str>,
    value: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    truth: Option<usize>,
}

/// All answers.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct Evaluation<'a> {
    recording: String,
    device: String,
    inputs: usize,
    /// Ctrl-C came before all inputs were done.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped>,
    seconds: f64,
    inputs_per_second: f64,
    /// Part of the answers that are right.
    accuracy: Option<f64>,
    right: Option<usize>,
    /// By right class, then by answer; nothing without the right classes, or if there are more than 2048.
    confusion: Option<Vec<Vec<usize>>>,
    answers: Vec<Answer<'a>>,
    /// The output of all inputs, one row each; empty if it is not wanted.
    #[serde(skip)]
    rows: Vec<u8>,
}

impl ManyInputs {
    pub(crate) fn given(&self) -> bool {
        self.inputs_from.is_some()
    }

    pub(crate) fn mark_read(&self, destinations: &mut Destinations) {
        for path in self.inputs_from.iter().chain(&self.truth) {
            destinations.reads(path);
        }
        let directory = self.inputs_from.as_ref();
        let entries = directory.and_then(|directory| std::fs::read_dir(directory).ok());
        for entry in entries.into_iter().flatten().flatten() {
            destinations.reads(&entry.path());
        }
    }

    pub(crate) fn evaluate<'a>(
        &self,
        session: &mut Session,
        others: &Others<'_>,
        labels: &'a [String],
        how: How<'_>,
    ) -> Result<Evaluation<'a>> {
        let from = self.inputs_from.as_deref().unwrap_or(Path::new(""));
        let (input, output) = (open_input(session)?, only_output(session)?);
        let classes = output.shape.iter().product::<u64>() as usize;
        let sources = sources(from, &input)?;
        if how.rows {
            rows::fit(&output, sources.len())?;
        }
        let truth = self
            .truth
            .as_deref()
            .map(|path| read_truth(path, labels, classes, sources.len()));
        let truth = truth.transpose()?;
        let work = Work {
            input,
            output: output.name,
            sources,
            next: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            done: Arc::default(),
            how,
        };
        let (found, seconds) = work.share(session, others)?;
        session.close()?;
        let stopped = Stopped::of(found.len(), work.sources.len())?;
        let rows = found.iter().flat_map(|found| &found.row).copied();
        let rows = rows.collect();
        let said = |(index, Found { class, value, .. }): (usize, Found)| Answer {
            input: work.sources.name(index),
            class,
            label: class.and_then(|class| labels.get(class).map(String::as_str)),
            value: value.map(Number),
            truth: truth.as_ref().and_then(|truth| truth.get(index).copied()),
        };
        let answers: Vec<Answer<'a>> = found.into_iter().enumerate().map(said).collect();
        let judged = || answers.iter().filter(|answer| answer.truth.is_some());
        let right = truth.is_some().then(|| {
            judged()
                .filter(|answer| answer.class == answer.truth)
                .count()
        });
        let counted = truth.is_some() && classes <= MAX_CLASSES;
        let counted = if counted { classes } else { 0 };
        let mut confusion = vec![vec![0; counted]; counted];
        for answer in judged() {
            let (Some(truth), Some(class)) = (answer.truth, answer.class) else {
                continue;
            };
            if let Some(count) = confusion.get_mut(truth).and_then(|row| row.get_mut(class)) {
                *count += 1;
            }
        }
        Ok(Evaluation {
            recording: session.recording().name(),
            device: session.description(),
            inputs: answers.len(),
            stopped,
            seconds,
            inputs_per_second: answers.len() as f64 / seconds,
            accuracy: right.map(|right| right as f64 / answers.len() as f64),
            right,
            confusion: (counted > 0).then_some(confusion),
            answers,
            rows,
        })
    }
}

pub(crate) struct Others<'a> {
    pub(crate) count: usize,
    pub(crate) open: &'a (dyn Fn() -> Result<Session> + Sync),
}

#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) rows: bool,
}

struct Found {
    /// `None` if no element is a number.
    class: Option<usize>,
    value: Option<f64>,
    row: Vec<u8>,
}

struct Work<'a> {
    input: TensorInfo,
    output: String,
    sources: Sources,
    next: AtomicUsize,
    stop: AtomicBool,
    done: Arc<AtomicU64>,
    how: How<'a>,
}

impl Work<'_> {
    /// Runs all inputs, or those up to Ctrl-C. Returns results and seconds after loading, or the first failure.
    fn share(&self, session: &mut Session, others: &Others<'_>) -> Result<(Vec<Found>, f64)> {
        let total = Some(self.sources.len() as u64);
        let _progress = Progress::start("replaying", self.done.clone(), total, "inputs");
        let count = others.count.min(self.sources.len().saturating_sub(1));
        let bindings: Vec<Bindings> = vec![session.bindings().clone(); count];
        let mut started = Instant::now();
        let results: Vec<_> = std::thread::scope(|scope| {
            let others: Vec<_> = bindings
                .into_iter()
                // Without another thread, the existing sessions take all inputs.
                .map_while(|bindings| {
                    let other = move || {
                        let opened = (others.open)().map(|mut session| {
                            session.bind_all(bindings);
                            session
                        });
                        let mut session =
                            opened.map_err(|failure| self.fail(usize::MAX, failure))?;
                        let found = self.take(&mut session)?;
                        let closed = session.close();
                        closed.map_err(|error| self.fail(usize::MAX, error.into()))?;
                        Ok(found)
                    };
                    std::thread::Builder::new().spawn_scoped(scope, other).ok()
                })
                .collect();
            let own = session.prepare();
            started = Instant::now();
            let own = own.map_err(|error| self.fail(0, error.into()));
            let own = own.and_then(|()| self.take(session));
            let others = others.into_iter().map(|other| {
                other
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            others.chain([own]).collect()
        });
        let mut found: Vec<Option<Found>> = (0..self.sources.len()).map(|_| None).collect();
        let mut first: Option<(usize, Failure)> = None;
        for result in results {
            match result {
                Ok(some) => some
                    .into_iter()
                    .for_each(|(index, one)| found[index] = Some(one)),
                Err(failed) if first.as_ref().is_none_or(|first| failed.0 < first.0) => {
                    first = Some(failed);
                }
                Err(_) => {}
            }
        }
        match first {
            Some((_, failure)) => Err(failure),
            // Taken inputs are finished: those done are the first ones.
            None => Ok((
                found.into_iter().map_while(|found| found).collect(),
                started.elapsed().as_secs_f64(),
            )),
        }
    }

    /// Inputs are taken in order: earlier ones are still done.
    fn fail(&self, index: usize, failure: Failure) -> (usize, Failure) {
        self.stop.store(true, Relaxed);
        (index, failure)
    }

    fn take(
        &self,
        session: &mut Session,
    ) -> std::result::Result<Vec<(usize, Found)>, (usize, Failure)> {
        let mut found = Vec::new();
        while !self.stop.load(Relaxed) && !self.how.interrupt.came() {
            let index = self.next.fetch_add(1, Relaxed);
            if index >= self.sources.len() {
                break;
            }
            let best = self.run(session, index);
            found.push((index, best.map_err(|failure| self.fail(index, failure))?));
            self.done.fetch_add(1, Relaxed);
        }
        Ok(found)
    }

    fn run(&self, session: &mut Session, index: usize) -> Result<Found> {
        let input = &self.input;
        match &self.sources {
            Sources::Files(files) => session.bind_file(&input.name, &files[index])?,
            Sources::Parts(all, _) => {
                let at = index * input.bytes;
                let bytes = all.bytes().get(at..at + input.bytes).unwrap_or_default();
                let value = Tensor::new(input.dtype, &input.shape, bytes.to_vec());
                let value = value.map_err(|error| Failure::Input(error.to_string()))?;
                session.bind(&input.name, value)?;
            }
        }
        session.run()?;
        let values = session.read(&self.output)?;
        let numbers = values
            .values()
            .enumerate()
            .filter(|(_, value)| !value.is_nan());
        // The first of equal ones, as NumPy's argmax.
        let best = numbers.reduce(|best, other| if other.1 > best.1 { other } else { best });
        Ok(Found {
            class: best.map(|best| best.0),
            value: best.map(|best| best.1),
            row: match self.how.rows {
                true => values.bytes().to_vec(),
                false => Vec::new(),
            },
        })
    }
}

#[derive(Debug)]
enum Sources {
    Files(Vec<PathBuf>),
    Parts(Tensor, usize),
}

impl Sources {
    fn len(&self) -> usize {
        match self {
            Self::Files(files) => files.len(),
            Self::Parts(_, count) => *count,
        }
    }

    fn name(&self, index: usize) -> String {
        match self {
            Self::Files(files) => {
                let name = files[index].file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            }
            Self::Parts(..) => index.to_string(),
        }
    }
}

fn sources(from: &Path, input: &TensorInfo) -> Result<Sources> {
    let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(from)));
    if !from.is_dir() {
        let (mut found, mut stated) = (String::new(), 0);
        let all = read_if(from, MAX_INPUTS, |dtype, shape| {
            found = text::typed_shape(dtype, shape);
            let split = shape.split_first();
            let of_inputs = split.filter(|(_, one)| *one == input.shape && dtype == input.dtype);
            stated = of_inputs.map_or(0, |(count, _)| *count);
            of_inputs.is_some() && stated <= MAX_COUNT
        })?;
        if stated > MAX_COUNT {
            return Err(wrong(format!(
                "{stated} inputs, more than the {MAX_COUNT} that one file may have"
            )));
        }
        let Some(all) = all else {
            let (name, count) = (&input.name, "N".to_owned());
            let extents = input.shape.iter().map(u64::to_string);
            let extents: Vec<String> = std::iter::once(count).chain(extents).collect();
            let wanted = format!("{}[{}]", input.dtype.name(), extents.join(","));
            return Err(wrong(format!(
                "expected {wanted} for inputs of `{name}`, {MAX_INPUTS} bytes at most, got {found}"
            )));
        };
        let count = all.bytes().len() / input.bytes.max(1);
        return match count {
            0 => Err(wrong("holds no inputs".into())),
            count => Ok(Sources::Parts(all, count)),
        };
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(from).map_err(|error| wrong(error.to_string()))? {
        let path = entry.map_err(|error| wrong(error.to_string()))?.path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        let ending = ending.map(str::to_ascii_lowercase);
        if path.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(wrong(format!(
            "has no files that end in .{}",
            ENDINGS.join(", .")
        )));
    }
    Ok(Sources::Files(files))
}

fn open_input(session: &Session) -> Result<TensorInfo> {
    match session.missing().as_slice() {
        [only] => Ok(session.tensor(only)?.clone()),
        _ => Err(Failure::Usage(format!(
            "--inputs: all inputs but one must be given with --input; {}",
            list(session.recording().tensors(), TensorKind::Input)
        ))),
    }
}

pub(crate) fn only_output(session: &Session) -> Result<TensorInfo> {
    let tensors = session.recording().tensors();
    let mut outputs = tensors
        .iter()
        .filter(|tensor| tensor.kind == TensorKind::Output);
    match (outputs.next(), outputs.next()) {
        (Some(only), None) if !only.shape.contains(&0) => Ok(only.clone()),
        _ => Err(Failure::Usage(format!(
            "--inputs needs a recording with one output, whose largest element is the answer; {}",
            list(tensors, TensorKind::Output)
        ))),
    }
}

fn read_truth(path: &Path, labels: &[String], classes: usize, inputs: usize) -> Result<Vec<usize>> {
    let wrong = |reason: String| Failure::Input(format!("{}: {reason}", shown(path)));
    let npy = path.extension().is_some_and(|ending| ending == "npy");
    let truth: Vec<usize> = if npy {
        let mut found = None;
        let tensor = read_if(path, MAX_INPUTS, |dtype: ElementType, shape| {
            let elements = shape
                .iter()
                .try_fold(1u64, |all, &each| all.checked_mul(each));
            found = elements.filter(|_| !dtype.is_float());
            found == Some(inputs as u64)
        })?;
        let Some(tensor) = tensor else {
            return Err(wrong(match found {
                Some(found) => format!("{found} classes for {inputs} inputs"),
                None => "expected integers".into(),
            }));
        };
        let class = |value: f64| match value {
            value if value >= 0.0 && value < classes as f64 => Ok(value as usize),
            value => Err(wrong(format!("{value} is no class; there are {classes}"))),
        };
        tensor.values().map(class).collect::<Result<_>>()?
    } else {
        let limit = (inputs as u64).saturating_mul(MAX_LINE);
        let mut text = String::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(limit + 1).read_to_string(&mut text))
            .map_err(|error| wrong(error.to_string()))?;
        if text.len() as u64 > limit {
            return Err(wrong(format!(
                "more than {limit} bytes for {inputs} inputs"
            )));
        }
        let class = |(line, name): (usize, &str)| {
            let by_name = labels.iter().position(|label| label == name.trim());
            let by_number = || name.trim().parse().ok().filter(|class| *class < classes);
            by_name.or_else(by_number).ok_or_else(|| {
                let name = escaped(name.trim());
                wrong(format!(
                    "line {}: {name} is no class; there are {classes}",
                    line + 1
                ))
            })
        };
        text.lines().enumerate().map(class).collect::<Result<_>>()?
    };
    match truth.len() {
        found if found == inputs => Ok(truth),
        found => Err(wrong(format!("{found} classes for {inputs} inputs"))),
    }
}

impl Evaluation<'_> {
    pub(crate) fn take_rows(&mut self) -> (Vec<String>, Vec<u8>) {
        let names = self.answers.iter().map(|answer| answer.input.clone());
        (names.collect(), std::mem::take(&mut self.rows))
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{} on {}", escaped(&self.recording), self.device)?;
        for answer in &self.answers {
            let wrong = answer.truth.is_some() && answer.truth != answer.class;
            if answer.truth.is_some() && !wrong {
                continue;
            }
            let class = answer.class.map(|class| format!("element {class}"));
            let said = answer.label.or(class.as_deref()).unwrap_or("no number");
            let value = answer
                .value
                .map_or(String::new(), |value| format!(" ({:.3})", value.0));
            write!(
                out,
                "  {}: {}{value}",
                escaped(&answer.input),
                escaped(said)
            )?;
            match answer.truth {
                Some(truth) => writeln!(out, ", right is {truth}")?,
                None => writeln!(out)?,
            }
        }
        if let Some(confusion) = self.confusion.as_ref().filter(|rows| rows.len() <= TABLE) {
            writeln!(out, "  right class by line, answers:")?;
            for (truth, row) in confusion.iter().enumerate() {
                let counts: Vec<String> = row.iter().map(|count| format!("{count:>5}")).collect();
                writeln!(out, "  {truth:>4} {}", counts.join(""))?;
            }
        }
        let done = match self.stopped {
            Some(stopped) => stopped.to_string(),
            None => text::count(self.inputs as u64, "input"),
        };
        let mut line = format!(
            "{done} in {}, {:.0} per second",
            text::seconds(self.seconds),
            self.inputs_per_second
        );
        if let (Some(right), Some(accuracy)) = (self.right, self.accuracy) {
            line += &format!(
                " · {right} of {} right ({:.1} %)",
                self.inputs,
                accuracy * 100.0
            );
        }
        writeln!(out, "→ {line}")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: u64, each: u64, value_bytes: u64) -> std::result::Result<usize, String> {
        let file = tempfile::Builder::new().suffix(".npy").tempfile().unwrap();
        let text =
            format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({count}, {each}), }}\n");
        let head = [
            b"\x93NUMPY\x01\x00",
            &(text.len() as u16).to_le_bytes()[..],
            text.as_bytes(),
        ];
        std::fs::write(file.path(), head.concat()).unwrap();
        file.as_file()
            .set_len(10 + text.len() as u64 + value_bytes)
            .unwrap();
        let input = TensorInfo {
            name: "x".into(),
            kind: TensorKind::Input,
            dtype: ElementType::U8,
            shape: vec![each],
            external: false,
            bytes: each as usize,
        };
        let found = sources(file.path(), &input).map_err(|failure| failure.to_string());
        found.map(|sources| sources.len())
    }

    #[test]
    fn a_file_has_as_many_inputs_as_it_may() {
        let most = 1 << 24;
        assert_eq!(found(most, 1, most), Ok(1 << 24));
        let error = found(most + 1, 1, 0).unwrap_err();
        assert!(error.contains("16777217 inputs, more than"), "{error}");
    }

    #[test]
    fn a_file_of_inputs_has_as_many_bytes_as_it_may() {
        // Read if it were as long as its header says.
        let error = found(1 << 10, 1 << 22, 0).unwrap_err();
        assert!(error.contains("needs 4294967296 bytes"), "{error}");
        // 641 times 6700417 is 2^32 + 1.
        let error = found(641, 6_700_417, 0).unwrap_err();
        assert!(error.contains("4294967296 bytes at most"), "{error}");
    }
}
