// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask docs`: the pages with generated tables.

mod pages;

use std::{collections::BTreeMap, path::Path, process::Command};

use clap::Args;
use gpureplay_task::{build, measured, output};

use crate::{
    error::{Error, Result},
    files,
    repository::{git, root},
    rules::Reasons,
    workspace::crates,
};

/// Writes the pages of docs/ to target/docs, with the tables that they leave out.
///
/// A line `<!-- table: NAME -->` becomes a table made from instructions, descriptors, manifests or measurements/.
/// `commands.md` is the help of all commands.
#[derive(Args)]
pub(crate) struct Docs {}

impl Docs {
    pub(crate) fn execute(self) -> Result<std::process::ExitCode> {
        let top = root();
        let examples = EXAMPLES.map(|name| ["--example", name]);
        let built = build(
            &top,
            &[["--bin", "gpureplay"].as_slice(), examples.as_flattened()].concat(),
        )?;
        let tables = tables(&top, &built)?;
        let to = top.join("target/docs");
        let write = |name: &str, text: &str| {
            let path = to.join(name);
            let folder = path.parent().unwrap_or(&to);
            files::create_dir(folder)?;
            files::write(&path, text)
        };
        for page in git(&["ls-files", "docs/*.md"])? {
            let path = top.join(&page);
            if !path.exists() {
                continue;
            }
            let text = files::text(&path)?;
            write(page.trim_start_matches("docs/"), &filled(&text, &tables)?)?;
        }
        let mut command = Command::new(built.join("gpureplay"));
        let commands = output(command.args(["generate", "markdown"]))?;
        write("commands.md", &commands)?;
        println!("{} tables in {}", tables.len(), to.display());
        Ok(std::process::ExitCode::SUCCESS)
    }
}

/// They print tables.
const EXAMPLES: [&str; 3] = ["table", "tables", "absent"];

fn tables(top: &Path, built: &Path) -> Result<BTreeMap<String, String>> {
    let (crates, reasons) = (crates()?, Reasons::read(top)?);
    let dependencies = pages::dependencies(&crates, &reasons);
    let mut tables = BTreeMap::from([
        ("graph".to_owned(), pages::graph(&crates)),
        ("crates".to_owned(), pages::table(&crates)),
        ("unsafe".to_owned(), pages::unsafe_code(&crates, &reasons)),
        ("dependencies".to_owned(), dependencies),
        ("limits".to_owned(), pages::limits(top)?),
    ]);
    for example in EXAMPLES {
        let printed = output(Command::new(built.join("examples").join(example)).current_dir(top))?;
        let named = printed.split(BEGIN).skip(1);
        tables.extend(named.filter_map(|table| {
            let (name, text) = table.split_once(END)?;
            Some((name.to_owned(), text.to_owned()))
        }));
    }
    for (name, text) in measured::all()? {
        tables.insert(format!("measured {name}"), text);
    }
    Ok(tables)
}

const BEGIN: &str = "<!-- table: ";
const END: &str = " -->\n";
const MADE: &str =
    "`cargo xtask docs` makes those of instructions, descriptors, crates and measurements";

fn filled(page: &str, tables: &BTreeMap<String, String>) -> Result<String> {
    let mut parts = page.split(BEGIN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(END).unwrap_or((part, ""));
        let table = tables
            .get(name)
            .ok_or_else(|| Error::missing(format!("a table {name}"), MADE))?;
        out += table.trim();
        out += "\n";
        out += rest;
    }
    Ok(out)
}

#[test]
fn a_page_gets_the_tables_that_it_names() {
    let tables = BTreeMap::from([("x".to_owned(), "| 1 |\n".to_owned())]);
    let of = |page: &str| filled(page, &tables);
    let page = "a\n\n<!-- table: x -->\n\nb\n";
    assert_eq!(of(page).unwrap(), "a\n\n| 1 |\n\nb\n");
    let error = of("<!-- table: y -->\n").unwrap_err().to_string();
    assert!(error.contains("a table y"), "{error}");
}
