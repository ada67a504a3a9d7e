// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest foreign`: records and replays others' programs.

mod judge;
mod overhead;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::Args;
use mali_facts::StreamGpu;

use crate::{
    build::{
        self, payload,
        step::{Cache, Step},
    },
    error::{Error, Result},
    files,
    folder::Folder,
    run::driver::Driver,
    run::session::{self, End, Options},
};

struct App {
    name: &'static str,
    /// `{s}`: the set of inputs.
    command: &'static str,
    /// Tensors that are equal in both runs.
    weights: usize,
    /// Neither input nor output ends in zeros: traces without notes show them whole.
    unnoted: bool,
    sample: bool,
}

const APPS: &[App] = &[
    App {
        name: "clblast",
        command: "gemm 96 80 64 {s}.bin weight.bin out-{s}.bin",
        weights: 1,
        unnoted: true,
        sample: true,
    },
    App {
        name: "pyopencl",
        command: "python3 /mnt/foreign/bin/picture.py {s}.pgm out-{s}.bin",
        weights: 1,
        unnoted: false,
        sample: true,
    },
    App {
        name: "pyopencl-loop",
        command: "python3 /mnt/foreign/bin/picture.py {s}.pgm out-{s}.bin 3",
        weights: 1,
        unnoted: false,
        sample: true,
    },
    App {
        name: "photo",
        command: "photo {s}.png out-{s}.bin",
        weights: 1,
        unnoted: false,
        sample: true,
    },
    App {
        name: "graph-lenet",
        command: "graph_lenet --target=CL --data=. --image={s}.npy --labels=labels.txt",
        weights: 8,
        unnoted: false,
        sample: true,
    },
    App {
        name: "graph-squeezenet",
        command: "graph_squeezenet --target=CL --data=. --image={s}.ppm --labels=labels.txt",
        weights: 52,
        unnoted: false,
        sample: false,
    },
    App {
        name: "graph-mobilenet",
        command: "graph_mobilenet --target=CL --model-id=1 --data=. --image={s}.ppm --labels=labels.txt",
        weights: 137,
        unnoted: false,
        sample: false,
    },
];

/// Records programs that others wrote, unchanged, naming none of their files.
///
/// Each runs live with two inputs, is recorded with two, and replayed with the second and a third: replays must give
/// what the unrecorded program reads, bit for bit. Further runs show that the OpenCL layer changes nothing, and what
/// two traces tell without it.
#[derive(Args)]
#[command(after_help = "\
Exit codes: 0 when all are right; 1 otherwise.

Examples:
  cargo xtask guest foreign
  cargo xtask guest foreign clblast graph-squeezenet --keep target/foreign
  cargo xtask guest foreign clblast photo --gpu g610
  cargo xtask guest foreign --overhead clblast graph-lenet
  cargo xtask guest foreign --list")]
pub(crate) struct Foreign {
    /// Programs; all if none is named.
    names: Vec<String>,
    /// Which GPU. With command streams the driver is the kernel's, the recorder in the app.
    #[arg(long, default_value = "g52", value_name = "NAME")]
    gpu: String,
    /// Keep files, traces and recordings in this directory.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print the programs' names.
    #[arg(long)]
    list: bool,
    /// Record nothing: compare each program's processor time with and without the OpenCL layer, by counted
    /// instructions.
    #[arg(long)]
    overhead: bool,
    /// Use the programs in target/guest/opt and target/debug as they are.
    #[arg(long)]
    no_build: bool,
    /// Seconds until the run is given up.
    #[arg(long, default_value_t = 3600, value_name = "SECONDS")]
    timeout: u64,
}

impl Foreign {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        if self.list {
            APPS.iter().for_each(|app| println!("{}", app.name));
            return Ok(ExitCode::SUCCESS);
        }
        let mut apps = Vec::new();
        for name in &self.names {
            let found = APPS.iter().find(|app| app.name == name);
            apps.push(found.ok_or_else(|| {
                let known: Vec<&str> = APPS.iter().map(|app| app.name).collect();
                Error::Usage(format!(
                    "{name}: no such program; there are {}",
                    known.join(", ")
                ))
            })?);
        }
        if apps.is_empty() {
            apps = APPS.iter().collect();
        }
        let folder = Folder::find()?;
        folder.require_built()?;
        if !self.no_build {
            payload::prepare(&folder, Driver::Patched)?;
            payload::build_host_command(&folder)?;
        }
        let temporary = files::temporary()?;
        let work = match &self.keep {
            Some(dir) => std::path::absolute(dir).map_err(Error::io("find", dir))?,
            None => temporary.path().to_path_buf(),
        };
        files::create_dir(&work)?;
        let mut good = true;
        let what = match self.overhead {
            false => What::Recordings,
            true => What::Overhead,
        };
        let how = (self.gpu.as_str(), what, self.timeout);
        for (name, found) in run(&folder, &work, &apps, how)? {
            match found {
                Ok(text) => println!("ok   {name}: {text}"),
                Err(text) => {
                    println!("FAIL {name}: {text}");
                    good = false;
                }
            }
        }
        Ok(ExitCode::from(u8::from(!good)))
    }
}

pub(crate) fn run_sample(folder: &Folder, gpu: &str) -> Result<(usize, Vec<String>)> {
    let work = files::temporary()?;
    let apps: Vec<&App> = APPS.iter().filter(|app| app.sample).collect();
    let found = run(folder, work.path(), &apps, (gpu, What::Recordings, 1800))?;
    let wrong = |(name, found): &(&str, Found)| Some(format!("{name}: {}", found.as_ref().err()?));
    let wrong: Vec<String> = found.iter().filter_map(wrong).collect();
    Ok((found.len() - wrong.len(), wrong))
}

pub(crate) fn alone(folder: &Folder, name: &str, work: &Path) -> Result<(PathBuf, String)> {
    let app = APPS.iter().find(|app| app.name == name);
    let app = app.ok_or_else(|| Error::Usage(format!("{name}: no program of others")))?;
    let files = folder.recipe().join("foreign/files.py");
    payload::python(folder, &files, &[name.as_ref(), work.as_os_str()])?;
    Ok((unpack(folder)?, app.command.replace("{s}", "a")))
}

type Found = std::result::Result<String, String>;

#[derive(Clone, Copy)]
enum What {
    Recordings,
    Overhead,
}

const RUN: &str = r#"set -e
export OPENCL_LAYERS=/mnt/foreign/lib/libwitness.so
app() { echo "${COMMAND//\{s\}/$1}"; }
for set in b c; do WITNESS=live-$set.bin $(app $set) > live-$set.txt; done
gpureplay record --twice -o recording -- $(app a) -- $(app b)
# Runs that are compared take turns on one processor where they block.
alike="taskset -c 0 chrt -f 1"
WITNESS=with.bin gpureplay record --raw with -- $alike $(app c)
WITNESS=without.bin gpureplay record --raw without --no-layer -- $alike $(app c)
gpureplay record --raw without-b --no-layer -- $alike $(app b)
"#;

pub(crate) const MOUNT: &str = "mkdir -p /mnt/foreign
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,ro,cache=loose extra /mnt/foreign || exit 1
export PATH=/mnt/foreign/bin:$PATH LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/mnt/foreign/lib PYTHONPATH=/mnt/foreign/python
";

const ALL: &str = r#"[ ! -e cache.tar ] || tar -C /tmp/cache -xf cache.tar
for name in "$@"; do
	(cd "$name" && COMMAND=$(< command) bash -x ../run.sh > log 2>&1)
	echo "$name $?"
done
tar -C /tmp/cache -cf cache.new . && mv cache.new cache.tar
"#;

fn run<'a>(
    folder: &Folder,
    work: &Path,
    apps: &[&'a App],
    (gpu, what, timeout): (&str, What, u64),
) -> Result<Vec<(&'a str, Found)>> {
    let tree = unpack(folder)?;
    let put = |path: PathBuf, text: &str| files::write(&path, text);
    let text = match what {
        What::Recordings => RUN,
        What::Overhead => overhead::RUN,
    };
    put(work.join("run.sh"), text)?;
    for app in apps {
        let own = work.join(app.name);
        files::create_dir(&own)?;
        put(own.join("command"), app.command)?;
        let files = folder.recipe().join("foreign/files.py");
        payload::python(folder, &files, &[app.name.as_ref(), own.as_os_str()])?;
    }
    let cache = Cache::named(&folder.guest, "foreign", "foreign")?;
    cache.give(&work.join("cache.tar"))?;
    let mut command: Vec<String> = ["bash", "-c", &format!("{MOUNT}{ALL}"), "foreign"]
        .map(String::from)
        .into();
    command.extend(apps.iter().map(|app| app.name.to_owned()));
    let driver = match StreamGpu::by_name(gpu) {
        Some(_) => Driver::Stock,
        None => Driver::Patched,
    };
    let options = Options {
        gpu: gpu.into(),
        extra: Some(tree),
        timeout: Duration::from_secs(timeout),
        counted: matches!(what, What::Overhead),
        ..Options::sharing(driver, work)
    };
    let outcome = session::run(folder, &options, Some(&command))?;
    let said = outcome.said();
    if outcome.end == End::Exit(0) {
        cache.keep(&work.join("cache.tar"))?;
    }
    let verdict = |app: &&'a App| {
        let ended = said.lines().any(|line| line == format!("{} 0", app.name));
        let own = work.join(app.name);
        let found = match (ended, what) {
            (true, What::Recordings) => judge::judge(folder, app, &own),
            (true, What::Overhead) => {
                overhead::judge(&own.join("log")).unwrap_or_else(|error| Err(error.to_string()))
            }
            (false, _) => Err(format!(
                "did not run to its end ({:?}, logs: {}): {}",
                outcome.end,
                outcome.logs.display(),
                build::step::last_lines(&work.join(app.name).join("log"), 8)
            )),
        };
        (app.name, found)
    };
    let mut found: Vec<_> = apps.iter().map(verdict).collect();
    if let Some(fault) = outcome.faults.first() {
        found.push(("the kernel's log", Err(fault.clone())));
    }
    Ok(found)
}

fn unpack(folder: &Folder) -> Result<PathBuf> {
    let guest = &folder.guest;
    let _lock = Folder::lock(guest)?;
    let recipe = folder.recipe().join("foreign");
    let sources = guest.join("foreign-sources");
    files::create_dir(guest.join("steps"))?;
    files::create_dir(&sources)?;
    files::copy(recipe.join("foreign.sh"), guest.join("steps/foreign.sh"))?;
    for name in ["gemm.c", "photo.c", "witness.c", "picture.py"] {
        files::copy(recipe.join(name), sources.join(name))?;
    }
    let step = Step {
        name: "foreign",
        makes: "programs of others",
        inputs: &[
            "sources.list",
            "foreign-sources/gemm.c",
            "foreign-sources/photo.c",
            "foreign-sources/witness.c",
            "foreign-sources/picture.py",
        ],
        after: &["build-root", "userland"],
        environment: vec![],
    };
    step.run(guest)?;
    Ok(guest.join("foreign"))
}
