// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask check`: before a commit.

use std::{
    collections::BTreeSet,
    process::{Command, ExitCode},
    time::Instant,
};

use clap::Args;
use gpureplay_task::run;

use crate::{
    error::{Error, Result},
    links,
    repository::{git, root},
    rules,
    workspace::{Crate, crates},
};

/// Checks what changed: style, lints, the crates' tests, those of their direct dependents, rules for crates, links
/// between pages.
///
/// A crate has changed if a file in its folder has, or one that its sources name. Changed crates run all tests; their
/// users are compiled, linted, and run the tests in their sources. Workspaces of their own are checked for style;
/// `.ci/run` builds them.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask check                  # what is not committed\n  \
                        cargo xtask check --since main     # what this branch adds\n  \
                        cargo xtask check --thorough       # all tests of the crates that use a changed one\n\n\
                        Ends with 1 at the first step that fails."
)]
pub(crate) struct Check {
    /// The commit to compare with.
    #[arg(long, value_name = "COMMIT", default_value = "HEAD")]
    since: String,
    /// Also run the integration tests of the crates that use a changed one.
    #[arg(long)]
    thorough: bool,
    /// Only print which crates would be checked.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Default, PartialEq)]
struct Concerned {
    changed: BTreeSet<String>,
    dependents: BTreeSet<String>,
    workspaces: BTreeSet<String>,
}

impl Check {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let start = Instant::now();
        let crates = crates()?;
        let concerned = concerned(&crates, &changed_files(&self.since)?, &naming)?;
        println!("changed: {}", listed(&concerned.changed));
        println!("using them: {}", listed(&concerned.dependents));
        if self.list {
            return Ok(ExitCode::SUCCESS);
        }
        step("style", cargo(&["fmt", "--all", "--check"]))?;
        for folder in &concerned.workspaces {
            let manifest = format!("{folder}/Cargo.toml");
            let arguments = ["fmt", "--manifest-path", &manifest, "--check"];
            step(&format!("style of {folder}"), cargo(&arguments))?;
        }
        rules::check()?;
        links::check()?;
        let all = concerned.changed.union(&concerned.dependents);
        let all: BTreeSet<String> = all.cloned().collect();
        if !all.is_empty() {
            let mut lints = with_packages("clippy", &all);
            lints.args(["--all-targets", "--", "-D", "warnings"]);
            step("lints", lints)?;
        }
        let whole = if self.thorough {
            &all
        } else {
            &concerned.changed
        };
        if !whole.is_empty() {
            step("tests", with_packages("test", whole))?;
        }
        if !self.thorough && !concerned.dependents.is_empty() {
            let mut tests = with_packages("test", &concerned.dependents);
            tests.args(["--lib", "--bins"]);
            step("tests of what uses them", tests)?;
        }
        println!("all right ({:.0} s)", start.elapsed().as_secs_f64());
        Ok(ExitCode::SUCCESS)
    }
}

fn changed_files(since: &str) -> Result<BTreeSet<String>> {
    let mut files: BTreeSet<String> = git(&["diff", "--name-only", "--no-renames", since, "--"])?
        .into_iter()
        .collect();
    files.extend(git(&["ls-files", "--others", "--exclude-standard"])?);
    Ok(files)
}

fn naming(file: &str) -> Result<Vec<String>> {
    let pattern = format!("{file}\"");
    let sources = git(&[
        "grep",
        "--untracked",
        "--files-with-matches",
        "--fixed-strings",
        "-e",
        &pattern,
        "--",
        "*.rs",
    ]);
    match sources {
        Ok(sources) => Ok(sources),
        Err(Error::Failed { status, .. }) if status.code() == Some(1) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn concerned(
    crates: &[Crate],
    files: &BTreeSet<String>,
    naming: &dyn Fn(&str) -> Result<Vec<String>>,
) -> Result<Concerned> {
    let mut concerned = Concerned::default();
    let mut note = |owner: &Crate| {
        if owner.workspace.is_empty() {
            concerned.changed.insert(owner.name.clone());
        } else {
            concerned.workspaces.insert(owner.workspace.clone());
        }
    };
    for file in files {
        match owner(crates, file) {
            Some(owner) => note(owner),
            None => {
                let sources = naming(file)?;
                let owners = sources.iter().filter_map(|source| owner(crates, source));
                owners.for_each(&mut note);
            }
        }
    }
    // The top workspace's manifests concern no crate: cargo rebuilds as needed.
    concerned.dependents = crates
        .iter()
        .filter(|known| known.workspace.is_empty() && !concerned.changed.contains(&known.name))
        .filter(|known| {
            let mut uses = known.dependencies.iter();
            uses.any(|used| used.ours && concerned.changed.contains(&used.name))
        })
        .map(|known| known.name.clone())
        .collect();
    Ok(concerned)
}

fn owner<'a>(crates: &'a [Crate], file: &str) -> Option<&'a Crate> {
    crates
        .iter()
        .filter(|known| {
            let rest = file.strip_prefix(known.folder.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        })
        .max_by_key(|known| known.folder.len())
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "no crate".into();
    }
    names.iter().cloned().collect::<Vec<_>>().join(", ")
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root()).args(arguments);
    command
}

fn with_packages(what: &str, packages: &BTreeSet<String>) -> Command {
    let mut command = cargo(&[what, "--quiet"]);
    for package in packages {
        command.args(["--package", package]);
    }
    command
}

fn step(name: &str, mut command: Command) -> Result<()> {
    let start = Instant::now();
    run(name, &mut command)?;
    println!("ok   {name} ({:.0} s)", start.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, Unsafe};

    fn in_folder(name: &str, folder: &str, workspace: &str, uses: &[&str]) -> Crate {
        let dependency = |name: &&str| Dependency {
            name: name.to_string(),
            ours: true,
            tests_only: false,
        };
        Crate {
            name: name.into(),
            description: String::new(),
            folder: folder.into(),
            workspace: workspace.into(),
            unsafe_code: Unsafe::Forbidden,
            no_std: false,
            dependencies: uses.iter().map(dependency).collect(),
        }
    }

    fn names<const N: usize>(names: [&str; N]) -> BTreeSet<String> {
        names.map(str::to_string).into()
    }

    #[test]
    fn a_change_concerns_its_crate_and_those_that_use_it() {
        let crates = [
            in_folder("core", "replayer/core", "", &["regs"]),
            in_folder(
                "size",
                "replayer/core/size",
                "replayer/core/size",
                &["core"],
            ),
            in_folder("regs", "mali/facts", "", &[]),
            in_folder("cli", "replayer/cli", "", &["core"]),
        ];
        let naming = |file: &str| {
            let found =
                (file == "docs/reference/format.md").then_some("replayer/cli/tests/format.rs");
            Ok(found.map(str::to_string).into_iter().collect())
        };
        let found = |files| concerned(&crates, &files, &naming).expect("no I/O");

        let found_regs = found(names(["mali/facts/src/registers/lib.rs", "README.md"]));
        assert_eq!(found_regs.changed, names(["regs"]));
        assert_eq!(found_regs.dependents, names(["core"]));

        let nested = found(names(["replayer/core/size/src/lib.rs"]));
        assert_eq!(nested.changed, names([]));
        assert_eq!(nested.workspaces, names(["replayer/core/size"]));

        let document = found(names(["docs/reference/format.md"]));
        assert_eq!(document.changed, names(["cli"]));
    }
}
