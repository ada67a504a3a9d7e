// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the manifest of an edited recording says about where it comes from.

use std::collections::BTreeMap;

use gpureplay_library::{Recording, weights::sha256};

/// Key of the provenance that says what was done to which recording.
pub(crate) const EDITED: &str = "edited";

/// The provenance of a recording that was made from another one by doing `what` to it. `bytes`: the new recording.
pub fn edited(from: &Recording, what: &str, bytes: &[u8]) -> BTreeMap<String, String> {
    let manifest = from.manifest();
    let mut provenance = manifest.map_or_else(BTreeMap::new, |it| it.provenance.clone());
    let source = format!(
        "{what}, of {} with SHA-256 {}",
        from.name(),
        sha256(&from.recorded().files().bytes)
    );
    let history = match provenance.get(EDITED) {
        Some(before) => format!("{before}; then {source}"),
        None => source,
    };
    provenance.insert(EDITED.into(), history);
    provenance.insert("sha256".into(), sha256(bytes));
    provenance
}
