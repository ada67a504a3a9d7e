// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest build`: makes what runs need.

pub(crate) mod cache;
pub(crate) mod cc;
pub(crate) mod dtb;
mod host;
pub(crate) mod kernel;
pub(crate) mod mirror;
pub(crate) mod payload;
pub(crate) mod static_command;
pub(crate) mod step;

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::ExitCode, time::Instant};

use clap::Args;

use self::step::Step;
use crate::{
    error::{Error, Result},
    files,
    folder::Folder,
    run::machine,
};

/// Builds the guest: QEMU and compilers in a Debian root, kernel, userland, disk image, and our programs for it.
///
/// Needs root, about 8 GB of disk and the Debian mirror of the machine's apt configuration. Takes minutes at first, a
/// second when nothing changed. The result lies in `.guest`, or where GPUREPLAY_GUEST says; work trees may share one.
#[derive(Args)]
#[command(after_help = "Examples:\n  cargo xtask guest build\n  \
                        GPUREPLAY_GUEST=/var/cache/guest cargo xtask guest build\n  \
                        cargo xtask guest build --base      # without our own programs")]
pub(crate) struct Build {
    /// Only what comes from the distribution: no programs of this work tree.
    #[arg(long)]
    base: bool,
    /// Build even what is up to date.
    #[arg(long)]
    force: bool,
}

impl Build {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        let start = Instant::now();
        base(&folder, self.force)?;
        if !self.base {
            payload::build(&folder)?;
            cache::fill(&folder, "g52")?;
        }
        eprintln!("guest is built ({:.1} s)", start.elapsed().as_secs_f64());
        Ok(ExitCode::SUCCESS)
    }
}

fn base(folder: &Folder, force: bool) -> Result<()> {
    let guest = &folder.guest;
    let _lock = Folder::lock(guest)?;
    copy_recipe(&folder.recipe(), guest)?;
    mirror::write_sources(guest)?;
    if force {
        match fs::remove_dir_all(guest.join("stamps")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::io("remove", guest.join("stamps"))(error));
            }
            _ => {}
        }
    }
    let steps = steps();
    if !steps.iter().all(|step| step.is_done(guest)) {
        host::require()?;
    }
    for step in steps {
        step.run(guest)?;
    }
    Ok(())
}

/// A second guest, with a kernel old enough for Arm's driver.
pub(crate) fn kbase_kernel(folder: &Folder) -> Result<()> {
    let guest = &folder.guest;
    let _lock = Folder::lock(guest)?;
    let script = "steps/kbase-kernel.sh";
    files::copy(folder.recipe().join(script), guest.join(script))?;
    let step = Step {
        name: "kbase-kernel",
        makes: "guest with Linux 5.10",
        inputs: &["gpu.dtso", "guest-files/initramfs-init", "sources-old.list"],
        after: &["image"],
        environment: machine::device_tree_environment(),
    };
    step.run(guest).map(drop)
}

fn steps() -> Vec<Step> {
    vec![
        Step {
            name: "build-root",
            makes: "build root (QEMU, cross compilers)",
            inputs: &["sources.list"],
            after: &[],
            environment: vec![],
        },
        Step {
            name: "kernels",
            makes: "kernel, headers and driver sources",
            inputs: &["sources.list", "sources-old.list"],
            after: &["build-root"],
            environment: vec![],
        },
        Step {
            name: "userland",
            makes: "guest userland",
            inputs: &["sources.list"],
            after: &[],
            environment: vec![],
        },
        Step {
            name: "image",
            makes: "disk image",
            inputs: &["guest-files/guest-init", "guest-files/initramfs-init"],
            after: &["kernels", "userland"],
            environment: vec![],
        },
        Step {
            name: "device-tree",
            makes: "device trees",
            inputs: &["gpu.dtso"],
            after: &["build-root"],
            environment: machine::device_tree_environment(),
        },
    ]
}

fn copy_recipe(recipe: &Path, guest: &Path) -> Result<()> {
    for dir in ["steps", "guest-files"] {
        files::create_dir(guest.join(dir))?;
        let source = recipe.join(dir);
        for path in files::entries(&source)? {
            let name = path.file_name().unwrap_or_default();
            files::copy(&path, guest.join(dir).join(name))?;
        }
    }
    files::copy(recipe.join("gpu.dtso"), guest.join("gpu.dtso"))?;
    let enter = guest.join("in-root");
    files::copy(recipe.join("in-root"), &enter)?;
    fs::set_permissions(&enter, fs::Permissions::from_mode(0o755))
        .map_err(Error::io("change", &enter))
}
