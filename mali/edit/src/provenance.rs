// SPDX-License-Identifier: MIT OR Apache-2.0
//! An edited recording's provenance.

use std::collections::BTreeMap;

use gpureplay_library::manifest::MOST_TEXT;
use gpureplay_library::{Recording, weights::sha256};

pub(crate) const EDITED: &str = "edited";

const THEN: &str = "; then ";
const EARLIER: &str = "...";

fn history(before: Option<&str>, step: String) -> String {
    let Some(mut before) = before else {
        return step;
    };
    let whole = before.len() + THEN.len() + step.len();
    if whole <= MOST_TEXT {
        return format!("{before}{THEN}{step}");
    }
    while EARLIER.len() + THEN.len() + before.len() + THEN.len() + step.len() > MOST_TEXT {
        match before.split_once(THEN) {
            Some((_, rest)) => before = rest,
            None => return format!("{EARLIER}{THEN}{step}"),
        }
    }
    format!("{EARLIER}{THEN}{before}{THEN}{step}")
}

/// `what` was done; `bytes` is the new recording.
pub fn edited(from: &Recording, what: &str, bytes: &[u8]) -> BTreeMap<String, String> {
    let manifest = from.manifest();
    let mut provenance = manifest.map_or_else(BTreeMap::new, |it| it.provenance.clone());
    let source = format!(
        "{what}, of {} with SHA-256 {}",
        from.name(),
        sha256(&from.recorded().files().bytes)
    );
    let before = provenance.get(EDITED).map(String::as_str);
    let history = history(before, source);
    provenance.insert(EDITED.into(), history);
    provenance.insert("sha256".into(), sha256(bytes));
    provenance
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_keeps_its_last_steps() {
        let step = |number: usize| format!("{number:0>95}");
        let mut text = step(0);
        for number in 1..2000 {
            text = history(Some(&text), step(number));
            assert!(text.len() <= MOST_TEXT);
            assert!(text.ends_with(&step(number)));
        }
        let steps: Vec<&str> = text.split(THEN).collect();
        assert_eq!(steps[0], EARLIER);
        let kept = steps.len() - 1;
        assert!(text.len() + THEN.len() + step(0).len() > MOST_TEXT);
        assert_eq!(steps[1], step(2000 - kept));
        let long = "x".repeat(MOST_TEXT);
        assert_eq!(
            history(Some(&long), step(1)),
            format!("...; then {}", step(1))
        );
    }
}
