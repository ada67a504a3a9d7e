// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields of command stream words.

use Kind::{Eighths, Named, Number, Pair, Register, Signed};

use crate::valhall::field::ones;

/// Field of a word.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// As in Mesa's descriptions.
    pub name: &'static str,
    /// Lowest bit.
    pub at: u8,
    /// Width.
    pub bits: u8,
    /// What its values mean.
    pub kind: Kind,
}

type Names = &'static [(u64, &'static str)];

/// What the values of a field mean.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// Number.
    Number,
    /// Signed number.
    Signed,
    /// Number of eighths: of instructions, as bytes.
    Eighths,
    /// Register.
    Register,
    /// Even register and the next, low word first.
    Pair,
    /// A value without a name is reserved.
    Named(Names),
}

impl Field {
    /// Bits in the word.
    pub const fn mask(&self) -> u64 {
        ones(self.bits) << self.at
    }

    /// Value in a word.
    pub const fn read(&self, word: u64) -> u64 {
        word >> self.at & ones(self.bits)
    }

    /// Value as a signed number.
    pub const fn number(&self, word: u64) -> i64 {
        let value = self.read(word) as i64;
        match self.kind {
            Signed if value >> (self.bits - 1) != 0 => value - (1 << self.bits),
            Eighths => value << 3,
            _ => value,
        }
    }

    /// Value's name, if any.
    pub fn name_in(&self, word: u64) -> Option<&'static str> {
        let Named(names) = self.kind else {
            return None;
        };
        let found = names.iter().find(|(value, _)| *value == self.read(word));
        found.map(|(_, name)| *name)
    }
}

const TILE_ORDERS: Names = &[
    (0, "Z Order"),
    (1, "Horizontal"),
    (2, "Vertical"),
    (5, "Reverse horizontal"),
    (6, "Reverse vertical"),
];
const AXES: Names = &[(0, "X"), (1, "Y"), (2, "Z")];
const CONDITIONS: Names = &[
    (0, "Lequal"),
    (1, "Greater"),
    (2, "Equal"),
    (3, "Nequal"),
    (4, "Less"),
    (5, "Gequal"),
    (6, "Always"),
];
const STATES: Names = &[
    (0, "Timestamp"),
    (1, "Cycle count"),
    (2, "Disjoint count"),
    (3, "Error status"),
];
const HEAP_OPERATIONS: Names = &[
    (0, "Vertex/Tiler Started"),
    (1, "Vertex/Tiler Completed"),
    (3, "Fragment Completed"),
];
const FLUSH_MODES: Names = &[(0, "None"), (1, "Clean"), (3, "Clean and invalidate")];
const SCOPES: Names = &[(0, "System"), (2, "CSG")];
const EXCEPTIONS: Names = &[(2, "Tiler OOM")];

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $at:literal, $bits:literal, $kind:expr;)*) => {$(
        $(#[$doc])*
        pub(super) static $name: Field = Field { name: $text, at: $at, bits: $bits, kind: $kind };
    )*};
}

// Name in the text, lowest bit, width, meaning.
fields! {
    ADDEND = "Immediate", 0, 32, Signed;
    ADDRESS = "Address", 40, 8, Pair;
    /// Scoreboards, a bit each.
    AWAITED = "Wait mask", 16, 8, Number;
    /// Register of mask bit 0.
    BASE_REGISTER = "Base register", 48, 8, Register;
    /// Needs the compute endpoint.
    COMPUTE = "Compute", 0, 1, Number;
    /// How the register `VALUE` and 0 must compare.
    CONDITION = "Condition", 28, 3, Named(CONDITIONS);
    DATA = "Data", 32, 8, Register;
    /// Draw descriptor.
    DCD = "DCD", 40, 8, Pair;
    DESTINATION = "Destination", 48, 8, Register;
    DRAW_ID = "Draw ID", 40, 8, Register;
    DRAW_ID_REGISTER_ENABLE = "Draw ID register enable", 34, 1, Number;
    /// Transaction elimination.
    ENABLE_TEM = "Enable TEM", 0, 1, Number;
    /// Scoreboard for endpoints.
    ENDPOINT_ENTRY = "Endpoint entry", 0, 4, Number;
    /// An error goes into memory with the value.
    ERROR_PROPAGATE = "Error propagate", 0, 1, Number;
    /// An error in memory is not taken.
    ERROR_REJECT = "Error reject", 0, 1, Number;
    EXCEPTION_TYPE = "Exception type", 0, 8, Named(EXCEPTIONS);
    /// Which registers name uniforms.
    FAU_SELECT = "FAU select", 46, 2, Number;
    FIRST_HEAP_CHUNK = "First Heap Chunk", 40, 8, Pair;
    FLAGS_OVERRIDE = "Flags override", 0, 32, Number;
    FRAGMENT = "Fragment", 1, 1, Number;
    FRAGMENT_SRT_SELECT = "Fragment SRT select", 38, 1, Number;
    FRAGMENT_TSD_SELECT = "Fragment TSD select", 39, 1, Number;
    /// Needs the vertex endpoint.
    IDVS = "IDVS", 3, 1, Number;
    IGNORED = "Ignored", 0, 56, Number;
    IMMEDIATE = "Immediate", 0, 48, Number;
    IMMEDIATE_32 = "Immediate", 0, 32, Number;
    INCREMENT_FRAGMENT_COMPLETED = "Increment Fragment Completed", 0, 1, Number;
    L2_FLUSH_MODE = "L2 flush mode", 0, 4, Named(FLUSH_MODES);
    LAST_HEAP_CHUNK = "Last Heap Chunk", 32, 8, Pair;
    /// Flush that makes this one needless.
    LATEST_FLUSH_ID = "Latest Flush ID", 40, 8, Register;
    /// Bytes of a stream.
    LENGTH = "Length", 32, 8, Register;
    /// Caches of loads and stores.
    LSC_FLUSH_MODE = "LSC flush mode", 4, 4, Named(FLUSH_MODES);
    /// Memory comes from the heap.
    MALLOC_ENABLE = "Malloc enable", 33, 1, Number;
    /// Bit n: register base + n.
    MASK = "Mask", 16, 16, Number;
    /// Added to an address in bytes, or to a branch in instructions.
    OFFSET = "Offset", 0, 16, Signed;
    OPERATION = "Operation", 32, 2, Named(HEAP_OPERATIONS);
    /// Scoreboard for all else.
    OTHER_ENTRY = "Other entry", 4, 4, Number;
    /// All other caches.
    OTHER_INVALIDATE = "Other invalidate", 9, 1, Number;
    PAIR_DATA = "Data", 32, 8, Pair;
    PAIR_DESTINATION = "Destination", 48, 8, Pair;
    PAIR_SOURCE = "Source", 40, 8, Pair;
    PROGRESS_INCREMENT = "Progress increment", 32, 1, Number;
    /// Another stream of the group.
    QUEUE = "Queue", 0, 5, Number;
    SCOPE = "Scope", 1, 2, Named(SCOPES);
    /// Scoreboard that ends with it.
    SIGNAL_SLOT = "Signal slot", 48, 4, Number;
    /// Bytes of instructions after it.
    SIZE = "Size", 0, 16, Eighths;
    SOURCE = "Source", 40, 8, Register;
    SOURCE_1 = "Source 1", 32, 8, Register;
    SOURCE_2 = "Source 2", 40, 8, Register;
    /// Which registers name the program.
    SPD_SELECT = "SPD select", 42, 2, Number;
    /// Which registers name resources.
    SRT_SELECT = "SRT select", 40, 2, Number;
    STATE = "State", 32, 2, Named(STATES);
    /// How memory and the register must compare.
    SYNC_CONDITION = "Condition", 28, 4, Named(CONDITIONS);
    /// Axis of the division into tasks.
    TASK_AXIS = "Task axis", 14, 2, Named(AXES);
    /// Groups of a task.
    TASK_INCREMENT = "Task increment", 0, 14, Number;
    TILER = "Tiler", 2, 1, Number;
    TILE_ORDER = "Tile order", 4, 4, Named(TILE_ORDERS);
    TRACED_COUNT = "Register Count", 40, 8, Number;
    TRACED_REGISTERS = "Base Register", 32, 8, Register;
    /// Which registers name storage.
    TSD_SELECT = "TSD select", 44, 2, Number;
    VALUE = "Value", 40, 8, Register;
    VARYING_FAU_SELECT = "Varying FAU select", 36, 1, Number;
    VARYING_SRT_SELECT = "Varying SRT select", 35, 1, Number;
    VARYING_TSD_SELECT = "Varying TSD select", 37, 1, Number;
    /// Scoreboards that end before it, a bit each.
    WAIT_MASK = "Wait mask", 16, 16, Number;
    WORKGROUPS_PER_TASK = "Workgroups per task", 0, 16, Number;
}
