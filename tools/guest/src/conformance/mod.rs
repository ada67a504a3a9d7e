// SPDX-License-Identifier: MIT OR Apache-2.0
//! docs/conformance.md: its tables stand between marks and are written by the commands that measure them.

pub(crate) mod operators;
pub(crate) mod piglit;

use std::{fs, path::Path};

use crate::error::{Error, Result};

/// The document, relative to the repository.
pub(crate) const DOCUMENT: &str = "docs/conformance.md";

/// Replaces what stands between the marks of `section` in the document.
pub(crate) fn write(repository: &Path, section: &str, text: &str) -> Result<()> {
    let path = repository.join(DOCUMENT);
    let document = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    let changed = replaced(&document, section, text).ok_or_else(|| Error::Missing {
        what: format!("the marks of {section} in {}", path.display()),
        remedy: format!("put in the lines {} and {}", begin(section), end(section)),
    })?;
    let temporary = path.with_extension("md.new");
    fs::write(&temporary, changed).map_err(Error::io("write", &temporary))?;
    fs::rename(&temporary, &path).map_err(Error::io("replace", &path))
}

fn begin(section: &str) -> String {
    format!("<!-- begin {section} -->")
}

fn end(section: &str) -> String {
    format!("<!-- end {section} -->")
}

fn replaced(document: &str, section: &str, text: &str) -> Option<String> {
    let start = begin(section);
    let (before, rest) = document.split_once(&start)?;
    let (_, after) = rest.split_once(&end(section))?;
    Some(format!(
        "{before}{start}\n{}\n{}{after}",
        text.trim_end(),
        end(section)
    ))
}

/// Text for a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::{cell, replaced};

    #[test]
    fn only_the_section_changes() {
        let document = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        assert_eq!(
            replaced(document, "x", "new\n").as_deref(),
            Some("a\n<!-- begin x -->\nnew\n<!-- end x -->\nb\n")
        );
        assert_eq!(replaced(document, "y", "new"), None);
        assert_eq!(cell("a|b\nc"), "a\\|b c");
    }
}
