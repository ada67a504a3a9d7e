// SPDX-License-Identifier: MIT OR Apache-2.0
//! What shaders of vertices and fragments have besides what compute shaders have.

use std::sync::{Mutex, PoisonError};

/// Most bytes of a pixel in the tile buffer.
const PIXEL: usize = 16;

/// Coordinates of corners must be smaller, in pixels: what rasterisation computes then fits into 64 bits with room to spare.
pub const GUARD_BAND: i64 = 1 << 16;

/// Where the attributes or varyings of a shader are described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeTable {
    /// Address of the descriptors: 8 bytes each.
    pub descriptors: u64,
    /// How many there are.
    pub count: u32,
    /// Address of the buffers' descriptors: records of 16 bytes.
    pub buffers: u64,
}

/// What vertices of Valhall write, of a kind: so many bytes each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packets {
    /// Address of the first vertex's bytes.
    pub base: u64,
    /// Bytes of a vertex.
    pub stride: u32,
}

impl Packets {
    /// Where the bytes of a vertex are.
    pub(crate) fn at(&self, vertex: u32) -> u64 {
        let offset = u64::from(vertex) * u64::from(self.stride);
        self.base.wrapping_add(offset)
    }
}

/// What a dispatch draws. Its work groups have one thread each.
#[derive(Debug)]
pub enum Stage<'a> {
    /// Vertices of one instance, along y.
    Vertices(Vertices),
    /// Pixels of a rectangle: columns along x, lines along y.
    Fragments(Fragments<'a>),
}

/// Vertices that a shader is run for.
#[derive(Clone, Copy, Debug)]
pub struct Vertices {
    /// Address that the first vertex's position goes to; those of the others follow, 16 bytes each. 0: the shader writes none.
    pub positions: u64,
    /// What the shader writes besides positions.
    pub varyings: AttributeTable,
    /// What it writes, on Valhall.
    pub packets: Packets,
}

/// Fragments of one triangle.
#[derive(Debug)]
pub struct Fragments<'a> {
    /// The first column and line.
    pub origin: [u32; 2],
    /// The triangle.
    pub triangle: Triangle,
    /// Fragments outside the triangle are shaded as well: varyings go on where it ends.
    pub everywhere: bool,
    /// 1/w of the corners.
    pub reciprocals: [f32; 3],
    /// Numbers of the corners' vertices.
    pub vertices: [u32; 3],
    /// The vertex whose values varyings that are not interpolated have.
    pub provoking: u32,
    /// What vertices wrote.
    pub varyings: AttributeTable,
    /// What they wrote, on Valhall.
    pub packets: Packets,
    /// What is in the first registers when a thread starts.
    pub preload: Option<Preload>,
    /// What shaders read as blend descriptor 0.
    pub blend: [u32; 2],
    /// Where pixels go.
    pub tile: &'a Tile,
}

/// What is done before a thread starts. The result is in registers from r0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    /// A texture is looked up.
    Texture(Lookup),
    /// A varying is interpolated.
    Varying {
        /// Its number.
        index: u32,
        /// How many components, 1 to 4.
        components: u32,
        /// The result has half precision.
        half: bool,
    },
}

/// A texture lookup at an interpolated varying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Number of the varying that has the coordinates.
    pub varying: u32,
    /// Number of the texture and of its sampler.
    pub texture: u32,
    /// The level of detail follows from neighbours.
    pub computed_lod: bool,
    /// The result has half precision.
    pub half: bool,
}

/// A triangle that is not degenerate, corners in pixels with 8 fraction bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    corners: [[i64; 2]; 3],
    /// 1 if corners go round clockwise as seen with y downwards, else -1.
    sign: i64,
}

impl Triangle {
    /// The triangle with these corners, in 1/256 of a pixel. `None` when it has no area or reaches out of the guard band.
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

    /// Twice the areas of the three triangles that the pixel's centre makes with the edges opposite to the corners, in 1/65536
    /// of a pixel; negative outside.
    fn areas(&self, x: u32, y: u32) -> [i64; 3] {
        let [a, b, c] = self.corners;
        let centre = [i64::from(x) * 256 + 128, i64::from(y) * 256 + 128];
        [
            edge(b, c, centre) * self.sign,
            edge(c, a, centre) * self.sign,
            edge(a, b, centre) * self.sign,
        ]
    }

    /// Whether the centre of a pixel is inside. Pixels on an edge that two triangles share belong to one of them: the one that
    /// has the edge on its left or top side.
    pub fn covers(&self, x: u32, y: u32) -> bool {
        let [a, b, c] = self.corners;
        let edges = [(b, c), (c, a), (a, b)];
        let inside = |(area, (from, to)): (i64, ([i64; 2], [i64; 2]))| {
            let [dx, dy] = [(to[0] - from[0]) * self.sign, (to[1] - from[1]) * self.sign];
            area > 0 || (area == 0 && (dy < 0 || (dy == 0 && dx > 0)))
        };
        self.areas(x, y).into_iter().zip(edges).all(inside)
    }

    /// How much each corner counts at the centre of a pixel; the sum is 1.
    pub fn weights(&self, x: u32, y: u32) -> [f64; 3] {
        let areas = self.areas(x, y);
        let sum: i64 = areas.iter().sum();
        areas.map(|area| area as f64 / sum as f64)
    }
}

/// Twice the area of a triangle, with a sign.
fn edge(a: [i64; 2], b: [i64; 2], p: [i64; 2]) -> i64 {
    (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0])
}

/// Pixels before they are written to memory.
#[derive(Debug)]
pub struct Tile {
    origin: [u32; 2],
    size: [u32; 2],
    bytes: usize,
    pixels: Mutex<Vec<[u8; PIXEL]>>,
}

impl Tile {
    /// A tile that holds `clear` everywhere, of which each pixel takes up `bytes` bytes, at most 16.
    pub fn new(origin: [u32; 2], size: [u32; 2], bytes: usize, clear: [u8; PIXEL]) -> Tile {
        let count = size[0] as usize * size[1] as usize;
        Tile {
            origin,
            size,
            bytes: bytes.min(PIXEL),
            pixels: Mutex::new(vec![clear; count]),
        }
    }

    /// Bytes of a pixel.
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

    /// Stores pixels; those outside the tile are dropped.
    pub(crate) fn store(&self, pixels: &[([u32; 2], [u8; PIXEL])]) {
        let mut all = self.pixels.lock().unwrap_or_else(PoisonError::into_inner);
        for ([x, y], bytes) in pixels {
            if let Some(pixel) = self.index(*x, *y).and_then(|index| all.get_mut(index)) {
                *pixel = *bytes;
            }
        }
    }

    /// What is in the tile, line after line.
    pub fn into_pixels(self) -> Vec<[u8; PIXEL]> {
        self.pixels
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(tile.into_pixels(), [[1; 16], [1; 16], [1; 16], [2; 16]]);
    }
}
