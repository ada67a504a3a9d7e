// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only encodings of stream instructions. Source: Mesa's `v10.xml`.

use super::field::*;

/// Instruction's row.
#[derive(Debug)]
pub struct Row {
    /// `RUN_COMPUTE`.
    pub name: &'static str,
    /// Bits 63:56.
    pub opcode: u8,
    /// See [`Asynchronous`].
    pub asynchronous: Asynchronous,
    /// In the text's order.
    pub fields: &'static [&'static Field],
}

/// Whether the next may begin before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asynchronous {
    /// It ends first.
    Never,
    /// Counts a scoreboard up, and down at its end.
    Always,
    /// As `Always`, if it waits for scoreboards.
    WithWaits,
}

impl Row {
    /// Bits with a meaning.
    pub fn explained(&self) -> u64 {
        let fields = self.fields.iter();
        fields.fold(0xff << 56, |all, field| all | field.mask())
    }
}

macro_rules! table {
    ($($op:ident = $name:literal, $opcode:literal, $asynchronous:ident, [$($field:ident),*];)*) => {
        /// Instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Op {
            $(#[doc = concat!("`", $name, "`")] $op = $opcode,)*
        }

        impl Op {
            /// By opcode.
            pub const ALL: &'static [Op] = &[$(Op::$op),*];

            /// Whether only rendering has it.
            pub const fn draws(self) -> bool {
                matches!(
                    self,
                    Op::RunTiling
                        | Op::RunIdvs
                        | Op::RunFragment
                        | Op::RunFullscreen
                        | Op::FinishTiling
                        | Op::FinishFragment
                        | Op::HeapOperation
                )
            }

            /// Table row.
            pub fn row(self) -> &'static Row {
                match self {
                    $(Op::$op => {
                        static ROW: Row = Row {
                            name: $name,
                            opcode: $opcode,
                            asynchronous: Asynchronous::$asynchronous,
                            fields: &[$(&$field),*],
                        };
                        &ROW
                    })*
                }
            }

            pub(super) const fn of(opcode: u8) -> Option<Op> {
                match opcode {
                    $($opcode => Some(Op::$op),)*
                    _ => None,
                }
            }
        }
    };
}

// Name, opcode, asynchrony, fields.
table! {
    Nop = "NOP", 0x00, Never, [IGNORED];
    Move = "MOVE", 0x01, Never, [IMMEDIATE, PAIR_DESTINATION];
    Move32 = "MOVE32", 0x02, Never, [IMMEDIATE_32, DESTINATION];
    Wait = "WAIT", 0x03, Never, [AWAITED, PROGRESS_INCREMENT];
    RunCompute = "RUN_COMPUTE", 0x04, Always, [TASK_INCREMENT, TASK_AXIS, PROGRESS_INCREMENT, SRT_SELECT, SPD_SELECT, TSD_SELECT, FAU_SELECT];
    RunTiling = "RUN_TILING", 0x05, Always, [FLAGS_OVERRIDE, PROGRESS_INCREMENT, SRT_SELECT, SPD_SELECT, TSD_SELECT, FAU_SELECT];
    RunIdvs = "RUN_IDVS", 0x06, Always,
        [FLAGS_OVERRIDE, PROGRESS_INCREMENT, MALLOC_ENABLE, DRAW_ID_REGISTER_ENABLE, VARYING_SRT_SELECT, VARYING_FAU_SELECT, VARYING_TSD_SELECT, FRAGMENT_SRT_SELECT, FRAGMENT_TSD_SELECT, DRAW_ID];
    RunFragment = "RUN_FRAGMENT", 0x07, Always, [ENABLE_TEM, TILE_ORDER, PROGRESS_INCREMENT];
    RunFullscreen = "RUN_FULLSCREEN", 0x08, Always, [FLAGS_OVERRIDE, PROGRESS_INCREMENT, DCD];
    FinishTiling = "FINISH_TILING", 0x09, Always, [PROGRESS_INCREMENT];
    FinishFragment = "FINISH_FRAGMENT", 0x0b, WithWaits, [INCREMENT_FRAGMENT_COMPLETED, WAIT_MASK, LAST_HEAP_CHUNK, FIRST_HEAP_CHUNK, SIGNAL_SLOT];
    AddImmediate32 = "ADD_IMMEDIATE32", 0x10, Never, [ADDEND, SOURCE, DESTINATION];
    AddImmediate64 = "ADD_IMMEDIATE64", 0x11, Never, [ADDEND, PAIR_SOURCE, PAIR_DESTINATION];
    Umin32 = "UMIN32", 0x12, Never, [SOURCE_1, SOURCE_2, DESTINATION];
    LoadMultiple = "LOAD_MULTIPLE", 0x14, Always, [OFFSET, MASK, ADDRESS, BASE_REGISTER];
    StoreMultiple = "STORE_MULTIPLE", 0x15, Always, [OFFSET, MASK, ADDRESS, BASE_REGISTER];
    Branch = "BRANCH", 0x16, Never, [OFFSET, CONDITION, VALUE];
    SetSbEntry = "SET_SB_ENTRY", 0x17, Never, [ENDPOINT_ENTRY, OTHER_ENTRY];
    ProgressWait = "PROGRESS_WAIT", 0x18, Never, [QUEUE, PAIR_SOURCE];
    SetExceptionHandler = "SET_EXCEPTION_HANDLER", 0x19, Never, [EXCEPTION_TYPE, LENGTH, ADDRESS];
    Call = "CALL", 0x20, Never, [LENGTH, ADDRESS];
    Jump = "JUMP", 0x21, Never, [LENGTH, ADDRESS];
    ReqResource = "REQ_RESOURCE", 0x22, Never, [COMPUTE, FRAGMENT, TILER, IDVS];
    FlushCache2 = "FLUSH_CACHE2", 0x24, Always, [L2_FLUSH_MODE, LSC_FLUSH_MODE, OTHER_INVALIDATE, WAIT_MASK, LATEST_FLUSH_ID, SIGNAL_SLOT];
    SyncAdd32 = "SYNC_ADD32", 0x25, WithWaits, [ERROR_PROPAGATE, SCOPE, WAIT_MASK, DATA, ADDRESS, SIGNAL_SLOT];
    SyncSet32 = "SYNC_SET32", 0x26, WithWaits, [ERROR_PROPAGATE, SCOPE, WAIT_MASK, DATA, ADDRESS, SIGNAL_SLOT];
    SyncWait32 = "SYNC_WAIT32", 0x27, Never, [ERROR_REJECT, SYNC_CONDITION, DATA, ADDRESS];
    StoreState = "STORE_STATE", 0x28, WithWaits, [OFFSET, WAIT_MASK, STATE, ADDRESS, SIGNAL_SLOT];
    ProtRegion = "PROT_REGION", 0x29, Never, [SIZE];
    ProgressStore = "PROGRESS_STORE", 0x2a, Never, [PAIR_SOURCE];
    ProgressLoad = "PROGRESS_LOAD", 0x2b, Never, [PAIR_DESTINATION];
    RunComputeIndirect = "RUN_COMPUTE_INDIRECT", 0x2c, Always,
        [WORKGROUPS_PER_TASK, PROGRESS_INCREMENT, SRT_SELECT, SPD_SELECT, TSD_SELECT, FAU_SELECT];
    ErrorBarrier = "ERROR_BARRIER", 0x2f, Never, [];
    HeapSet = "HEAP_SET", 0x30, Never, [ADDRESS];
    HeapOperation = "HEAP_OPERATION", 0x31, WithWaits, [WAIT_MASK, OPERATION, SIGNAL_SLOT];
    TracePoint = "TRACE_POINT", 0x32, WithWaits, [WAIT_MASK, TRACED_REGISTERS, TRACED_COUNT, SIGNAL_SLOT];
    SyncAdd64 = "SYNC_ADD64", 0x33, WithWaits, [ERROR_PROPAGATE, SCOPE, WAIT_MASK, PAIR_DATA, ADDRESS, SIGNAL_SLOT];
    SyncSet64 = "SYNC_SET64", 0x34, WithWaits, [ERROR_PROPAGATE, SCOPE, WAIT_MASK, PAIR_DATA, ADDRESS, SIGNAL_SLOT];
    SyncWait64 = "SYNC_WAIT64", 0x35, Never, [ERROR_REJECT, SYNC_CONDITION, PAIR_DATA, ADDRESS];
}
