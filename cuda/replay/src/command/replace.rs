// SPDX-License-Identifier: MIT OR Apache-2.0
//! `replace`: a program with other kernels or sizes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_cuda_launch::recording::Tuned;
use tempfile::TempDir;

use crate::command::app::App;
use crate::command::attempt::private_folder;
use crate::command::failure::{Failure, Outcome, file, texts};
use crate::command::report::{note, say};
use crate::command::run::read_image;
use crate::command::setting::set;

/// Run a program with other kernels or sizes
///
/// Kernels of the same name and parameters come from other images; sizes are those that `tune` found.
#[derive(Args)]
pub(crate) struct Replace {
    /// Cubin, fatbin or PTX files, or folders of them. The first that has a kernel of the name counts.
    #[arg(required_unless_present = "tuned", value_name = "IMAGE|DIR")]
    images: Vec<PathBuf>,
    /// What `tune --tuned` wrote: launches of a kernel, size and GPU that it names run as it says, others as ever.
    #[arg(long, value_name = "FILE.toml")]
    tuned: Option<PathBuf>,
    /// Run originals and replacements in turn, and print the times of both at the end.
    #[arg(long)]
    durations: bool,
    #[command(flatten)]
    app: App,
}

fn images_of(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut images = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(file(folder))? {
        let path = entry.map_err(file(folder))?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("cubin" | "fatbin" | "ptx")) {
            images.push(path);
        }
    }
    if images.is_empty() {
        return Err(Failure::Usage(format!(
            "{} holds no file *.cubin, *.fatbin or *.ptx",
            folder.display()
        )));
    }
    images.sort();
    Ok(images)
}

impl Replace {
    pub(crate) fn execute(&self) -> Outcome {
        let mut command = self.app.command("replace")?;
        for name in ["CUPTI", "STRICT"] {
            set(&mut command, name, None::<&Path>);
        }
        let mut paths = Vec::new();
        for path in &self.images {
            let images = match path.is_dir() {
                true => images_of(path)?,
                false => vec![path.clone()],
            };
            for path in images {
                read_image(&path)?;
                paths.push(path.canonicalize().map_err(file(&path))?);
            }
        }
        let joined = std::env::join_paths(&paths)
            .map_err(|error| Failure::Usage(format!("a path of an image: {error}")))?;
        set(
            &mut command,
            "IMAGES",
            (!paths.is_empty()).then_some(joined),
        );
        let tuned = self.tuned.as_deref().map(|path| {
            for winner in Tuned::read(path)?.winners {
                let image = winner.change.image.as_ref();
                image.map(|image| Tuned::image(path, image)).transpose()?;
            }
            path.canonicalize().map_err(file(path))
        });
        set(&mut command, "TUNED", tuned.transpose()?);
        let folder = self.durations.then(|| private_folder("durations"));
        let folder = folder.transpose()?;
        set(&mut command, "OUTPUT", folder.as_ref().map(TempDir::path));
        let Some(folder) = folder else {
            return self.app.run(command);
        };
        let code = self.app.run(command)?;
        let mut table = Table::default();
        for text in texts(folder.path())? {
            text.lines().for_each(|line| table.add(line));
        }
        table.print()?;
        Ok(code)
    }
}

/// Launches and microseconds, of original and replacement.
#[derive(Default)]
struct Table(BTreeMap<[String; 3], [(u64, f64); 2]>);

impl Table {
    fn add(&mut self, line: &str) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [side, kernel, grid, block, occurrences, total, ..] = fields.as_slice() else {
            return;
        };
        let key = [kernel, grid, block].map(|text| (*text).to_owned());
        let sides = self.0.entry(key).or_default();
        let times = &mut sides[usize::from(*side == "replacement")];
        times.0 += occurrences.parse::<u64>().unwrap_or(0);
        times.1 += total.parse::<f64>().unwrap_or(0.0);
    }

    fn print(&self) -> Result<(), Failure> {
        if self.0.is_empty() {
            note!("nothing was replaced that could be timed");
            return Ok(());
        }
        say!(
            "{:>12} {:>12} {:>9} {:>8}  {:<18} {:<12} kernel",
            "original us",
            "replaced us",
            "as fast",
            "times",
            "grid",
            "block"
        );
        for ([kernel, grid, block], [original, other]) in &self.0 {
            let mean = |(times, total): (u64, f64)| (times != 0).then(|| total / times as f64);
            let (original_us, other_us) = (mean(*original), mean(*other));
            let faster = original_us.zip(other_us).map(|(one, other)| one / other);
            let shown =
                |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
            say!(
                "{:>12} {:>12} {:>8}x {:>8}  {grid:<18} {block:<12} {kernel}",
                shown(original_us),
                shown(other_us),
                shown(faster),
                original.0 + other.0
            );
        }
        Ok(())
    }
}
