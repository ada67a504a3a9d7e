// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Debian root, configured in the guest.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    build::step::Step,
    error::{Error, Result},
    files,
    folder::Folder,
    run::driver::Driver,
    run::session::{self, End, Options},
};

const CONFIGURE: &str = include_str!("../../packages/configure.sh");

pub(super) fn root(folder: &Folder) -> Result<PathBuf> {
    let guest = &folder.guest;
    let _lock = Folder::lock(guest)?;
    let recipe = folder.recipe().join("packages");
    files::create_dir(guest.join("steps"))?;
    files::create_dir(guest.join("packages-sources"))?;
    files::copy(recipe.join("packages.sh"), guest.join("steps/packages.sh"))?;
    files::copy(
        recipe.join("configure.sh"),
        guest.join("packages-sources/configure.sh"),
    )?;
    let step = Step {
        name: "packages",
        makes: "Debian root for packages",
        inputs: &["sources.list", "packages-sources/configure.sh"],
        after: &["kernels"],
        environment: vec![],
    };
    let made = guest.join("packages");
    let configured = made.join("configured");
    if step.is_done(guest) && configured.is_file() {
        return Ok(made);
    }
    // A root whose configuration was interrupted is useless.
    remove(&guest.join("stamps/packages"))?;
    step.run(guest)?;
    configure(folder, &made)?;
    files::write(&configured, "")?;
    Ok(made)
}

/// Scripts of the packages run on the guest's processor only.
fn configure(folder: &Folder, made: &Path) -> Result<()> {
    eprintln!("  the guest configures the packages of the root, which takes some minutes");
    let options = Options {
        timeout: Duration::from_secs(3600),
        ..Options::sharing(Driver::None, made)
    };
    let outcome = session::script(folder, &options, CONFIGURE)?;
    let said = outcome.said();
    // dpkg's audit speaks only after that line.
    if outcome.end == End::Exit(0) && said.ends_with("root is configured\n") {
        return Ok(());
    }
    Err(Error::fell_short(
        format!("configuring the root ({:?})", outcome.end),
        format!("see stdout and stderr in {}", outcome.logs.display()),
    ))
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}
