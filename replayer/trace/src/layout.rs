// SPDX-License-Identifier: MIT OR Apache-2.0
//! Little-endian records with the names of the C header.

use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Version of the stream.
pub const VERSION: u32 = 1;
/// The GPU snoops the CPU's caches.
pub const BEGIN_COHERENT: u32 = 1;
/// A library in the app made the trace; registers are what the driver is known to write.
pub const BEGIN_IN_APP: u32 = 2;
/// Address space of records that have none.
pub const AS_NONE: u32 = u32::MAX;
/// Bytes of a record: a page or a note of its size fits, with headers.
pub const MAX_RECORD: usize = 8192;

macro_rules! layouts {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)+ })+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
            #[repr(C)]
            pub struct $name { $($(#[$field_meta])* pub $field: $type,)+ }
        )+
    };
}

layouts! {
    /// Starts every record (24 bytes).
    Header {
        /// [`crate::RecordType`].
        kind: U16,
        /// [`crate::Context`].
        context: u8,
        /// Job slot, or [`crate::Line`] of interrupt records.
        slot_or_line: u8,
        /// Bytes, with this header and padding.
        length: U32,
        /// 0 for BEGIN, then one more each.
        sequence: U64,
        /// Monotonic clock, nanoseconds.
        time_ns: U64,
    }
    /// BEGIN (96 bytes).
    BeginPayload {
        /// [`VERSION`].
        version: U32,
        /// [`crate::PAGE_SIZE`].
        page_size: U32,
        /// [`crate::Driver`].
        driver: U32,
        /// [`BEGIN_COHERENT`], [`BEGIN_IN_APP`].
        flags: U32,
        /// Padded with NUL.
        driver_name: [u8; 16],
        /// Padded with NUL.
        kernel_release: [u8; 64],
    }
    /// REG_READ and REG_WRITE (8 bytes).
    RegisterPayload {
        /// Bytes from the first register.
        offset: U32,
        /// Read, or about to be written.
        value: U32,
    }
    /// POLL_BEGIN and POLL_END (16 bytes).
    PollPayload {
        /// Register polled.
        offset: U32,
        /// Last value read; 0 in POLL_BEGIN.
        last_value: U32,
        /// 0 or a negative errno; 0 in POLL_BEGIN.
        result: I32,
        /// Driver's bound.
        timeout_us: U32,
    }
    /// IRQ_ENTER and IRQ_EXIT (8 bytes).
    IrqPayload {
        /// 0 none, 1 handled, 2 wake thread; 0 in IRQ_ENTER.
        irqreturn: U32,
        /// 0.
        reserved: U32,
    }
    /// MAP and UNMAP (24 bytes).
    MappingPayload {
        /// Address space or [`AS_NONE`].
        space: U32,
        /// Driver's own flags.
        flags: U32,
        /// GPU address.
        va: U64,
        /// Bytes.
        size: U64,
    }
    /// SUBMIT (16 bytes).
    SubmitPayload {
        /// Address space.
        space: U32,
        /// Bytes of a command stream; 0 for a job chain.
        stream_bytes: U32,
        /// GPU address of first job descriptor or stream.
        chain_head: U64,
    }
    /// REGION (24 bytes).
    RegionPayload {
        /// Address space.
        space: U32,
        /// [`crate::RegionFlags`].
        flags: U32,
        /// First GPU address.
        va: U64,
        /// Count.
        pages: U64,
    }
    /// PAGE (16 bytes), followed by the page unless it is zero.
    PagePayload {
        /// Address space.
        space: U32,
        /// [`crate::Phase`].
        phase: U32,
        /// GPU address.
        va: U64,
    }
    /// COMPLETE (8 bytes).
    CompletePayload {
        /// JS_STATUS.
        status: U32,
        /// 0.
        reserved: U32,
    }
    /// ERROR (16 bytes).
    ErrorPayload {
        /// [`crate::ErrorCode`].
        code: U32,
        /// 0.
        reserved: U32,
        /// Depends on the code.
        detail: U64,
    }
    /// END (16 bytes).
    EndPayload {
        /// Records before this one.
        records: U64,
        /// Bytes before this one.
        bytes: U64,
    }
}
