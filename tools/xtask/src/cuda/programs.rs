// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs to record: ours and HeCBench's.

use std::{path::Path, process::Command};

use super::{AT_A_TIME, Bench, crew::some_at_a_time};
use gpureplay_task::{Result, output};

/// Name, command line, words of `record`. `@`: the sources' directory.
pub(super) const OURS: &[(&str, &[&str], &str)] = &[
    ("nvcc, static cudart", &["./suite"], "--pick all"),
    ("nvcc, shared cudart", &["./suite_shared"], "--pick all"),
    (
        "nvcc, per-thread streams",
        &["./suite_per_thread"],
        "--pick all",
    ),
    ("nvcc, four racing threads", &["./threads"], "--pick all"),
    (
        "nvcc, static cudart, in the arena",
        &["./suite"],
        "--pick all --alloc arena",
    ),
    (
        "nvcc, graphs built by hand, limits",
        &["./graphs"],
        "--pick all",
    ),
    (
        "driver API, PTX, the driver's linker",
        &["./driver"],
        "--pick all",
    ),
    ("PyTorch", &["python3", "@/torch_ops.py"], "--pick first"),
    (
        "PyTorch, in the arena",
        &["python3", "@/torch_ops.py"],
        "--pick first --alloc arena",
    ),
    (
        "PyTorch, a captured graph",
        &["python3", "@/torch_graph.py"],
        "--pick all --max-per-kernel 3",
    ),
    ("Triton", &["python3", "@/triton_ops.py"], "--pick first"),
    ("CuPy", &["python3", "@/cupy_ops.py"], "--pick first"),
    ("JAX", &["python3", "@/jax_ops.py"], "--pick first"),
];

/// None was known when this code was written. The newest come first: time may end.
pub(super) const HECBENCH: &[(&str, &str)] = &[
    ("bezier-surface", "-n 1024"),
    ("bilateral", "512 256 0.5 0.5 2"),
    ("burger", "512 512 4"),
    ("collision", "2"),
    ("complex", "100000 2"),
    ("cooling", "100000 2"),
    ("crossEntropy", "2"),
    ("damage", "1000000 2"),
    ("doh", "240 320 2"),
    ("floydwarshall", "256 2 16"),
    ("gabor", "512 512 2"),
    ("gamma-correction", "640 480 256 2"),
    ("haccmk", "2"),
    ("heat2d", "512 512 4"),
    ("hellinger", "2"),
    ("hypterm", "2"),
    ("keogh", "256 200000 2"),
    ("lombscargle", "2"),
    ("mandelbrot", "2"),
    ("mask", "64 64 64 2"),
    ("matrix-rotate", "500 2"),
    ("merge", "10000 2"),
    ("ne", "512 512 2"),
    ("nqueen", "10 4 2"),
    ("ntt", "2"),
    ("overlay", "640 480"),
    ("pnpoly", "2"),
    ("popcount", "1000000 2"),
    ("reverse", "2"),
    ("rodrigues", "100000 2"),
    ("rtm8", "2"),
    ("stddev", "1024 512 2"),
    ("vanGenuchten", "64 64 64 2"),
    ("adam", "10000 20 5"),
    ("binomial", ""),
    ("bspline-vgh", ""),
    ("car", "2"),
    ("chi2", "400 40000 200 200 256 2"),
    ("clenergy", ""),
    ("convolution1D", "1048576 2"),
    ("convolutionSeparable", "1024 1024 2"),
    ("crc64", "2 5 335544"),
    ("dct8x8", "1024 1024 2"),
    ("entropy", "1024 1024 2"),
    ("expdist", "2048 2"),
    ("fft", "1 2"),
    ("filter", "1000000 256 2"),
    ("gaussian", "-q -t -s 256"),
    ("hwt1d", "8388608 2"),
    ("interleave", "2"),
    ("iso2dfd", "512 512 4"),
    ("jenkins-hash", "256 1677721 2"),
    ("layout", "2"),
    ("lif", "1000 32 100"),
    ("logprob", "64 8 5025 2"),
    ("maxpool3d", "256 256 16 2"),
    ("md", "1 2"),
    ("michalewicz", "100000 2"),
    ("murmurhash3", "100000 2"),
    ("pathfinder", "10000 100 5"),
    ("projectile", "2"),
    ("rsbench", "-s small -m event"),
    ("scan", "1048576 2"),
    ("stencil3d", "64 4"),
    ("thomas", "64 1024 64 2"),
    ("threadfence", "2 100000"),
    ("winograd", ""),
    ("wyllie", "80000 1 2"),
    ("xsbench", "-s small -m event -r 2"),
    ("aop", "-runs 1"),
    ("asta", ""),
];

/// Code for Hopper, and PTX for tuning.
const NVCC: &[&str] = &[
    "-O3",
    "-std=c++17",
    "-gencode",
    "arch=compute_90,code=[sm_90,compute_90]",
];

pub(super) fn nvcc(bench: &Bench, source: &str, out: &str, more: &[&str]) -> Result<String> {
    let mut command = Command::new("nvcc");
    command
        .current_dir(bench.work.path())
        .args(NVCC)
        .args(more)
        .arg("-o")
        .arg(out);
    output(command.arg(bench.programs.join(source)))
}

pub(super) fn build_one_of_ours(bench: &Bench, source: &str, out: &str) -> Result<()> {
    if !bench.work.path().join(out).exists() {
        nvcc(bench, source, out, &[])?;
    }
    Ok(())
}

pub(super) fn build_suite(bench: &Bench) -> Result<()> {
    build_one_of_ours(bench, "suite.cu", "suite")
}

pub(super) fn build(bench: &Bench) -> Result<()> {
    let programs: [(&str, &str, &[&str]); 7] = [
        ("suite.cu", "suite", &[]),
        ("suite.cu", "suite_shared", &["-cudart", "shared"]),
        (
            "suite.cu",
            "suite_per_thread",
            &["--default-stream", "per-thread"],
        ),
        ("threads.cu", "threads", &[]),
        ("launches.cu", "launches", &[]),
        ("graphs.cu", "graphs", &[]),
        ("driver.c", "driver", &["-lcuda"]),
    ];
    std::thread::scope(|scope| {
        let threads: Vec<_> = programs
            .iter()
            .map(|(source, out, more)| scope.spawn(|| nvcc(bench, source, out, more)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                .map(|_| ())
        })
    })
}

pub(super) fn openmp(bench: &Bench) -> Vec<(String, String)> {
    if !bench.openmp.is_empty() {
        let paths = bench.openmp.iter();
        return paths
            .map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                (name.into_owned(), path.display().to_string())
            })
            .collect();
    }
    let tries: [(&str, &[&str]); 2] = [
        ("gcc", &["-O2", "-fopenmp", "-foffload=nvptx-none"]),
        ("clang", &["-O2", "-fopenmp", "--offload-arch=native"]),
    ];
    let built = tries.iter().filter(|(compiler, flags)| {
        let mut command = Command::new(compiler);
        command
            .current_dir(bench.work.path())
            .args(*flags)
            .arg("-o")
            .arg(format!("openmp-{compiler}"))
            .arg(bench.programs.join("openmp.c"));
        output(&mut command).is_ok()
    });
    built
        .map(|(compiler, _)| (format!("openmp-{compiler}"), format!("./openmp-{compiler}")))
        .collect()
}

pub(super) fn build_foreign(folder: &Path) -> Vec<&'static str> {
    let built = some_at_a_time(AT_A_TIME, HECBENCH, |(name, _)| {
        build_one(&folder.join(format!("{name}-cuda")))
    });
    let failed = HECBENCH.iter().zip(built).filter(|(_, built)| !built);
    failed.map(|((name, _), _)| *name).collect()
}

pub(super) fn build_one(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return false;
    };
    let sources = entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.extension()
            .is_some_and(|extension| extension == "cu" || extension == "cpp")
    });
    let mut command = Command::new("nvcc");
    command
        .current_dir(folder)
        .args(["-O3", "-std=c++17", "-arch=sm_90", "-o", "main"]);
    output(command.args(sources)).is_ok()
}
