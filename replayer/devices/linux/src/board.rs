// SPDX-License-Identifier: MIT OR Apache-2.0
//! Known boards (`replayer/devices/linux/boards`).

use std::fs;
use std::path::Path;

use serde::Deserialize;

const FILES: [(&str, &str); 5] = [
    ("hikey960", include_str!("../boards/hikey960.toml")),
    ("khadas-vim3", include_str!("../boards/khadas-vim3.toml")),
    ("mt8183", include_str!("../boards/mt8183.toml")),
    (
        "odroid-n2-plus",
        include_str!("../boards/odroid-n2-plus.toml"),
    ),
    ("rk3568", include_str!("../boards/rk3568.toml")),
];

/// A board or family. None has been run on silicon yet.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Board {
    /// Common name.
    pub name: String,
    /// System on chip.
    pub soc: String,
    /// Graphics processor.
    pub gpu: String,
    /// The root's `compatible`.
    pub machine: Vec<String>,
    /// The GPU's node in mainline, or empty.
    pub node: String,
    /// Physical address.
    pub registers: u64,
    /// Window size.
    pub register_bytes: u64,
    /// Shared peripheral interrupts of the GIC.
    pub interrupts: Interrupts,
    /// The GPU snoops CPU caches.
    pub coherent: bool,
    /// Of the node.
    pub clocks: Vec<String>,
    /// Of the node.
    pub resets: Vec<String>,
    /// Of the node.
    pub supplies: Vec<String>,
    /// Of the node.
    pub power_domains: Vec<String>,
    /// What else one must know.
    pub quirks: Vec<String>,
    /// Source file and node.
    pub source: String,
}

/// Interrupt numbers as in device trees (32 less than the GIC's).
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Interrupts {
    /// Job manager.
    pub job: u32,
    /// MMU.
    pub mmu: u32,
    /// Resets, power, cache maintenance.
    pub gpu: u32,
    /// `level high` or `level low`.
    pub trigger: String,
}

impl Board {
    /// Names for [`Board::named`].
    pub fn names() -> impl Iterator<Item = &'static str> {
        FILES.iter().map(|(name, _)| *name)
    }

    /// The board of this name; `None` if unknown.
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = FILES.iter().find(|(file, _)| *file == name)?;
        toml::from_str(text).ok()
    }

    /// This machine's board, by the device tree below `root` (`/`).
    pub fn of_machine(root: &Path) -> Option<Self> {
        let path = root.join("sys/firmware/devicetree/base/compatible");
        let machine = fs::read(path).ok()?;
        let is = |board: &Self| {
            machine
                .split(|&byte| byte == 0)
                .any(|name| board.machine.iter().any(|of| of.as_bytes() == name))
        };
        Self::names().filter_map(Self::named).find(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_board() {
        for name in Board::names() {
            let board = Board::named(name).unwrap_or_else(|| panic!("{name}.toml"));
            assert!(board.registers.is_multiple_of(0x1000), "{name}");
            assert!((0x4000..=1 << 20).contains(&board.register_bytes), "{name}");
            let lines = [
                board.interrupts.job,
                board.interrupts.mmu,
                board.interrupts.gpu,
            ];
            assert!(lines.iter().all(|&line| line < 988), "{name}");
            assert!(!board.source.is_empty() && !board.machine.is_empty());
            // A node's name has the registers' address.
            let address = board.node.rsplit('@').next().unwrap_or_default();
            assert!(
                board.node.is_empty() || u64::from_str_radix(address, 16) == Ok(board.registers),
                "{name}"
            );
        }
        assert_eq!(Board::named("toaster"), None);
        assert_eq!(Board::names().count(), FILES.len());
    }

    #[test]
    fn boards_are_all_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("boards");
        let mut files: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let name = entry.unwrap().file_name().into_string().unwrap();
                name.trim_end_matches(".toml").to_owned()
            })
            .collect();
        files.sort();
        assert!(Board::names().eq(files));
    }

    #[test]
    fn a_machine_is_recognized() {
        let root = std::env::temp_dir().join(format!("gpureplay-board-{}", std::process::id()));
        let base = root.join("sys/firmware/devicetree/base");
        fs::create_dir_all(&base).unwrap();
        fs::write(
            base.join("compatible"),
            b"pine64,quartz64-a\0rockchip,rk3566\0",
        )
        .unwrap();
        let board = Board::of_machine(&root).unwrap();
        fs::write(base.join("compatible"), b"linux,dummy-virt\0").unwrap();
        let none = Board::of_machine(&root);
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(board.registers, 0xfde6_0000);
        assert_eq!(none, None);
    }
}
