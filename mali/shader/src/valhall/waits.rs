// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that shaders wait for messages' results.

use mali_isa::valhall::{Code, Instruction, SLOT};

/// Registers to be written, by slot, as bits.
#[derive(Debug, Default)]
pub(super) struct Pending([u64; 8]);

fn registers(first: u8, count: u8) -> u64 {
    (0..count).fold(0, |all, next| all | 1 << ((first + next) & 63))
}

impl Pending {
    /// A register touched too early, and its slot.
    pub(super) fn next(&mut self, ins: Instruction) -> Option<(u32, usize)> {
        let mut touched = 0;
        for source in ins.sources() {
            if let Code::Register { index, .. } = source.code {
                touched |= registers(index, 1 + u8::from(source.kind.is_wide()));
            }
        }
        if let Some(to) = ins.destination() {
            touched |= registers(to.register, 1);
        }
        let (mut written, mut read) = (0, 0);
        for group in ins.staging() {
            let bits = registers(group.first, group.count);
            match group.written {
                true => written |= bits,
                false => read |= bits,
            }
        }
        touched |= written | read;
        let early = self.0.iter().position(|pending| pending & touched != 0);
        let early = early.map(|slot| ((self.0[slot] & touched).trailing_zeros(), slot));
        if let Some(slot) = ins.value(&SLOT) {
            self.0[slot as usize & 7] |= written;
        }
        let waits = ins.flow().waits();
        for (slot, pending) in self.0.iter_mut().enumerate() {
            if waits >> slot & 1 == 1 {
                *pending = 0;
            }
        }
        early
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn early(texts: &[&str]) -> Option<(u32, usize)> {
        let mut pending = Pending::default();
        let words = texts
            .iter()
            .map(|text| mali_isa::valhall::assemble(text).unwrap());
        let found = words.map(|word| pending.next(Instruction::decode(word).unwrap()));
        found.last().flatten()
    }

    #[test]
    fn results_are_there_behind_a_wait_for_their_slot() {
        const LOAD: &str = "LOAD.i64.unsigned.slot1 @r2:r3, r4, offset:0";
        let reads = "IADD.u32 r0, r3, r1";
        assert_eq!(early(&[LOAD, reads]), Some((3, 1)));
        assert_eq!(early(&[LOAD, "NOP.wait0", reads]), Some((3, 1)));
        assert_eq!(early(&[LOAD, "NOP.wait1", reads]), None);
        assert_eq!(early(&[LOAD, "NOP.wait", reads]), None);
        assert_eq!(early(&[LOAD, "IADD.u32.wait1 r0, r3, r1"]), Some((3, 1)));
        assert_eq!(early(&[LOAD, "MOV.i32 r2, r1"]), Some((2, 1)));
        let store = "STORE.i32.slot0 @r3, r4, offset:0";
        assert_eq!(early(&[LOAD, store]), Some((3, 1)));
        assert_eq!(early(&[LOAD, "MOV.i32 r6, r1"]), None);
    }
}
