// SPDX-License-Identifier: MIT OR Apache-2.0
//! `info`, `dump` and errors.

use super::*;

fn with(file: &[u8], section: Section, bytes: &[u8]) -> Vec<u8> {
    let field = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let mut sections: [&[u8]; SECTIONS] = std::array::from_fn(|index| {
        let entry = 64 + 32 * index;
        &file[field(entry + 8)..][..field(entry + 16)]
    });
    sections[section.code() as usize - 1] = bytes;
    assemble(Platform::of(GPU), &sections)
}

fn is_refused_and_shown_within_bounds(file: &File, reason: &str) {
    for command in ["info", "dump"] {
        let (code, out, error) = file.ran(command);
        assert_eq!((code, out.as_str()), (3, ""), "{command}: {error}");
        error.says(reason);
        let out = file.ran(&format!("{command} --unverified")).gave(0);
        out.says("not sound: ").says(reason);
        assert!(out.len() < PRINTED, "{command}: {}", out.len());
    }
    let out = file.ran("info --unverified --json").gave(0);
    assert!(out.len() < 4 * PRINTED, "{}", out.len());
    assert!(json(&out)["unsound"].as_str().unwrap().contains(reason));
    let output = file.0.at("out.pack");
    file.ran(&format!("pack --output {}", output.display()))
        .gave(3);
    assert!(!output.exists());
}

#[test]
fn a_long_name_is_not_copied_for_each_bind() {
    let file = File::new(&named(&"n".repeat(1 << 20), 4000));
    is_refused_and_shown_within_bounds(&file, "a name has 1048576 bytes");
}

#[test]
fn many_empty_layers_are_listed_in_one_pass() {
    let mut builder = builder();
    for _ in 0..200_000 {
        builder.segment("run", SegmentKind::Run);
    }
    let file = File::of(builder);
    for command in ["info", "dump", "verify"] {
        file.ran(command).gave(0);
    }
}

#[test]
fn segments_that_share_all_actions_are_looked_at_within_a_bound() {
    let file = named("a", 10_000);
    let parsed = gpureplay_format::Recording::parse(&file).unwrap();
    let segments = parsed.segments()[0];
    let segments = vec![segments; 10_000];
    let segments = zerocopy::IntoBytes::as_bytes(segments.as_slice());
    let file = File::new(&with(&file, Section::Segments, segments));
    is_refused_and_shown_within_bounds(&file, "segment-table");
}

#[test]
fn a_sound_recording_is_shown_whole_either_way() {
    let recording = shipped("digits-g52");
    for command in ["info", "dump"] {
        let plain = ran(&recording, command);
        assert_eq!(plain.0, 0);
        let unverified = ran(&recording, &format!("{command} --unverified"));
        assert_eq!(unverified, plain);
    }
}

#[test]
fn an_error_about_a_shape_of_a_million_dimensions_is_short() {
    let file = File::new(&named("a", 1));
    let ones = vec!["1"; 1_900_000].join(",");
    let header = format!(r#"{{"a":{{"dtype":"U8","shape":[{ones}],"data_offsets":[0,1]}}}}"#);
    let path = file.0.at("x.safetensors");
    std::fs::write(&path, [safetensors(&header), vec![7]].concat()).unwrap();
    let (code, _, error) = file.run(&format!("--input a={}#a", path.display()));
    assert_eq!(code, 4, "{}", error.len());
    assert!(error.len() < 4096, "{}", error.len());
    error.says("1900000 dimensions");
}

#[test]
fn manifests_that_nest_or_repeat_are_refused_in_little_memory() {
    let file = File::new(&named("a", 1));
    let path = file.0.at("manifest.toml");
    let deep = 1 << 18;
    let texts = [
        format!(
            "version = 1\nx = {}{}\n",
            "[".repeat(deep),
            "]".repeat(deep)
        ),
        format!(
            "version = 1\nx = {}1{}\n",
            "{a=".repeat(deep),
            "}".repeat(deep)
        ),
        format!("version = 1\n[{}]\n", vec!["a"; deep].join(".")),
        format!("version = 1\n{} = 1\n", vec!["a"; deep].join(".")),
        "version = 1\n".repeat(1 << 16),
    ];
    for text in texts {
        std::fs::write(&path, &text).unwrap();
        let (code, _, error) = file.ran("info");
        assert!((3..=4).contains(&code), "{code} {error}");
        assert!(error.len() < 1 << 16, "{}", error.len());
    }
}
