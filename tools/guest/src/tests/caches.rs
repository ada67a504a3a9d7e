// SPDX-License-Identifier: MIT OR Apache-2.0
//! Non-coherent caches.

#[cfg(test)]
use std::{fs, path::Path};

use super::{kernels::kernels_with, programs::record_on, runner::Verdict};
use crate::{
    build::payload,
    devices::expect,
    error::Result,
    files,
    folder::Folder,
    run::session::{self, Checked, Options},
    run::{board::Board, driver::Driver},
};

const SCRIPT: &str = include_str!("caches.sh");
/// The first also replays on mutants.
const RECORDINGS: [&str; 2] = ["digits-g52", "lenet-g52"];

const BOARD: Board = Board {
    non_coherent: true,
    power_domain: false,
    streams: false,
    disabled_first: false,
};

struct Mutant {
    name: &'static str,
    from: &'static str,
    to: &'static str,
    noticed_by: &'static str,
}

/// All of `memory.c`'s maintenance calls. Unmapping invalidates too, but such pages are read no more.
const MUTANTS: [Mutant; 5] = [
    Mutant {
        name: "pages-not-cleaned-when-mapped",
        from: "dma_map_page(nano->dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL)",
        to: "dma_map_page_attrs(nano->dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC)",
        noticed_by: "zeroes",
    },
    Mutant {
        name: "page-tables-not-cleaned",
        from: ".coherent_walk = nano->coherent,",
        to: ".coherent_walk = true,",
        noticed_by: "nano",
    },
    Mutant {
        name: "uploads-not-cleaned",
        from: "dma_sync_single_range_for_device(dev, bus, offset_in_page(at), length,\n\t\t\t\t\t\t\t DMA_BIDIRECTIONAL);",
        to: ";",
        noticed_by: "nano",
    },
    Mutant {
        name: "downloads-not-invalidated",
        from: "dma_sync_single_range_for_cpu(dev, bus, offset_in_page(at), length,\n\t\t\t\t\t\t      DMA_BIDIRECTIONAL);",
        to: ";",
        noticed_by: "nano",
    },
    Mutant {
        name: "whole-pages-invalidated",
        from: "dma_sync_single_range_for_cpu(dev, bus, offset_in_page(at), length,",
        to: "dma_sync_single_range_for_cpu(dev, bus, 0, PAGE_SIZE,",
        noticed_by: "neighbours",
    },
];

pub(super) fn panfrost(folder: &Folder) -> Result<Verdict> {
    payload::board_modules(folder)?;
    let options = Options {
        board: BOARD,
        ..Options::default()
    };
    let live = kernels_with(folder, options, "kernels")?;
    let recorded = record_on(folder, "saxpy", "g52", true)?;
    Ok(Verdict {
        passed: live.passed + recorded.passed,
        failed: live.failed + recorded.failed,
        skipped: 0,
        reason: live.reason + &recorded.reason,
    })
}

pub(super) fn nano(folder: &Folder) -> Result<()> {
    payload::board_modules(folder)?;
    payload::nano_driver(folder)?;
    let share = files::temporary()?;
    for name in RECORDINGS {
        expect(folder, name, share.path())?;
    }
    for mutant in &MUTANTS {
        let module = share.path().join(format!("{}.ko", mutant.name));
        let changes = [(mutant.from, mutant.to)];
        payload::nano_mutant(folder, "memory.c", &changes, &module)?;
    }
    let names = MUTANTS.map(|mutant| mutant.name);
    let options = Options {
        environment: vec![
            ("RECORDINGS".into(), RECORDINGS.join(" ")),
            ("MUTANTS".into(), names.join(" ")),
        ],
        board: BOARD,
        ..Options::sharing(Driver::None, share.path())
    };
    let outcome = session::script(folder, &options, SCRIPT)?;
    outcome.clean()?;
    let logs = outcome.logs.display();
    noticed(&outcome.said()).map_err(|reason| format!("{reason}, logs: {logs}").into())
}

fn noticed(said: &str) -> Checked {
    for mutant in &MUTANTS {
        let wrong = said
            .lines()
            .find_map(|line| line.strip_prefix(mutant.name)?.strip_prefix(": wrong:"))
            .ok_or_else(|| format!("nothing is said of {}", mutant.name))?;
        if !wrong
            .split_whitespace()
            .any(|trial| trial == mutant.noticed_by)
        {
            return Err(format!(
                "{} was not noticed by {}, but by `{}`",
                mutant.name, mutant.noticed_by, wrong
            ));
        }
    }
    match said.lines().next_back() {
        Some("missed: 0") => Ok(()),
        last => Err(format!("the last line is {last:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_fit_the_driver() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../nano-driver/memory.c");
        let text = fs::read_to_string(file).unwrap();
        for mutant in &MUTANTS {
            assert_eq!(text.matches(mutant.from).count(), 1, "{}", mutant.name);
        }
    }

    #[test]
    fn every_mutant_must_be_noticed() {
        let mut said = String::new();
        for mutant in &MUTANTS {
            said += &format!("{}: wrong: {}\n", mutant.name, mutant.noticed_by);
        }
        assert_eq!(noticed(&format!("{said}missed: 0\n")), Ok(()));
        assert!(noticed(&format!("{said}missed: 1\n")).is_err());
        assert!(noticed(&said.replacen("zeroes", "", 1)).is_err());
        assert!(noticed("missed: 0\n").is_err());
    }
}
