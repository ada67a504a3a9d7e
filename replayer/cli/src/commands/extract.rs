// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay extract`: a job as a recording of its own, or the value of a tensor as a file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use gpureplay_edit::extract;
use gpureplay_jobs::{Jobs, Selector};
use gpureplay_library::{Bindings, Options, Recording, Session, TensorKind, shown};

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
  gpureplay extract recordings/lenet-g52 --job 9 -o conv1
      job 9 alone; `gpureplay run conv1` runs it and compares all that it writes
  gpureplay extract recordings/lenet-g52 --job kernel:reshape_layer --dispatches all -o reshape
      each of its dispatches, in reshape/job15 and reshape/job18
  gpureplay extract recordings/lenet-g52 --job hash:b84c --dispatches random:7 -o one
  gpureplay extract recordings/digits-g52 --tensor conv1.weight -o w.npy
      the value of a weight; of an intermediate, what the first case gives";

/// Save one job or one tensor
///
/// The recording is run on the model up to the job. What the job reads is uploaded by the new recording, and all that it writes is its
/// output, with the values that it had as expected values. Before it is written, it runs in memory that is full of other bytes, and must
/// give every byte.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Extract {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The job, or several of which --dispatches chooses: 3, 3..7, /regular expression/, kernel:NAME, hash:98aa, layer:NAME
    #[arg(
        long,
        value_name = "SELECTOR",
        required_unless_present = "tensor",
        conflicts_with = "tensor"
    )]
    job: Option<Selector>,
    /// Which of the jobs: first, all, or random:SEED
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "first",
        conflicts_with = "tensor"
    )]
    dispatches: Dispatches,
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

/// Which of several jobs are taken.
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
    /// The chosen ones of these jobs.
    fn of(self, jobs: &[usize]) -> Vec<usize> {
        match self {
            Self::All => jobs.to_vec(),
            Self::First => jobs.first().copied().into_iter().collect(),
            Self::Random(seed) => {
                // SplitMix64: the same seed chooses the same job everywhere.
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
        match (&self.job, &self.tensor) {
            (Some(selector), _) => self.jobs(&recording, selector, destinations),
            (None, Some(name)) => self.tensor(&recording, name, destinations),
            (None, None) => Err(Failure::Usage("say which --job or which --tensor".into())),
        }
    }

    fn jobs(
        &self,
        recording: &Recording,
        selector: &Selector,
        destinations: Destinations,
    ) -> Result {
        let jobs = table(recording)?;
        let chosen = self.dispatches.of(&selector.select(&jobs)?);
        let bindings = edited::bindings(recording, &self.inputs)?;
        let several = self.dispatches == Dispatches::All && chosen.len() > 1;
        for index in chosen {
            let folder = match several {
                true => self.output.join(format!("job{index}")),
                false => self.output.clone(),
            };
            self.one(recording, &jobs, &bindings, index, &folder, &destinations)?;
        }
        Ok(Outcome::Done)
    }

    fn one(
        &self,
        recording: &Recording,
        jobs: &Jobs,
        bindings: &Bindings,
        index: usize,
        folder: &Path,
        destinations: &Destinations,
    ) -> Result<()> {
        let new = Edited::claim(folder, self.force, destinations)?;
        let extracted = extract(recording, jobs, bindings, index, self.work.limit_work)?;
        let title = jobs.jobs.get(index).map(gpureplay_jobs::Job::title);
        writeln!(
            terminal::report(destinations.takes_standard_output()),
            "{}: job {index}, {}: reads from {} of memory, writes {}, and gives every byte with all other memory full of 0xaa",
            shown(folder),
            title.unwrap_or_default(),
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
