// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay patch`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use std::sync::Arc;

use gpureplay_edit::{Change, Kernel, Launch, Pair, Proof, Subject, inputs, launch};
use gpureplay_jobs::Selector;

use crate::Result;
use crate::common::arguments::positive_number;
use crate::common::destinations::Force;
use crate::common::edited::{self, Edited};
use crate::common::failure::{Failure, Outcome};
use crate::common::job_options::{one, table};
use crate::common::model_options::WorkLimit;
use crate::common::terminal;
use crate::common::trust_options::TrustOptions;

const EXAMPLES: &str = "\
Examples:
  gpureplay patch recordings/digits-g52 --jobs 11 --local 4x4 -o patched
      work groups of 4 x 4 threads; says whether that is proven to compute the same
  gpureplay patch recordings/saxpy-g52 --jobs 0 --global 1024
      is refused: it names the first address outside of tensors
  gpureplay disasm recordings/digits-g52 --jobs 11 --save code
  gpureplay patch recordings/digits-g52 --jobs 11 --shader mine.bin -o patched
      another shader, if it fits what the job gives its threads
  gpureplay patch recordings/digits-g52 --jobs 11 --from other:11 -o patched
      a whole job of another recording: its shader, uniforms, storage and sizes, with pointers to the tensors of the same names
  gpureplay patch recordings/saxpy-g52 --jobs 0 --from other:0 --map left=x --map right=y -o patched
Without -o the change is tried only.";

/// Change a job's work groups or shader
///
/// The change is tried on the model beside the recorded job, with several inputs. Other work groups must give equal memory; they are proven
/// to do so for every input where the shader's code allows it. No change may reach memory that belongs to no tensor and that the
/// recorded job does not reach. The new recording keeps all rules, says in its manifest what was done to which recording, and has no signature.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Patch {
    /// Directory with a recording.gpr, such a file, or a pack
    recording: PathBuf,
    /// The job: a number, or anything else that means one job, such as kernel:NAME
    #[arg(long, alias = "job", value_name = "SELECTOR")]
    jobs: Selector,
    /// Threads of a work group
    #[arg(long, value_name = "X[xY[xZ]]", value_parser = launch::parse)]
    local: Option<[u32; 3]>,
    /// Threads of the whole dispatch
    #[arg(long, value_name = "X[xY[xZ]]", value_parser = launch::parse)]
    global: Option<[u32; 3]>,
    /// File with a shader, from its first clause on, as `gpureplay disasm --save` writes them. What the file of the same name ending in
    /// .toml says about its interface must fit as well
    #[arg(long, value_name = "FILE.bin", conflicts_with = "from")]
    shader: Option<PathBuf>,
    /// A job of another recording, which is taken as a whole; pointers lead to tensors of the same names, or to what --map says
    #[arg(long, value_name = "RECORDING:JOB", conflicts_with_all = ["local", "global"])]
    from: Option<String>,
    /// Where data of the other recording is in this one: a tensor's name or an address on each side; may be repeated
    #[arg(long, value_name = "THEIRS=OURS", requires = "from")]
    map: Vec<Pair>,
    /// How many inputs the change is tried with: the manifest's cases, then the first one's elements in another order
    #[arg(long, alias = "inputs", value_name = "N", default_value_t = 3, value_parser = positive_number)]
    trials: u32,
    /// Directory for the new recording
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    work: WorkLimit,
}

impl Patch {
    pub(crate) fn execute(&self) -> Result {
        let nothing = self.local.is_none()
            && self.global.is_none()
            && self.shader.is_none()
            && self.from.is_none();
        if nothing {
            return Err(Failure::Usage(
                "say what to change: --local, --global, --shader or --from".into(),
            ));
        }
        let trust = self.trust.read()?;
        let (recording, mut destinations) = edited::open(&self.recording, &trust, self.force)?;
        if let Some(shader) = &self.shader {
            destinations.reads(shader);
        }
        if let Some((other, _)) = self.from.as_ref().and_then(|from| from.split_once(':')) {
            destinations.reads_named(Path::new(other));
        }
        let new = Edited::claim_if(self.output.as_deref(), self.force, &destinations)?;
        let jobs = table(&recording)?;
        let index = one(&self.jobs, &jobs)?;
        let inputs = inputs(&recording, self.trials as usize)?;
        let subject = Subject::new(&recording, &jobs, index, &inputs, self.work.limit_work)?;
        let recorded = subject.launch();
        let change = match &self.from {
            Some(text) => Arc::new(edited::taken(
                text, &recording, &self.map, &trust, self.work,
            )?)
            .into(),
            None => {
                let global = self
                    .global
                    .map_or(recorded.global(), |sizes| sizes.map(u64::from));
                let kernel = match &self.shader {
                    Some(path) => Kernel::Shader(edited::read_shader(path)?),
                    None => Kernel::Recorded,
                };
                Change {
                    launch: Launch::over(global, self.local.unwrap_or(recorded.local))?,
                    kernel,
                }
            }
        };
        let changed = subject.apply(&change)?;
        let mut out = terminal::report(false);
        let tried = &changed.tried;
        let same_threads = change.launch.global() == recorded.global();
        if let Kernel::Job(taken) = &change.kernel {
            writeln!(out, "job {index}: {} in its place", taken.origin())?;
        } else if change.launch != recorded {
            let verdict = match &tried.proof {
                Proof::Proven => "proven to compute the same for every input".to_owned(),
                unproven => unproven.to_string(),
            };
            writeln!(out, "job {index}: {verdict}")?;
        }
        match tried.different {
            0 => writeln!(
                out,
                "  writes the same bytes for {} inputs on the model{}",
                tried.inputs,
                if same_threads {
                    ""
                } else {
                    ", with other threads"
                }
            )?,
            bytes => writeln!(
                out,
                "  {bytes} bytes differ from what the recorded job writes, so expected outputs are left out"
            )?,
        }
        if let (Some(before), Some(after)) = (&tried.before, &tried.after) {
            writeln!(
                out,
                "  modelled work: {} instructions instead of {}, {} bytes read instead of {}",
                after.instructions, before.instructions, after.bytes_read, before.bytes_read
            )?;
        }
        if let Some(new) = new {
            new.put(&recording, &changed, self.command(index), &mut out)?;
        }
        Ok(Outcome::Done)
    }

    fn command(&self, index: usize) -> String {
        let sizes = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join("x");
        let mut command = format!(
            "gpureplay patch {} --jobs {index}",
            self.recording.display()
        );
        let mut add = |option: &str, value: Option<String>| {
            if let Some(value) = value {
                command += &format!(" --{option} {value}");
            }
        };
        add("local", self.local.map(sizes));
        add("global", self.global.map(sizes));
        add(
            "shader",
            self.shader.as_ref().map(|path| path.display().to_string()),
        );
        add("from", self.from.clone());
        for Pair { theirs, ours } in &self.map {
            add("map", Some(format!("{theirs}={ours}")));
        }
        command
    }
}
