// SPDX-License-Identifier: MIT OR Apache-2.0
//! Adds actions to the last segment.

use zerocopy::little_endian::{U16, U32, U64};

use super::compress::compress;
use super::{Builder, DEFAULT_JOB_CONFIG, EncodeError, TensorId};
use crate::PAGE_SIZE;
use crate::codes::{Encoding, Opcode, SegmentKind};
use crate::layout::ActionEntry;
use crate::lz4::MAX_BLOCK;

const MAX_RAW: u32 = 1 << 30;

impl Builder {
    fn push(&mut self, op: Opcode, a: u8, b: u16, c: u32, d: u64) {
        if self.segments.is_empty() {
            self.fail(EncodeError::NoSegment(self.actions.len()));
            return;
        }
        self.actions.push(ActionEntry {
            op: op.code(),
            a,
            b: U16::new(b),
            c: U32::new(c),
            d: U64::new(d),
        });
        if let Some(segment) = self.segments.last_mut() {
            segment.actions += 1;
        }
    }

    /// Writes a register.
    pub fn write(&mut self, register: u16, value: u32) {
        self.push(Opcode::Write, 0, register, value, 0);
    }

    /// Readies a job header; the next submit checks its status.
    ///
    /// Every header of a run segment's chain needs this (or an upload) before the submit.
    pub fn rearm(&mut self, va: u64) {
        self.push(Opcode::Rearm, 0, 0, 0, va);
    }

    /// Submits a chain with the drivers' configuration.
    pub fn submit(&mut self, slot: u8, chain: u64, timeout_us: u32) {
        self.submit_with(slot, DEFAULT_JOB_CONFIG, chain, timeout_us);
    }

    /// Submits with bits 15:0 of JS_CONFIG, without address space (3:0) and flush reduction (14).
    pub fn submit_with(&mut self, slot: u8, config: u16, chain: u64, timeout_us: u32) {
        self.push(Opcode::Submit, slot, config & !0x400f, timeout_us, chain);
        self.submitted = true;
    }

    /// Starts a queue's work and waits for its end.
    pub fn launch(&mut self, queue: u8, words: &[u32], timeout_us: u32) {
        let Ok(bytes) = u16::try_from(size_of_val(words)) else {
            return self.fail(EncodeError::Words(size_of_val(words)));
        };
        self.data
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
        self.push(Opcode::Launch, queue, bytes, timeout_us, 0);
        self.submitted = true;
    }

    /// Writes a tensor's elements into GPU memory.
    pub fn bind_input(&mut self, tensor: TensorId) {
        self.push(Opcode::BindInput, 0, 0, tensor.0, 0);
    }

    /// Reads a tensor's elements from GPU memory.
    pub fn bind_output(&mut self, tensor: TensorId) {
        self.push(Opcode::BindOutput, 0, 0, tensor.0, 0);
    }

    /// Repeats one byte in GPU memory.
    pub fn fill(&mut self, va: u64, length: u32, byte: u8) {
        if byte != 0 {
            self.touch(va, length as usize);
        }
        self.push(Opcode::Fill, byte, 0, length, va);
    }

    /// Leaves out bytes still zero, fills with repeated bytes, compresses the rest by page where that pays.
    pub fn upload(&mut self, va: u64, bytes: &[u8]) {
        let (mut va, mut bytes) = (va, bytes);
        while !bytes.is_empty() {
            let to_page_end = PAGE_SIZE as usize - (va % u64::from(PAGE_SIZE)) as usize;
            let (chunk, rest) = bytes.split_at(to_page_end.min(bytes.len()));
            self.upload_chunk(va, chunk);
            va = va.wrapping_add(chunk.len() as u64);
            bytes = rest;
        }
    }

    fn upload_chunk(&mut self, va: u64, chunk: &[u8]) {
        let (mut va, mut chunk) = (va, chunk);
        if self.is_fresh(va) {
            let Some(first) = chunk.iter().position(|&byte| byte != 0) else {
                return;
            };
            let last = chunk.iter().rposition(|&byte| byte != 0).unwrap_or(first);
            va += first as u64;
            chunk = &chunk[first..=last];
        }
        self.touch(va, chunk.len());
        let Some(&first) = chunk.first() else { return };
        if chunk.len() > 8 && chunk.iter().all(|&byte| byte == first) {
            self.push(Opcode::Fill, first, 0, chunk.len() as u32, va);
            return;
        }
        debug_assert!(chunk.len() <= MAX_BLOCK);
        let before = self.history.clone();
        let (window, start) = self.history.push(chunk);
        let packed = compress(&mut self.matcher, window, start);
        let joins = self.raw_upload_ending_at(va).is_some();
        let overhead = if joins { size_of::<ActionEntry>() } else { 0 };
        if packed.len() + overhead < chunk.len() {
            self.data.extend_from_slice(&packed);
            let stored = packed.len() as u16;
            self.push(
                Opcode::Upload,
                Encoding::Lz4.code(),
                stored,
                chunk.len() as u32,
                va,
            );
            return;
        }
        self.history = before;
        self.data.extend_from_slice(chunk);
        match self.raw_upload_ending_at(va) {
            Some(entry) => entry.c += chunk.len() as u32,
            None => self.push(
                Opcode::Upload,
                Encoding::Raw.code(),
                0,
                chunk.len() as u32,
                va,
            ),
        }
    }

    /// Moves to an offset in the section `data`, for bytes already in the file.
    pub fn seek(&mut self, offset: u64) {
        self.push(Opcode::Seek, 0, 0, 0, offset);
    }

    fn raw_upload_ending_at(&mut self, va: u64) -> Option<&mut ActionEntry> {
        self.segments
            .last()
            .filter(|segment| segment.actions.get() > 0)?;
        // An upload stays inside one region.
        if self.regions.iter().any(|region| region.va.get() == va) {
            return None;
        }
        self.actions.last_mut().filter(|entry| {
            entry.op == Opcode::Upload.code()
                && entry.a == Encoding::Raw.code()
                && entry.d.get().wrapping_add(entry.c.get().into()) == va
                && entry.c.get() < MAX_RAW
        })
    }

    fn is_fresh(&self, va: u64) -> bool {
        let setup = SegmentKind::Setup.code();
        self.segments
            .last()
            .is_some_and(|segment| segment.kind == setup)
            && !self.submitted
            && !self.touched.contains(&(va / u64::from(PAGE_SIZE)))
    }

    fn touch(&mut self, va: u64, length: usize) {
        let page = u64::from(PAGE_SIZE);
        let last = va.saturating_add((length as u64).saturating_sub(1));
        self.touched.extend(va / page..=last / page);
    }
}
