// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prints tables of `docs/reference/descriptors.md` for `cargo xtask docs`, each after a line with its name (a
//! descriptor's, `job types`, or `parts of TYPE jobs`).

use std::fmt::Write;

use mali_facts::{Architecture, Field, JobType, Kind, LAYOUTS, LONGEST_CHAIN, Layout};

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
            Architecture::V9 => " (v9)",
            Architecture::V10 => " (v10)",
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

fn main() {
    let named = |name: &str, table: String| println!("<!-- table: {name} -->\n{table}");
    named("job types", job_types());
    for kind in JobType::ALL {
        named(&format!("parts of {} jobs", kind.name()), parts(kind));
    }
    for layout in LAYOUTS {
        named(layout.name, fields(layout));
    }
}
