// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kept seeds: the first for each outcome.

use std::io;
use std::path::PathBuf;

use crate::soundness::Corpus;

fn path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/soundness.json").into()
}

/// # Errors
/// The file is not what [`write()`] wrote.
pub fn read() -> io::Result<Corpus> {
    match std::fs::read(path()) {
        Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Corpus::new()),
        Err(error) => Err(error),
    }
}

/// Leaves an equal file alone.
///
/// # Errors
/// It cannot be written.
pub fn write(corpus: &Corpus) -> io::Result<()> {
    if read().is_ok_and(|kept| kept == *corpus) {
        return Ok(());
    }
    let path = path();
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let temporary = path.with_extension("tmp");
    let mut text = serde_json::to_string_pretty(corpus)?;
    text.push('\n');
    std::fs::write(&temporary, text)?;
    std::fs::rename(temporary, path)
}
