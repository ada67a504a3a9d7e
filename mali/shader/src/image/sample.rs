// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading texels, also through a sampler.

use mali_facts::texel::{Kind, Texel};

use super::address::Extent;
use super::codec::Texels;
use super::descriptor::{Dimension, Mipmap, Sampler, Texture, Wrap};

/// Level and layer to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Clamped to the last.
    pub layer: u32,
    /// Of a cube.
    pub face: u32,
    /// Clamped to the last.
    pub level: u32,
}

/// Where a sampler reads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coordinates {
    /// Fractions or texels, as the sampler says.
    pub position: [f32; 3],
    /// Array layer.
    pub layer: u32,
    /// Of a cube.
    pub face: u32,
    /// Level of detail.
    pub lod: f32,
    /// In texels.
    pub offset: [i32; 3],
    /// If the read compares.
    pub reference: Option<f32>,
}

/// Texture being read.
pub struct Lookup<'a, F> {
    /// Texture.
    pub texture: &'a Texture,
    /// Reads GPU memory.
    pub fetch: F,
}

impl<F, E> Lookup<'_, F>
where
    F: FnMut(u64, &mut [u8]) -> Result<(), E>,
{
    /// `at` is inside; no swizzle is applied.
    fn texel(&mut self, level: Level, at: [u32; 3]) -> Result<Texel, E> {
        let record = self
            .texture
            .surface_record(level.layer, level.face, level.level, 0);
        let mut bytes = [0; Texture::LONGEST_RECORD];
        (self.fetch)(record, &mut bytes[..self.texture.record_bytes()])?;
        let plane = self.texture.plane(&bytes);
        let count = self.texture.format.bytes as usize;
        let mut bytes = [0; 16];
        (self.fetch)(plane.address(at[0], at[1], at[2]), &mut bytes[..count])?;
        Ok(self.texture.format.load(&bytes[..count]))
    }

    fn swizzled(&self, texel: Texel) -> Texel {
        let kind = self.texture.format.kind();
        self.texture
            .swizzle
            .map(|channel| channel.pick(texel, kind))
    }

    fn limited(&self, layer: u32, face: u32, level: u32) -> Level {
        Level {
            layer: layer.min(self.texture.layers - 1),
            face: face.min(5),
            level: level.min(self.texture.levels - 1),
        }
    }
}

/// Texel through the texture's swizzle; zero outside.
pub fn fetch_texel<F, E>(lookup: &mut Lookup<'_, F>, at: [u32; 3], level: Level) -> Result<Texel, E>
where
    F: FnMut(u64, &mut [u8]) -> Result<(), E>,
{
    let t = lookup.texture;
    let inside = level.level < t.levels
        && level.layer < t.layers
        && t.extent.level(level.level).contains(at[0], at[1], at[2]);
    let texel = if inside {
        lookup.texel(level, at)?
    } else {
        [0; 4]
    };
    Ok(lookup.swizzled(texel))
}

fn wrap(i: i64, size: u32, mode: Wrap) -> Option<u32> {
    let n = size as i64;
    let inside = |i: i64| (0..n).contains(&i).then_some(i as u32);
    let mirrored = if i < 0 { -1 - i } else { i };
    match mode {
        Wrap::Repeat => Some(i.rem_euclid(n) as u32),
        Wrap::ClampToEdge => Some(i.clamp(0, n - 1) as u32),
        Wrap::ClampToBorder => inside(i),
        Wrap::Mirror => {
            let m = i.rem_euclid(2 * n);
            Some(if m < n { m } else { 2 * n - 1 - m } as u32)
        }
        Wrap::MirrorClampToEdge => Some(mirrored.min(n - 1) as u32),
        Wrap::MirrorClampToBorder => inside(mirrored),
    }
}

/// Limited to where singles are exact.
fn in_texels(position: f32, size: u32, normalized: bool, mode: Wrap) -> f32 {
    const LIMIT: f32 = 16_777_216.0;
    if position.is_nan() {
        return 0.0;
    }
    let n = size as f32;
    let u = match (normalized, mode) {
        (false, _) => position,
        (true, Wrap::Repeat) => (position - position.floor()) * n,
        (true, Wrap::Mirror) => {
            let twice = 2.0 * (0.5 * position).round_ties_even();
            (position - twice).abs() * n
        }
        (true, _) => position * n,
    };
    if u.is_nan() {
        0.0
    } else {
        u.clamp(-LIMIT, LIMIT)
    }
}

/// Two texels (`None`: border), weight of the second.
#[derive(Clone, Copy)]
struct Axis {
    first: Option<u32>,
    second: Option<u32>,
    weight: f32,
}

impl Axis {
    const SINGLE: Axis = Axis {
        first: Some(0),
        second: Some(0),
        weight: 0.0,
    };

    fn new(
        position: f32,
        offset: i32,
        size: u32,
        nearest: bool,
        normalized: bool,
        mode: Wrap,
    ) -> Axis {
        let u = in_texels(position, size, normalized, mode);
        if nearest {
            // A fraction just below one may round to the size.
            let i = if normalized && matches!(mode, Wrap::Repeat | Wrap::Mirror) {
                (u.floor() as i64).min(size as i64 - 1)
            } else {
                u.floor() as i64
            };
            let i = wrap(i + offset as i64, size, mode);
            return Axis {
                first: i,
                second: i,
                weight: 0.0,
            };
        }
        let v = u - 0.5;
        let floor = v.floor();
        let i = floor as i64 + offset as i64;
        Axis {
            first: wrap(i, size, mode),
            second: wrap(i + 1, size, mode),
            weight: v - floor,
        }
    }
}

fn axes(t: &Texture, s: &Sampler, c: &Coordinates, extent: Extent, nearest: bool) -> [Axis; 3] {
    let axis = |i: usize, size: u32| {
        let wrap = match t.dimension {
            Dimension::Cube => Wrap::ClampToEdge,
            _ => s.wrap[i],
        };
        Axis::new(
            c.position[i],
            c.offset[i],
            size,
            nearest,
            s.normalized,
            wrap,
        )
    };
    let x = axis(0, extent.width);
    match t.dimension {
        Dimension::One => [x, Axis::SINGLE, Axis::SINGLE],
        Dimension::Two | Dimension::Cube => [x, axis(1, extent.height), Axis::SINGLE],
        Dimension::Three => [x, axis(1, extent.height), axis(2, extent.depth)],
    }
}

fn compared(function: u32, reference: f32, texel: Texel) -> Texel {
    let depth = f32::from_bits(texel[0]);
    let yes = match function {
        0 => false,
        1 => reference < depth,
        2 => reference == depth,
        3 => reference <= depth,
        4 => reference > depth,
        5 => reference != depth,
        6 => reference >= depth,
        _ => true,
    };
    [yes as u32 * Kind::Float.one(); 4]
}

fn sample_level<F, E>(
    lookup: &mut Lookup<'_, F>,
    sampler: &Sampler,
    c: &Coordinates,
    level: u32,
    nearest: bool,
) -> Result<Texel, E>
where
    F: FnMut(u64, &mut [u8]) -> Result<(), E>,
{
    let t = lookup.texture;
    let level = lookup.limited(c.layer, c.face, level);
    let [x, y, z] = axes(t, sampler, c, t.extent.level(level.level), nearest);
    let mut corner = |cx: Option<u32>, cy: Option<u32>, cz: Option<u32>| -> Result<Texel, E> {
        let texel = match (cx, cy, cz) {
            (Some(x), Some(y), Some(z)) => lookup.texel(level, [x, y, z])?,
            _ => sampler.border,
        };
        Ok(match c.reference {
            Some(reference) => compared(sampler.compare, reference, texel),
            None => texel,
        })
    };
    if nearest || t.format.kind() != Kind::Float {
        let texel = corner(x.first, y.first, z.first)?;
        return Ok(lookup.swizzled(texel));
    }
    let mut sum = [0f32; 4];
    for (cz, wz) in [(z.first, 1.0 - z.weight), (z.second, z.weight)] {
        for (cy, wy) in [(y.first, 1.0 - y.weight), (y.second, y.weight)] {
            for (cx, wx) in [(x.first, 1.0 - x.weight), (x.second, x.weight)] {
                let weight = wx * wy * wz;
                if weight == 0.0 {
                    continue;
                }
                let texel = corner(cx, cy, cz)?;
                for (s, v) in sum.iter_mut().zip(texel) {
                    *s += weight * f32::from_bits(v);
                }
            }
        }
    }
    Ok(lookup.swizzled(sum.map(f32::to_bits)))
}

/// A filtered read.
pub fn sample<F, E>(
    lookup: &mut Lookup<'_, F>,
    sampler: &Sampler,
    c: &Coordinates,
) -> Result<Texel, E>
where
    F: FnMut(u64, &mut [u8]) -> Result<(), E>,
{
    let fixed = |v: u32| v as f32 / 256.0;
    let lod = c.lod + sampler.lod_bias as f32 / 256.0;
    let lod = if lod.is_nan() { 0.0 } else { lod };
    let lod = lod
        .max(fixed(sampler.minimum_lod))
        .min(fixed(sampler.maximum_lod).max(fixed(sampler.minimum_lod)));
    let nearest = if lod <= 0.0 {
        sampler.magnify_nearest
    } else {
        sampler.minify_nearest
    };
    match sampler.mipmap {
        Mipmap::None => sample_level(lookup, sampler, c, 0, nearest),
        Mipmap::Nearest => {
            let level = (lod + 0.5).floor().max(0.0) as u32;
            sample_level(lookup, sampler, c, level, nearest)
        }
        Mipmap::Trilinear => {
            let floor = lod.max(0.0).floor();
            let weight = lod.max(0.0) - floor;
            let low = sample_level(lookup, sampler, c, floor as u32, nearest)?;
            if weight == 0.0 || lookup.texture.format.kind() != Kind::Float {
                return Ok(low);
            }
            let high = sample_level(lookup, sampler, c, floor as u32 + 1, nearest)?;
            Ok(core::array::from_fn(|i| {
                let (a, b) = (f32::from_bits(low[i]), f32::from_bits(high[i]));
                (a + (b - a) * weight).to_bits()
            }))
        }
    }
}

/// A component of a linear filter's texels: (0,1), (1,1), (1,0), (0,0).
pub fn gather<F, E>(
    lookup: &mut Lookup<'_, F>,
    sampler: &Sampler,
    c: &Coordinates,
    component: usize,
) -> Result<Texel, E>
where
    F: FnMut(u64, &mut [u8]) -> Result<(), E>,
{
    let t = lookup.texture;
    let level = lookup.limited(c.layer, c.face, 0);
    let [x, y, _] = axes(t, sampler, c, t.extent, false);
    let mut one = |cx: Option<u32>, cy: Option<u32>| -> Result<u32, E> {
        let texel = match (cx, cy) {
            (Some(x), Some(y)) => lookup.texel(level, [x, y, 0])?,
            _ => sampler.border,
        };
        let texel = match c.reference {
            Some(reference) => compared(sampler.compare, reference, texel),
            None => texel,
        };
        Ok(lookup.swizzled(texel)[component & 3])
    };
    Ok([
        one(x.first, y.second)?,
        one(x.second, y.second)?,
        one(x.second, y.first)?,
        one(x.first, y.first)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::descriptor::Texture;
    use std::convert::Infallible;

    const DATA: u64 = 0x1000;

    /// 4 by 2 texels of one single-precision component, `10 y + x`; second level 2 by 1.
    fn memory(va: u64, out: &mut [u8]) -> Result<(), Infallible> {
        let mut m = vec![0u8; 0x2000];
        for (i, base) in [DATA, DATA + 0x100].iter().enumerate() {
            m[16 * i..16 * i + 8].copy_from_slice(&base.to_le_bytes());
            m[16 * i + 8..16 * i + 12].copy_from_slice(&16u32.to_le_bytes());
        }
        for y in 0..2 {
            for x in 0..4 {
                let v = (10 * y + x) as f32;
                let at = DATA as usize + 16 * y + 4 * x;
                m[at..at + 4].copy_from_slice(&v.to_le_bytes());
            }
        }
        for x in 0..2usize {
            let at = DATA as usize + 0x100 + 4 * x;
            m[at..at + 4].copy_from_slice(&(100.0 + x as f32).to_le_bytes());
        }
        out.copy_from_slice(&m[va as usize..va as usize + out.len()]);
        Ok(())
    }

    fn texture() -> Texture {
        let w = [
            2 | 2 << 4 | 167 << 22,
            3 | 1 << 16,
            0o5440 | 2 << 12 | 1 << 16,
            0,
            0,
            0,
            0,
            0,
        ];
        Texture::parse(&w, false).unwrap()
    }

    fn sampler(wrap: u32, nearest: bool, normalized: bool) -> Sampler {
        let n = nearest as u32;
        let w0 = 1 | wrap << 8 | wrap << 12 | wrap << 16 | (normalized as u32) << 25;
        let w0 = w0 | n << 27 | n << 28 | 3 << 30;
        let border = (-1f32).to_bits();
        Sampler::parse(&[w0, 0x1fff << 16, 0, 0, border, 0, 0, 0]).unwrap()
    }

    fn read(s: &Sampler, x: f32, y: f32, lod: f32) -> f32 {
        let t = texture();
        let mut lookup = Lookup {
            texture: &t,
            fetch: memory,
        };
        let c = Coordinates {
            position: [x, y, 0.0],
            lod,
            ..Default::default()
        };
        let Ok(texel) = sample(&mut lookup, s, &c);
        assert_eq!(texel[1..], [0, 0, 0x3f80_0000]);
        f32::from_bits(texel[0])
    }

    #[test]
    fn wrapping() {
        let at = |mode| {
            (-5..9)
                .map(|i| wrap(i, 4, mode).map_or(9, |v| v))
                .collect::<Vec<_>>()
        };
        assert_eq!(at(Wrap::Repeat), [3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0]);
        assert_eq!(
            at(Wrap::ClampToEdge),
            [0, 0, 0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]
        );
        assert_eq!(
            at(Wrap::ClampToBorder),
            [9, 9, 9, 9, 9, 0, 1, 2, 3, 9, 9, 9, 9, 9]
        );
        assert_eq!(at(Wrap::Mirror), [3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0]);
        assert_eq!(
            at(Wrap::MirrorClampToEdge),
            [3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3]
        );
        assert_eq!(
            at(Wrap::MirrorClampToBorder),
            [9, 3, 2, 1, 0, 0, 1, 2, 3, 9, 9, 9, 9, 9]
        );
    }

    #[test]
    fn nearest() {
        let s = sampler(9, true, false);
        assert_eq!(read(&s, 2.9, 1.0, 0.0), 12.0);
        assert_eq!(read(&s, -3.0, 9.0, 0.0), 10.0);
        assert_eq!(read(&s, f32::NAN, f32::INFINITY, 0.0), 10.0);
        let s = sampler(11, true, true);
        assert_eq!(read(&s, 0.99, 0.49, 0.0), 3.0);
        assert_eq!(read(&s, 1.0, 0.49, 0.0), -1.0);
        let s = sampler(8, true, true);
        assert_eq!(read(&s, -0.25, 1.5, 0.0), 13.0);
        assert_eq!(read(&s, -1e-9, 0.0, 0.0), 3.0);
        let s = sampler(12, true, true);
        assert_eq!(read(&s, 1.25, 0.0, 0.0), 3.0);
        assert_eq!(read(&s, 1.26, -0.01, 0.0), 2.0);
    }

    #[test]
    fn linear_and_levels() {
        let s = sampler(9, false, false);
        assert_eq!(read(&s, 1.5, 0.5, 0.0), 1.0);
        assert_eq!(read(&s, 2.0, 0.5, 0.0), 1.5);
        assert_eq!(read(&s, 2.0, 1.0, 0.0), 6.5);
        assert_eq!(read(&s, 0.0, 0.0, 0.0), 0.0);
        let s = sampler(11, false, false);
        assert_eq!(read(&s, 0.0, 0.5, 0.0), -0.5);
        let s = sampler(9, true, true);
        assert_eq!(read(&s, 0.7, 0.5, 1.0), 101.0);
        assert_eq!(read(&s, 0.1, 0.1, 0.5), 50.0);
        assert_eq!(read(&s, 0.1, 0.1, 30.0), 100.0);
    }

    #[test]
    fn fetch_gather_and_compare() {
        let t = texture();
        let mut lookup = Lookup {
            texture: &t,
            fetch: memory,
        };
        let f = |l: &mut Lookup<'_, _>, at, level| {
            let level = Level {
                level,
                ..Default::default()
            };
            let Ok(v) = fetch_texel(l, at, level);
            f32::from_bits(v[0])
        };
        assert_eq!(f(&mut lookup, [3, 1, 0], 0), 13.0);
        assert_eq!(f(&mut lookup, [1, 0, 0], 1), 101.0);
        assert_eq!(f(&mut lookup, [4, 0, 0], 0), 0.0);
        assert_eq!(f(&mut lookup, [0, 0, 0], 2), 0.0);
        let mut s = sampler(9, false, false);
        let mut c = Coordinates {
            position: [2.0, 1.0, 0.0],
            ..Default::default()
        };
        let Ok(v) = gather(&mut lookup, &s, &c, 0);
        assert_eq!(v.map(f32::from_bits), [11.0, 12.0, 2.0, 1.0]);
        s.compare = 1;
        c.reference = Some(5.0);
        let Ok(v) = sample(&mut lookup, &s, &c);
        assert_eq!(f32::from_bits(v[0]), 0.5);
    }
}
