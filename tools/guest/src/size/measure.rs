// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds what is measured.

use gpureplay_task::{measured::Table, output};
use serde_json::{Map, Value, json};

use super::object::{Bytes, Object};
use crate::{build::payload::in_root, error::Result, firmware::bare, folder::Folder};

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) key: &'static str,
    pub(crate) name: &'static str,
    pub(crate) bytes: Bytes,
    pub(crate) goal: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    pub(crate) rows: Vec<Row>,
    pub(crate) stack: u64,
    /// As `rustc 1.97.1`: the build root's, on which sizes depend.
    pub(crate) compiler: String,
}

struct Target {
    name: &'static str,
    flags: &'static str,
}

/// Caches and MMU on: unaligned loads are allowed, as in the firmware.
const AARCH64: Target = Target {
    name: "aarch64-unknown-none-softfloat",
    flags: "-Crelocation-model=static -Ctarget-feature=-strict-align",
};
/// MMU off: every load must be aligned.
const AARCH64_ALIGNED: Target = Target {
    name: "aarch64-unknown-none-softfloat",
    flags: "-Crelocation-model=static",
};
/// No floating-point unit: Cortex-M4, M7, M33 and later.
const THUMB: Target = Target {
    name: "thumbv7em-none-eabi",
    flags: "-Crelocation-model=static",
};

impl Sizes {
    pub(crate) fn measure(folder: &Folder) -> Result<Sizes> {
        let parser = library(folder, &AARCH64, "parser")?;
        let with_verifier = library(folder, &AARCH64, "verifier")?;
        let all = library(folder, &AARCH64, "")?;
        let verifier = with_verifier.without(parser);
        let engine = all.without(with_verifier);
        let row = |key, name, bytes| Row {
            key,
            name,
            bytes,
            goal: None,
        };
        let goal = |key, name, bytes, goal| Row {
            key,
            name,
            bytes,
            goal: Some(goal),
        };
        let mut rows = vec![
            row("parser", "parser", parser),
            row("verifier", "verifier", verifier),
            row("engine", "engine", engine),
            goal(
                "verifier_and_engine",
                "verifier and engine",
                all.without(parser),
                8_000,
            ),
            row("all", "parser, verifier and engine", all),
            row(
                "all_aligned",
                "the three, aligned loads only (MMU off)",
                library(folder, &AARCH64_ALIGNED, "")?,
            ),
            row(
                "all_thumb",
                "the three, 32-bit Thumb (thumbv7em)",
                library(folder, &THUMB, "")?,
            ),
        ];
        let linked = image(folder, &[])?;
        let image = linked.bytes();
        let stack = linked.stack_bound()?;
        let signed = self::image(folder, &["signature"])?.bytes();
        rows.push(row(
            "machine",
            "the rest of the image: processor, interrupts, PCI, page tables, UART, messages",
            image.without(all),
        ));
        rows.push(goal(
            "image",
            "bare-metal image without a recording",
            image,
            18_500,
        ));
        rows.push(row(
            "signature",
            "signature check in the image (optional)",
            signed.without(image),
        ));
        Ok(Sizes {
            rows,
            stack,
            compiler: compiler(folder)?,
        })
    }

    pub(crate) fn above_goals(&self) -> impl Iterator<Item = String> {
        self.rows.iter().filter_map(|row| {
            let (bytes, goal) = (row.bytes.together(), row.goal?);
            (bytes > goal).then(|| format!("{}: {bytes} bytes, the goal is {goal}", row.name))
        })
    }

    pub(crate) fn compiled_by(&self) -> String {
        format!("Compiled by {}.", self.compiler)
    }

    pub(crate) fn table(&self) -> Table {
        let about = format!(
            "The image uses at most {} bytes of stack, by the calls in its code, an interrupt included. {}",
            self.stack,
            self.compiled_by()
        );
        let mut table = Table::new(
            about,
            "Part | Code, B | Constants, B | Together, B | Goal, B",
        );
        for row in &self.rows {
            let Bytes { text, constants } = row.bytes;
            table.row(json!([
                row.name,
                text,
                constants,
                row.bytes.together(),
                row.goal
            ]));
        }
        table
    }

    pub(crate) fn json(&self) -> Value {
        let row = |row: &Row| {
            let Bytes { text, constants } = row.bytes;
            let together = row.bytes.together();
            let value = json!({"text": text, "read_only_data": constants, "together": together, "goal": row.goal});
            (row.key.to_owned(), value)
        };
        let mut all: Map<String, Value> = self.rows.iter().map(row).collect();
        all.insert("stack".into(), self.stack.into());
        all.into()
    }
}

fn compiler(folder: &Folder) -> Result<String> {
    let text = output(in_root(folder).args(["rustc", "--version"]))?;
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    Ok(words.join(" "))
}

fn library(folder: &Folder, target: &Target, features: &str) -> Result<Bytes> {
    let output = folder.local.join("size-cargo");
    let built = bare::Build {
        subcommand: "build",
        source: "replayer/core/size",
        target: target.name,
        output: &output,
        arguments: &[
            "--features",
            features,
            "-Zbuild-std=core",
            "-Zbuild-std-features=optimize_for_size",
        ],
        environment: &[("RUSTFLAGS", target.flags.into())],
    };
    let folder_of_target = built.run(folder)?;
    let archive = folder_of_target.join("libgpureplay_size.a");
    let object = Object::of_archive(folder, &archive, "gpureplay_size")?;
    object.require_no_panic()?;
    object.require_no_floating_point()?;
    Ok(object.bytes())
}

/// A panic fails the link; floating point is looked for here.
fn image(folder: &Folder, features: &[&str]) -> Result<Object> {
    let path = bare::firmware(folder, &bare::Linked::default(), features)?;
    let object = Object::of_program(folder, &path)?;
    object.require_no_floating_point()?;
    Ok(object)
}
