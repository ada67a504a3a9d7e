// SPDX-License-Identifier: MIT OR Apache-2.0
//! Places of texels.

/// Arrangement of a two-dimensional slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// Row after row.
    Linear,
    /// "U-interleaved" tiles of 16 by 16 texels.
    Interleaved,
}

/// Texels; each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Texels.
    pub width: u32,
    /// Texels.
    pub height: u32,
    /// Slices.
    pub depth: u32,
}

impl Extent {
    /// Whether the texel is in it.
    #[inline]
    pub const fn contains(&self, x: u32, y: u32, z: u32) -> bool {
        x < self.width && y < self.height && z < self.depth
    }

    /// Mipmap level's size.
    #[inline]
    pub const fn level(&self, level: u32) -> Extent {
        const fn smaller(size: u32, level: u32) -> u32 {
            let s = if level < 32 { size >> level } else { 0 };
            if s == 0 { 1 } else { s }
        }
        Extent {
            width: smaller(self.width, level),
            height: smaller(self.height, level),
            depth: smaller(self.depth, level),
        }
    }
}

/// Texels in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Plane {
    /// GPU address of the first texel.
    pub base: u64,
    /// Of a slice.
    pub layout: Layout,
    /// Bytes.
    pub texel: u32,
    /// Bytes per row of texels or tiles.
    pub row: i32,
    /// Bytes per slice.
    pub slice: i32,
}

impl Plane {
    /// Address of a texel; wraps as in hardware.
    #[inline]
    pub const fn address(&self, x: u32, y: u32, z: u32) -> u64 {
        let slice = (self.slice as i64).wrapping_mul(z as i64);
        let within = match self.layout {
            Layout::Linear => (self.row as i64)
                .wrapping_mul(y as i64)
                .wrapping_add(self.texel as i64 * x as i64),
            Layout::Interleaved => {
                let tile = (x >> 4) as i64 * 256 + tile_index(x, y) as i64;
                (self.row as i64)
                    .wrapping_mul((y >> 4) as i64)
                    .wrapping_add(tile * self.texel as i64)
            }
        };
        self.base
            .wrapping_add(slice as u64)
            .wrapping_add(within as u64)
    }
}

/// Bits, from the lowest: `x0^y0 y0 x1^y1 y1 x2^y2 y2 x3^y3 y3`.
#[inline]
pub const fn tile_index(x: u32, y: u32) -> u32 {
    spread(x ^ y) | spread(y) << 1
}

#[inline]
const fn spread(v: u32) -> u32 {
    let v = v & 15;
    let v = (v | v << 2) & 0x33;
    (v | v << 1) & 0x55
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_a_permutation() {
        let mut seen = [false; 256];
        for y in 0..16 {
            for x in 0..16 {
                let i = tile_index(x, y) as usize;
                assert!(!seen[i]);
                seen[i] = true;
                for b in 0..4 {
                    assert_eq!(i >> (2 * b) & 1, ((x ^ y) >> b & 1) as usize);
                    assert_eq!(i >> (2 * b + 1) & 1, (y >> b & 1) as usize);
                }
            }
        }
        assert_eq!(tile_index(16, 32), 0);
    }

    #[test]
    fn addresses() {
        let mut p = Plane {
            base: 0x1000,
            layout: Layout::Linear,
            texel: 4,
            row: 256,
            slice: 4096,
        };
        assert_eq!(p.address(3, 2, 1), 0x1000 + 4096 + 512 + 12);
        p.layout = Layout::Interleaved;
        p.row = 4 * 256 * 2;
        assert_eq!(p.address(17, 16, 0), 0x1000 + 2048 + 1024 + 4);
        assert_eq!(p.address(1, 1, 0), 0x1000 + 2 * 4);
        let e = Extent {
            width: 5,
            height: 1,
            depth: 8,
        };
        assert!(e.contains(4, 0, 7) && !e.contains(5, 0, 0) && !e.contains(0, 1, 0));
        let l = e.level(2);
        assert_eq!((l.width, l.height, l.depth), (1, 1, 2));
        assert_eq!(e.level(40).depth, 1);
    }
}
