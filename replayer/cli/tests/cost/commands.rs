// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commands that a stranger's file goes through, and the budget of each. `docs/reference/specification.md` states them.

use gpureplay_core::Limits;

use crate::count::Cost;

/// What a command is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Given {
    /// A directory `rec` with a recording, and sometimes more.
    Recording,
    /// A recording with states, and a file of values for them.
    State,
    /// A pack.
    Pack,
    /// A raw trace and the files that its app read and wrote.
    Trace,
    /// The four files of a recording of the original GPUReplay.
    Original,
    /// A PNG picture.
    Png,
    /// A JPEG picture.
    Jpeg,
    /// A .npy file.
    Npy,
    /// A .safetensors file.
    Safetensors,
    /// A manifest beside a recording.
    Manifest,
}

/// A budget: what a file may cost whatever it is, and for each of its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) fixed: u64,
    pub(crate) each: u64,
}

impl Budget {
    /// The most that a file of so many bytes may cost.
    pub(crate) const fn of(self, bytes: u64) -> u64 {
        self.fixed.saturating_add(self.each.saturating_mul(bytes))
    }
}

/// A command and what it may take.
pub(crate) struct Command {
    /// How the table calls it.
    pub(crate) name: &'static str,
    /// Its words: `@` stands for the folder of the case, `%` for one that all cases share.
    pub(crate) words: &'static str,
    pub(crate) given: Given,
    /// Bytes of heap held at once.
    pub(crate) held: Budget,
    /// Allocations.
    pub(crate) calls: Budget,
    /// Steps of the program.
    pub(crate) steps: Budget,
    /// Bytes printed, and of files written.
    pub(crate) written: Budget,
    /// How many times the GPU memory that the file declares comes on top of what is held and written.
    pub(crate) memory: u64,
}

pub(crate) const MIB: u64 = 1 << 20;
/// Steps that reading and checking take.
const READS: Budget = Budget {
    fixed: 1 << 24,
    each: 4096,
};
/// Steps of what also runs on the model, with a million clauses.
const RUNS: Budget = Budget {
    fixed: 1 << 34,
    each: 1 << 16,
};

const fn command(given: Given, name: &'static str, words: &'static str, written: u64) -> Command {
    Command {
        name,
        words,
        given,
        held: Budget {
            fixed: 32 * MIB,
            each: 64,
        },
        calls: Budget {
            fixed: 20_000,
            each: 16,
        },
        steps: READS,
        written: Budget {
            fixed: MIB,
            each: written,
        },
        memory: 0,
    }
}

/// What also keeps the memory that the recording uploads, and decodes its shaders.
const fn deep(command: Command) -> Command {
    Command {
        held: Budget {
            fixed: 128 * MIB,
            ..command.held
        },
        steps: Budget {
            fixed: 1 << 32,
            ..command.steps
        },
        written: Budget {
            fixed: 64 * MIB,
            ..command.written
        },
        memory: 1,
        ..command
    }
}

/// What also lists its jobs, of which a small file may submit the same ones often.
const fn lists(command: Command) -> Command {
    Command {
        calls: Budget {
            fixed: 4 << 20,
            ..command.calls
        },
        ..command
    }
}

/// What also runs it.
const fn runs(command: Command) -> Command {
    Command {
        // A job, a chain and a restored page take some each, in every run of several.
        calls: Budget {
            fixed: 4 << 20,
            ..command.calls
        },
        steps: RUNS,
        // The GPU's memory, and outputs of which several lie in the same.
        memory: 1 + Limits::OUTPUT_COPIES,
        ..command
    }
}

/// What also looks at every instruction of every job's shader, for another GPU.
const fn fits(command: Command) -> Command {
    Command {
        calls: Budget {
            fixed: 64 << 20,
            ..command.calls
        },
        ..command
    }
}

/// What decodes a picture of as many pixels as one may have.
const fn pictures(command: Command) -> Command {
    Command {
        held: Budget {
            fixed: 512 * MIB,
            ..command.held
        },
        steps: Budget {
            fixed: 1 << 36,
            ..command.steps
        },
        ..runs(command)
    }
}

/// What keeps a list of the pages that a GPU had mapped.
const fn pages(command: Command) -> Command {
    Command {
        held: Budget {
            fixed: 256 * MIB,
            ..command.held
        },
        steps: Budget {
            fixed: 1 << 32,
            ..command.steps
        },
        memory: 2,
        ..command
    }
}

use Given::{Jpeg, Manifest, Npy, Original, Pack, Png, Recording, Safetensors, State, Trace};

pub(crate) const COMMANDS: [Command; 36] = [
    command(Recording, "verify", "verify @rec", 0),
    lists(deep(command(
        Recording,
        "verify --deep",
        "verify --deep @rec",
        4,
    ))),
    fits(deep(command(
        Recording,
        "verify --for",
        "verify --deep --for g31 @rec",
        100,
    ))),
    command(Recording, "info", "info @rec", 100),
    command(Recording, "info --json", "info --json @rec", 200),
    command(
        Recording,
        "info --unverified",
        "info --unverified @rec",
        100,
    ),
    command(Recording, "dump", "dump @rec", 700),
    command(
        Recording,
        "dump --unverified",
        "dump --unverified @rec",
        700,
    ),
    lists(deep(command(Recording, "disasm", "disasm @rec", 100))),
    runs(command(
        Recording,
        "run",
        "run --threads 1 --limit-work 1000000 @rec",
        100,
    )),
    runs(command(
        Recording,
        "run --retry",
        "run --threads 1 --limit-work 1000000 --retry 2 @rec",
        100,
    )),
    lists(deep(command(
        Recording,
        "jobs --static",
        "jobs --static --csv @rec",
        700,
    ))),
    runs(deep(command(
        Recording,
        "jobs",
        "jobs --threads 1 --limit-work 1000000 --csv @rec",
        700,
    ))),
    runs(deep(command(
        Recording,
        "analyse",
        "analyse --threads 1 --limit-work 1000000 --json @rec",
        700,
    ))),
    fits(runs(deep(command(
        Recording,
        "retarget",
        "retarget --gpu g31 --threads 1 --limit-work 1000000 -o @made --force @rec",
        8,
    )))),
    runs(deep(command(
        Recording,
        "extract",
        "extract --job 0 -o @made @rec",
        8,
    ))),
    runs(deep(command(
        Recording,
        "patch",
        "patch --job 0 --local 1x1x1 --inputs 1 @rec",
        100,
    ))),
    command(Recording, "pack", "pack -o @made.pack @rec", 8),
    command(Recording, "sign", "sign --force --key %key.pem @rec", 8),
    runs(command(
        State,
        "run --state-in",
        "run --threads 1 --limit-work 1000000 --repeat 3 --state-in @s.safetensors --state-out @made.safetensors @rec",
        100,
    )),
    runs(command(
        State,
        "pack with states",
        "run --threads 1 --limit-work 1000000 --state-in @s.safetensors @x.pack",
        100,
    )),
    command(Pack, "info of a pack", "info @x.pack", 100),
    lists(deep(command(
        Pack,
        "verify of a pack",
        "verify --deep @x.pack",
        4,
    ))),
    command(Pack, "unpack", "unpack -o @made @x.pack", 8),
    runs(command(
        Pack,
        "run of a pack",
        "run --threads 1 --limit-work 1000000 --require-signature %key.pub.pem @x.pack",
        100,
    )),
    command(Trace, "dump of a trace", "dump @trace", 700),
    pages(command(
        Trace,
        "compile",
        "compile @trace --input a=@a.npy --input b=@b.npy --output out=@out.npy -o @made --force",
        64,
    )),
    pages(command(
        Trace,
        "compile --suggest",
        "compile @trace --suggest",
        100,
    )),
    pages(command(
        Original,
        "import",
        "import --plain --force -o @made @orig",
        64,
    )),
    pages(command(
        Original,
        "import --check",
        "import --plain --check @orig",
        100,
    )),
    pictures(command(
        Png,
        "PNG picture",
        "run --threads 1 --input x=@x.png %picture",
        8,
    )),
    pictures(command(
        Jpeg,
        "JPEG picture",
        "run --threads 1 --input x=@x.jpg %picture",
        8,
    )),
    runs(command(
        Npy,
        ".npy file",
        "run --threads 1 --input x=@x.npy %picture",
        8,
    )),
    runs(command(
        Npy,
        ".npy of many",
        "run --threads 1 --inputs @x.npy %picture",
        100,
    )),
    runs(command(
        Safetensors,
        ".safetensors file",
        "run --threads 1 --input x=@x.safetensors#x %picture",
        8,
    )),
    command(Manifest, "manifest", "info @rec", 100),
];

impl Command {
    /// What of `cost` is beyond the budget for a case of so many bytes that declares so much GPU memory; `None` if nothing is.
    pub(crate) fn exceeded(&self, cost: &Cost, bytes: u64, declared: u64) -> Option<String> {
        let memory = self.memory.saturating_mul(declared);
        let rows = [
            (
                "bytes held",
                cost.held,
                self.held.of(bytes).saturating_add(memory),
            ),
            ("allocations", cost.calls, self.calls.of(bytes)),
            (
                "steps",
                cost.steps,
                self.steps.of(bytes).saturating_add(memory),
            ),
            (
                "bytes written",
                cost.written,
                self.written.of(bytes).saturating_add(memory),
            ),
        ];
        let beyond: Vec<String> = rows
            .iter()
            .filter(|(_, value, most)| value > most)
            .map(|(what, value, most)| format!("{value} {what}, at most {most}"))
            .collect();
        (!beyond.is_empty()).then(|| beyond.join("; "))
    }
}
