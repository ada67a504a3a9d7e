// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of a recorder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::ValueEnum;
use gpureplay_library::shown;
use gpureplay_linux::kbase;
use gpureplay_trace::{Check, Event, Reader};
use nix::unistd::{AccessFlags, access};

use crate::Result;
use crate::common::companion;
use crate::common::failure::Failure;
use crate::common::model_node::{ModelNode, NodeOptions};
use crate::common::recording_choices::Pair;

#[derive(Clone, Copy)]
struct Drivers<'a> {
    /// Directory with the render nodes.
    nodes: &'a Path,
    kbase: &'a Path,
}

impl Drivers<'static> {
    fn here() -> Self {
        Self {
            nodes: Path::new("/sys/class/drm"),
            kbase: Path::new(kbase::PATH),
        }
    }
}

/// A recorder, as the command line names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// Kernel module and patched driver
    Kernel,
    /// Library in the app, on the stock panfrost, panthor or kbase driver; needs no root
    User,
    /// Library in the app, on the model's render node; needs no GPU
    Model,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Kernel(PathBuf),
    User(PathBuf),
    Model(PathBuf, ModelNode),
}

impl Way {
    pub(crate) fn choose(asked: Option<Name>, device: &Path, node: &NodeOptions) -> Result<Self> {
        let library = || companion::RECORDER.find(None);
        Self::among(asked, device, Drivers::here(), &library, node)
    }

    fn among(
        asked: Option<Name>,
        device: &Path,
        drivers: Drivers<'_>,
        library: &dyn Fn() -> Result<PathBuf>,
        node: &NodeOptions,
    ) -> Result<Self> {
        match asked {
            Some(Name::Kernel) => Ok(Self::Kernel(device.to_path_buf())),
            Some(Name::User) => library().map(Self::User),
            Some(Name::Model) => Ok(Self::Model(library()?, node.node()?)),
            None if access(device, AccessFlags::R_OK).is_ok() => {
                Ok(Self::Kernel(device.to_path_buf()))
            }
            None if drivers.any() => library().map(Self::User),
            None => match library().and_then(|library| Ok(Self::Model(library, node.node()?))) {
                Ok(way) => Ok(way),
                Err(failure) => Err(Failure::Device(format!(
                    "nothing to record with: {} is not there or not readable (--recorder kernel: insmod gpureplay_recorder.ko and the \
                     patched driver, driver-patch/build makes both); no render node is panfrost's or panthor's, and {} is not there or not \
                     for you (--recorder user: load the driver, join its group); and the model cannot take its place (--recorder model): {failure}",
                    shown(device),
                    shown(drivers.kbase)
                ))),
            },
        }
    }

    pub(crate) fn ready(name: Name, device: &Path, node: &NodeOptions) -> Result<Self> {
        let missing = |what: String| Err(Failure::Device(what));
        match name {
            Name::Kernel if access(device, AccessFlags::R_OK).is_err() => missing(format!(
                "{} is not there, or not readable (driver-patch/README.md)",
                shown(device)
            )),
            Name::User if !Drivers::here().any() => missing(format!(
                "no render node is panfrost's or panthor's, and {} is not there or not for you",
                kbase::PATH
            )),
            _ => Self::choose(Some(name), device, node),
        }
    }

    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Kernel(device) => format!("the recorder in the kernel, {}", shown(device)),
            Self::User(_) => "a library in the app, on the kernel's driver; needs no root".into(),
            Self::Model(_, node) => format!(
                "a library in the app, on the model of {}; needs no GPU",
                node.gpu()
            ),
        }
    }

    pub(crate) fn command(
        &self,
        app: &[String],
        layer: Option<&Path>,
        trace: &Path,
    ) -> Result<Command> {
        let (program, arguments) = app
            .split_first()
            .ok_or_else(|| Failure::Usage("which app?".into()))?;
        let mut command = match self {
            Self::Model(_, node) => node.command(app)?,
            Self::Kernel(_) | Self::User(_) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
        };
        if let Some(layer) = layer {
            // The last is nearest to the runtime.
            let before = std::env::var_os("OPENCL_LAYERS");
            command.env("OPENCL_LAYERS", joined(before, Some(layer.into())));
        }
        match self {
            Self::Kernel(device) if layer.is_some() => {
                command.env("GPUREPLAY_NOTES", device);
            }
            Self::Kernel(_) => {}
            // Above other libraries: one of them may replace the driver.
            Self::User(library) | Self::Model(library, _) => {
                let others = of(&command, "LD_PRELOAD").or_else(|| std::env::var_os("LD_PRELOAD"));
                command.env("LD_PRELOAD", joined(Some(library.into()), others));
                command.env("GPUREPLAY_TRACE", trace);
            }
        }
        Ok(command)
    }
}

impl Way {
    /// For users who did not choose this way.
    pub(crate) fn said(&self) -> Option<String> {
        match self {
            Self::Kernel(_) | Self::User(_) => None,
            Self::Model(_, node) => Some(format!(
                "no recorder in the kernel and no panfrost here: the app runs on the model of {}; --gpu names another",
                node.gpu()
            )),
        }
    }

    /// What the driver does not tell.
    pub(crate) fn provenance(&self) -> Option<Pair<String>> {
        match self {
            Self::Kernel(_) | Self::User(_) => None,
            Self::Model(_, node) => Some(Pair {
                key: "recorded_on".into(),
                value: format!("the model of {}, without a GPU", node.gpu()),
            }),
        }
    }
}

fn of(command: &Command, variable: &str) -> Option<OsString> {
    let mut set = command.get_envs();
    set.find_map(|(name, value)| Some(value.filter(|_| name == variable)?.to_owned()))
}

fn joined(first: Option<OsString>, second: Option<OsString>) -> OsString {
    let parts = [first, second].into_iter().flatten();
    let parts: Vec<OsString> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(":".as_ref())
}

impl Drivers<'_> {
    /// Whether the library knows the calls of a node.
    fn any(self) -> bool {
        let mut nodes = fs::read_dir(self.nodes).into_iter().flatten().flatten();
        let found = nodes.any(|node| {
            let is_node = node.file_name().to_string_lossy().starts_with("renderD");
            let driver = fs::read_link(node.path().join("device/driver"));
            let known = |driver: PathBuf| {
                ["panfrost", "panthor"]
                    .iter()
                    .any(|it| driver.ends_with(it))
            };
            is_node && driver.is_ok_and(known)
        });
        found || kbase::may_open(self.kbase)
    }
}

/// Checks that a trace is whole and without errors. Returns the number of submissions.
pub(crate) fn check(trace: &Path) -> Result<u64> {
    let file =
        File::open(trace).map_err(|error| Failure::Input(format!("{}: {error}", shown(trace))))?;
    if file.metadata().is_ok_and(|status| status.len() == 0) {
        return Err(Failure::Recording(
            "the app gave the GPU no job that the recorder saw: the recorder in the app sees no static and no set-user-ID programs, \
             and no driver but panfrost, panthor, and kbase with a job manager; LD_DEBUG=libs shows whether it is loaded"
                .into(),
        ));
    }
    let mut reader = Reader::new(BufReader::new(file));
    let mut check = Check::new();
    let mut submissions = 0;
    let wrong = |text: String| Failure::Recording(format!("the recording is not complete: {text}"));
    while let Some(record) = reader
        .next_record()
        .map_err(|error| wrong(error.to_string()))?
    {
        check
            .observe(&record)
            .map_err(|error| wrong(error.to_string()))?;
        submissions += u64::from(matches!(record.event, Event::Submit { .. }));
    }
    check.finish().map_err(|error| wrong(error.to_string()))?;
    Ok(submissions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn nodes(folder: &Path, drivers: &[&str]) -> PathBuf {
        let nodes = folder.join("drm");
        for (number, driver) in drivers.iter().enumerate() {
            let device = nodes
                .join(format!("renderD{}", 128 + number))
                .join("device");
            fs::create_dir_all(&device).unwrap();
            symlink(
                Path::new("../../bus/drivers").join(driver),
                device.join("driver"),
            )
            .unwrap();
        }
        nodes
    }

    fn drivers<'a>(nodes: &'a Path, kbase: &'a Path) -> Drivers<'a> {
        Drivers { nodes, kbase }
    }

    #[test]
    fn the_best_way_that_the_machine_has_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let panfrost = nodes(folder.path(), &["i915", "panfrost"]);
        let panthor = nodes(&folder.path().join("rk3588"), &["panthor"]);
        let others = nodes(&folder.path().join("pc"), &["i915", "amdgpu"]);
        let none = folder.path().join("none");
        let library = folder.path().join(companion::RECORDER.file);
        fs::write(&library, "").unwrap();
        let find = |beside: &str| companion::RECORDER.among(None, &folder.path().join(beside));
        let user = Way::User(library.canonicalize().unwrap());
        // No Mesa there: the model cannot be the node.
        let node = NodeOptions::without_mesa(folder.path());
        let way = |asked, device: &Path, nodes: &Path| {
            Way::among(asked, device, drivers(nodes, &none), &|| find(""), &node)
        };
        // A device that any user may open stands for kbase's.
        let mali = drivers(&others, Path::new("/dev/null"));
        let vendors = Way::among(None, &none, mali, &|| find(""), &node);
        assert_eq!(vendors, Ok(user.clone()));
        let kernel = Way::Kernel("/dev/null".into());
        assert_eq!(way(None, Path::new("/dev/null"), &panfrost), Ok(kernel));
        assert_eq!(way(None, &none, &panfrost), Ok(user.clone()));
        assert_eq!(way(None, &none, &panthor), Ok(user.clone()));
        assert!(way(None, &none, &others).is_err());
        assert_eq!(
            way(Some(Name::User), Path::new("/dev/null"), &none),
            Ok(user)
        );
        let text = way(None, &none, &none).unwrap_err().to_string();
        for way in ["--recorder kernel", "--recorder user", "--recorder model"] {
            assert!(text.contains(way), "{text}");
        }
        let missing = Way::among(
            Some(Name::User),
            &none,
            drivers(&panfrost, &none),
            &|| find("elsewhere"),
            &node,
        );
        assert!(
            missing
                .unwrap_err()
                .to_string()
                .contains(companion::RECORDER.file)
        );
    }

    #[test]
    fn a_trace_that_is_empty_or_cut_off_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = check(file.path()).unwrap_err().to_string();
        assert!(text.contains("static"), "{text}");
        let driver = gpureplay_trace::Driver::Panfrost;
        let mut writer =
            gpureplay_trace::Writer::begin(Vec::new(), driver, true, "panfrost", "6.12").unwrap();
        writer.submit(1, 0, 0x1000).unwrap();
        let cut = writer.stream_mut().len();
        let trace = writer.end().unwrap();
        fs::write(file.path(), &trace[..cut]).unwrap();
        let text = check(file.path()).unwrap_err().to_string();
        assert!(text.contains("no END"), "{text}");
        fs::write(file.path(), &trace).unwrap();
        assert_eq!(check(file.path()), Ok(1));
    }
}
