// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fragment jobs, tile by tile.

use std::sync::Arc;

use gpureplay_memory::Bus;
use mali_facts::{FragmentPayload, job};
use mali_shader::Tile;
use mali_shader::image::Layout;

use super::Job;
use super::framebuffer::{FrameShader, Framebuffer, Rectangle};
use super::primitive::{self, Placed};
use super::shading::{Corners, Shading};
use super::tiler::{self, Record};
use super::valhall;
use crate::environment::JobFault;

/// In pixels. Hardware's are smaller, which is not visible.
const TILE: u32 = 64;

// Costs of host time, in clauses that take at least as long.
/// Per draw.
const DRAW_COST: u64 = 64;
/// Per triangle and tile, with vertices from memory.
const TRIANGLE_COST: u64 = 4;
/// Per triangle and tile.
const SHADING_COST: u64 = 64;
/// Cleared, or written in lines.
const PIXELS_OF_A_CLAUSE: u64 = 32;
const SINGLE_PIXELS_OF_A_CLAUSE: u64 = 4;

pub(crate) fn run<B: Bus>(job: &Job<'_, B>) -> Result<(), JobFault> {
    let at = job.address.wrapping_add(job::PAYLOAD);
    let payload = FragmentPayload::from_bytes(&job.memory.bytes(at)?);
    let framebuffer = Framebuffer::read(job, &payload)?;
    let Some(bounds) = framebuffer.bounds else {
        return Ok(());
    };
    let frame = match framebuffer.frame_shader {
        FrameShader::Never => None,
        FrameShader::Always | FrameShader::Intersect => Some(frame_shading(job, &framebuffer)?),
    };
    let mut draws = Vec::new();
    for record in tiler::records(job, framebuffer.tiler)? {
        job.spend(DRAW_COST)?;
        let shading = match job.has_packets() {
            true => valhall::shading(job, &record)?,
            false => Shading::read(job, record.draw)?,
        };
        draws.push((record, shading));
    }
    let pass = Pass {
        job,
        framebuffer: &framebuffer,
        frame,
        draws,
    };
    let tiles = |axis: usize| {
        let first = bounds.start[axis] / TILE * TILE;
        (first..bounds.end[axis]).step_by(TILE as usize)
    };
    for y in tiles(1) {
        for x in tiles(0) {
            let whole = Rectangle {
                start: [x, y],
                end: [x + TILE, y + TILE],
            };
            if let Some(part) = whole.intersection(&bounds) {
                pass.tile(&part)?;
            }
        }
    }
    Ok(())
}

fn frame_shading<B: Bus>(
    job: &Job<'_, B>,
    framebuffer: &Framebuffer,
) -> Result<(Shading, Placed), JobFault> {
    if job.has_packets() {
        return valhall::frame_shading(job, framebuffer);
    }
    let shading = Shading::read(job, framebuffer.frame_draw)?;
    let placed = primitive::place(job, shading.positions, FRAME_CORNERS.vertices)?;
    let placed = placed.ok_or_else(|| job.invalid("the frame shader's triangle has no area"))?;
    Ok((shading, placed))
}

const FRAME_CORNERS: Corners = Corners {
    vertices: [0, 1, 2],
    provoking: 2,
};

struct Pass<'a, B: Bus> {
    job: &'a Job<'a, B>,
    framebuffer: &'a Framebuffer,
    frame: Option<(Shading, Placed)>,
    draws: Vec<(Record, Shading)>,
}

impl<B: Bus> Pass<'_, B> {
    fn tile(&self, part: &Rectangle) -> Result<(), JobFault> {
        self.job.spend(1 + self.draws.len() as u64)?;
        let mut tile = None;
        for (record, shading) in &self.draws {
            let Some(visible) = shading.scissor.intersection(part) else {
                continue;
            };
            self.draw(record, shading, part, &visible, &mut tile)?;
        }
        let tile = match tile {
            Some(tile) => tile,
            None if self.framebuffer.frame_shader == FrameShader::Intersect => return Ok(()),
            None => self.begin(part)?,
        };
        self.write_back(part, &tile)
    }

    fn begin(&self, part: &Rectangle) -> Result<Arc<Tile>, JobFault> {
        let target = &self.framebuffer.target;
        let [columns, lines] = part.size().map(u64::from);
        self.job
            .spend((columns * lines).div_ceil(PIXELS_OF_A_CLAUSE))?;
        let tile = Tile::new(part.start, part.size(), target.bytes, target.clear);
        let tile = Arc::new(tile);
        if let Some((shading, placed)) = &self.frame {
            let geometry = (placed, FRAME_CORNERS);
            self.job.spend(SHADING_COST)?;
            shading.shade(self.job, part, geometry, true, &tile)?;
        }
        Ok(tile)
    }

    fn draw(
        &self,
        record: &Record,
        shading: &Shading,
        part: &Rectangle,
        visible: &Rectangle,
        tile: &mut Option<Arc<Tile>>,
    ) -> Result<(), JobFault> {
        for number in 0..primitive::count(record.mode, record.vertices) {
            self.job.spend(TRIANGLE_COST)?;
            let (vertices, provoking) =
                primitive::vertices(record.mode, number, record.first_provokes);
            let Some(placed) = primitive::place(self.job, shading.positions, vertices)? else {
                continue;
            };
            let Some(region) = placed.bounds.intersection(visible) else {
                continue;
            };
            if !shading.shows(&placed) {
                return Err(self.job.unmodelled("clipping by depth"));
            }
            let tile = match tile {
                Some(tile) => tile,
                None => tile.insert(self.begin(part)?),
            };
            let corners = Corners {
                vertices,
                provoking,
            };
            let geometry = (&placed, corners);
            self.job.spend(SHADING_COST)?;
            shading.shade(self.job, &region, geometry, false, tile)?;
        }
        Ok(())
    }

    fn write_back(&self, part: &Rectangle, tile: &Tile) -> Result<(), JobFault> {
        let target = &self.framebuffer.target;
        let Some(plane) = target.plane else {
            return Ok(());
        };
        let columns = part.size()[0];
        let pixels_of_a_clause = match plane.layout {
            Layout::Linear => PIXELS_OF_A_CLAUSE,
            Layout::Interleaved => SINGLE_PIXELS_OF_A_CLAUSE,
        };
        let line_cost = 1 + u64::from(columns) / pixels_of_a_clause;
        let pixels = tile.take_pixels();
        let mut line = Vec::with_capacity(columns as usize * 16);
        for (y, pixels) in (part.start[1]..).zip(pixels.chunks(columns as usize)) {
            self.job.spend(line_cost)?;
            line.clear();
            for (x, pixel) in (part.start[0]..).zip(pixels) {
                let (bytes, count) = target.stored(pixel);
                match plane.layout {
                    Layout::Linear => line.extend_from_slice(&bytes[..count]),
                    Layout::Interleaved => {
                        let at = plane.address(x, y, 0);
                        self.job.memory.write(at, &bytes[..count])?;
                    }
                }
            }
            self.job
                .memory
                .write(plane.address(part.start[0], y, 0), &line)?;
        }
        Ok(())
    }
}
