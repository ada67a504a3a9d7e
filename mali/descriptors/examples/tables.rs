// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the tables of `docs/jobs.md`: fields of descriptors, types of jobs and where their parts lie.
//!
//! `cargo run -p mali-descriptors --example tables docs/jobs.md` renews each table of that file. A table stands between the lines
//! `<!-- table: NAME -->` and `<!-- end of table -->`; its name is that of a descriptor, `job types`, or `parts of TYPE jobs`.

use std::fmt::Write;

use mali_descriptors::{Architecture, Field, JobType, Kind, LAYOUTS, LONGEST_CHAIN, Layout};

const BEGIN: &str = "<!-- table: ";
const END: &str = "<!-- end of table -->";

/// The text of a document with all its tables renewed, or what is wrong with its markers.
pub(crate) fn renew(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n").ok_or("a marker has no end")?;
        let (_, after) = after
            .split_once(END)
            .ok_or(format!("the table '{name}' has no end"))?;
        let table = table(name).ok_or(format!("there is no table '{name}'"))?;
        let _ = write!(out, "{before}{BEGIN}{name} -->\n{table}{END}");
        rest = after;
    }
    Ok(out + rest)
}

fn table(name: &str) -> Option<String> {
    if name == "job types" {
        return Some(job_types());
    }
    if let Some(kind) = name
        .strip_prefix("parts of ")
        .and_then(|name| name.strip_suffix(" jobs"))
    {
        let kind = JobType::ALL
            .into_iter()
            .find(|known| known.name() == kind)?;
        return Some(parts(kind));
    }
    let layout = LAYOUTS.iter().find(|layout| layout.name == name)?;
    Some(fields(layout))
}

fn job_types() -> String {
    let mut text = String::from("| number | type | a recording may hold it |\n|---|---|---|\n");
    for kind in JobType::ALL {
        let held = if kind.is_replayed() { "yes" } else { "no" };
        let _ = writeln!(text, "| {} | {} | {held} |", kind as u8, kind.name());
    }
    let _ = writeln!(text, "\nA chain has at most {LONGEST_CHAIN} jobs.");
    text
}

fn parts(kind: JobType) -> String {
    let mut text = String::from("| offset | bytes | descriptor |\n|---|---|---|\n");
    for (offset, layout) in kind.parts() {
        let _ = writeln!(
            text,
            "| {offset} | {} | {} |",
            4 * layout.words,
            layout.name
        );
    }
    text
}

fn fields(layout: &Layout) -> String {
    let mut text = format!(
        "| word ({} in all) | bits | field | value |\n|---|---|---|---|\n",
        layout.words
    );
    for field in layout.fields {
        let words = match field.bit + field.width {
            0..=32 => field.word.to_string(),
            bits => format!("{}-{}", field.word, field.word as u32 + (bits - 1) / 32),
        };
        let bits = match field.width {
            1 => field.bit.to_string(),
            32 | 64 => String::new(),
            width => format!("{}:{}", field.bit + width - 1, field.bit),
        };
        let since = match field.since {
            Architecture::V6 => "",
            Architecture::V7 => " (v7)",
        };
        let _ = writeln!(
            text,
            "| {words} | {bits} | {} | {}{since} |",
            field.name,
            value(field)
        );
    }
    text
}

fn value(field: &Field) -> String {
    match field.kind {
        Kind::Unsigned => "number".into(),
        Kind::Signed => "number with sign".into(),
        Kind::Hex => "bits".into(),
        Kind::Bool => "flag".into(),
        Kind::Address => "address".into(),
        Kind::ShiftedAddress(shift) => format!("address / {}", 1 << shift),
        Kind::MinusOne => "number less 1".into(),
        Kind::PowerOfTwo => "logarithm to base 2".into(),
        Kind::Fixed8 => "number in 1/256".into(),
        Kind::SignedFixed8 => "number with sign in 1/256".into(),
        Kind::Float => "float".into(),
        Kind::Swizzle => "four selectors: 0 to 3 R, G, B, A, 4 zero, 5 one".into(),
        Kind::PixelFormat => "pixel format".into(),
        Kind::Enum(names) => {
            let names: Vec<_> = names
                .iter()
                .map(|(code, name)| format!("{code} {name}"))
                .collect();
            names.join(", ")
        }
    }
}

#[allow(dead_code, reason = "a test includes this file for `renew`")]
fn main() -> std::io::Result<()> {
    let Some(path) = std::env::args_os().nth(1) else {
        for layout in LAYOUTS {
            println!("## {}\n\n{}", layout.name, fields(layout));
        }
        return Ok(());
    };
    let text = std::fs::read_to_string(&path)?;
    let renewed = renew(&text).map_err(std::io::Error::other)?;
    std::fs::write(path, renewed)
}
