// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an instruction asks of memory, shader cores and caches, and why one cannot be executed.

use core::fmt::{self, Display, Formatter};

use super::table::Op;

/// What an instruction asks of others than the sequencer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: registers, waits, calls, resources.
    None,
    /// Run a compute dispatch.
    Compute(Compute),
    /// Load words of memory into registers: [`Sequencer::load`](super::Sequencer::load) takes them.
    Load(Transfer),
    /// Store registers.
    Store(Transfer),
    /// Clean or invalidate caches.
    Flush,
    /// Change a sync object, or wait for it.
    Sync(Sync),
    /// Store a counter, by the number of its kind.
    StoreState {
        /// Where to.
        address: u64,
        /// 0 timestamp, 1 cycles, 2 count of interruptions, 3 status of errors.
        state: u8,
    },
}

/// A dispatch, as the registers say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// The list of resources; its low six bits count them.
    pub resources: u64,
    /// Uniforms: the address in bits 47:0, pairs of words in 63:56.
    pub uniforms: u64,
    /// The shader program.
    pub program: u64,
    /// The descriptor of thread and group storage.
    pub storage: u64,
    /// Attribute offset.
    pub attribute_offset: u32,
    /// Threads of a group, as in the payload of a job.
    pub size: u32,
    /// Division into tasks, as in the payload of a job.
    pub tasks: u32,
    /// First group.
    pub offset: [u32; 3],
    /// Groups.
    pub count: [u32; 3],
}

/// Consecutive words of memory, and the registers that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Where the word of mask bit 0 is.
    pub address: u64,
    /// The register of mask bit 0.
    pub base: u8,
    /// Bit n: the word n and the register base + n.
    pub mask: u16,
}

/// What is done to a sync object: a value, and 32 bits of error behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// What is done.
    pub kind: SyncKind,
    /// The value has 64 bits, else 32.
    pub wide: bool,
    /// Where it is.
    pub address: u64,
    /// What is added, set or compared.
    pub value: u64,
    /// An error is propagated with a change, or refused by a wait.
    pub error: bool,
}

/// How a sync object is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// The value grows.
    Add,
    /// The value is replaced.
    Set,
    /// The value is waited for.
    Wait(Condition),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// At most.
    LessOrEqual,
    /// More than.
    Greater,
}

impl Condition {
    /// Whether it holds.
    pub const fn holds(self, found: u64, value: u64) -> bool {
        match self {
            Condition::LessOrEqual => found <= value,
            Condition::Greater => found > value,
        }
    }
}

/// Why an instruction cannot be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No instruction has the opcode.
    Unknown(u64),
    /// Bits are set that have no meaning.
    Unexplained {
        /// The instruction.
        op: Op,
        /// The bits.
        bits: u64,
    },
    /// A field has a value that has no meaning.
    Reserved {
        /// The instruction.
        op: Op,
        /// The field's name.
        field: &'static str,
    },
    /// The registers end before this one, or a pair is odd.
    Register(u8),
    /// A register is read that nothing has written.
    Undefined(u8),
    /// A register is read while a load into it may still run.
    Pending {
        /// The register.
        register: u8,
        /// The scoreboard that should have been waited for.
        scoreboard: u8,
    },
    /// A scoreboard that does not exist.
    Scoreboard(u8),
    /// A stream's address or length is no multiple of an instruction.
    Alignment(u64),
    /// A branch leaves its stream.
    Branch(u64),
    /// More calls within each other than the hardware has room for.
    CallDepth,
    /// An instruction that is known and not executed.
    Absent(Op),
}

impl Display for Fault {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Unknown(word) => write!(f, "{word:#018x} is no instruction"),
            Fault::Unexplained { op, bits } => {
                write!(f, "{} has bits without a meaning: {bits:#x}", op.row().name)
            }
            Fault::Reserved { op, field } => {
                write!(f, "{} has a reserved value in {field}", op.row().name)
            }
            Fault::Register(register) => write!(f, "r{register} does not exist, or not as a pair"),
            Fault::Undefined(register) => write!(f, "r{register} is read, but was never written"),
            Fault::Pending {
                register,
                scoreboard,
            } => write!(
                f,
                "r{register} is read before its load on scoreboard {scoreboard} was waited for"
            ),
            Fault::Scoreboard(number) => write!(f, "scoreboard {number} does not exist"),
            Fault::Alignment(value) => {
                write!(f, "{value:#x} is no multiple of 8, as a stream needs")
            }
            Fault::Branch(target) => write!(f, "a branch to {target:#x} leaves its stream"),
            Fault::CallDepth => f.write_str("too many calls within each other"),
            Fault::Absent(op) if op.draws() => {
                let name = op.row().name;
                write!(
                    f,
                    "{name} is part of a draw, which is neither modelled nor replayed"
                )
            }
            Fault::Absent(op) => write!(f, "{} is not modelled", op.row().name),
        }
    }
}

impl core::error::Error for Fault {}
