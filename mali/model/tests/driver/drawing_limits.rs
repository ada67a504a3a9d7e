// SPDX-License-Identifier: MIT OR Apache-2.0
//! Costs of fragment jobs in clauses.

use mali_facts::registers::JobStatus;
use mali_model::{JOB_COST, Options};

use crate::machine::{CONFIG, Format, JOBS, Machine};
use crate::picture::{self, *};

const MARK: u32 = 0x5741_5244;
const MOST_DRAWS: u32 = 1024;
const TILE: u32 = 64;
const EVERYTHING: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Frame {
    columns: u32,
    lines: u32,
    draws: u32,
    vertices: u32,
    /// Last column and line drawn.
    scissor: u32,
    /// Word 1: where pixels go.
    target: u32,
    loads: bool,
}

impl Frame {
    fn new(columns: u32, lines: u32) -> Self {
        Self {
            columns,
            lines,
            draws: 0,
            vertices: 0,
            scissor: EVERYTHING,
            target: 7 << 3 | 2 << 8 | 0o3210 << 16,
            loads: true,
        }
    }

    fn with_draws(self) -> Self {
        let draws = MOST_DRAWS;
        Self { draws, ..self }
    }

    fn machine(&self, limit: u64) -> Machine {
        let options = Options {
            work_limit: Some(limit),
            ..Options::default()
        };
        let machine = Machine::with("g52", Format::Lpae, options);
        picture::write(&machine.memory, false);
        let memory = &machine.memory;
        for draw in 0..self.draws {
            let at = HEAP_MEMORY + u64::from(draw) * 32;
            let words = [MARK, (JOBS + 128) as u32, 0, 12, self.vertices];
            memory.write_words(at, &words);
        }
        let [left, top, right, bottom] = DRAWN;
        for (vertex, corner) in (0..).zip([[left, top], [right, top], [right, bottom], [left, top]])
        {
            let [x, y] = corner.map(|value| (value as f32).to_bits());
            let words = [x, y, 0, 1f32.to_bits()];
            memory.write_words(JOBS + POSITIONS + vertex * 16, &words);
        }
        memory.write64(JOBS + HEAP + 24, HEAP_MEMORY + u64::from(MOST_DRAWS) * 32);
        memory.write32(JOBS + TILER + 128, MARK);
        memory.write32(JOBS + TILER + 132, self.draws);
        memory.write32(JOBS + VIEWPORT + 28, self.scissor);
        let last = (self.columns - 1) | (self.lines - 1) << 16;
        memory.write32(JOBS + FRAMEBUFFER, if self.loads { 2 } else { 0 });
        memory.write32(JOBS + FRAMEBUFFER + 32, last);
        memory.write32(JOBS + FRAMEBUFFER + 40, last);
        memory.write32(JOBS + FRAGMENT_JOB + 36, 0xfff | 0xfff << 16);
        memory.write32(JOBS + TARGET + 4, self.target);
        memory.write32(JOBS + TARGET + 40, 0);
        machine
    }

    fn exceeds(&self, clauses: u64) -> bool {
        let limit = JOB_COST + clauses;
        let mut machine = self.machine(limit);
        machine.submit(0, JOBS + FRAGMENT_JOB, CONFIG);
        machine.gpu.run();
        let status = machine.status(0);
        let used_up = machine.gpu.used_up();
        match status {
            JobStatus::DONE => assert_eq!(used_up, None),
            JobStatus::TERMINATED => {
                let used_up = used_up.map(|used_up| (used_up.job, used_up.limit));
                assert_eq!(used_up, Some((JOBS + FRAGMENT_JOB, limit)));
            }
            other => panic!("{other}"),
        }
        status == JobStatus::TERMINATED
    }

    #[track_caller]
    fn counts(&self, least: u64, most: u64) {
        assert!(self.exceeds(least - 1), "less than {least} clauses");
        assert!(!self.exceeds(most), "more than {most} clauses");
    }
}

#[test]
fn each_draw_of_each_tile_counts() {
    let tiles = 6;
    let frame = Frame::new(3 * TILE, 2 * TILE).with_draws();
    let draws = u64::from(MOST_DRAWS);
    frame.counts(tiles * draws, (tiles + 65) * (draws + 1));
    let scissor = 0;
    let vertices = 2;
    let hidden = Frame {
        scissor,
        vertices,
        ..frame
    };
    hidden.counts(tiles * draws, (tiles + 65) * (draws + 1));
}

#[test]
fn each_draw_of_the_list_counts() {
    let tile = Frame::new(1, 1);
    tile.counts(1, 16);
    tile.with_draws()
        .counts(u64::from(MOST_DRAWS) * 32, u64::from(MOST_DRAWS) * 128);
}

#[test]
fn the_largest_frame_with_most_draws_ends_at_its_limit() {
    // Four clauses per tile are a two hundredth of its draws' need.
    let frame = Frame::new(1 << 16, 1 << 16).with_draws();
    let tiles = 1 << 20;
    assert!(frame.exceeds(4 * tiles));
}

#[test]
fn pixels_count_when_they_are_cleared_and_written() {
    let pixels = u64::from(TILE * TILE);
    let cleared = Frame {
        loads: false,
        ..Frame::new(TILE, TILE)
    };
    cleared.counts(pixels / 64, pixels / 16);
    let linear = Frame {
        target: cleared.target | 1,
        ..cleared
    };
    linear.counts(pixels / 32, pixels / 4);
    // Pixels are written singly, and all tiles lie in one place.
    let interleaved = Frame {
        target: 1 | 7 << 3 | 1 << 8 | 0o3210 << 16,
        ..cleared
    };
    interleaved.counts(pixels / 8, pixels);
    let more = Frame {
        columns: 4 * TILE,
        ..interleaved
    };
    more.counts(4 * pixels / 8, 4 * pixels);
}

#[test]
fn triangles_count_whether_or_not_they_show() {
    let (draws, vertices) = (MOST_DRAWS, 4);
    let fans = u64::from(draws) * 2;
    let nowhere = Frame {
        draws,
        vertices,
        scissor: 0,
        ..Frame::new(TILE, TILE)
    };
    let read = u64::from(MOST_DRAWS) * 64;
    nowhere.counts(read + 3 * fans, read + 16 * fans);
    // Starting a shader counts even for a few pixels.
    let shown = Frame {
        scissor: EVERYTHING,
        ..nowhere
    };
    shown.counts(read + 32 * fans / 2, read + 512 * fans);
}
