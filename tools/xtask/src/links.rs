// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask links`: every link leads somewhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{
    error::{Error, Result},
    files,
    repository::{git, root},
};

/// Checks the links of every Markdown page: files, folders and headings must exist.
#[derive(Args)]
#[command(after_help = "Example:\n  cargo xtask links\n\n\
                  Ends with 1 if a link leads nowhere; each is printed as PAGE:LINE.")]
pub(crate) struct Links {}

impl Links {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        println!("{}", check()?);
        Ok(ExitCode::SUCCESS)
    }
}

pub(crate) fn check() -> Result<String> {
    let top = root();
    let files: BTreeSet<PathBuf> =
        git(&["ls-files", "--cached", "--others", "--exclude-standard"])?
            .into_iter()
            .map(PathBuf::from)
            .filter(|file| top.join(file).exists())
            .collect();
    let mut pages = BTreeMap::new();
    for file in &files {
        if file.extension().is_some_and(|extension| extension == "md") {
            let text = files::text(top.join(file))?;
            pages.insert(file.clone(), Page::read(&text));
        }
    }
    let broken = broken(&pages, &files);
    for complaint in &broken {
        eprintln!("{complaint}");
    }
    if !broken.is_empty() {
        return Err(Error::fell_short(
            format!("{} of the links", broken.len()),
            "name a file or a heading that exists",
        ));
    }
    let links: usize = pages.values().map(|page| page.links.len()).sum();
    Ok(format!(
        "{links} links of {} pages lead somewhere",
        pages.len()
    ))
}

struct Page {
    anchors: BTreeSet<String>,
    links: Vec<(usize, String)>,
}

impl Page {
    fn read(text: &str) -> Page {
        let mut anchors = BTreeSet::new();
        let mut links = Vec::new();
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    if let Some(words) = heading.take() {
                        anchors.insert(unused(&anchors, anchor(&words)));
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text.as_bytes()[..range.start]
                        .iter()
                        .filter(|byte| **byte == b'\n')
                        .count()
                        + 1;
                    links.push((line, dest_url.to_string()));
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                _ => {}
            }
        }
        Page { anchors, links }
    }
}

/// As web sites make it: small letters, digits, hyphens.
fn anchor(heading: &str) -> String {
    heading
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            _ if letter.is_alphanumeric() => letter.to_lowercase().next(),
            _ => None,
        })
        .collect()
}

/// Repeated headings get `-1`.
fn unused(taken: &BTreeSet<String>, name: String) -> String {
    if !taken.contains(&name) {
        return name;
    }
    (1..)
        .map(|number| format!("{name}-{number}"))
        .find(|name| !taken.contains(name))
        .unwrap_or(name)
}

fn broken(pages: &BTreeMap<PathBuf, Page>, files: &BTreeSet<PathBuf>) -> Vec<String> {
    let mut complaints = Vec::new();
    for (page, content) in pages {
        for (line, link) in &content.links {
            if let Some(why) = complaint(page, link, pages, files) {
                complaints.push(format!("{}:{line}: {link}: {why}", page.display()));
            }
        }
    }
    complaints
}

fn complaint(
    page: &Path,
    link: &str,
    pages: &BTreeMap<PathBuf, Page>,
    files: &BTreeSet<PathBuf>,
) -> Option<String> {
    if ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| link.starts_with(scheme))
    {
        return None;
    }
    let (path, heading) = match link.split_once('#') {
        Some((path, heading)) => (path, Some(heading)),
        None => (link, None),
    };
    let target = if path.is_empty() {
        page.to_path_buf()
    } else {
        match resolved(page.parent().unwrap_or(Path::new("")), Path::new(path)) {
            Some(target) => target,
            None => return Some("it leaves the source tree".into()),
        }
    };
    let exists = target.as_os_str().is_empty()
        || files.contains(&target)
        || files.iter().any(|file| file.starts_with(&target));
    if !exists {
        return Some(format!("there is no {}", target.display()));
    }
    let heading = heading?;
    let known = pages.get(&target).map(|page| &page.anchors)?;
    (!known.contains(heading)).then(|| format!("{} has no such heading", target.display()))
}

/// Relative to the tree; `None` above it.
fn resolved(folder: &Path, path: &Path) -> Option<PathBuf> {
    let mut whole = folder.to_path_buf();
    for part in path.components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !whole.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(link: &str) -> Option<String> {
        let files = ["README.md", "docs/a.md", "docs/pictures/x.svg"];
        let files: BTreeSet<_> = files.iter().map(PathBuf::from).collect();
        let text = "# One `thing`, twice\n\n## Same\n\n## Same\n\n[x](y)\n";
        let pages = BTreeMap::from([(PathBuf::from("docs/a.md"), Page::read(text))]);
        complaint(Path::new("docs/a.md"), link, &pages, &files)
    }

    #[test]
    fn what_exists_is_taken() {
        for link in [
            "a.md",
            "../README.md",
            "pictures",
            "pictures/x.svg",
            "#one-thing-twice",
            "a.md#same-1",
            "https://example.org/nothing",
            "..",
        ] {
            assert_eq!(check(link), None, "{link}");
        }
    }

    #[test]
    fn what_does_not_exist_is_named() {
        for (link, why) in [
            ("b.md", "there is no docs/b.md"),
            ("../../x", "it leaves the source tree"),
            ("#other", "docs/a.md has no such heading"),
            ("a.md#same-2", "docs/a.md has no such heading"),
            ("/README.md", "it leaves the source tree"),
        ] {
            assert_eq!(check(link).as_deref(), Some(why), "{link}");
        }
    }

    #[test]
    fn a_link_knows_its_line() {
        let page = Page::read("# A\n\ntext [b](c.md)\n");
        assert_eq!(page.links, [(3, "c.md".to_string())]);
    }
}
