// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask map`: docs/architecture.md and docs/dependencies.md, made from the crates' manifests.

mod circles;
mod layers;
mod marked;
mod pages;
mod reasons;

use std::{fs, process::ExitCode};

use clap::Args;

use crate::{
    error::{Error, Result},
    repository::root,
    workspace::crates,
};
use reasons::Reasons;

/// Writes the map of crates in docs/architecture.md and the table in docs/dependencies.md.
///
/// Both come from `cargo metadata` of every workspace, from the attributes in the crates' roots and from docs/reasons.toml, which
/// says why a dependency is there and why a crate has unsafe code. Refuses arrows that the layers
/// forbid, and files of a crate that need each other in a circle.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask map\n  cargo xtask map --check\n\n\
                        Ends with 1 if a reason is missing or too many, if an arrow is forbidden, and with --check if a page is out of date."
)]
pub(crate) struct Map {
    /// Write nothing; compare the pages with what would be written.
    #[arg(long)]
    check: bool,
}

impl Map {
    /// Runs the command.
    pub(crate) fn execute(self) -> Result<ExitCode> {
        update(self.check)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Brings both pages up to date, or complains that they are not.
pub(crate) fn update(check: bool) -> Result<()> {
    let top = root();
    let crates = crates()?;
    let reasons = Reasons::read(&top.join("docs/reasons.toml"))?;
    let mut complaints = layers::forbidden(&crates);
    complaints.extend(circles::found(&crates)?);
    complaints.extend(reasons.complaints(&crates));
    if !complaints.is_empty() {
        return Err(Error::FellShort {
            what: "the map of crates".into(),
            remedy: complaints.join("; "),
        });
    }
    let sections = [
        ("docs/architecture.md", "graph", pages::graph(&crates)),
        ("docs/architecture.md", "crates", pages::table(&crates)),
        (
            "docs/architecture.md",
            "unsafe",
            pages::unsafe_code(&crates, &reasons),
        ),
        (
            "docs/dependencies.md",
            "dependencies",
            pages::dependencies(&crates, &reasons),
        ),
    ];
    for (page, section, text) in sections {
        let path = top.join(page);
        let old = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let new = marked::replaced(&old, section, &text).ok_or_else(|| Error::Missing {
            what: format!("the marks of {section} in {page}"),
            remedy: format!("put in the lines <!-- begin {section} --> and <!-- end {section} -->"),
        })?;
        if new == old {
            continue;
        }
        if check {
            return Err(Error::FellShort {
                what: format!("the section {section} of {page}"),
                remedy: format!(
                    "{}; run `cargo xtask map`",
                    marked::first_difference(&old, &new)
                ),
            });
        }
        fs::write(&path, new).map_err(Error::io("write", &path))?;
        println!("{page}: {section} is new");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_pages_are_up_to_date() {
        super::update(true).expect("pages");
    }
}
