// SPDX-License-Identifier: MIT OR Apache-2.0
//! Settings from the environment.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use gpureplay_cuda_launch::recording::Tuned;
pub(crate) use gpureplay_cuda_launch::recording::{Pick, RegionOf as Region};
use regex_lite::Regex;

use crate::say::say;

pub(crate) enum Mode {
    Off,
    Record(Record),
    Durations(Durations),
    Replace(Replace),
}

pub(crate) struct Replace {
    pub(crate) images: Vec<PathBuf>,
    pub(crate) tuned: Option<(PathBuf, Tuned)>,
    /// Times of originals and replacements in turn.
    pub(crate) table: Option<PathBuf>,
}

pub(crate) struct Record {
    pub(crate) folder: PathBuf,
    pub(crate) pick: Pick,
    pub(crate) most_per_kernel: u64,
    pub(crate) all_memory: bool,
    pub(crate) most_bytes: u64,
    /// Recording to link chunks from.
    pub(crate) share: Option<PathBuf>,
    pub(crate) arena: bool,
    /// Of a snapshot's wait for the GPU.
    pub(crate) time_limit: Duration,
    pub(crate) run: Option<Region>,
    /// Turns of which only inputs and outputs are kept.
    pub(crate) later_turns: u64,
    /// Names of inputs and outputs, if not by order.
    pub(crate) names: Vec<(String, String)>,
}

pub(crate) struct Durations {
    pub(crate) table: PathBuf,
    pub(crate) log: Option<PathBuf>,
}

pub(crate) struct Settings {
    pub(crate) mode: Mode,
    kernel: Option<Regex>,
    pub(crate) rank: Option<u32>,
    pub(crate) cupti: Option<PathBuf>,
    /// Directory for counts to compare with CUPTI's.
    pub(crate) strict: Option<PathBuf>,
    /// Refusals' details, and a sum.
    pub(crate) verbose: bool,
}

impl Settings {
    pub(crate) fn wants(&self, name: &str) -> bool {
        let is_named = match &self.mode {
            Mode::Replace(Replace {
                images,
                tuned: Some((_, tuned)),
                ..
            }) if images.is_empty() => tuned.winners.iter().any(|winner| winner.kernel == name),
            _ => true,
        };
        is_named
            && self
                .kernel
                .as_ref()
                .is_none_or(|kernel| kernel.is_match(name))
    }
}

pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
        read().unwrap_or_else(|reason| {
            say(&format!("{reason}; nothing is done"));
            Settings {
                mode: Mode::Off,
                kernel: None,
                rank: None,
                cupti: None,
                strict: None,
                verbose: false,
            }
        })
    });
    &SETTINGS
}

fn variable(name: &str) -> Option<String> {
    std::env::var(format!("GPUREPLAY_CUDA_{name}")).ok()
}

fn read() -> Result<Settings, String> {
    let path = |name: &str| {
        variable(name)
            .map(PathBuf::from)
            .ok_or_else(|| format!("GPUREPLAY_CUDA_{name} is not set"))
    };
    let number = |name: &str, default: u64| match variable(name) {
        Some(text) => text
            .parse()
            .map_err(|_| format!("GPUREPLAY_CUDA_{name} is not a number")),
        None => Ok(default),
    };
    let rank = rank();
    let mut mode = match variable("MODE").as_deref() {
        None | Some("off") => Mode::Off,
        Some("record") => Mode::Record(Record {
            folder: path("OUTPUT")?,
            pick: variable("PICK")
                .map_or(Ok(Pick::First), |pick| pick.parse())
                .map_err(|reason| format!("GPUREPLAY_CUDA_PICK {reason}"))?,
            most_per_kernel: number("MAX_PER_KERNEL", u64::MAX)?,
            all_memory: variable("ALL_MEMORY").is_some(),
            most_bytes: number("MAX_BYTES", 64 << 30)?,
            share: variable("SHARE").map(PathBuf::from),
            arena: match variable("ALLOC").as_deref() {
                None | Some("native") => false,
                Some("arena") => true,
                Some(other) => return Err(format!("GPUREPLAY_CUDA_ALLOC is {other:?}")),
            },
            time_limit: Duration::from_secs(number("TIME_LIMIT", 30)?),
            run: variable("RUN")
                .map(|region| region.parse())
                .transpose()
                .map_err(|reason| format!("GPUREPLAY_CUDA_RUN {reason}"))?,
            later_turns: number("LATER_TURNS", 2)?,
            names: variable("NAMES")
                .unwrap_or_default()
                .split(',')
                .filter_map(|pair| pair.split_once('='))
                .map(|(old, new)| (old.to_owned(), new.to_owned()))
                .collect(),
        }),
        Some("durations") => Mode::Durations(Durations {
            table: path("OUTPUT")?,
            log: variable("LOG").map(PathBuf::from),
        }),
        Some("replace") => {
            let tuned = variable("TUNED").map(PathBuf::from).map(|path| {
                let tuned = Tuned::read(&path).map_err(|error| error.to_string())?;
                Ok::<_, String>((path, tuned))
            });
            Mode::Replace(Replace {
                images: variable("IMAGES")
                    .map(|images| std::env::split_paths(&images).collect())
                    .unwrap_or_default(),
                tuned: tuned.transpose()?,
                table: variable("OUTPUT").map(PathBuf::from),
            })
        }
        Some(other) => return Err(format!("GPUREPLAY_CUDA_MODE is {other:?}")),
    };
    if let Some(wanted) = variable("RANK")
        && rank.map(|rank| rank.to_string()) != Some(wanted)
    {
        mode = Mode::Off;
    }
    let kernel = variable("KERNEL")
        .map(|text| Regex::new(&text))
        .transpose()
        .map_err(|error| format!("GPUREPLAY_CUDA_KERNEL: {error}"))?;
    Ok(Settings {
        mode,
        kernel,
        rank,
        cupti: variable("CUPTI").map(PathBuf::from),
        strict: variable("STRICT").map(PathBuf::from),
        verbose: variable("VERBOSE").is_some(),
    })
}

fn rank() -> Option<u32> {
    [
        "OMPI_COMM_WORLD_RANK",
        "PMI_RANK",
        "PMIX_RANK",
        "RANK",
        "SLURM_PROCID",
    ]
    .iter()
    .find_map(|name| std::env::var(name).ok()?.parse().ok())
}
