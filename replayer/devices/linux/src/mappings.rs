// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU addresses to memory of this process.

use std::ops::Range;

use gpureplay_core::DeviceError;

use crate::mapped::Mapped;

#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) va: u64,
    pub(crate) memory: Mapped,
}

/// By ascending GPU address.
#[derive(Debug, Default)]
pub(crate) struct Mappings(Vec<Mapping>);

impl Mappings {
    pub(crate) fn insert(&mut self, va: u64, memory: Mapped) {
        let at = self.0.partition_point(|other| other.va < va);
        self.0.insert(at, Mapping { va, memory });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }

    pub(crate) fn take(&mut self) -> Vec<Mapping> {
        std::mem::take(&mut self.0)
    }

    fn find(&self, va: u64) -> Option<(&Mapping, usize)> {
        let after = self.0.partition_point(|mapping| mapping.va <= va);
        let mapping = self.0.get(after.checked_sub(1)?)?;
        let offset = usize::try_from(va - mapping.va).ok()?;
        (offset < mapping.memory.len()).then_some((mapping, offset))
    }

    /// `each` gets memory, offset, GPU address, place in the range; ranges may cross adjacent mappings.
    pub(crate) fn pieces(
        &self,
        va: u64,
        length: usize,
        mut each: impl FnMut(&Mapped, usize, u64, Range<usize>) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let mut done = 0;
        while done < length {
            let at = va
                .checked_add(done as u64)
                .ok_or(DeviceError::NotMapped(va))?;
            let (mapping, offset) = self.find(at).ok_or(DeviceError::NotMapped(at))?;
            let size = (mapping.memory.len() - offset).min(length - done);
            each(&mapping.memory, offset, at, done..done + size)?;
            done += size;
        }
        Ok(())
    }

    /// `done` gets address and length of each part, once written.
    pub(crate) fn write(
        &self,
        va: u64,
        bytes: &[u8],
        mut done: impl FnMut(u64, usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.pieces(va, bytes.len(), |memory, offset, at, range| {
            let part = bytes.get(range).unwrap_or(&[]);
            memory.write(offset, part);
            done(at, part.len())
        })
    }

    /// `before` gets address and length of each part.
    pub(crate) fn read(
        &self,
        va: u64,
        bytes: &mut [u8],
        mut before: impl FnMut(u64, usize) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.pieces(va, bytes.len(), |memory, offset, at, range| {
            let part = bytes.get_mut(range).unwrap_or(&mut []);
            before(at, part.len())?;
            memory.read(offset, part);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cross_neighbours_and_stop_at_holes() {
        let mut mappings = Mappings::default();
        mappings.insert(0x3000, Mapped::anonymous(0x1000).unwrap());
        mappings.insert(0x2000, Mapped::anonymous(0x1000).unwrap());
        let mut parts = Vec::new();
        mappings
            .write(0x2ffc, &[1, 2, 3, 4, 5, 6], |at, length| {
                parts.push((at, length));
                Ok(())
            })
            .unwrap();
        assert_eq!(parts, [(0x2ffc, 4), (0x3000, 2)]);
        let mut back = [0; 6];
        mappings.read(0x2ffc, &mut back, |_, _| Ok(())).unwrap();
        assert_eq!(back, [1, 2, 3, 4, 5, 6]);
        assert_eq!(
            mappings.read(0x3fff, &mut back, |_, _| Ok(())),
            Err(DeviceError::NotMapped(0x4000))
        );
        assert_eq!(
            mappings.read(0x1fff, &mut back, |_, _| Ok(())),
            Err(DeviceError::NotMapped(0x1fff))
        );
    }
}
