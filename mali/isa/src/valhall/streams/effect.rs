// SPDX-License-Identifier: MIT OR Apache-2.0
//! What instructions ask of memory, cores and caches; faults.

use core::fmt::{self, Display, Formatter};

use super::table::Op;

/// What an instruction asks of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: registers, waits, calls, resources.
    None,
    /// Run a compute dispatch.
    Compute(Compute),
    /// Load words into registers, by [`Sequencer::load`](super::Sequencer::load).
    Load(Transfer),
    /// Store registers.
    Store(Transfer),
    /// Clean or invalidate caches.
    Flush,
    /// Change or await a sync object.
    Sync(Sync),
    /// Store a counter.
    StoreState {
        /// Destination.
        address: u64,
        /// 0 timestamp, 1 cycles, 2 count of interruptions, 3 status of errors.
        state: u8,
    },
}

/// Dispatch, from registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compute {
    /// Address; the low six bits count the resources.
    pub resources: u64,
    /// Address in bits 47:0, pairs of words in 63:56.
    pub uniforms: u64,
    /// Shader program.
    pub program: u64,
    /// Descriptor of thread and group storage.
    pub storage: u64,
    /// Attribute offset.
    pub attribute_offset: u32,
    /// As in a job's payload.
    pub size: u32,
    /// As in a job's payload.
    pub tasks: u32,
    /// First group.
    pub offset: [u32; 3],
    /// Groups.
    pub count: [u32; 3],
}

/// Consecutive words of memory, and their registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Address of mask bit 0's word.
    pub address: u64,
    /// Register of mask bit 0.
    pub base: u8,
    /// Bit n: the word n and the register base + n.
    pub mask: u16,
}

/// Value, then 32 bits of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// What is done.
    pub kind: SyncKind,
    /// 64 bits, else 32.
    pub wide: bool,
    /// Where the value is.
    pub address: u64,
    /// Added, set or compared.
    pub value: u64,
    /// Propagate an error with a change, or refuse it in a wait.
    pub error: bool,
}

/// Use of a sync object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// Adds to the value.
    Add,
    /// Replaces the value.
    Set,
    /// Waits for the value.
    Wait(Condition),
}

/// Comparison.
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
    /// Set bits without a meaning.
    Unexplained {
        /// Instruction.
        op: Op,
        /// Bits.
        bits: u64,
    },
    /// Value without a meaning.
    Reserved {
        /// Instruction.
        op: Op,
        /// Field.
        field: &'static str,
    },
    /// No such register, or a pair is odd.
    Register(u8),
    /// Reads a register that nothing has written.
    Undefined(u8),
    /// A load into the register may still run.
    Pending {
        /// Register.
        register: u8,
        /// To wait for.
        scoreboard: u8,
    },
    /// No such scoreboard.
    Scoreboard(u8),
    /// Address or length is no multiple of an instruction.
    Alignment(u64),
    /// A branch leaves its stream.
    Branch(u64),
    /// Too deep.
    CallDepth,
    /// Known, not executed.
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
