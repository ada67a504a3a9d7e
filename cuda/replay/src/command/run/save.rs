// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--save-output`: files of memory after a replay.

use std::path::Path;

use crate::{Loaded, Session};
use gpureplay_host::csv;

use crate::command::failure::{Failure, write, written};

pub(super) fn save(folder: &Path, session: &Session, loaded: &Loaded) -> Result<(), Failure> {
    std::fs::create_dir(folder).map_err(written(folder))?;
    let mut table = csv::line(["file", "address", "bytes", "changed", "variable"]);
    for (number, piece) in session.left(loaded).enumerate() {
        let piece = piece?;
        let name = format!("{number}.bin");
        let path = folder.join(&name);
        std::fs::write(&path, &piece.bytes).map_err(written(&path))?;
        table += &csv::line([
            name,
            format!("{:#x}", piece.address),
            piece.bytes.len().to_string(),
            if piece.is_changed { "yes" } else { "no" }.to_owned(),
            piece.variable.unwrap_or_default().to_owned(),
        ]);
    }
    write(&folder.join("memory.csv"), &table)
}
