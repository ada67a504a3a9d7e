// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of rows, in two or three dimensions.

use serde::{Deserialize, Serialize};

use crate::abi::Copy3d;

/// Words of a `CUDA_MEMCPY3D`'s source; the target's are this many further.
mod word {
    pub(super) const X: usize = 0;
    pub(super) const Y: usize = 1;
    pub(super) const Z: usize = 2;
    pub(super) const KIND: usize = 4;
    pub(super) const HOST: usize = 5;
    pub(super) const DEVICE: usize = 6;
    pub(super) const PITCH: usize = 9;
    pub(super) const ROWS: usize = 10;
    pub(super) const TO: usize = 11;
    pub(super) const WIDTH: usize = 22;
    pub(super) const HEIGHT: usize = 23;
    pub(super) const DEPTH: usize = 24;
}

/// Words of a `CUDA_MEMCPY2D`.
pub type Copy2d = [u64; 16];

/// Where memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// On the host.
    Host = 1,
    /// On the device.
    Device = 2,
}

/// `CU_MEMORYTYPE_ARRAY`.
const ARRAY: u64 = 3;

/// Layout of rows at source and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    /// Bytes of a row.
    pub width: u64,
    /// Rows of a layer.
    pub height: u64,
    /// Layers.
    pub depth: u64,
    /// Target: bytes between rows, rows between layers.
    pub to: [u64; 2],
    /// Source.
    pub from: [u64; 2],
}

impl Rows {
    /// Copied bytes.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.width.checked_mul(self.height)?.checked_mul(self.depth)
    }

    /// First to last byte; `None` if rows or layers overlap.
    #[must_use]
    pub fn extent(&self, [pitch, rows]: [u64; 2]) -> Option<u64> {
        let apart = (self.height <= 1 && self.depth <= 1 || pitch >= self.width)
            && (self.depth <= 1 || rows >= self.height);
        let layers = self.depth.checked_sub(1)?.checked_mul(rows)?;
        let rows = layers.checked_add(self.height.checked_sub(1)?)?;
        let last = rows.checked_mul(pitch)?.checked_add(self.width)?;
        (apart && self.width > 0).then_some(last)
    }

    /// Layout without gaps.
    #[must_use]
    pub fn packed(&self) -> [u64; 2] {
        [self.width, self.height]
    }

    /// Offsets of rows from the first.
    pub fn starts(&self, [pitch, rows]: [u64; 2]) -> impl Iterator<Item = u64> {
        let height = self.height;
        let layers = (0..self.depth).map(move |layer| layer * rows * pitch);
        layers.flat_map(move |layer| (0..height).map(move |row| layer + row * pitch))
    }

    /// Copy for the driver.
    #[must_use]
    pub fn copy(&self, to: (Side, u64), from: (Side, u64)) -> Copy3d {
        let mut words: Copy3d = [0; 25];
        for (first, (side, address), [pitch, rows]) in
            [(0, from, self.from), (word::TO, to, self.to)]
        {
            words[first + word::KIND] = side as u64;
            let place = match side {
                Side::Host => word::HOST,
                Side::Device => word::DEVICE,
            };
            words[first + place] = address;
            words[first + word::PITCH] = pitch;
            words[first + word::ROWS] = rows;
        }
        words[word::WIDTH] = self.width;
        words[word::HEIGHT] = self.height;
        words[word::DEPTH] = self.depth;
        words
    }

    /// Target, source, bytes, rows; no rows without gaps.
    ///
    /// # Errors
    /// For arrays and impossible sizes.
    pub fn of(copy: &Copy3d) -> Result<(u64, u64, u64, Option<Self>), &'static str> {
        let large = "a copy is larger than memory";
        let rows = Self {
            width: copy[word::WIDTH],
            height: copy[word::HEIGHT].max(1),
            depth: copy[word::DEPTH].max(1),
            to: [0; 2],
            from: [0; 2],
        };
        let side = |first: usize| {
            // The kind has 32 bits.
            let address = match copy[first + word::KIND] & 0xffff_ffff {
                ARRAY => return Err("an array is copied"),
                1 => copy[first + word::HOST],
                _ => copy[first + word::DEVICE],
            };
            let [x, y, z] = [word::X, word::Y, word::Z].map(|at| copy[first + at]);
            let pitch = copy[first + word::PITCH].max(rows.width);
            let layer = copy[first + word::ROWS].max(rows.height);
            let before = z
                .checked_mul(layer)
                .and_then(|rows| rows.checked_add(y)?.checked_mul(pitch)?.checked_add(x));
            let start = before.and_then(|before| before.checked_add(address));
            Ok((start.ok_or(large)?, [pitch, layer]))
        };
        let ((from, lie_from), (to, lie_to)) = (side(0)?, side(word::TO)?);
        let rows = Self {
            to: lie_to,
            from: lie_from,
            ..rows
        };
        let size = rows.size().ok_or(large)?;
        // Later checks refuse impossible extents.
        let follow = |lie| rows.width == 0 || rows.extent(lie) == Some(size);
        let is_one = follow(rows.to) && follow(rows.from);
        Ok((to, from, size, (!is_one).then_some(rows)))
    }
}

/// Two dimensions as three.
#[must_use]
pub fn deepened(copy: &Copy2d) -> Copy3d {
    let mut words: Copy3d = [0; 25];
    // Offsets, kind, host, device, array, pitch.
    for (first, to) in [(0, 0), (7, word::TO)] {
        for (from, at) in [(0, 0), (1, 1), (2, 4), (3, 5), (4, 6), (5, 7), (6, 9)] {
            words[to + at] = copy[first + from];
        }
    }
    words[word::WIDTH] = copy[14];
    words[word::HEIGHT] = copy[15];
    words[word::DEPTH] = 1;
    words
}

#[cfg(test)]
mod tests {
    use super::{Rows, Side, deepened};

    #[test]
    fn rows_of_two_and_three_dimensions_are_read_as_the_driver_reads_them() {
        // Three rows of 8 bytes: from the host's 1000, 16 apart, the second on; to the device's 5000, 32 apart, after 4
        // bytes.
        let flat = [0, 1, 1, 1000, 0, 0, 16, 4, 0, 2, 0, 5000, 0, 32, 8, 3];
        let (to, from, size, rows) = Rows::of(&deepened(&flat)).unwrap();
        assert_eq!((to, from, size), (5004, 1016, 24));
        let rows = rows.unwrap();
        assert_eq!((rows.to, rows.from), ([32, 3], [16, 3]));
        assert_eq!(
            (rows.extent(rows.to), rows.extent(rows.from)),
            (Some(72), Some(40))
        );
        assert_eq!(rows.starts(rows.from).collect::<Vec<_>>(), [0, 16, 32]);
        let deep = Rows {
            depth: 2,
            to: [32, 5],
            ..rows
        };
        assert_eq!(deep.starts(deep.to).last(), Some(5 * 32 + 64));
        assert_eq!(deep.extent(deep.to), Some(5 * 32 + 64 + 8));
        let asked = deep.copy((Side::Device, to), (Side::Host, from));
        assert_eq!(Rows::of(&asked).unwrap(), (to, from, 48, Some(deep)));
        let packed = Rows {
            to: rows.packed(),
            from: rows.packed(),
            ..rows
        };
        let asked = packed.copy((Side::Device, to), (Side::Host, from));
        assert_eq!(Rows::of(&asked).unwrap(), (to, from, 24, None));
        assert_eq!(rows.extent([7, 3]), None, "rows lie over each other");
        let mut of_array = asked;
        of_array[4] = 3;
        assert_eq!(Rows::of(&of_array), Err("an array is copied"));
    }
}
