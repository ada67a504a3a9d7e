// SPDX-License-Identifier: MIT OR Apache-2.0
//! Triangles of a draw.

use gpureplay_memory::Bus;
use mali_shader::{GUARD_BAND, Triangle};

use super::Job;
use super::framebuffer::Rectangle;
use crate::environment::JobFault;

const TRIANGLES: u32 = 8;
const TRIANGLE_STRIP: u32 = 10;
const TRIANGLE_FAN: u32 = 12;

pub(crate) fn is_known(mode: u32) -> bool {
    matches!(mode, TRIANGLES | TRIANGLE_STRIP | TRIANGLE_FAN)
}

pub(crate) fn count(mode: u32, vertices: u32) -> u32 {
    match mode {
        TRIANGLES => vertices / 3,
        _ => vertices.saturating_sub(2),
    }
}

pub(crate) fn vertices(mode: u32, number: u32, first_provokes: bool) -> ([u32; 3], u32) {
    let [a, b, c] = match mode {
        TRIANGLES => [3 * number, 3 * number + 1, 3 * number + 2],
        TRIANGLE_FAN => [0, number + 1, number + 2],
        _ => [number, number + 1, number + 2],
    };
    let provoking = match (first_provokes, mode) {
        (false, _) => c,
        (true, TRIANGLE_FAN) => b,
        (true, _) => a,
    };
    ([a, b, c], provoking)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) triangle: Triangle,
    /// 1/w of corners.
    pub(crate) reciprocals: [f32; 3],
    pub(crate) depth: [f32; 2],
    pub(crate) bounds: Rectangle,
}

/// `None`: no area.
pub(crate) fn place<B: Bus>(
    job: &Job<'_, B>,
    positions: u64,
    vertices: [u32; 3],
) -> Result<Option<Placed>, JobFault> {
    let mut corners = [[0; 2]; 3];
    let mut reciprocals = [0.0; 3];
    let mut depth = [f32::INFINITY, f32::NEG_INFINITY];
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for (number, vertex) in vertices.into_iter().enumerate() {
        let at = positions.wrapping_add(u64::from(vertex) * 16);
        let bytes: [u8; 16] = job.memory.bytes(at)?;
        let mut position = [0.0; 4];
        for (value, bytes) in position.iter_mut().zip(bytes.as_chunks().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        let [x, y, z, reciprocal] = position;
        let near = |v: f32| v.abs() < GUARD_BAND as f32;
        if !(near(x) && near(y) && z.is_finite() && reciprocal > 0.0 && reciprocal.is_finite()) {
            return Err(job.unmodelled(format!(
                "clipping, which the vertex at {x}, {y}, {z} with 1/w = {reciprocal} needs"
            )));
        }
        corners[number] = [x, y].map(|v| (f64::from(v) * 256.0).round_ties_even() as i64);
        reciprocals[number] = reciprocal;
        depth = [depth[0].min(z), depth[1].max(z)];
        low = [low[0].min(x), low[1].min(y)];
        high = [high[0].max(x), high[1].max(y)];
    }
    let start = |v: f32| v.floor().max(0.0) as u32;
    let end = |v: f32| v.ceil().max(0.0) as u32;
    Ok(Triangle::new(corners).map(|triangle| Placed {
        triangle,
        reciprocals,
        depth,
        bounds: Rectangle {
            start: low.map(start),
            end: high.map(end),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vertices_of_triangles() {
        for (mode, n, last, first) in [
            (
                TRIANGLES,
                7,
                vec![([0, 1, 2], 2), ([3, 4, 5], 5)],
                vec![0, 3],
            ),
            (
                TRIANGLE_STRIP,
                4,
                vec![([0, 1, 2], 2), ([1, 2, 3], 3)],
                vec![0, 1],
            ),
            (
                TRIANGLE_FAN,
                4,
                vec![([0, 1, 2], 2), ([0, 2, 3], 3)],
                vec![1, 2],
            ),
            (TRIANGLE_FAN, 1, vec![], vec![]),
        ] {
            let all = |first| (0..count(mode, n)).map(move |i| vertices(mode, i, first));
            assert_eq!(all(false).collect::<Vec<_>>(), last);
            assert_eq!(all(true).map(|(_, v)| v).collect::<Vec<_>>(), first);
        }
    }
}
