// SPDX-License-Identifier: MIT OR Apache-2.0
//! 45 bits of a clause header.

use crate::clause::{ClauseHeader, FlowControl, FlushToZero};
use crate::error::{DecodeError, EncodeError};
use crate::info::Message;

/// (lowest bit, number of bits) of each field. Bits 0-4 and 14 must be zero.
const FLUSH: (u32, u32) = (5, 2);
const SUPPRESS_INFINITY: (u32, u32) = (7, 1);
const SUPPRESS_NAN: (u32, u32) = (8, 1);
const EXCEPTIONS: (u32, u32) = (9, 2);
const FLOW: (u32, u32) = (11, 3);
const TERMINATE: (u32, u32) = (15, 1);
const PREFETCH: (u32, u32) = (16, 1);
const STAGING_BARRIER: (u32, u32) = (17, 1);
const STAGING_REGISTER: (u32, u32) = (18, 6);
const WAIT: (u32, u32) = (24, 8);
const SLOT: (u32, u32) = (32, 3);
const MESSAGE: (u32, u32) = (35, 5);
const NEXT_MESSAGE: (u32, u32) = (40, 5);
const ZERO: u64 = 0x1f | 1 << 14;

impl ClauseHeader {
    /// Decodes a header.
    ///
    /// # Errors
    /// Bits that must be zero, or a reserved message type.
    pub fn from_bits(bits: u64) -> Result<ClauseHeader, DecodeError> {
        let error = DecodeError::Header { bits };
        if bits & ZERO != 0 || bits >> 45 != 0 {
            return Err(error);
        }
        let get = |(start, size): (u32, u32)| ((bits >> start) & ((1 << size) - 1)) as u8;
        Ok(ClauseHeader {
            flush_to_zero: FlushToZero::ALL[usize::from(get(FLUSH))],
            suppress_infinity: get(SUPPRESS_INFINITY) == 1,
            suppress_nan: get(SUPPRESS_NAN) == 1,
            float_exceptions: get(EXCEPTIONS),
            flow_control: FlowControl::ALL[usize::from(get(FLOW))],
            terminate_discarded: get(TERMINATE) == 1,
            next_clause_prefetch: get(PREFETCH) == 1,
            staging_barrier: get(STAGING_BARRIER) == 1,
            staging_register: get(STAGING_REGISTER),
            dependency_wait: get(WAIT),
            dependency_slot: get(SLOT),
            message: Message::from_number(get(MESSAGE)).map_err(|_| error)?,
            next_message: Message::from_number(get(NEXT_MESSAGE)).map_err(|_| error)?,
        })
    }

    /// Encodes the header.
    ///
    /// # Errors
    /// A field is too large.
    pub fn to_bits(&self) -> Result<u64, EncodeError> {
        let fields = [
            (FLUSH, self.flush_to_zero as u8),
            (SUPPRESS_INFINITY, self.suppress_infinity.into()),
            (SUPPRESS_NAN, self.suppress_nan.into()),
            (EXCEPTIONS, self.float_exceptions),
            (FLOW, self.flow_control as u8),
            (TERMINATE, self.terminate_discarded.into()),
            (PREFETCH, self.next_clause_prefetch.into()),
            (STAGING_BARRIER, self.staging_barrier.into()),
            (STAGING_REGISTER, self.staging_register),
            (WAIT, self.dependency_wait),
            (SLOT, self.dependency_slot),
            (MESSAGE, self.message.map_or(0, Message::number)),
            (NEXT_MESSAGE, self.next_message.map_or(0, Message::number)),
        ];
        fields
            .iter()
            .try_fold(0u64, |bits, &((start, size), value)| {
                if u32::from(value) >> size != 0 {
                    Err(EncodeError::Header)
                } else {
                    Ok(bits | u64::from(value) << start)
                }
            })
    }
}
