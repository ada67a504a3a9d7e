// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay analyse`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use gpureplay_jobs::analysis::What;
use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::analysis::report::{NamedVerdict, Report, Verdict};
use gpureplay_jobs::measure::{Watch, measure};
use gpureplay_jobs::{Jobs as Table, Measured, Report as Jobs};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Recording, Session};
use mali_model::Observer;

use crate::Result;
use crate::common::analysis_text;
use crate::common::failure::{Failure, Outcome};
use crate::common::job_options::JobOptions;
use crate::common::model_options::ModelOptions;
use crate::common::page_options::{Format, PageOptions};
use crate::common::tensor_arguments::{TensorFile, bind_or_take_case};
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;

const EXAMPLES: &str = "\
Examples:
  gpureplay analyse recordings/lenet-g52 --what lines
      which jobs use how much of the memory lines that they touch
  gpureplay analyse recordings/lenet-g52 --what races,uninit --deny all
      verdicts; exit code 1 if something was found or not everything could be looked at
  gpureplay analyse recordings/lenet-g52 --jobs layer:conv2 --what heat --json > heat.json
  gpureplay analyse recordings/lenet-g52 -o lenet.html
      one page: time bars, heat maps, findings, shaders with what was found
  gpureplay analyse recordings/lenet-g52 --json > all.json
  gpureplay disasm recordings/lenet-g52 --annotate all.json
      what was found, beside the instructions
docs/kernels.md says what is counted, and what is left out.";

/// Check memory accesses, races, divergence
///
/// The recording is run once on the model, with analysers in the jobs that are selected. Results do not depend on --threads.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Analyse {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    #[command(flatten)]
    jobs: JobOptions,
    /// Analyses, with commas between: counts, divergence, heat, lines, races, uninit, out-of-tensor; or all
    #[arg(long, value_name = "LIST", default_value = "all")]
    what: What,
    /// Exit code 1 unless these analyses found nothing in all jobs: races, uninit, out-of-tensor, with commas between; or all
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = ["races", "uninit", "out-of-tensor", "all"])]
    deny: Vec<String>,
    /// File for an input; the manifest's first case without any
    #[arg(short, long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<TensorFile>,
    /// Print as JSON
    #[arg(long, conflicts_with = "html")]
    json: bool,
    #[command(flatten)]
    page: PageOptions,
    #[command(flatten)]
    model: ModelOptions,
    #[command(flatten)]
    trust: TrustOptions,
}

impl Analyse {
    pub(crate) fn execute(&self) -> Result {
        self.denied_is_looked_for()?;
        let recording = Recording::open_trusted(&self.recording, &self.trust.read()?)?.apart()?;
        let formats = [Format::Html, Format::Json];
        let (format, destinations) = self.page.claim(&recording, &formats)?;
        let (table, selected) = self.jobs.select(&recording)?;
        let report = analyse(
            &recording,
            &table,
            &selected,
            self.what,
            self.model.into(),
            |session| bind_or_take_case(&self.inputs, session),
        )?;
        if format == Some(Format::Html) {
            let measured = self.measure(&recording, &table)?;
            let selection = self.jobs.text();
            let jobs = Jobs::new(&recording, &table, &selected, selection, Some(&measured));
            let page = &self.page;
            page.write(&destinations, &jobs, &table, Some(&report))?;
        } else if format == Some(Format::Json) {
            let file = json(&report)?;
            self.page.write_text(&destinations, file.as_bytes())?;
        } else {
            self.print(&report)?;
        }
        let denied = |what: &str| self.deny.iter().any(|it| it == what || it == "all");
        let clean =
            |verdict: &NamedVerdict| verdict.verdict == Verdict::Clean || !denied(&verdict.what);
        match (&report.ended_early, report.verdicts.iter().all(clean)) {
            (Some(why), _) => Err(Failure::Device(format!(
                "the run ended early, so that the analysis is not complete: {why}"
            ))),
            (None, true) => Ok(Outcome::Done),
            (None, false) => Ok(Outcome::Mismatch),
        }
    }

    fn denied_is_looked_for(&self) -> Result<()> {
        let looked_for = self.what.names();
        let missing = self
            .deny
            .iter()
            .find(|it| *it != "all" && !looked_for.contains(&it.as_str()));
        match missing {
            Some(missing) => Err(Failure::Usage(format!(
                "--deny {missing} needs {missing} in --what"
            ))),
            None => Ok(()),
        }
    }

    fn measure(&self, recording: &Recording, table: &Table) -> Result<Measured> {
        let watch = Arc::new(Watch::default());
        let observer: Arc<dyn Observer> = watch.clone();
        let id = recording.verified().recording().gpu_id();
        let choice = Choice::Model(None);
        let device = Device::open_observed(&choice, id, self.model.into(), Some(observer))?;
        let mut session = Session::on(recording.clone(), device);
        bind_or_take_case(&self.inputs, &mut session)?;
        let measured = measure(&mut session, table, Some(&watch), 0, 1)?;
        session.close()?;
        Ok(measured)
    }

    fn print(&self, report: &Report) -> Result<()> {
        let mut out = terminal::buffered_stdout();
        if self.json {
            out.write_all(json(report)?.as_bytes())?;
        } else {
            analysis_text::print(&mut out, report)?;
        }
        Ok(out.flush()?)
    }
}

fn json(report: &Report) -> Result<String> {
    let text = serde_json::to_string(report).map_err(|error| Failure::Output(error.to_string()))?;
    Ok(text + "\n")
}
