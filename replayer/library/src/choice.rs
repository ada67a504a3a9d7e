// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of devices, and their texts.

use std::fmt::Write;
use std::str::FromStr;

use gpureplay_linux::{Board, Mode};

/// A device to open, by a text such as `model:g52`; see [`KINDS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// See [`Choice::for_recording`].
    Best,
    /// The model of a GPU; by default of the recorded one.
    Model(Option<String>),
    /// The kernel's panfrost driver.
    Panfrost,
    /// The kernel's panthor driver: command streams.
    Panthor,
    /// Arm's kernel driver.
    Kbase,
    /// The nano driver.
    Nano(Mode),
    /// Registers through /dev/mem.
    DevMem(Option<Box<Board>>),
    /// The trusted application in OP-TEE: not a [`crate::Device`] but a session of its own.
    Optee,
}

/// A kind of device.
#[derive(Debug)]
pub struct Kind {
    /// Text that chooses it; the caller fills in capitals after the colon.
    pub text: &'static str,
    /// Description.
    pub what: &'static str,
    choose: fn(&str) -> Result<Choice, String>,
}

/// The first is the default.
pub const KINDS: &[Kind] = &[
    Kind {
        text: "best",
        what: "panfrost or panthor where it drives the recorded GPU and fits the recording, else model",
        choose: |_| Ok(Choice::Best),
    },
    Kind {
        text: "model",
        what: "the GPU model, of the GPU that was recorded",
        choose: |_| Ok(Choice::Model(None)),
    },
    Kind {
        text: "model:GPU",
        what: "the GPU model of that GPU, for example model:g76",
        choose: |gpu| Ok(Choice::Model(Some(gpu.to_owned()))),
    },
    Kind {
        text: "panfrost",
        what: "the kernel's own driver, as any user of the group render",
        choose: |_| Ok(Choice::Panfrost),
    },
    Kind {
        text: "panthor",
        what: "the same for GPUs that take command streams",
        choose: |_| Ok(Choice::Panthor),
    },
    Kind {
        text: "kbase",
        what: "Arm's driver, on /dev/mali0",
        choose: |_| Ok(Choice::Kbase),
    },
    Kind {
        text: "nano",
        what: "the nano driver: its kernel module owns page tables and checks register writes",
        choose: |_| Ok(Choice::Nano(Mode::Guarded)),
    },
    Kind {
        text: "nano:shared",
        what: "the nano driver, taking turns with other processes",
        choose: |_| Ok(Choice::Nano(Mode::Shared)),
    },
    Kind {
        text: "devmem",
        what: "registers through /dev/mem, where the device tree says (needs root)",
        choose: |_| Ok(Choice::DevMem(None)),
    },
    Kind {
        text: "devmem:BOARD",
        what: "the same on a board that is known by name, for example devmem:hikey960",
        choose: |name| match Board::named(name) {
            Some(board) => Ok(Choice::DevMem(Some(Box::new(board)))),
            None => Err(format!(
                "there is no board {name}; boards are: {}",
                Board::names().collect::<Vec<_>>().join(", ")
            )),
        },
    },
    Kind {
        text: "optee",
        what: "the trusted application in OP-TEE, which has the GPU: whole runs of recordings that are signed",
        choose: |_| Ok(Choice::Optee),
    },
];

impl Kind {
    fn argument<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self.text.split_once(':') {
            Some((name, argument)) if argument.chars().all(char::is_uppercase) => {
                text.strip_prefix(name)?.strip_prefix(':')
            }
            _ => (text == self.text).then_some(""),
        }
    }
}

impl Choice {
    /// Names of the kinds on one line, for help and errors.
    pub fn names() -> String {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.text).collect();
        names.join(", ")
    }

    /// A line each, for help.
    pub fn explained() -> String {
        let width = KINDS.iter().map(|kind| kind.text.len()).max().unwrap_or(0);
        let mut text = String::new();
        for kind in KINDS {
            let _ = writeln!(text, "  {:width$}  {}", kind.text, kind.what);
        }
        text
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let exact = KINDS.iter().filter(|kind| kind.text == text);
        exact
            .chain(KINDS)
            .find_map(|kind| kind.argument(text).map(kind.choose))
            .unwrap_or_else(|| Err(format!("devices are: {}", Self::names())))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn texts_choose_devices() {
        let parsed = |text: &str| text.parse::<Choice>();
        assert_eq!(parsed("best"), Ok(Choice::Best));
        assert_eq!(parsed("model"), Ok(Choice::Model(None)));
        assert_eq!(parsed("model:g52"), Ok(Choice::Model(Some("g52".into()))));
        assert_eq!(parsed("panfrost"), Ok(Choice::Panfrost));
        assert_eq!(parsed("panthor"), Ok(Choice::Panthor));
        assert_eq!(parsed("kbase"), Ok(Choice::Kbase));
        assert_eq!(parsed("nano"), Ok(Choice::Nano(Mode::Guarded)));
        assert_eq!(parsed("nano:shared"), Ok(Choice::Nano(Mode::Shared)));
        assert_eq!(parsed("devmem"), Ok(Choice::DevMem(None)));
        assert_eq!(parsed("optee"), Ok(Choice::Optee));
        let board = parsed("devmem:hikey960");
        assert!(matches!(&board, Ok(Choice::DevMem(Some(board))) if board.gpu.contains("G71")));
        let unknown = parsed("devmem:toaster").unwrap_err();
        assert!(unknown.contains("boards are: hikey960, "), "{unknown}");
        for wrong in [
            "",
            "models",
            "nano:other",
            "nano:direct",
            "nano:",
            "panfrost:",
            "gpu",
            "devmem2",
            "optee:",
            "tee",
        ] {
            let error = parsed(wrong).unwrap_err();
            assert!(
                error.contains("model:GPU") && error.contains("devmem:BOARD"),
                "{wrong}: {error}"
            );
        }
        for kind in KINDS.iter().filter(|kind| kind.text != "devmem:BOARD") {
            assert!(parsed(kind.text).is_ok(), "{}", kind.text);
        }
    }

    #[test]
    fn the_page_for_programs_shows_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/embedding.md");
        let page = std::fs::read_to_string(Path::new(path)).unwrap();
        let mut rows = String::new();
        for kind in KINDS {
            writeln!(rows, "| `{}` | {} |", kind.text, kind.what).unwrap();
        }
        let header = "| Device | What it is |\n| --- | --- |\n";
        assert!(
            page.contains(&format!("{header}{rows}\n")),
            "docs/embedding.md lacks:\n{rows}"
        );
    }
}
