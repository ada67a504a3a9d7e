// SPDX-License-Identifier: MIT OR Apache-2.0
//! State of vertex and fragment shaders.

use std::sync::{Arc, Mutex, PoisonError};

/// Push uniforms end here, then blend descriptor 0.
pub(super) const STAGE_WORDS: u16 = 256;

const PIXEL: usize = 16;

/// Limit of corners' coordinates in pixels: rasterisation fits into 64 bits.
pub const GUARD_BAND: i64 = 1 << 16;

/// Descriptions of attributes or varyings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeTable {
    /// Descriptors' address, 8 bytes each.
    pub descriptors: u64,
    /// Descriptors.
    pub count: u32,
    /// Buffer descriptors' address, 16 bytes each.
    pub buffers: u64,
}

/// Bytes of Valhall's vertices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// The first vertex's address.
    pub base: u64,
    /// Bytes per vertex.
    pub stride: u32,
}

impl Packets {
    pub(crate) fn at(&self, vertex: u32) -> u64 {
        let offset = u64::from(vertex) * u64::from(self.stride);
        self.base.wrapping_add(offset)
    }
}

/// A draw, one thread per work group.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Vertices of one instance, along y.
    Vertices(Vertices),
    /// Columns along x, lines along y.
    Fragments(Arc<Fragments>),
}

/// Vertices to shade.
#[derive(Clone, Copy, Debug)]
pub struct Vertices {
    /// Address of positions, 16 bytes each; 0: none are written.
    pub positions: u64,
    /// Other outputs.
    pub varyings: AttributeTable,
    /// Outputs on Valhall.
    pub packets: Packets,
}

/// Fragments of one triangle.
#[derive(Debug)]
pub struct Fragments {
    /// First column and line.
    pub origin: [u32; 2],
    /// Corners.
    pub triangle: Triangle,
    /// Shades outside the triangle too.
    pub everywhere: bool,
    /// Corners' 1/w.
    pub reciprocals: [f32; 3],
    /// Corners' vertices.
    pub vertices: [u32; 3],
    /// Flat varyings' vertex.
    pub provoking: u32,
    /// Vertices' outputs.
    pub varyings: AttributeTable,
    /// Outputs on Valhall.
    pub packets: Packets,
    /// First registers of a thread.
    pub preload: Option<Preload>,
    /// Blend descriptor 0.
    pub blend: [u32; 2],
    /// Where pixels go.
    pub tile: Arc<Tile>,
}

/// Done before a thread starts, into r0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    /// Looks a texture up.
    Texture(Lookup),
    /// Interpolates a varying.
    Varying {
        /// Number.
        index: u32,
        /// 1 to 4.
        components: u32,
        /// Half-precision result.
        half: bool,
    },
}

/// Texture lookup at an interpolated varying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Varying with the coordinates.
    pub varying: u32,
    /// Texture and sampler.
    pub texture: u32,
    /// Level from neighbours.
    pub computed_lod: bool,
    /// Half-precision result.
    pub half: bool,
}

/// Corners in pixels with 8 fraction bits; it has an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    corners: [[i64; 2]; 3],
    /// 1: clockwise with y downwards; else -1.
    sign: i64,
}

impl Triangle {
    /// Corners in 1/256 pixel. `None`: no area, or outside the guard band.
    pub fn new(corners: [[i64; 2]; 3]) -> Option<Triangle> {
        let far = |v: &i64| v.abs() >= GUARD_BAND << 8;
        if corners.iter().flatten().any(far) {
            return None;
        }
        let area = edge(corners[0], corners[1], corners[2]);
        (area != 0).then_some(Triangle {
            corners,
            sign: area.signum(),
        })
    }

    /// Twice the areas of the centre with each corner's opposite edge, in 1/65536 pixel; negative outside.
    fn areas(&self, x: u32, y: u32) -> [i64; 3] {
        let [a, b, c] = self.corners;
        let centre = [i64::from(x) * 256 + 128, i64::from(y) * 256 + 128];
        [
            edge(b, c, centre) * self.sign,
            edge(c, a, centre) * self.sign,
            edge(a, b, centre) * self.sign,
        ]
    }

    /// Whether a pixel's centre is inside. A shared edge belongs to the triangle whose left or top it is.
    pub fn covers(&self, x: u32, y: u32) -> bool {
        let [a, b, c] = self.corners;
        let edges = [(b, c), (c, a), (a, b)];
        let inside = |(area, (from, to)): (i64, ([i64; 2], [i64; 2]))| {
            let [dx, dy] = [(to[0] - from[0]) * self.sign, (to[1] - from[1]) * self.sign];
            area > 0 || (area == 0 && (dy < 0 || (dy == 0 && dx > 0)))
        };
        self.areas(x, y).into_iter().zip(edges).all(inside)
    }

    /// Corners' weights at the centre; the sum is 1.
    pub fn weights(&self, x: u32, y: u32) -> [f64; 3] {
        let areas = self.areas(x, y);
        let sum: i64 = areas.iter().sum();
        areas.map(|area| area as f64 / sum as f64)
    }
}

fn edge(a: [i64; 2], b: [i64; 2], p: [i64; 2]) -> i64 {
    (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
}

/// Pixels not yet in memory.
#[derive(Debug)]
pub struct Tile {
    origin: [u32; 2],
    size: [u32; 2],
    bytes: usize,
    pixels: Mutex<Vec<[u8; PIXEL]>>,
}

impl Tile {
    /// Filled with `clear`; at most 16 bytes per pixel.
    pub fn new(origin: [u32; 2], size: [u32; 2], bytes: usize, clear: [u8; PIXEL]) -> Tile {
        let count = size[0] as usize * size[1] as usize;
        Tile {
            origin,
            size,
            bytes: bytes.min(PIXEL),
            pixels: Mutex::new(vec![clear; count]),
        }
    }

    /// Bytes per pixel.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn index(&self, x: u32, y: u32) -> Option<usize> {
        let column = x
            .checked_sub(self.origin[0])
            .filter(|&x| x < self.size[0])?;
        let line = y
            .checked_sub(self.origin[1])
            .filter(|&y| y < self.size[1])?;
        Some(line as usize * self.size[0] as usize + column as usize)
    }

    pub(crate) fn store(&self, pixels: &[([u32; 2], [u8; PIXEL])]) {
        let mut all = self.pixels.lock().unwrap_or_else(PoisonError::into_inner);
        for ([x, y], bytes) in pixels {
            if let Some(pixel) = self.index(*x, *y).and_then(|index| all.get_mut(index)) {
                *pixel = *bytes;
            }
        }
    }

    /// Takes the pixels, line after line.
    pub fn take_pixels(&self) -> Vec<[u8; PIXEL]> {
        let mut all = self.pixels.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(corners: [[i64; 2]; 3]) -> Vec<(u32, u32)> {
        let triangle = Triangle::new(corners).unwrap();
        let all = (0..16).flat_map(|y| (0..16).map(move |x| (x, y)));
        all.filter(|&(x, y)| triangle.covers(x, y)).collect()
    }

    #[test]
    fn triangles_that_share_an_edge_cover_each_pixel_once() {
        for (x, y, right, bottom) in [
            (0, 0, 16, 16),
            (0, 0, 7, 16),
            (3, 5, 11, 6),
            (2, 2, 3, 3),
            (1, 0, 16, 9),
        ] {
            let [x, y, right, bottom] = [x, y, right, bottom].map(|v: i64| v << 8);
            let round = [[x, y], [right, y], [right, bottom], [x, bottom]];
            for (first, clockwise) in (0..4).flat_map(|first| [(first, true), (first, false)]) {
                let corner = |n: usize| {
                    let n = if clockwise { n } else { 4 - n };
                    round[(first + n) % 4]
                };
                let mut drawn = pixels([corner(0), corner(1), corner(2)]);
                drawn.extend(pixels([corner(0), corner(2), corner(3)]));
                drawn.sort_by_key(|&(x, y)| (y, x));
                let inside = |x: u32, y: u32| {
                    let (column, line) = (i64::from(x) << 8, i64::from(y) << 8);
                    (round[0][0]..round[2][0]).contains(&column)
                        && (round[0][1]..round[2][1]).contains(&line)
                };
                let all = (0..16).flat_map(|y| (0..16).map(move |x| (x, y)));
                let expected: Vec<_> = all.filter(|&(x, y)| inside(x, y)).collect();
                assert_eq!(drawn, expected, "{round:?} from {first}, {clockwise}");
            }
        }
    }

    #[test]
    fn weights_follow_the_place() {
        let triangle = Triangle::new([[0, 0], [0, 8 << 8], [8 << 8, 0]]).unwrap();
        let [a, b, c] = triangle.weights(1, 2);
        assert_eq!((a * 0.0 + b * 0.0 + c * 8.0, b * 8.0), (1.5, 2.5));
        assert_eq!(a + b + c, 1.0);
        assert!(triangle.weights(9, 0)[0] < 0.0, "outside they go on");
    }

    #[test]
    fn degenerate_and_far_triangles_are_none() {
        assert_eq!(Triangle::new([[0, 0], [256, 256], [512, 512]]), None);
        assert_eq!(
            Triangle::new([[0, 0], [GUARD_BAND << 8, 0], [0, 256]]),
            None
        );
        assert_eq!(Triangle::new([[0, 0], [i64::MIN + 1, 0], [0, 256]]), None);
    }

    #[test]
    fn pixels_outside_a_tile_are_dropped() {
        let tile = Tile::new([16, 32], [2, 2], 4, [1; 16]);
        tile.store(&[
            ([17, 33], [2; 16]),
            ([18, 33], [3; 16]),
            ([15, 32], [3; 16]),
        ]);
        assert_eq!(tile.take_pixels(), [[1; 16], [1; 16], [1; 16], [2; 16]]);
    }
}
