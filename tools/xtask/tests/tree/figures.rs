// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures show shipped recordings and right sizes.

use std::{collections::BTreeMap, fs, path::Path};

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Shown {
    figures: BTreeMap<String, Figure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    recording: String,
    sha256: String,
    text: Option<String>,
    bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Manifest {
    provenance: Provenance,
}

#[derive(Deserialize)]
struct Provenance {
    sha256: String,
}

#[test]
fn figures_show_the_recordings_that_ship() {
    let top = super::top();
    let read = |path: &Path| fs::read_to_string(path).expect("a text");
    let shown: Shown = toml::from_str(&read(&top.join("figs/shown.toml"))).expect("shown.toml");
    assert!(!shown.figures.is_empty());
    for (name, figure) in shown.figures {
        let picture = top.join("figs").join(&name);
        assert!(picture.exists(), "{name}");
        let recording = top.join("recordings").join(&figure.recording);
        let manifest: Manifest =
            toml::from_str(&read(&recording.join("manifest.toml"))).expect("manifest");
        assert_eq!(
            manifest.provenance.sha256, figure.sha256,
            "{name} shows an older {}; make it again (figs/draw)",
            figure.recording
        );
        if let Some(text) = figure.text {
            assert!(read(&picture).contains(&text), "{name} lacks {text}");
        }
        if let Some(bytes) = figure.bytes {
            let file = fs::metadata(recording.join("recording.gpr")).expect("recording");
            assert_eq!(file.len(), bytes, "{name} states another size");
        }
    }
}
