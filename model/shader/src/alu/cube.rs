// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cube maps: faces and coordinates on them.
//!
//! `CUBEFACE1` and `CUBEFACE2` share a tuple. Faces are +x, -x, +y, -y, +z, -z.

/// `CUBEFACE1`: largest magnitude.
#[inline(always)]
pub fn largest(x: u32, y: u32, z: u32) -> u32 {
    let a = |v: u32| v & 0x7fff_ffff;
    a(x).max(a(y)).max(a(z))
}

/// `CUBEFACE2`: face, in bits 31:29.
#[inline(always)]
pub fn face(x: u32, y: u32, z: u32) -> u32 {
    let a = |v: u32| v & 0x7fff_ffff;
    let (axis, value) = if a(z) >= a(x) && a(z) >= a(y) {
        (4, z)
    } else if a(y) >= a(x) {
        (2, y)
    } else {
        (0, x)
    };
    (axis | value >> 31) << 29
}

/// `CUBE_SSEL`: horizontal coordinate.
#[inline(always)]
pub fn select_s(z: u32, x: u32, face: u32) -> u32 {
    match face >> 29 {
        0 => z ^ 0x8000_0000,
        1 => z,
        5 => x ^ 0x8000_0000,
        _ => x,
    }
}

/// `CUBE_TSEL`: vertical coordinate.
#[inline(always)]
pub fn select_t(y: u32, z: u32, face: u32) -> u32 {
    match face >> 29 {
        2 => z,
        3 => z ^ 0x8000_0000,
        _ => y ^ 0x8000_0000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_and_their_axes() {
        let f = |x: f32, y: f32, z: f32| {
            let (x, y, z) = (x.to_bits(), y.to_bits(), z.to_bits());
            let face = face(x, y, z);
            let v = f32::from_bits;
            (
                face >> 29,
                v(largest(x, y, z)),
                v(select_s(z, x, face)),
                v(select_t(y, z, face)),
            )
        };
        assert_eq!(f(4.0, 1.0, 2.0), (0, 4.0, -2.0, -1.0));
        assert_eq!(f(-4.0, 1.0, 2.0), (1, 4.0, 2.0, -1.0));
        assert_eq!(f(1.0, 4.0, 2.0), (2, 4.0, 1.0, 2.0));
        assert_eq!(f(1.0, -4.0, 2.0), (3, 4.0, 1.0, -2.0));
        assert_eq!(f(1.0, 2.0, 4.0), (4, 4.0, 1.0, -2.0));
        assert_eq!(f(1.0, 2.0, -4.0), (5, 4.0, -1.0, -2.0));
    }
}
