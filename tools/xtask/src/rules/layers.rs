// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which folders a folder may use. docs/DESIGN.md gives reasons.

use crate::workspace::Crate;

/// A folder and the folders that its crates may use, without their tests. A folder that is not named may use every folder but those
/// in `TOPMOST`.
const MAY_USE: [(&str, &[&str]); 4] = [
    ("cuda", &["cuda"]),
    ("mali", &["mali"]),
    ("model", &["mali", "model"]),
    ("replayer", &["cuda", "mali", "model", "replayer"]),
];

/// Crates that know nothing of a GPU; every folder may use them.
const GENERIC: [&str; 2] = ["gpureplay-io", "gpureplay-sign"];

/// Folders that only each other may use.
const TOPMOST: [&str; 2] = ["tools", "fuzz"];

/// The arrows that break a rule, in words.
pub(super) fn forbidden(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for from in crates {
        for arrow in from.dependencies.iter().filter(|arrow| arrow.ours) {
            let to = crates.iter().find(|known| known.name == arrow.name);
            let Some(to) = to.filter(|_| !arrow.tests_only) else {
                continue;
            };
            let generic = GENERIC.contains(&to.name.as_str());
            if !generic && !allowed(top(&from.folder), top(&to.folder)) {
                found.push(format!(
                    "{} ({}) may not use {} ({})",
                    from.name, from.folder, to.name, to.folder
                ));
            }
            if from.no_std && !to.no_std {
                found.push(format!(
                    "{} is no_std, but uses {}, which is not",
                    from.name, to.name
                ));
            }
        }
    }
    found
}

fn allowed(from: &str, to: &str) -> bool {
    if TOPMOST.contains(&to) && !TOPMOST.contains(&from) {
        return false;
    }
    match MAY_USE.iter().find(|(folder, _)| *folder == from) {
        Some((_, may_use)) => may_use.contains(&to),
        None => true,
    }
}

/// The first part of a path.
pub(crate) fn top(folder: &str) -> &str {
    folder.split('/').next().unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::{Dependency, Unsafe};

    fn in_folder(name: &str, folder: &str, no_std: bool, uses: &[(&str, bool)]) -> Crate {
        Crate {
            name: name.into(),
            description: String::new(),
            folder: folder.into(),
            workspace: String::new(),
            unsafe_code: Unsafe::Forbidden,
            no_std,
            dependencies: uses
                .iter()
                .map(|&(name, tests_only)| Dependency {
                    name: name.into(),
                    ours: true,
                    tests_only,
                })
                .collect(),
        }
    }

    #[test]
    fn lower_layers_do_not_see_higher_ones() {
        let crates = [
            in_folder("regs", "mali/regs", true, &[("gpu", true)]),
            in_folder(
                "gpu",
                "model/gpu",
                false,
                &[("regs", false), ("core", false)],
            ),
            in_folder(
                "core",
                "replayer/core",
                true,
                &[("regs", false), ("gpu", false)],
            ),
            in_folder("trials", "tools/trials", false, &[("core", false)]),
        ];
        assert_eq!(
            forbidden(&crates),
            [
                "gpu (model/gpu) may not use core (replayer/core)",
                "core is no_std, but uses gpu, which is not",
            ]
        );
    }

    #[test]
    fn only_tools_use_tools() {
        assert!(allowed("fuzz", "tools"));
        assert!(!allowed("nano-driver", "tools"));
        assert!(allowed("nano-driver", "replayer"));
    }
}
