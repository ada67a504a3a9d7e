// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Debian mirror, from the host's apt.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use clap::Args;
use gpureplay_task::output;

use crate::{
    error::{Error, Result},
    files,
};

/// Names a Debian mirror where apt does not.
const MIRROR_VARIABLE: &str = "GPUREPLAY_DEBIAN_MIRROR";

/// Writes apt's sources for a new Debian root into a folder: sources.list, sources-old.list (the release before), apt.conf.
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask guest sources /tmp/sources")]
pub(crate) struct Sources {
    /// A folder that exists.
    folder: PathBuf,
}

impl Sources {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        write_sources(&self.folder)?;
        Ok(ExitCode::SUCCESS)
    }
}

pub(crate) fn write_sources(guest: &Path) -> Result<()> {
    let mirror = match std::env::var(MIRROR_VARIABLE) {
        Ok(mirror) => mirror,
        Err(_) => of_machine()?,
    };
    let entry = |suite: &str| {
        format!(
            "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] {mirror} {suite} main\n"
        )
    };
    let sources = entry("trixie") + &entry("trixie-backports");
    files::write_if_changed(guest.join("sources.list"), &sources)?;
    files::write_if_changed(guest.join("sources-old.list"), &entry("bookworm"))?;
    files::write_if_changed(guest.join("apt.conf"), &acquire_options()?)
}

fn of_machine() -> Result<String> {
    let text = output(Command::new("apt-get").args([
        "indextargets",
        "--format",
        "$(REPO_URI) $(RELEASE) $(COMPONENT)",
        "Created-By: Packages",
    ]))?;
    main_mirror(&text).ok_or_else(|| {
        Error::missing(
            "a Debian mirror in this machine's apt configuration",
            format!("set {MIRROR_VARIABLE} to a mirror's address"),
        )
    })
}

/// Plain Debian suites only, from `address suite component` lines.
fn main_mirror(targets: &str) -> Option<String> {
    const SUITES: [&str; 7] = [
        "bookworm", "trixie", "forky", "stable", "testing", "unstable", "sid",
    ];
    targets.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (address, suite, component) = (words.next()?, words.next()?, words.next()?);
        (SUITES.contains(&suite) && component == "main").then(|| address.to_owned())
    })
}

fn acquire_options() -> Result<String> {
    const KEPT: [&str; 4] = [
        "Acquire::http::Proxy ",
        "Acquire::https::Proxy ",
        "Acquire::Check-Valid-Until ",
        "Acquire::Check-Date ",
    ];
    let mut conf = String::from("Acquire::Retries \"3\";\nAPT::Install-Recommends \"false\";\n");
    for line in output(Command::new("apt-config").arg("dump"))?.lines() {
        if KEPT.iter().any(|name| line.starts_with(name)) {
            let _ = writeln!(conf, "{line}");
        }
    }
    Ok(conf)
}

#[cfg(test)]
mod tests {
    use super::main_mirror;

    #[test]
    fn takes_the_plain_suite() {
        let targets = "http://a.example/debian-security bookworm-security main\n\
                       http://b.example/node nodistro main\n\
                       http://c.example/debian bookworm contrib\n\
                       http://c.example/debian bookworm main\n";
        assert_eq!(
            main_mirror(targets).as_deref(),
            Some("http://c.example/debian")
        );
        assert_eq!(main_mirror("http://b.example/node nodistro main\n"), None);
        assert_eq!(main_mirror("broken line"), None);
    }
}
