// SPDX-License-Identifier: MIT OR Apache-2.0
//! An address's piece and parameter.

use gpureplay_cuda_launch::recording::Launch;

/// Where an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whereabouts {
    /// Regions by address, then variables.
    pub piece: usize,
    /// Bytes into the piece.
    pub offset: u64,
    /// Closest parameter at or below in the piece, and bytes from it.
    pub parameter: Option<(usize, u64)>,
}

/// The pieces of a launch's memory.
pub struct Pieces {
    /// Address, size, number; ascending.
    ranges: Vec<(u64, u64, usize)>,
    /// Address and parameter; ascending.
    pointers: Vec<(u64, usize)>,
}

impl Pieces {
    /// Pieces of a launch by recorded addresses.
    #[must_use]
    pub fn of(launch: &Launch) -> Self {
        let all = launch.pieces().zip(0..);
        let mut ranges: Vec<_> = all
            .map(|(piece, number)| (piece.address, piece.size, number))
            .collect();
        ranges.sort_unstable();
        let mut pieces = Self {
            ranges,
            pointers: Vec::new(),
        };
        for (index, [offset, size]) in launch.layout.iter().enumerate() {
            let bytes = launch.parameters.get(*offset..offset.saturating_add(*size));
            // Structures may hold several pointers.
            for word in bytes.unwrap_or_default().as_chunks::<8>().0 {
                let address = u64::from_le_bytes(*word);
                if pieces.piece(address).is_some() {
                    pieces.pointers.push((address, index));
                }
            }
        }
        pieces.pointers.sort_unstable();
        pieces
    }

    fn piece(&self, address: u64) -> Option<(u64, u64, usize)> {
        let after = self.ranges.partition_point(|range| range.0 <= address);
        let range = *self.ranges.get(after.checked_sub(1)?)?;
        (address - range.0 < range.1).then_some(range)
    }

    /// None outside all pieces.
    #[must_use]
    pub fn find(&self, address: u64) -> Option<Whereabouts> {
        let (start, _, piece) = self.piece(address)?;
        let after = self
            .pointers
            .partition_point(|pointer| pointer.0 <= address);
        let pointer = after.checked_sub(1).and_then(|at| self.pointers.get(at));
        let pointer = pointer.filter(|pointer| pointer.0 >= start);
        Some(Whereabouts {
            piece,
            offset: address - start,
            parameter: pointer.map(|(from, index)| (*index, address - from)),
        })
    }

    /// Parameters leading into a piece, ascending.
    #[must_use]
    pub fn parameters(&self, piece: usize) -> Vec<usize> {
        let leading = self.pointers.iter().filter(|(address, _)| {
            let found = self.piece(*address);
            found.is_some_and(|(_, _, number)| number == piece)
        });
        let mut all: Vec<usize> = leading.map(|(_, index)| *index).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
