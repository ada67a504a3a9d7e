// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shipped recordings.

use std::path::Path;

use gpureplay_format::Recording;
use gpureplay_format::layout::FAMILY_MALI;

/// A shipped recording.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// Directory name.
    pub name: String,
    /// recording.gpr.
    pub bytes: Vec<u8>,
}

impl Shipped {
    /// One of [`LONG`].
    pub fn is_long(&self) -> bool {
        LONG.contains(&self.name.as_str())
    }
}

/// Trainings: the model takes most of a second for each run.
pub const LONG: [&str; 2] = ["train-clblast-g52", "train-digits-g52"];

/// By name.
///
/// # Errors
/// They are not where the source tree has them.
pub fn all() -> std::io::Result<Vec<Shipped>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let recording = path.join("recording.gpr");
        if recording.is_file() {
            let bytes = std::fs::read(recording)?;
            found.push(Shipped {
                name: path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into(),
                bytes,
            });
        }
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(found)
}

/// Those of job chains.
///
/// # Errors
/// As for [`all`].
pub fn chains() -> std::io::Result<Vec<Shipped>> {
    let family = |shipped: &Shipped| {
        let parsed = Recording::parse(&shipped.bytes);
        parsed.map(|it| it.header().family.get())
    };
    let mut found = all()?;
    found.retain(|shipped| family(shipped) == Ok(FAMILY_MALI));
    Ok(found)
}

/// # Errors
/// There is none of this name.
pub fn named(name: &str) -> std::io::Result<Shipped> {
    let found = all()?.into_iter().find(|shipped| shipped.name == name);
    found.ok_or_else(|| std::io::Error::other(format!("no recording {name}")))
}
