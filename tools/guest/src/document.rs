// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parts of the documents that commands write.

use std::{fs, path::Path};

use crate::error::{Error, Result};

/// Puts a command's text between its markers in a document.
pub(crate) fn replace(path: &Path, command: &str, between: &str) -> Result<()> {
    let begin = format!("<!-- {command}: begin -->");
    let finish = format!("<!-- {command}: end -->");
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let parts = text
        .split_once(&begin)
        .and_then(|(before, rest)| Some((before, rest.split_once(&finish)?.1)));
    let Some((before, after)) = parts else {
        return Err(Error::Usage(format!(
            "{}: no {begin} and {finish}",
            path.display()
        )));
    };
    let new = format!("{before}{begin}\n{between}{finish}{after}");
    fs::write(path, new).map_err(Error::io("write", path))
}
