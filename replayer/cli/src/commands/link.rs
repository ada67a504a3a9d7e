// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay link`.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use gpureplay_library::files::FILE_NAME;
use gpureplay_library::weights::sha256;
use gpureplay_library::{Recording, manifest, shown};
use mali_jobs::link::{Linked, MOST_JOBS, join_layers, lengths, link};

use crate::common::destinations::{Destinations, Force};
use crate::common::edited;
use crate::common::failure::{Failure, Outcome};
use crate::common::manifest_text::manifest_text;
use crate::common::new_directory::NewDirectory;
use crate::common::new_recording::placed;
use crate::common::terminal;
use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay link recordings/digits-g52 -o digits
      every layer is one submission; `run` then needs one for all layers
  gpureplay link recordings/digits-g52 --max-jobs 8 -o digits
      the GPU can be lent to others after every eighth job
  gpureplay link recordings/digits-g52 --whole -o digits-at-once
      one submission for all layers, for replayers that run the file as it is: firmware, a secure world
  gpureplay link digits --split -o digits-by-job
      one submission for each job again";

/// Join or split job chains
///
/// Each chain gets descriptors of its own, which set-up uploads once; chains between which the processor has nothing to do become one, with a
/// barrier where one ended. Every job is proved to be the recorded one. `gpureplay compile` and `record` do the same unless --no-link is given.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Link {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The directory to write
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Jobs that a chain may have
    #[arg(long, alias = "most-jobs", value_name = "N", default_value_t = MOST_JOBS, value_parser = clap::value_parser!(u32).range(1..=65535))]
    max_jobs: u32,
    /// Join the layers too: they cannot be run one by one any more
    #[arg(long)]
    whole: bool,
    /// Give each job a chain of its own instead
    #[arg(long, alias = "apart", conflicts_with_all = ["max_jobs", "whole"])]
    split: bool,
    #[command(flatten)]
    force: Force,
}

impl Link {
    pub(crate) fn execute(&self) -> Result {
        let recording = Recording::open(&self.recording)?;
        let files = recording.files();
        let mut destinations = Destinations::new(self.force.force);
        destinations.reads_recording(files);
        let place = NewDirectory::new(self.output.clone(), self.force)?;
        let wrong = |error: mali_jobs::link::LinkError| {
            Failure::Recording(format!("{}: {error}", shown(&self.recording)))
        };
        let verified = recording.verified();
        let no_chains = |error| {
            let from = shown(&self.recording);
            Failure::Recording(format!(
                "{from}: {error}; each is submitted whole already, so there is nothing to link"
            ))
        };
        let verified = verified.chains().map_err(no_chains)?;
        let before = lengths(verified).map_err(wrong)?;
        let (bytes, jobs, chains) = match self.split {
            true => {
                let apart = recording.apart()?;
                let chains = apart.verified();
                let chains = chains.chains().map_err(no_chains)?;
                let chains = lengths(chains).map_err(wrong)?.len();
                let jobs = apart.manifest().map(|it| it.jobs.clone());
                (apart.files().bytes.clone(), jobs, chains)
            }
            false => {
                let linked = link(&files.bytes, verified, self.max_jobs);
                let mut linked = linked.map_err(wrong)?;
                if self.whole && recording.layers().len() > 1 {
                    linked = self.join_layers(&linked)?;
                }
                let jobs = files.manifest.as_ref();
                let jobs = jobs.map(|it| placed(it.jobs.clone(), &linked.places));
                (linked.bytes, jobs, linked.chains as usize)
            }
        };
        let mut contents = files.beside()?;
        if let (Some(manifest), Some(jobs)) = (&files.manifest, jobs) {
            let mut manifest = manifest.clone();
            manifest.drop_variants(&mut contents);
            manifest.jobs = jobs;
            if let Some(name) = self.output.file_name().and_then(|name| name.to_str()) {
                manifest.name = name.to_owned();
            }
            manifest.provenance.insert("sha256".into(), sha256(&bytes));
            let from = sha256(&files.bytes);
            if bytes != files.bytes {
                manifest.provenance.insert("linked from".into(), from);
            }
            let text = manifest_text(&manifest)?;
            contents.insert(manifest::FILE_NAME.into(), text.into_bytes());
        }
        let size = bytes.len() as u64;
        contents.insert(FILE_NAME.into(), bytes);
        place.write(&contents, &destinations)?;
        let mut out = terminal::report(false);
        writeln!(
            out,
            "{}  {} instead of {}, {}",
            shown(&self.output),
            text::count(chains as u64, "chain"),
            before.len(),
            text::bytes(size)
        )?;
        edited::say_unsigned(&mut out, files)?;
        Ok(Outcome::Done)
    }

    fn join_layers(&self, linked: &Linked) -> Result<Linked> {
        let wrong =
            |text: String| Failure::Recording(format!("{}: {text}", shown(&self.recording)));
        let joined = join_layers(linked, self.max_jobs);
        joined.map_err(|error| wrong(error.to_string()))?.ok_or_else(|| {
            wrong("its layers cannot be joined: the processor has work between them; leave --whole away".into())
        })
    }
}
