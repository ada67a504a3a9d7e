// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of docs/cuda.md that the parts of the test write.

use std::{fs, path::Path};

use crate::error::{Error, Result};

/// All sections lie between these lines of the page.
const BEGIN: &str = "<!-- device-test begins -->";
const END: &str = "<!-- device-test ends -->";

/// Puts the text of a part into its section of the page; a part that has none gets one at the end.
pub(super) fn write(page: &Path, part: &str, text: &str) -> Result<()> {
    let failed = |what| {
        move |source| Error::Io {
            what,
            path: page.to_owned(),
            source,
        }
    };
    let old = fs::read_to_string(page).map_err(failed("read"))?;
    let new = replaced(&old, part, text).ok_or_else(|| Error::Missing {
        what: format!("{BEGIN} … {END} in {}", page.display()),
        remedy: "put both lines where the tables should be".into(),
    })?;
    fs::write(page, new).map_err(failed("write"))
}

fn replaced(page: &str, part: &str, text: &str) -> Option<String> {
    let (head, rest) = page.split_once(BEGIN)?;
    let (sections, tail) = rest.split_once(END)?;
    let (begin, end) = (
        format!("<!-- device-test {part} begins -->"),
        format!("<!-- device-test {part} ends -->"),
    );
    let section = format!("{begin}\n\n{}\n\n{end}", text.trim());
    let known = sections
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let sections = match known {
        Some((before, after)) => format!("{before}{section}{after}"),
        None => format!("{}\n\n{section}\n\n", sections.trim_end()),
    };
    Some(format!("{head}{BEGIN}{sections}{END}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn a_part_replaces_its_own_section_only() {
        let page = "head\n<!-- device-test begins -->\n\n<!-- device-test ends -->\ntail\n";
        let one = replaced(page, "cost", "| 1 |").unwrap();
        let two = replaced(&one, "nbody", "| 2 |\n\n").unwrap();
        let three = replaced(&two, "cost", "| 3 |").unwrap();
        assert_eq!(
            three,
            "head\n<!-- device-test begins -->\n\n<!-- device-test cost begins -->\n\n| 3 |\n\n<!-- device-test cost ends -->\n\n\
             <!-- device-test nbody begins -->\n\n| 2 |\n\n<!-- device-test nbody ends -->\n\n<!-- device-test ends -->\ntail\n"
        );
        assert_eq!(replaced("no marks", "cost", ""), None);
    }
}
