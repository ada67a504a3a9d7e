// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest piglit`: piglit's OpenCL tests, many per boot.

mod causes;
mod results;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Args, ValueEnum};
use gpureplay_task::measured;

use self::{causes::Causes, results::Results};
use crate::{
    build::{
        payload,
        step::{Cache, Step},
    },
    error::{Error, Result},
    files,
    folder::Folder,
    run::driver::Driver,
    run::session::{self, End, Options},
};

const SCRIPT: &str = "mkdir -p /mnt/piglit && \
    mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose extra /mnt/piglit || exit 1\n\
    if [ -e cache.tar ]; then tar xf cache.tar -C /tmp/cache; fi\n\
    save() { tar cf cache.new -C /tmp/cache .; mv cache.new cache.tar; }\n\
    while sleep 240; do save; done & saver=$!\n\
    python3 runner.py --root /mnt/piglit --results results.jsonl \"$@\" || exit 1\n\
    kill $saver; wait $saver 2> /dev/null; save";
const RESULTS: &str = "results.jsonl";
const CACHE: &str = "cache.tar";

/// Tests that a subset names.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Subset {
    /// About five minutes on two idle cores.
    Ci,
}

/// Runs piglit's OpenCL tests (Debian's package, arm64) in the guest, all in one boot.
///
/// A test with a GPU fault in the kernel log does not pass. What did not pass beside another test is run again alone.
/// Each result of a full run is kept in target/guest/piglit-GPU: --resume goes on with a run that was ended.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 when all failures have a cause in tools/guest/piglit/causes.toml that is not the model's; 1 otherwise.

Examples:
  cargo xtask guest piglit
  cargo xtask guest piglit --gpu g72 --write-doc
  cargo xtask guest piglit --filter 'vload-float|atomic_add' --jobs 1
  cargo xtask guest piglit --subset ci --json
  cargo xtask guest piglit --gpu g72 --resume
  cargo xtask guest piglit --from target/guest/piglit-g52/results.jsonl --write-doc")]
pub(crate) struct Piglit {
    /// Which GPU the model is.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Only tests whose name matches this regular expression.
    #[arg(long, value_name = "RE", default_value = "")]
    filter: String,
    /// Only the tests of a committed list.
    #[arg(long, value_enum)]
    subset: Option<Subset>,
    /// Tests at the same time; the guest has two CPUs.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    jobs: u32,
    /// Seconds of guest time that one test may take.
    #[arg(long, default_value_t = 600, value_name = "SECONDS")]
    timeout: u32,
    /// Minutes after which no further test begins.
    #[arg(long, default_value_t = 360, value_name = "MINUTES")]
    limit: u32,
    /// Print the results as one JSON object.
    #[arg(long)]
    json: bool,
    /// Keep the results in measurements/piglit-GPU.json.
    #[arg(long)]
    write_doc: bool,
    /// Go on with the last full run on this GPU: tests without result.
    #[arg(long, conflicts_with_all = ["filter", "subset", "from"])]
    resume: bool,
    /// Run nothing: take the results of an earlier run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["filter", "subset"])]
    from: Option<PathBuf>,
    /// Use the model server as it is.
    #[arg(long)]
    no_build: bool,
}

impl Piglit {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let causes: Causes = files::from_toml(folder.recipe().join("piglit/causes.toml"))?;
        let results = match &self.from {
            Some(path) => {
                let text = files::text(path)?;
                Results::parse(&text)
            }
            None => self.run(&folder)?,
        };
        if self.write_doc {
            let name = format!("piglit-{}", self.gpu);
            measured::keep(&name, &results.tables(&causes, &self.gpu))?;
        }
        if self.json {
            println!("{}", results.json(&self.gpu));
        } else {
            print!("{}", results.text(&causes, &self.gpu));
        }
        let good = results.complete() && results.unexplained(&causes, &self.gpu).is_empty();
        Ok(ExitCode::from(u8::from(!good)))
    }

    fn run(&self, folder: &Folder) -> Result<Results> {
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(folder, Driver::Stock)?;
        }
        let wanted = Wanted {
            gpu: &self.gpu,
            filter: &self.filter,
            subset: self.subset.map(|Subset::Ci| "ci"),
            jobs: self.jobs,
            timeout: self.timeout,
            limit: self.limit,
        };
        if !self.filter.is_empty() || self.subset.is_some() {
            return run_apart(folder, &wanted);
        }
        let share = folder.local.join(format!("piglit-{}", self.gpu));
        files::create_dir(&share)?;
        let path = share.join(RESULTS);
        if !self.resume && path.exists() {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
        let results = run(folder, &share, &wanted)?;
        eprintln!("results: {}", path.display());
        Ok(results)
    }
}

pub(crate) fn run_subset(folder: &Folder, gpu: &str, every: usize) -> Result<(usize, Vec<String>)> {
    let names = files::text(folder.recipe().join("piglit/ci.txt"))?;
    let names: Vec<&str> = names.lines().step_by(every).collect();
    let exactly: Vec<String> = names
        .iter()
        .map(|name| format!("^{}$", escaped(name)))
        .collect();
    let wanted = Wanted {
        gpu,
        filter: &exactly.join("|"),
        subset: None,
        jobs: 2,
        timeout: 300,
        limit: 60,
    };
    let results = run_apart(folder, &wanted)?;
    Ok((results.passed(), results.not_passed(names.into_iter())))
}

fn escaped(name: &str) -> String {
    let special = |c: &char| !c.is_alphanumeric() && *c != '@' && *c != '-' && *c != '_';
    let piece = |c: char| [special(&c).then_some('\\'), Some(c)].into_iter().flatten();
    name.chars().flat_map(piece).collect()
}

struct Wanted<'a> {
    gpu: &'a str,
    filter: &'a str,
    subset: Option<&'a str>,
    jobs: u32,
    timeout: u32,
    limit: u32,
}

fn run_apart(folder: &Folder, wanted: &Wanted<'_>) -> Result<Results> {
    let share = files::temporary()?;
    run(folder, share.path(), wanted)
}

fn run(folder: &Folder, share: &Path, wanted: &Wanted<'_>) -> Result<Results> {
    let tree = unpack(folder)?;
    let recipe = folder.recipe().join("piglit");
    let copy = |from: &Path, name: &str| files::copy(from, share.join(name));
    copy(&recipe.join("runner.py"), "runner.py")?;
    // Its name depends on the runtime, which itself keys programs by source and GPU.
    let cache = Cache::named(&folder.guest, "piglit", "userland")?;
    if !share.join(CACHE).exists() {
        cache.give(&share.join(CACHE))?;
    }
    let mut command: Vec<String> = ["bash", "-c", SCRIPT, "piglit"].map(String::from).into();
    let mut option = |name: &str, value: String| command.extend([name.to_owned(), value]);
    option("--jobs", wanted.jobs.to_string());
    option("--timeout", wanted.timeout.to_string());
    option("--until", (wanted.limit * 60).to_string());
    option("--filter", wanted.filter.to_owned());
    if let Some(subset) = wanted.subset {
        copy(&recipe.join(format!("{subset}.txt")), "names")?;
        option("--names", "names".into());
    }
    let options = Options {
        gpu: wanted.gpu.into(),
        share: Some(share.to_path_buf()),
        extra: Some(tree),
        timeout: Duration::from_secs(u64::from(wanted.limit) * 60 + 3600),
        ..Options::default()
    };
    let outcome = session::run(folder, &options, Some(&command))?;
    let results = Results::parse(&outcome.said());
    if outcome.end == End::Exit(0) {
        cache.keep(&share.join(CACHE))?;
    } else {
        eprintln!("warning: the run ended early ({:?})", outcome.end);
        outcome.print_logs();
    }
    Ok(results)
}

fn unpack(folder: &Folder) -> Result<PathBuf> {
    let guest = &folder.guest;
    let _lock = Folder::lock(guest)?;
    files::create_dir(guest.join("steps"))?;
    files::copy(
        folder.recipe().join("piglit/piglit.sh"),
        guest.join("steps/piglit.sh"),
    )?;
    let step = Step {
        name: "piglit",
        makes: "piglit's OpenCL tests",
        inputs: &["sources.list"],
        after: &[],
        environment: vec![],
    };
    step.run(guest)?;
    Ok(guest.join("piglit"))
}
