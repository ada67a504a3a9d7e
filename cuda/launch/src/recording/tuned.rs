// SPDX-License-Identifier: MIT OR Apache-2.0
//! Search results: `tuned.toml`, and images.

use std::fs::File;
use std::path::{Path, PathBuf};

use gpureplay_host::{Existing, beneath, write_atomic};
use serde::{Deserialize, Serialize};

use crate::recording::check::{MAX_IMAGE, is_name};
use crate::recording::{Hash, ImageReference, RecordingError};

const FORMAT: u32 = 1;
/// In bytes.
const MOST: u64 = 16 << 20;

/// All winners of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    format: u32,
    /// One per kernel, size and GPU.
    #[serde(default, rename = "winner")]
    pub winners: Vec<Winner>,
}

/// A faster launch of one kernel and size on one GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winner {
    /// Mangled name.
    pub kernel: String,
    /// The program's; others may have a kernel of that name.
    pub image: Hash,
    /// As the driver names it.
    pub gpu: String,
    /// The program's, in blocks.
    pub grid: [u32; 3],
    /// The program's, in threads.
    pub block: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
    /// What to change.
    pub change: Change,
    /// What the search measured.
    pub evidence: Evidence,
}

/// How a launch is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// In blocks.
    pub grid: [u32; 3],
    /// In threads.
    pub block: [u32; 3],
    /// Dynamic, in bytes, if changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<u32>,
    /// If changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageReference>,
    /// For the compiler: registers per thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_registers: Option<u32>,
    /// For the compiler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optimisation: Option<u32>,
    /// For the compiler: threads of a block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_threads: Option<u32>,
    /// For the compiler: blocks per multiprocessor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_blocks: Option<u32>,
    /// Shared memory's percentage of what the first-level cache shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carveout: Option<u32>,
}

/// Medians, and ranges of middle halves, in microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// `exact` or `within`.
    pub verdict: String,
    /// Runs of each candidate.
    pub runs: u32,
    /// Tried candidates.
    pub tries: u64,
    /// Version of CUDA: 13000 is 13.0.
    pub driver: i32,
    /// Median, spread.
    pub recorded_us: [f64; 2],
    /// The winner: median, spread.
    pub tuned_us: [f64; 2],
}

impl Winner {
    fn has_key_of(&self, other: &Self) -> bool {
        self.kernel == other.kernel
            && self.image == other.image
            && self.gpu == other.gpu
            && (self.grid, self.block, self.shared) == (other.grid, other.block, other.shared)
    }

    fn check(&self) -> Result<(), RecordingError> {
        let field = |field, reason: &str| RecordingError::Field {
            field,
            reason: reason.to_owned(),
        };
        for (name, text) in [
            ("kernel", &self.kernel),
            ("gpu", &self.gpu),
            ("verdict", &self.evidence.verdict),
        ] {
            if !is_name(text) {
                return Err(field(name, "is no name"));
            }
        }
        let change = &self.change;
        for (name, sizes) in [
            ("grid", self.grid),
            ("block", self.block),
            ("grid", change.grid),
            ("block", change.block),
        ] {
            if sizes.contains(&0) {
                return Err(field(name, "has a dimension of 0"));
            }
        }
        let compiled = [
            change.max_registers,
            change.optimisation,
            change.max_threads,
            change.min_blocks,
            change.carveout,
        ];
        // Without an image of its own, the change would reach launches of other sizes.
        if change.image.is_none() && compiled.iter().any(Option::is_some) {
            return Err(field(
                "change",
                "has options of the compiler or a carve-out, but no image for them",
            ));
        }
        if change.carveout.is_some_and(|percent| percent > 100) {
            return Err(field("carveout", "is more than 100 percent"));
        }
        Ok(())
    }
}

fn image_name(hash: Hash) -> PathBuf {
    Path::new("images").join(hash.to_string())
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|parent| *parent != Path::new(""))
        .unwrap_or(Path::new("."))
}

impl Tuned {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Unreadable, or an impossible value.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let failed = |error| RecordingError::file(path, error);
        let bytes = beneath::contents(File::open(path).map_err(failed)?, MOST).map_err(failed)?;
        let manifest = |reason: String| RecordingError::Manifest {
            path: path.to_owned(),
            reason,
        };
        let text = String::from_utf8(bytes).map_err(|error| manifest(error.to_string()))?;
        let tuned: Self = toml::from_str(&text).map_err(|error| manifest(error.to_string()))?;
        if tuned.format != FORMAT {
            return Err(RecordingError::Format {
                found: tuned.format,
                known: FORMAT,
            });
        }
        tuned.winners.iter().try_for_each(Winner::check)?;
        Ok(tuned)
    }

    /// Replaces a winner of the same kernel, size and GPU; `image` is the change's.
    ///
    /// # Errors
    /// The file cannot be written, or read.
    pub fn add(path: &Path, winner: Winner, image: Option<&[u8]>) -> Result<(), RecordingError> {
        let mut tuned = if path
            .try_exists()
            .map_err(|error| RecordingError::file(path, error))?
        {
            Self::read(path)?
        } else {
            Self::default()
        };
        tuned.format = FORMAT;
        let folder = folder_of(path);
        if let Some(image) = image {
            let name = image_name(Hash::of(image));
            let failed = |error| RecordingError::file(&folder.join(&name), error);
            std::fs::create_dir_all(folder.join("images")).map_err(failed)?;
            beneath::write(folder, &name, image, Existing::Replace).map_err(failed)?;
        }
        match tuned
            .winners
            .iter_mut()
            .find(|other| other.has_key_of(&winner))
        {
            Some(other) => *other = winner,
            None => tuned.winners.push(winner),
        }
        let text = toml::to_string(&tuned).map_err(|error| RecordingError::Manifest {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        write_atomic(path, text.as_bytes()).map_err(|error| RecordingError::file(path, error))
    }

    /// Image of a winner in the file at `path`.
    ///
    /// # Errors
    /// Unreadable, or not what its name says.
    pub fn image(path: &Path, image: &ImageReference) -> Result<Vec<u8>, RecordingError> {
        let (folder, name) = (folder_of(path), image_name(image.hash));
        let bytes = beneath::read(folder, &name, MAX_IMAGE)
            .map_err(|error| RecordingError::file(&folder.join(&name), error))?;
        if Hash::of(&bytes) != image.hash {
            return Err(RecordingError::Damaged(image.hash));
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::{Change, Evidence, Tuned, Winner};
    use crate::recording::{Hash, ImageReference, RecordingError};

    fn winner(grid: u32, tuned: f64) -> Winner {
        Winner {
            kernel: "k".into(),
            image: Hash::of(b"program"),
            gpu: "a GPU".into(),
            grid: [grid, 1, 1],
            block: [64, 1, 1],
            shared: 0,
            change: Change {
                grid: [2, 3, 4],
                block: [8, 8, 1],
                shared: Some(4096),
                image: Some(ImageReference {
                    hash: Hash::of(b"image"),
                    size: 5,
                }),
                max_registers: Some(32),
                optimisation: None,
                max_threads: None,
                min_blocks: None,
                carveout: None,
            },
            evidence: Evidence {
                verdict: "exact".into(),
                runs: 20,
                tries: 7,
                driver: 13_000,
                recorded_us: [9.5, 0.25],
                tuned_us: [tuned, 0.5],
            },
        }
    }

    #[test]
    fn the_last_winner_of_a_size_stays_and_damage_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuned.toml");
        for (grid, time) in [(1, 4.0), (2, 5.0), (1, 3.0)] {
            Tuned::add(&path, winner(grid, time), Some(b"image")).unwrap();
        }
        let tuned = Tuned::read(&path).unwrap();
        assert_eq!(tuned.winners, [winner(1, 3.0), winner(2, 5.0)]);
        let image = tuned.winners[0].change.image.clone().unwrap();
        assert_eq!(Tuned::image(&path, &image).unwrap(), b"image");
        let file = folder.path().join("images").join(image.hash.to_string());
        std::fs::write(file, b"other").unwrap();
        assert!(matches!(
            Tuned::image(&path, &image),
            Err(RecordingError::Damaged(_))
        ));
        let good = std::fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("format = 1", "format = 2"),
            ("kernel = \"k\"", "kernel = \"\\u0007\""),
            ("block = [\n    8", "block = [\n    0"),
            ("shared = 0", "shred = 0"),
        ] {
            let bad = good.replacen(from, to, 1);
            if bad == good {
                let (from, to) = (from.replace("\n    ", ""), to.replace("\n    ", ""));
                assert_ne!(good.replacen(&from, &to, 1), good, "{good}");
                std::fs::write(&path, good.replacen(&from, &to, 1)).unwrap();
            } else {
                std::fs::write(&path, bad).unwrap();
            }
            assert!(Tuned::read(&path).is_err(), "{from}");
        }
        std::fs::remove_file(&path).unwrap();
        let mut beyond = winner(1, 1.0);
        beyond.change.carveout = Some(101);
        Tuned::add(&path, beyond, Some(b"image")).unwrap();
        assert!(Tuned::read(&path).is_err());
        std::fs::remove_file(&path).unwrap();
        let mut without = winner(1, 1.0);
        without.change.image = None;
        Tuned::add(&path, without, None).unwrap();
        assert!(
            Tuned::read(&path)
                .unwrap_err()
                .to_string()
                .contains("no image for them")
        );
    }
}
