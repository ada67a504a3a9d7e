// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay extract`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use gpureplay_edit::extract;
use gpureplay_jobs::{Jobs, Selector};
use gpureplay_library::{Bindings, Options, Recording, Session, TensorKind, selection, shown};

use crate::common::destinations::{Destinations, Force};
use crate::common::edited::{self, Edited};
use crate::common::failure::{Failure, Outcome};
use crate::common::job_options::table;
use crate::common::model_options::WorkLimit;
use crate::common::tensor_arguments::{TensorFile, bind_or_take_case};
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay extract recordings/lenet-g52 --jobs 9 -o conv1
      job 9 alone; `gpureplay run conv1` runs it and compares all that it writes
  gpureplay extract recordings/lenet-g52 --layers conv1..pool1 -o start
      layers, or jobs such as --jobs 7..10, as one recording
  gpureplay extract recordings/lenet-g52 --jobs kernel:reshape_layer --dispatches all -o reshape
      each of its dispatches, in reshape/job15 and reshape/job18
  gpureplay extract recordings/lenet-g52 --jobs hash:b84c --dispatches random:7 -o one
  gpureplay extract recordings/digits-g52 --tensor conv1.weight -o w.npy
      the value of a weight; of an intermediate, what the first case gives";

/// Save jobs, layers or one tensor
///
/// The recording is run on the model up to the jobs. The new recording uploads what they read. All that they write is its output,
/// with its values as expected values. Before it is written, it runs in memory that is full of other bytes, and must
/// give every byte.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Extract {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// Jobs as one recording: 3, 3..7, /regular expression/, kernel:NAME, hash:98aa, layer:NAME, or a list of these with commas
    #[arg(
        long,
        value_name = "SELECTOR",
        required_unless_present_any = ["tensor", "job", "layers"],
        conflicts_with_all = ["tensor", "job", "layers"]
    )]
    jobs: Option<Selector>,
    /// Layers as one recording, by name or number; both ends are included
    #[arg(long, value_name = "FIRST..LAST", conflicts_with_all = ["tensor", "job"])]
    layers: Option<String>,
    /// One of the jobs that this means, which --dispatches chooses
    #[arg(long, value_name = "SELECTOR", conflicts_with = "tensor", hide = true)]
    job: Option<Selector>,
    /// Which of the jobs, each as a recording of its own: first, all, or random:SEED
    #[arg(long, value_name = "WHICH", conflicts_with_all = ["tensor", "layers"])]
    dispatches: Option<Dispatches>,
    /// The tensor
    #[arg(long, value_name = "NAME")]
    tensor: Option<String>,
    /// Directory for the recording (with several jobs: for one directory each), or file for the tensor
    #[arg(short, long, value_name = "DIR|FILE")]
    output: PathBuf,
    /// File for an input; the manifest's first case without any
    #[arg(short, long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<TensorFile>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    work: WorkLimit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dispatches {
    First,
    All,
    Random(u64),
}

impl FromStr for Dispatches {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let seed = || text.strip_prefix("random:")?.parse().ok();
        match text {
            "first" => Ok(Self::First),
            "all" => Ok(Self::All),
            _ => seed()
                .map(Self::Random)
                .ok_or_else(|| "expected first, all, or random:SEED with a number".into()),
        }
    }
}

impl Dispatches {
    fn of(self, jobs: &[usize]) -> Vec<usize> {
        match self {
            Self::All => jobs.to_vec(),
            Self::First => jobs.first().copied().into_iter().collect(),
            Self::Random(seed) => {
                // SplitMix64: the same everywhere.
                let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
                mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
                let at = (mixed ^ mixed >> 31) % (jobs.len().max(1) as u64);
                jobs.get(at as usize).copied().into_iter().collect()
            }
        }
    }
}

impl Extract {
    pub(crate) fn execute(&self) -> Result {
        let trust = self.trust.read()?;
        let (recording, mut destinations) = edited::open(&self.recording, &trust, self.force)?;
        for input in &self.inputs {
            destinations.reads(&input.path);
        }
        if let Some(name) = &self.tensor {
            return self.tensor(&recording, name, destinations);
        }
        let jobs = table(&recording)?;
        let chosen = match (self.jobs.as_ref().or(self.job.as_ref()), &self.layers) {
            (Some(selector), _) => selector.select(&jobs)?,
            (None, Some(layers)) => jobs_of_layers(&recording, &jobs, layers)?,
            (None, None) => {
                return Err(Failure::Usage(
                    "say which --jobs, --layers or --tensor".into(),
                ));
            }
        };
        // The old name took one job.
        let dispatches = self
            .dispatches
            .or(self.job.is_some().then_some(Dispatches::First));
        self.jobs(&recording, &jobs, (chosen, dispatches), &destinations)
    }

    fn jobs(
        &self,
        recording: &Recording,
        jobs: &Jobs,
        (chosen, dispatches): (Vec<usize>, Option<Dispatches>),
        destinations: &Destinations,
    ) -> Result {
        let bindings = edited::bindings(recording, &self.inputs)?;
        let from = (recording, jobs, &bindings);
        let Some(dispatches) = dispatches else {
            self.one(from, &chosen, &self.output, destinations)?;
            return Ok(Outcome::Done);
        };
        let chosen = dispatches.of(&chosen);
        let several = dispatches == Dispatches::All && chosen.len() > 1;
        for index in chosen {
            let folder = match several {
                true => self.output.join(format!("job{index}")),
                false => self.output.clone(),
            };
            self.one(from, &[index], &folder, destinations)?;
        }
        Ok(Outcome::Done)
    }

    fn one(
        &self,
        (recording, jobs, bindings): (&Recording, &Jobs, &Bindings),
        indices: &[usize],
        folder: &Path,
        destinations: &Destinations,
    ) -> Result<()> {
        let new = Edited::claim(folder, self.force, destinations)?;
        let extracted = extract(recording, jobs, bindings, indices, self.work.limit_work)?;
        let (what, does) = match indices {
            [only] => {
                let title = jobs.jobs.get(*only).map(gpureplay_jobs::Job::title);
                let what = format!("job {only}, {}", title.unwrap_or_default());
                (what, ["reads", "writes", "gives"])
            }
            many => (
                text::count(many.len() as u64, "job"),
                ["read", "write", "give"],
            ),
        };
        let [reads, writes, gives] = does;
        writeln!(
            terminal::report(destinations.takes_standard_output()),
            "{}: {what}: {reads} from {} of memory, {writes} {}, and {gives} every byte with all other memory full of 0xaa",
            shown(folder),
            text::bytes(extracted.uploaded),
            text::bytes(extracted.written),
        )?;
        new.write(&extracted.bytes, &extracted.manifest, &extracted.expected)
    }

    fn tensor(&self, recording: &Recording, name: &str, mut destinations: Destinations) -> Result {
        destinations.claim_tensor(&self.output)?;
        let mut session: Session = recording.session(Options {
            model: self.work.into(),
            ..Options::default()
        })?;
        let (_, info) = session.bindings().named(name)?;
        let kind = info.kind;
        if kind == TensorKind::Weight {
            session.prepare()?;
        } else {
            bind_or_take_case(&self.inputs, &mut session)?;
            if kind == TensorKind::Intermediate {
                session.keep(name)?;
            }
            session.run()?;
        }
        let tensor = session.read(name)?;
        destinations.write_tensor(&self.output, &tensor)?;
        let info = session.tensor(name)?;
        writeln!(
            terminal::report(destinations.takes_standard_output()),
            "{}: {} {} {info}",
            shown(&self.output),
            info.kind.name(),
            info.name
        )?;
        session.close()?;
        Ok(Outcome::Done)
    }
}

fn jobs_of_layers(recording: &Recording, jobs: &Jobs, range: &str) -> Result<Vec<usize>> {
    let layers = recording.layers();
    let range = selection::range(layers, range)?;
    let layers = layers.get(range).unwrap_or_default();
    let named = |job: &&gpureplay_jobs::Job| {
        let layer = jobs.layer(job);
        layer.is_some_and(|layer| layers.iter().any(|it| it.name == layer.name))
    };
    let chosen = jobs.jobs.iter().filter(named);
    Ok(chosen.map(|job| job.index).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_are_chosen() {
        let jobs = [3, 5, 8];
        let of = |text: &str| text.parse::<Dispatches>().map(|it| it.of(&jobs));
        assert_eq!(of("first"), Ok(vec![3]));
        assert_eq!(of("all"), Ok(vec![3, 5, 8]));
        let seeds: Vec<_> = (0..40)
            .map(|seed| of(&format!("random:{seed}")).unwrap()[0])
            .collect();
        assert!(jobs.iter().all(|job| seeds.contains(job)));
        assert_eq!(of("random:7"), of("random:7"));
        assert!(of("random").is_err() && of("last").is_err() && of("random:x").is_err());
    }
}
