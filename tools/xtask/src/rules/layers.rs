// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which crate may use which: reasons in docs/internals/design.md.

use crate::workspace::Crate;

/// From the ground up; the longest prefix counts. Crates use lower floors and their own.
const FLOORS: [&[&str]; 8] = [
    &[
        "base/host",
        "mali/facts",
        "mali/isa",
        "mali/uapi",
        "model/memory",
        "replayer/format",
    ],
    &[
        "base/sign",
        "cuda/launch",
        "mali/shader",
        "model/shader",
        "replayer/core",
        "replayer/tensors",
        "replayer/trace",
    ],
    &[
        "cuda",
        "driver-patch",
        "mali/drive",
        "mali/jobs",
        "mali/model",
        "model",
    ],
    &["replayer/devices"],
    &["replayer/library"],
    &[
        "cuda/replay",
        "mali/compile",
        "mali/edit",
        "mali/import",
        "mali/measure",
        "mali/retarget",
    ],
    &["replayer/c", "replayer/cli", "replayer/own-analyser"],
    &["fuzz", "replayer/core/size", "tools"],
];

/// They may not use these, whatever their floors.
const APART: [(&str, &[&str]); 3] = [
    ("base", &["cuda", "mali", "model"]),
    ("cuda", &["mali", "model"]),
    ("model", &["cuda", "replayer"]),
];

/// They declare Mali's registers, descriptors and instructions: who uses none of them names none.
const DECLARE_MALI: [&str; 2] = ["mali/facts", "mali/isa"];

pub(super) fn forbidden(crates: &[Crate]) -> Vec<String> {
    let mut found = Vec::new();
    for from in crates {
        if floor(&from.folder).is_none() {
            found.push(format!("{} ({}) has no floor", from.name, from.folder));
        }
        let mut names_mali = false;
        for arrow in from.dependencies.iter().filter(|arrow| arrow.ours) {
            let to = crates.iter().find(|known| known.name == arrow.name);
            let Some(to) = to.filter(|_| !arrow.tests_only) else {
                continue;
            };
            if !allowed(&from.folder, &to.folder) {
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
            names_mali |= DECLARE_MALI.contains(&to.folder.as_str());
        }
        let may = ["fuzz", "mali", "tools"].contains(&top(&from.folder));
        if names_mali && !may {
            found.push(format!(
                "{} ({}) is not in mali, but names Mali",
                from.name, from.folder
            ));
        }
    }
    found
}

fn allowed(from: &str, to: &str) -> bool {
    let apart = APART
        .iter()
        .any(|(folder, others)| *folder == top(from) && others.contains(&top(to)));
    !apart && floor(to) <= floor(from)
}

fn floor(folder: &str) -> Option<usize> {
    let fits = |place: &&str| {
        let rest = folder.strip_prefix(*place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let longest = |places: &&[&str]| places.iter().filter(|it| fits(it)).map(|it| it.len()).max();
    let found = FLOORS.iter().map(longest).enumerate();
    found
        .filter_map(|(floor, length)| Some((length?, floor)))
        .max()
        .map(|(_, floor)| floor)
}

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
    fn arrows_never_point_upwards() {
        let crates = [
            in_folder("facts", "mali/facts", true, &[("gpu", true)]),
            in_folder("gpu", "model/gpu", false, &[("core", false)]),
            in_folder("core", "replayer/core", true, &[("gpu", false)]),
            in_folder("drive", "mali/drive", true, &[("facts", false)]),
            in_folder("device", "replayer/devices/any", false, &[("facts", false)]),
            in_folder(
                "firmware",
                "replayer/devices/bare",
                true,
                &[("drive", false)],
            ),
            in_folder("trials", "tools/trials", false, &[("core", false)]),
            in_folder("somewhere", "elsewhere", false, &[]),
        ];
        assert_eq!(
            forbidden(&crates),
            [
                "gpu (model/gpu) may not use core (replayer/core)",
                "core (replayer/core) may not use gpu (model/gpu)",
                "core is no_std, but uses gpu, which is not",
                "device (replayer/devices/any) is not in mali, but names Mali",
                "somewhere (elsewhere) has no floor",
            ]
        );
    }

    #[test]
    fn the_longest_folder_counts() {
        assert_eq!(floor("cuda/replay"), Some(5));
        assert_eq!(floor("cuda/preload"), Some(2));
        assert_eq!(floor("replayer/devices/optee/trust"), Some(3));
        assert_eq!(floor("toolsmith"), None);
    }
}
