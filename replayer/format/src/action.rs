// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions with named operands.

use crate::codes::{Encoding, Opcode};
use crate::layout::ActionEntry;
use crate::lz4::History;

/// A segment's step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Operands: b register, c value.
    Write {
        /// Offset in bytes.
        register: u16,
        /// To write.
        value: u32,
    },
    /// Operands: a encoding, b stored length (LZ4 only), c length, d address.
    Upload {
        /// GPU address.
        va: u64,
        /// Bytes in GPU memory.
        length: u32,
        /// As stored.
        payload: Payload<'a>,
    },
    /// One repeated byte. Operands: a byte, c length, d address.
    Fill {
        /// GPU address.
        va: u64,
        /// Bytes in GPU memory.
        length: u32,
        /// Byte.
        byte: u8,
    },
    /// Zero the GPU's 16 bytes of a job header (exception status, first incomplete task, fault pointer). After the
    /// next submit the status must be DONE. Operand: d address.
    Rearm {
        /// The header's address.
        va: u64,
    },
    /// Start a chain and wait for its end. Operands: a slot, b configuration, c timeout, d address.
    Submit {
        /// Job slot.
        slot: u8,
        /// Bits 15:0 of JS_CONFIG; the engine chooses the address space (bits 3:0).
        config: u16,
        /// Bound.
        timeout_us: u32,
        /// First job header's address.
        chain: u64,
    },
    /// Write a tensor's elements. Operand: c tensor.
    BindInput {
        /// Index.
        tensor: u32,
    },
    /// Read a tensor's elements. Operand: c tensor.
    BindOutput {
        /// Index.
        tensor: u32,
    },
    /// Start the work of `words` and wait for its end. Operands: a queue, b bytes of words, c timeout.
    Launch {
        /// By the family's numbers.
        queue: u8,
        /// 32-bit, little-endian, from the next upload's place.
        words: &'a [u8],
        /// Bound.
        timeout_us: u32,
    },
    /// Take following uploads from `offset` of the section `data`. Operand: d offset.
    Seek {
        /// In bytes.
        offset: u64,
    },
}

/// An upload as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Uncompressed.
    Raw(&'a [u8]),
    /// LZ4 block ([`crate::lz4`]).
    Lz4(&'a [u8]),
}

impl<'a> Payload<'a> {
    /// `None` if the block does not decode to `length` bytes.
    pub fn bytes<'s>(self, history: &'s mut History, length: usize) -> Option<&'s [u8]>
    where
        'a: 's,
    {
        match self {
            Self::Raw(bytes) => Some(bytes),
            Self::Lz4(block) => history.decode(block, length),
        }
    }
}

/// Why an entry is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionFault {
    /// Not assigned.
    Opcode,
    /// Unused but not zero, or outside its range.
    Operand,
    /// Outside the section `data`.
    Data,
}

const fn operands(opcode: Opcode) -> u8 {
    match opcode {
        Opcode::Write => 0b0110,
        Opcode::Upload | Opcode::Submit => 0b1111,
        Opcode::Fill => 0b1101,
        Opcode::Launch => 0b0111,
        Opcode::Rearm | Opcode::Seek => 0b1000,
        Opcode::BindInput | Opcode::BindOutput => 0b0100,
    }
}

/// Place in the section `data` of a segment's next bytes.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    data: &'a [u8],
    offset: u64,
}

impl<'a> Cursor<'a> {
    pub(crate) const fn new(data: &'a [u8], offset: u64) -> Self {
        Self { data, offset }
    }

    /// In the section `data`, in bytes.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The opcode and its bytes.
    ///
    /// # Errors
    /// The entry is malformed, or its bytes are not in the file.
    pub fn step(&mut self, entry: &ActionEntry) -> Result<(Opcode, &'a [u8]), ActionFault> {
        let opcode = Opcode::from_code(entry.op.into()).ok_or(ActionFault::Opcode)?;
        let (b, c) = (entry.b.get(), entry.c.get());
        let mut used = operands(opcode);
        for value in [entry.a.into(), b.into(), c.into(), entry.d.get()] {
            if value != 0 && used & 1 == 0 {
                return Err(ActionFault::Operand);
            }
            used >>= 1;
        }
        let mut stored = 0;
        match opcode {
            Opcode::Seek => self.offset = entry.d.get(),
            Opcode::Launch if b % 4 == 0 => stored = b.into(),
            Opcode::Launch => return Err(ActionFault::Operand),
            Opcode::Upload => match entry.a {
                RAW if b == 0 => stored = c,
                LZ4 => stored = b.into(),
                _ => return Err(ActionFault::Operand),
            },
            _ => {}
        }
        let rest = usize::try_from(self.offset)
            .ok()
            .and_then(|offset| self.data.get(offset..));
        let payload = rest
            .and_then(|rest| rest.get(..stored as usize))
            .ok_or(ActionFault::Data)?;
        self.offset += u64::from(stored);
        Ok((opcode, payload))
    }
}

const RAW: u8 = Encoding::Raw.code();
const LZ4: u8 = Encoding::Lz4.code();

/// Named actions of a segment. Ends after the first malformed one.
#[derive(Clone, Debug)]
pub struct Actions<'a> {
    entries: core::slice::Iter<'a, ActionEntry>,
    cursor: Cursor<'a>,
}

impl<'a> Actions<'a> {
    pub(crate) fn new(entries: &'a [ActionEntry], cursor: Cursor<'a>) -> Self {
        Self {
            entries: entries.iter(),
            cursor,
        }
    }
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, ActionFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        let step = self.cursor.step(entry);
        if step.is_err() {
            self.entries = [].iter();
        }
        Some(step.map(|(opcode, payload)| name(entry, opcode, payload)))
    }
}

fn name<'a>(entry: &ActionEntry, opcode: Opcode, payload: &'a [u8]) -> Action<'a> {
    let (register, c, va) = (entry.b.get(), entry.c.get(), entry.d.get());
    match opcode {
        Opcode::Write => Action::Write { register, value: c },
        Opcode::Upload => {
            let payload = if entry.a == RAW {
                Payload::Raw(payload)
            } else {
                Payload::Lz4(payload)
            };
            Action::Upload {
                va,
                length: c,
                payload,
            }
        }
        Opcode::Fill => Action::Fill {
            va,
            length: c,
            byte: entry.a,
        },
        Opcode::Rearm => Action::Rearm { va },
        Opcode::Submit => Action::Submit {
            slot: entry.a,
            config: register,
            timeout_us: c,
            chain: va,
        },
        Opcode::Launch => Action::Launch {
            queue: entry.a,
            words: payload,
            timeout_us: c,
        },
        Opcode::BindInput => Action::BindInput { tensor: c },
        Opcode::BindOutput => Action::BindOutput { tensor: c },
        Opcode::Seek => Action::Seek { offset: va },
    }
}
