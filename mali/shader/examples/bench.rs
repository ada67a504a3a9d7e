// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model's side of `cargo xtask bench model`: `bench/kernels.cl` as Mesa compiled it for Mali-G52.
//!
//!     cargo run --release -p mali-shader --example bench -- THREADS RUNS [KERNEL...]
//!
//! `add-cached`, run only if named, is `add` with each buffer mapped to the same 4 MiB, which stay in the host's
//! cache. What `add` loses beside it with more threads is due to the host's memory.
//!
//! Prints per kernel: name, shortest time and its processor time in seconds, largest relative error, lane
//! operations. Data, sizes and checks are those of `bench/opencl.c`.

use std::ops::Range;
use std::time::Instant;

use gpureplay_memory::{Bus, Page, Ram};
use gpureplay_shader::{Access, AddressSpace, Control, Grid, MmuFault, Threads, WorkgroupStorage};
use mali_facts::Architecture;
use mali_shader::Dispatch;
use nix::time::{ClockId, clock_gettime};

struct Flat {
    ram: Ram,
    folded: Vec<Range<u64>>,
}

/// Three such buffers fit in the shared cache, not in a core's.
const FOLD: u64 = 4 << 20;

impl AddressSpace for Flat {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        let folded = self.folded.iter().find(|buffer| buffer.contains(&va));
        let at = folded.map_or(va, |buffer| buffer.start + (va - buffer.start) % FOLD);
        self.ram.page(at).ok_or(MmuFault {
            va,
            access,
            code: 0xc3,
        })
    }
}

fn value(i: usize) -> f32 {
    ((i as u32).wrapping_mul(2_654_435_761) >> 16) as f32 / 65536.0 - 0.5
}

struct Kernel {
    name: &'static str,
    code: &'static [u8],
    inputs: &'static [usize],
    output: usize,
    /// As Mesa places the arguments: around the buffers' addresses. Mesa's own follow: offsets and zero.
    before: &'static [u32],
    after: &'static [u32],
    workgroup_size: [u32; 3],
    workgroup_count: [u32; 3],
    /// Bytes; a power of two.
    local: u32,
    folds: bool,
    error: fn(&[f32]) -> f64,
}

const SIZE: usize = 512;
const CHANNELS: usize = 64;
const WIDTH: usize = 56;
const ROWS: usize = 4096;
const COLUMNS: usize = 1024;
const COUNT: usize = 16 << 20;

const ADD: Kernel = Kernel {
    name: "add",
    code: include_bytes!("../bench/add.bin"),
    inputs: &[COUNT; 2],
    output: COUNT,
    before: &[],
    after: &[],
    workgroup_size: [64, 1, 1],
    workgroup_count: [COUNT as u32 / 64, 1, 1],
    local: 0,
    folds: false,
    error: check_add,
};

const KERNELS: [Kernel; 5] = [
    Kernel {
        name: "gemm",
        code: include_bytes!("../bench/gemm.bin"),
        inputs: &[SIZE * SIZE; 2],
        output: SIZE * SIZE,
        before: &[],
        after: &[SIZE as u32],
        workgroup_size: [8, 8, 1],
        workgroup_count: [SIZE as u32 / 32, SIZE as u32 / 32, 1],
        local: 4096,
        folds: false,
        error: check_gemm,
    },
    Kernel {
        name: "convolution",
        code: include_bytes!("../bench/convolution.bin"),
        inputs: &[
            CHANNELS * (WIDTH + 2) * (WIDTH + 4),
            CHANNELS * CHANNELS * 9,
        ],
        output: CHANNELS * WIDTH * WIDTH,
        before: &[WIDTH as u32; 2],
        after: &[CHANNELS as u32; 2],
        workgroup_size: [2, 8, 4],
        workgroup_count: [WIDTH as u32 / 8, WIDTH as u32 / 8, CHANNELS as u32 / 16],
        local: 0,
        folds: false,
        error: check_convolution,
    },
    Kernel {
        name: "softmax",
        code: include_bytes!("../bench/softmax.bin"),
        inputs: &[ROWS * COLUMNS],
        output: ROWS * COLUMNS,
        before: &[],
        after: &[COLUMNS as u32],
        workgroup_size: [64, 1, 1],
        workgroup_count: [ROWS as u32, 1, 1],
        local: 256,
        folds: false,
        error: check_softmax,
    },
    ADD,
    Kernel {
        name: "add-cached",
        folds: true,
        error: check_add_cached,
        ..ADD
    },
];

fn main() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what: &str| -> Result<usize, String> {
        let text = arguments.next().unwrap_or_default();
        text.parse()
            .map_err(|_| format!("usage: bench THREADS RUNS [KERNEL...]: {what} is not a number"))
    };
    let (threads, runs) = (number("THREADS")?, number("RUNS")?);
    let only: Vec<String> = arguments.collect();
    for kernel in &KERNELS {
        let named = only.iter().any(|name| name == kernel.name);
        if named || only.is_empty() && !kernel.folds {
            measure(kernel, threads, runs)?;
        }
    }
    Ok(())
}

fn measure(kernel: &Kernel, threads: usize, runs: usize) -> Result<(), String> {
    let elements = kernel.inputs.iter().sum::<usize>() + kernel.output;
    let ram = Ram::new(elements / 1024 + 1024).map_err(|error| error.to_string())?;
    let allocate = |bytes: usize| -> Result<u64, String> {
        ram.allocate_contiguous(bytes.div_ceil(4096))
            .ok_or_else(|| "the memory is full".into())
    };
    let put = |bytes: &[u8]| -> Result<u64, String> {
        let address = allocate(bytes.len() + 256)?;
        let written = ram.write(address, bytes);
        written.map(|()| address).map_err(|error| error.to_string())
    };
    let shader = put(kernel.code)?;
    let words = |words: &[u32]| {
        words
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let mut uniforms = words(kernel.before);
    let mut buffers = Vec::new();
    for &count in kernel.inputs {
        let bytes: Vec<u8> = (0..count).flat_map(|i| value(i).to_le_bytes()).collect();
        let buffer = put(&bytes)?;
        buffers.push(buffer..buffer + bytes.len() as u64);
        uniforms.extend(buffer.to_le_bytes());
    }
    let output = allocate(kernel.output * 4)?;
    buffers.push(output..output + kernel.output as u64 * 4);
    uniforms.extend(output.to_le_bytes());
    uniforms.extend(words(kernel.after));
    uniforms.resize(uniforms.len().next_multiple_of(8) + 32, 0);
    let instances = threads as u32;
    let dispatch = Dispatch {
        grid: Grid {
            shader,
            workgroup_size: kernel.workgroup_size,
            workgroup_count: kernel.workgroup_count,
            push_uniforms: put(&uniforms)?,
            push_uniform_count: (uniforms.len() / 8) as u32,
            workgroup_storage: WorkgroupStorage {
                base: match kernel.local {
                    0 => 0,
                    bytes => allocate((bytes * instances) as usize)?,
                },
                bytes: kernel.local,
                instances,
            },
            ..Grid::default()
        },
        architecture: Architecture::V7,
        ..Dispatch::default()
    };
    let space = Flat {
        ram,
        folded: if kernel.folds { buffers } else { Vec::new() },
    };
    let (pool, control) = (Threads::new(threads), Control::default());
    let (mut best, mut busy, mut operations) = (f64::INFINITY, 0.0, 0);
    for _ in 0..runs.max(1) {
        let (start, work) = (Instant::now(), processor_seconds()?);
        let statistics = mali_shader::run(&dispatch, &space, &pool, &control)
            .map_err(|fault| format!("{}: {fault}", kernel.name))?;
        let (seconds, work) = (start.elapsed().as_secs_f64(), processor_seconds()? - work);
        if seconds < best {
            (best, busy, operations) = (seconds, work, statistics.lane_operations());
        }
    }
    let mut bytes = vec![0; kernel.output * 4];
    space
        .ram
        .read(output, &mut bytes)
        .map_err(|error| error.to_string())?;
    let out: Vec<f32> = bytes
        .as_chunks()
        .0
        .iter()
        .map(|&word| f32::from_le_bytes(word))
        .collect();
    println!(
        "{} {best:.9} {busy:.9} {:.3e} {operations}",
        kernel.name,
        (kernel.error)(&out)
    );
    Ok(())
}

fn worst(worst: f64, have: f32, want: f64) -> f64 {
    let error = (f64::from(have) - want).abs() / want.abs().max(1.0);
    if error <= worst { worst } else { error }
}

fn check_gemm(out: &[f32]) -> f64 {
    let mut error = 0.0;
    for (y, out) in out.chunks_exact(SIZE).enumerate() {
        let mut line = vec![0.0; SIZE];
        for k in 0..SIZE {
            let factor = f64::from(value(y * SIZE + k));
            for (x, sum) in line.iter_mut().enumerate() {
                *sum += factor * f64::from(value(k * SIZE + x));
            }
        }
        for (&have, want) in out.iter().zip(line) {
            error = worst(error, have, want);
        }
    }
    error
}

fn check_convolution(out: &[f32]) -> f64 {
    let mut error = 0.0;
    for o in (0..CHANNELS).step_by(7) {
        for (y, x) in (0..WIDTH).flat_map(|y| (0..WIDTH).map(move |x| (y, x))) {
            let mut want = 0.0;
            for (c, tap) in (0..CHANNELS).flat_map(|c| (0..9).map(move |tap| (c, tap))) {
                let line = c * (WIDTH + 2) + y + tap / 3;
                let pixel = value(line * (WIDTH + 4) + x + tap % 3);
                want += f64::from(pixel) * f64::from(value((c * 9 + tap) * CHANNELS + o));
            }
            error = worst(error, out[(o * WIDTH + y) * WIDTH + x], want);
        }
    }
    error
}

fn check_softmax(out: &[f32]) -> f64 {
    let mut error = 0.0;
    for (row, out) in out.chunks_exact(COLUMNS).enumerate() {
        let exponential = |i: usize| f64::from(value(row * COLUMNS + i)).exp();
        let sum: f64 = (0..COLUMNS).map(exponential).sum();
        for (i, &have) in out.iter().enumerate() {
            let scale = COLUMNS as f64;
            error = worst(error, have * scale as f32, exponential(i) / sum * scale);
        }
    }
    error
}

fn check_add(out: &[f32]) -> f64 {
    out.iter().enumerate().fold(0.0, |error, (i, &have)| {
        worst(error, have, 2.0 * f64::from(value(i)))
    })
}

fn check_add_cached(out: &[f32]) -> f64 {
    check_add(&out[..FOLD as usize / 4])
}

fn processor_seconds() -> Result<f64, String> {
    let time =
        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_err(|error| error.to_string())?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}
