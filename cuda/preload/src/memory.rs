// SPDX-License-Identifier: MIT OR Apache-2.0
//! The program's memory, and what a kernel can reach.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cuMemAlloc`, pools, imports from processes.
    Device,
    /// `cuMemMap`; neighbours are one piece.
    Mapped,
    Host,
    Managed,
    Imported,
    Multicast,
    /// The program asked for its address.
    Variable,
}

impl Kind {
    /// What no replay can have.
    pub(crate) const fn lacked(self) -> Option<&'static str> {
        match self {
            Self::Managed => Some("managed memory"),
            Self::Imported => Some("memory of another process"),
            Self::Multicast => Some("a multicast object"),
            Self::Device | Self::Mapped | Self::Host | Self::Variable => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: Kind,
    pub(crate) device: i32,
}

impl Piece {
    pub(crate) fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

#[derive(Clone, Default)]
pub(crate) struct Memory {
    pieces: BTreeMap<u64, Piece>,
}

impl Memory {
    pub(crate) const fn new() -> Self {
        Self {
            pieces: BTreeMap::new(),
        }
    }

    pub(crate) fn insert(&mut self, piece: Piece) {
        if piece.size > 0 {
            self.pieces.insert(piece.address, piece);
        }
    }

    pub(crate) fn remove(&mut self, address: u64) {
        self.pieces.remove(&address);
    }

    pub(crate) fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.pieces.values().copied()
    }

    pub(crate) fn at(&self, address: u64) -> Option<Piece> {
        let (_, piece) = self.pieces.range(..=address).next_back()?;
        (address < piece.end()).then_some(*piece)
    }

    /// Only parts outside other pieces: reused memory stays.
    pub(crate) fn insert_rest(&mut self, piece: Piece) {
        let mut at = piece.address;
        while at < piece.end() {
            if let Some(known) = self.at(at) {
                at = known.end();
                continue;
            }
            let next = self.pieces.range(at..).next();
            let end = next.map_or(piece.end(), |(next, _)| piece.end().min(*next));
            self.insert(Piece {
                address: at,
                size: end - at,
                ..piece
            });
            at = end;
        }
    }

    pub(crate) fn remove_range(&mut self, address: u64, size: u64) {
        let end = address.saturating_add(size);
        self.pieces
            .retain(|start, _| *start < address || *start >= end);
    }

    /// Joins a device's neighbouring mappings.
    pub(crate) fn snapshot(&self) -> Reach {
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces.values() {
            match pieces.last_mut() {
                Some(last)
                    if last.kind == Kind::Mapped
                        && piece.kind == Kind::Mapped
                        && last.device == piece.device
                        && last.end() == piece.address =>
                {
                    last.size += piece.size;
                }
                _ => pieces.push(*piece),
            }
        }
        Reach {
            reached: vec![false; pieces.len()],
            pieces,
            work: Vec::new(),
        }
    }
}

pub(crate) struct Reach {
    pieces: Vec<Piece>,
    reached: Vec<bool>,
    work: Vec<usize>,
}

impl Reach {
    pub(crate) fn scan(&mut self, bytes: &[u8]) {
        let (Some(first), Some(last)) = (self.pieces.first(), self.pieces.last()) else {
            return;
        };
        let (start, end) = (first.address, last.end());
        for word in bytes.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word);
            if address >= start && address < end {
                self.reach(address);
            }
        }
    }

    fn reach(&mut self, address: u64) {
        let after = self
            .pieces
            .partition_point(|piece| piece.address <= address);
        if let Some(index) = after.checked_sub(1)
            && address < self.pieces[index].end()
            && !self.reached[index]
        {
            self.reached[index] = true;
            self.work.push(index);
        }
    }

    pub(crate) fn reach_all(&mut self) {
        for index in 0..self.pieces.len() {
            if !self.reached[index]
                && matches!(
                    self.pieces[index].kind,
                    Kind::Device | Kind::Mapped | Kind::Host
                )
            {
                self.reached[index] = true;
                self.work.push(index);
            }
        }
    }

    pub(crate) fn next(&mut self) -> Option<Piece> {
        self.work.pop().map(|index| self.pieces[index])
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Memory, Piece};

    fn piece(address: u64, size: u64, kind: Kind) -> Piece {
        Piece {
            address,
            size,
            kind,
            device: 0,
        }
    }

    #[test]
    fn neighbouring_mappings_are_one_and_allocations_are_not() {
        let mut memory = Memory::default();
        memory.insert(piece(0x1000, 0x1000, Kind::Mapped));
        memory.insert(piece(0x2000, 0x1000, Kind::Mapped));
        memory.insert(piece(0x4000, 0x100, Kind::Device));
        memory.insert(piece(0x4100, 0x100, Kind::Device));
        let mut reach = memory.snapshot();
        let words: Vec<u8> = [0x2ff8u64, 0x3000, 0x4180, 0x41ff, 0x4200, 0]
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        reach.scan(&words);
        let mut found: Vec<_> = std::iter::from_fn(|| reach.next()).collect();
        found.sort_by_key(|piece| piece.address);
        assert_eq!(
            found,
            [
                piece(0x1000, 0x2000, Kind::Mapped),
                piece(0x4100, 0x100, Kind::Device)
            ]
        );
        memory.insert_rest(piece(0x3f00, 0x400, Kind::Device));
        let rest: Vec<_> = memory
            .pieces()
            .map(|piece| (piece.address, piece.size))
            .collect();
        let rest = &rest[2..];
        assert_eq!(
            rest,
            [
                (0x3f00, 0x100),
                (0x4000, 0x100),
                (0x4100, 0x100),
                (0x4200, 0x100)
            ]
        );
        memory.remove_range(0x1000, 0x2000);
        memory.remove_range(0x3f00, 0x100);
        memory.remove_range(0x4200, 0x100);
        memory.remove(0x4000);
        let mut reach = memory.snapshot();
        reach.reach_all();
        assert_eq!(reach.next(), Some(piece(0x4100, 0x100, Kind::Device)));
        assert_eq!(reach.next(), None);
    }
}
