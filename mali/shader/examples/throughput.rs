// SPDX-License-Identifier: MIT OR Apache-2.0
//! Speed of the shader cores, with compiled sample kernels.
//!
//!     cargo run --release -p mali-shader --example throughput -- shader-samples/7212 [KERNEL...]
//!
//! Prints per kernel: work of all lanes, time, operations per second of processor time, on one and two host
//! threads.

use std::path::PathBuf;
use std::time::Instant;

use gpureplay_memory::{Bus, Page, Ram};
use gpureplay_shader::{Access, AddressSpace, Control, Grid, MmuFault, Statistics, Threads};
use mali_facts::Architecture;
use mali_shader::Dispatch;
use nix::time::{ClockId, clock_gettime};

struct Flat(Ram);

impl AddressSpace for Flat {
    fn translate(&self, va: u64, access: Access) -> Result<Page<'_>, MmuFault> {
        self.0.page(va).ok_or(MmuFault {
            va,
            access,
            code: 0xc3,
        })
    }
}

impl Flat {
    fn allocate(&self, bytes: usize) -> Result<u64, String> {
        self.0
            .allocate_contiguous(bytes.div_ceil(4096))
            .ok_or_else(|| "the memory is full".into())
    }

    fn put(&self, bytes: &[u8]) -> Result<u64, String> {
        let address = self.allocate(bytes.len() + 256)?;
        self.0
            .write(address, bytes)
            .map_err(|error| error.to_string())?;
        Ok(address)
    }
}

/// Name, uniforms after the buffers, bytes of each buffer, grid, work group.
type Kernel = (
    &'static str,
    &'static [u32],
    &'static [usize],
    [u32; 3],
    [u32; 3],
);

const MIB: usize = 1 << 20;

const KERNELS: [Kernel; 5] = [
    (
        "gemm4",
        &[512, 2048],
        &[MIB, 4 * MIB, MIB],
        [512, 16, 1],
        [8, 8, 1],
    ),
    (
        "conv3x3",
        &[56, 56, 64, 0],
        &[MIB, 4 * MIB, MIB],
        [56, 56, 8],
        [8, 8, 1],
    ),
    (
        "softmax",
        &[256, 0],
        &[4 * MIB, 4 * MIB],
        [4096, 1, 1],
        [64, 1, 1],
    ),
    ("act", &[], &[4 * MIB, 4 * MIB], [1 << 18, 1, 1], [64, 1, 1]),
    (
        "vecadd",
        &[],
        &[16 * MIB, 16 * MIB, 16 * MIB],
        [1 << 22, 1, 1],
        [64, 1, 1],
    ),
];

fn main() -> Result<(), String> {
    let folder = std::env::args().nth(1).map(PathBuf::from);
    let folder =
        folder.ok_or("give the folder with compiled samples, for example shader-samples/7212")?;
    let only: Vec<String> = std::env::args().skip(2).collect();
    println!(
        "{:10} {:>7} {:>14} {:>9} {:>9} {:>9} {:>18}",
        "kernel", "threads", "lane ops", "ms", "G ops/s", "GB/s", "G ops/processor s"
    );
    for kernel in KERNELS
        .into_iter()
        .filter(|kernel| only.is_empty() || only.iter().any(|name| name == kernel.0))
    {
        for threads in [1, 2] {
            let (statistics, seconds, busy) = measure(&folder, kernel, threads)?;
            let operations = statistics.lane_operations();
            let bytes = statistics.bytes_read + statistics.bytes_written;
            println!(
                "{:10} {threads:7} {operations:14} {:9.2} {:9.2} {:9.2} {:18.2}",
                kernel.0,
                seconds * 1e3,
                operations as f64 / seconds / 1e9,
                bytes as f64 / seconds / 1e9,
                operations as f64 / busy / 1e9,
            );
        }
    }
    Ok(())
}

fn measure(
    folder: &std::path::Path,
    kernel: Kernel,
    threads: usize,
) -> Result<(Statistics, f64, f64), String> {
    let (name, numbers, buffers, grid, group) = kernel;
    let space = Flat(Ram::new(1 << 16).map_err(|error| error.to_string())?);
    let path = folder.join(format!("{name}.0.bin"));
    let code = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let shader = space.put(&code)?;
    let mut uniforms = Vec::new();
    for bytes in buffers {
        let values: Vec<u8> = (0..*bytes as u32 / 4)
            .flat_map(|i| (0.5 + (i % 97) as f32 / 97.0).to_le_bytes())
            .collect();
        uniforms.extend(space.put(&values)?.to_le_bytes());
    }
    uniforms.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    let dispatch = Dispatch {
        grid: Grid {
            shader,
            workgroup_size: group,
            workgroup_count: [0, 1, 2].map(|axis| grid[axis] / group[axis]),
            push_uniforms: space.put(&uniforms)?,
            push_uniform_count: (uniforms.len() / 8) as u32,
            ..Grid::default()
        },
        architecture: Architecture::V7,
        ..Dispatch::default()
    };
    let (pool, control) = (Threads::new(threads), Control::default());
    let mut best: Option<(Statistics, f64, f64)> = None;
    for _ in 0..3 {
        let (start, busy) = (Instant::now(), processor_seconds()?);
        let statistics = mali_shader::run(&dispatch, &space, &pool, &control)
            .map_err(|fault| fault.to_string())?;
        let (seconds, busy) = (start.elapsed().as_secs_f64(), processor_seconds()? - busy);
        if best.is_none_or(|(_, _, known)| busy < known) {
            best = Some((statistics, seconds, busy));
        }
    }
    best.ok_or_else(|| "nothing ran".into())
}

fn processor_seconds() -> Result<f64, String> {
    let time =
        clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).map_err(|error| error.to_string())?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}
