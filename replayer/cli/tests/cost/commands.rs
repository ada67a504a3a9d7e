// SPDX-License-Identifier: MIT OR Apache-2.0
//! Commands, and budgets from `docs/reference/specification.md`.

use gpureplay_core::Limits;

use crate::count::Cost;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Given {
    Recording,
    State,
    Pack,
    Trace,
    Original,
    Png,
    Jpeg,
    Npy,
    Safetensors,
    Manifest,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) fixed: u64,
    pub(crate) rate: u64,
}

impl Budget {
    pub(crate) const fn of(self, bytes: u64) -> u64 {
        self.fixed.saturating_add(self.rate.saturating_mul(bytes))
    }

    const fn from(self, fixed: u64) -> Self {
        Self { fixed, ..self }
    }
}

pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// `@`: the case's folder, `%`: the shared one.
    pub(crate) words: &'static str,
    pub(crate) given: Given,
    pub(crate) held: Budget,
    pub(crate) calls: Budget,
    pub(crate) steps: Budget,
    pub(crate) written: Budget,
    /// Times the declared GPU memory, added to held, steps and written.
    pub(crate) memory: u64,
}

pub(crate) const MIB: u64 = 1 << 20;
const READS: Budget = Budget {
    fixed: 1 << 24,
    rate: 4096,
};
/// Steps for a million clauses.
const RUNS: Budget = Budget {
    fixed: 1 << 34,
    rate: 1 << 16,
};

const fn command(given: Given, name: &'static str, words: &'static str, written: u64) -> Command {
    Command {
        name,
        words,
        given,
        held: Budget {
            fixed: 32 * MIB,
            rate: 64,
        },
        calls: Budget {
            fixed: 20_000,
            rate: 16,
        },
        steps: READS,
        written: Budget {
            fixed: MIB,
            rate: written,
        },
        memory: 0,
    }
}

/// Keeps uploads, decodes shaders.
const fn deep(command: Command) -> Command {
    Command {
        held: command.held.from(128 * MIB),
        steps: command.steps.from(1 << 32),
        written: command.written.from(64 * MIB),
        memory: 1,
        ..command
    }
}

/// A small file may submit the same jobs often.
const fn lists(command: Command) -> Command {
    Command {
        calls: command.calls.from(4 << 20),
        ..command
    }
}

const fn runs(command: Command) -> Command {
    Command {
        // Per job, chain and restored page, in every run.
        calls: command.calls.from(4 << 20),
        steps: RUNS,
        // Outputs may share memory.
        memory: 1 + Limits::OUTPUT_COPIES,
        ..command
    }
}

/// Looks at every instruction, for another GPU.
const fn fits(command: Command) -> Command {
    Command {
        calls: command.calls.from(64 << 20),
        ..command
    }
}

/// Decodes the most pixels allowed.
const fn pictures(command: Command) -> Command {
    Command {
        held: command.held.from(512 * MIB),
        steps: command.steps.from(1 << 36),
        ..runs(command)
    }
}

/// Lists a GPU's mapped pages.
const fn pages(command: Command) -> Command {
    Command {
        held: command.held.from(256 * MIB),
        steps: command.steps.from(1 << 32),
        memory: 2,
        ..command
    }
}

use Given::{Jpeg, Manifest, Npy, Original, Pack, Png, Recording, Safetensors, State, Trace};

/// Extra work, outermost first, and arguments of [`command`].
macro_rules! commands {
    ($([$($also:ident)*] $given:ident, $name:literal, $words:literal, $written:literal;)*) => {
        [$(commands!(@ [$($also)*] command($given, $name, $words, $written))),*]
    };
    (@ [] $command:expr) => { $command };
    (@ [$also:ident $($more:ident)*] $command:expr) => { $also(commands!(@ [$($more)*] $command)) };
}

pub(crate) const COMMANDS: [Command; 36] = commands! {
    [] Recording, "verify", "verify @rec", 0;
    [lists deep] Recording, "verify --deep", "verify --deep @rec", 4;
    [fits deep] Recording, "verify --for", "verify --deep --for g31 @rec", 100;
    [] Recording, "info", "info @rec", 100;
    [] Recording, "info --json", "info --json @rec", 200;
    [] Recording, "info --unverified", "info --unverified @rec", 100;
    [] Recording, "dump", "dump @rec", 700;
    [] Recording, "dump --unverified", "dump --unverified @rec", 700;
    [lists deep] Recording, "disasm", "disasm @rec", 100;
    [runs] Recording, "run", "run --threads 1 --limit-work 1000000 @rec", 100;
    [runs] Recording, "run --retry", "run --threads 1 --limit-work 1000000 --retry 2 @rec", 100;
    [lists deep] Recording, "jobs --static", "jobs --static --csv @rec", 700;
    [runs deep] Recording, "jobs", "jobs --threads 1 --limit-work 1000000 --csv @rec", 700;
    [runs deep] Recording, "analyse", "analyse --threads 1 --limit-work 1000000 --json @rec", 700;
    [fits runs deep] Recording, "retarget", "retarget --gpu g31 --threads 1 --limit-work 1000000 -o @made --force @rec", 8;
    [runs deep] Recording, "extract", "extract --job 0 -o @made @rec", 8;
    [runs deep] Recording, "patch", "patch --jobs 0 --local 1x1x1 --trials 1 @rec", 100;
    [] Recording, "pack", "pack -o @made.pack @rec", 8;
    [] Recording, "sign", "sign --force --key %key.pem @rec", 8;
    [runs] State, "run --state-in", "run --threads 1 --limit-work 1000000 --repeat 3 --state-in @s.safetensors --state-out @made.safetensors @rec", 100;
    [runs] State, "pack with states", "run --threads 1 --limit-work 1000000 --state-in @s.safetensors @x.pack", 100;
    [] Pack, "info of a pack", "info @x.pack", 100;
    [lists deep] Pack, "verify of a pack", "verify --deep @x.pack", 4;
    [] Pack, "unpack", "unpack -o @made @x.pack", 8;
    [runs] Pack, "run of a pack", "run --threads 1 --limit-work 1000000 --require-signature %key.pub.pem @x.pack", 100;
    [] Trace, "dump of a trace", "dump @trace", 700;
    [pages] Trace, "compile", "compile @trace --input a=@a.npy --input b=@b.npy --output out=@out.npy -o @made --force", 64;
    [pages] Trace, "compile --suggest", "compile @trace --suggest", 100;
    [pages] Original, "import", "import --plain --force -o @made @orig", 64;
    [pages] Original, "import --check", "import --plain --check @orig", 100;
    [pictures] Png, "PNG picture", "run --threads 1 --input x=@x.png %picture", 8;
    [pictures] Jpeg, "JPEG picture", "run --threads 1 --input x=@x.jpg %picture", 8;
    [runs] Npy, ".npy file", "run --threads 1 --input x=@x.npy %picture", 8;
    [runs] Npy, ".npy of many", "run --threads 1 --inputs @x.npy %picture", 100;
    [runs] Safetensors, ".safetensors file", "run --threads 1 --input x=@x.safetensors#x %picture", 8;
    [] Manifest, "manifest", "info @rec", 100;
};

impl Command {
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
