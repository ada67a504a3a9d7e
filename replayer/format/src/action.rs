// SPDX-License-Identifier: MIT OR Apache-2.0
//! Actions with their operands named, and the walk over the actions of a segment.

use crate::codes::{Encoding, Opcode};
use crate::layout::ActionEntry;

/// One step of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<'a> {
    /// Write `value` to a register. Operands: b register, c value.
    Write {
        /// Register offset in bytes.
        register: u16,
        /// Value to write.
        value: u32,
    },
    /// Read a register until `read & mask == value`. Operands: b register, c value, d mask | timeout << 32.
    Poll {
        /// Register offset in bytes.
        register: u16,
        /// Bits that are compared.
        mask: u32,
        /// Their value at the end.
        value: u32,
        /// Bound in microseconds.
        timeout_us: u32,
    },
    /// Read a register once and require `read & mask == value`. Operands: b register, c value, d mask.
    Expect {
        /// Register offset in bytes.
        register: u16,
        /// Bits that are compared.
        mask: u32,
        /// Their value.
        value: u32,
    },
    /// Wait until all `bits` are set in the line's RAWSTAT register, then clear them. Operands: a line, c bits, d timeout.
    WaitIrq {
        /// 0 job, 1 MMU, 2 GPU.
        line: u8,
        /// Bits of RAWSTAT.
        bits: u32,
        /// Bound in microseconds.
        timeout_us: u32,
    },
    /// Put bytes into GPU memory. Operands: a encoding, b stored length (LZ4 only), c length, d address.
    Upload {
        /// GPU virtual address.
        va: u64,
        /// Bytes in GPU memory.
        length: u32,
        /// The bytes as they are stored.
        payload: Payload<'a>,
    },
    /// Put one repeated byte into GPU memory. Operands: a byte, c length, d address.
    Fill {
        /// GPU virtual address.
        va: u64,
        /// Bytes in GPU memory.
        length: u32,
        /// The byte.
        byte: u8,
    },
    /// Zero the 16 bytes of a job header that the GPU writes (exception status, first incomplete task, fault
    /// pointer). After the next submit the status must be DONE. Operand: d address.
    Rearm {
        /// GPU virtual address of the header.
        va: u64,
    },
    /// Start the chain at `chain` on a job slot and wait until it is done. Operands: a slot, b configuration, c timeout,
    /// d address.
    Submit {
        /// Job slot.
        slot: u8,
        /// Bits 15:0 of JS_CONFIG without the address space (bits 3:0), which the engine chooses.
        config: u16,
        /// Bound in microseconds.
        timeout_us: u32,
        /// GPU virtual address of the first job header.
        chain: u64,
    },
    /// Write a tensor's elements into GPU memory. Operand: c tensor.
    BindInput {
        /// Index of the tensor.
        tensor: u32,
    },
    /// Read a tensor's elements from GPU memory. Operand: c tensor.
    BindOutput {
        /// Index of the tensor.
        tensor: u32,
    },
    /// Clean and invalidate the GPU's caches and wait for the end. Operand: c timeout.
    FlushCaches {
        /// Bound in microseconds.
        timeout_us: u32,
    },
    /// Take the bytes of the following uploads from `offset` of the section `data`. Operand: d offset.
    Seek {
        /// Offset in bytes.
        offset: u64,
    },
}

/// Bytes of an upload as they are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// The bytes themselves.
    Raw(&'a [u8]),
    /// An LZ4 block ([`crate::lz4`]).
    Lz4(&'a [u8]),
}

/// Why an action entry is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionFault {
    /// The opcode is not assigned.
    Opcode(u8),
    /// An operand that the action does not use is not zero, or an operand is outside its range.
    Operand,
    /// The bytes of the upload lie outside the section `data`.
    Data,
}

/// The actions of a segment, decoded one by one. Ends after the first malformed one.
#[derive(Clone, Debug)]
pub struct Actions<'a> {
    entries: core::slice::Iter<'a, ActionEntry>,
    data: &'a [u8],
    cursor: usize,
}

impl<'a> Actions<'a> {
    pub(crate) fn new(entries: &'a [ActionEntry], data: &'a [u8], cursor: u64) -> Self {
        let cursor = usize::try_from(cursor).unwrap_or(usize::MAX);
        Self {
            entries: entries.iter(),
            data,
            cursor,
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], ActionFault> {
        let end = self.cursor.checked_add(length).ok_or(ActionFault::Data)?;
        let bytes = self.data.get(self.cursor..end).ok_or(ActionFault::Data)?;
        self.cursor = end;
        Ok(bytes)
    }

    /// Offset in the section `data` of the next upload's bytes.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    fn decode(&mut self, entry: &ActionEntry) -> Result<Action<'a>, ActionFault> {
        let opcode = Opcode::from_code(entry.op.into()).ok_or(ActionFault::Opcode(entry.op))?;
        let (a, b, c, d) = (entry.a, entry.b.get(), entry.c.get(), entry.d.get());
        let (low, high) = (d as u32, (d >> 32) as u32);
        // Which operands the action uses, in the order a, b, c, low half of d, high half of d.
        let (action, used) = match opcode {
            Opcode::Write => (
                Action::Write {
                    register: b,
                    value: c,
                },
                0b00110,
            ),
            Opcode::Poll => (
                Action::Poll {
                    register: b,
                    value: c,
                    mask: low,
                    timeout_us: high,
                },
                0b11110,
            ),
            Opcode::Expect => (
                Action::Expect {
                    register: b,
                    value: c,
                    mask: low,
                },
                0b01110,
            ),
            Opcode::WaitIrq => (
                Action::WaitIrq {
                    line: a,
                    bits: c,
                    timeout_us: low,
                },
                0b01101,
            ),
            Opcode::Upload => {
                let payload = match Encoding::from_code(a.into()) {
                    Some(Encoding::Raw) if b == 0 => {
                        Payload::Raw(self.take(usize::try_from(c).map_err(|_| ActionFault::Data)?)?)
                    }
                    Some(Encoding::Lz4) => Payload::Lz4(self.take(b.into())?),
                    _ => return Err(ActionFault::Operand),
                };
                (
                    Action::Upload {
                        va: d,
                        length: c,
                        payload,
                    },
                    0b11111,
                )
            }
            Opcode::Fill => (
                Action::Fill {
                    va: d,
                    length: c,
                    byte: a,
                },
                0b11101,
            ),
            Opcode::Rearm => (Action::Rearm { va: d }, 0b11000),
            Opcode::Submit => (
                Action::Submit {
                    slot: a,
                    config: b,
                    timeout_us: c,
                    chain: d,
                },
                0b11111,
            ),
            Opcode::BindInput => (Action::BindInput { tensor: c }, 0b00100),
            Opcode::BindOutput => (Action::BindOutput { tensor: c }, 0b00100),
            Opcode::FlushCaches => (Action::FlushCaches { timeout_us: c }, 0b00100),
            Opcode::Seek => {
                self.cursor = usize::try_from(d).map_err(|_| ActionFault::Data)?;
                (Action::Seek { offset: d }, 0b11000)
            }
        };
        let operands = [a.into(), b.into(), c, low, high];
        if operands
            .iter()
            .enumerate()
            .any(|(bit, &value)| value != 0 && used & (1 << bit) == 0)
        {
            return Err(ActionFault::Operand);
        }
        Ok(action)
    }
}

impl<'a> Iterator for Actions<'a> {
    type Item = Result<Action<'a>, ActionFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.next()?;
        let action = self.decode(entry);
        if action.is_err() {
            self.entries = [].iter();
        }
        Some(action)
    }
}
