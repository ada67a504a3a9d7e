// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small seeds for fuzz targets.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use gpureplay_format::{Recording, RegionKind};
use gpureplay_sign::{SecretKey, pack, sign};
use gpureplay_trace::{Context, Driver, Line, PAGE_SIZE, Phase, RegionFlags, Writer};

use crate::{review, shipped};

const MAX_BYTES: usize = 64 << 10;

/// Into a directory per target.
///
/// # Errors
/// Reading or writing failed.
pub fn write(directory: &Path) -> io::Result<()> {
    let put = |target: &str, name: &str, bytes: &[u8]| {
        let directory = directory.join(target);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(name), &bytes[..bytes.len().min(MAX_BYTES)])
    };
    let key =
        SecretKey::from_seed([1; 32]).map_err(|error| io::Error::other(format!("{error:?}")))?;
    put("pack", "secret.pem", key.to_pem().as_bytes())?;
    put("pack", "public.pem", key.public().to_pem().as_bytes())?;
    for shipped in shipped::all()? {
        let (name, bytes) = (shipped.name.as_str(), &shipped.bytes);
        if bytes.len() <= MAX_BYTES {
            put("recording", name, bytes)?;
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../recordings")
            .join(name);
        let manifest = std::fs::read(root.join("manifest.toml"))?;
        put("manifest", name, &manifest)?;
        for entry in std::fs::read_dir(root.join("inputs"))? {
            let path = entry?.path();
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            put("npy", &format!("{name}-{file}"), &std::fs::read(&path)?)?;
        }
        let small = &bytes[..bytes.len().min(4096)];
        let files = BTreeMap::from([("manifest.toml".to_owned(), manifest)]);
        let failed = |error| io::Error::other(format!("{error:?}"));
        let signature = sign(&key, 1, small, &files).map_err(failed)?;
        put("pack", &format!("{name}.sig"), &signature)?;
        let mut files = files;
        files.insert("recording.gpr".into(), small.to_vec());
        files.insert("recording.sig".into(), signature);
        put(
            "pack",
            &format!("{name}.pack"),
            &pack(&files).map_err(failed)?,
        )?;
        for (index, code) in (0..).zip(uploaded_code(bytes)) {
            put("shader", &format!("{name}-{index}"), &code)?;
            let execute = [&[0], code.as_slice()].concat();
            put("execute", &format!("{name}-{index}"), &execute)?;
        }
    }
    let reviewed = review::all(10).into_iter();
    let small = reviewed.filter(|one| one.file.len() <= MAX_BYTES);
    for (index, reviewed) in (0..).zip(small) {
        put("recording", &format!("review-{index}"), &reviewed.file)?;
    }
    for command in 1..=13u16 {
        let mut message = vec![0; 16 + 32];
        message[2..4].copy_from_slice(&command.to_le_bytes());
        message[4] = 48;
        message[28] = 16;
        put("vfio_user", &format!("{command}"), &message)?;
    }
    for seed in 0..16u8 {
        put("replay", &format!("{seed}"), &[seed; 64])?;
    }
    for how in 0..12u8 {
        for target in ["execute", "job_chain", "page_table", "registers"] {
            put(target, &format!("{how}"), &[how, 0, 0, 0, 0, 0, 0])?;
        }
        // They draw; the page's last word is replaced.
        put(
            "job_chain",
            &format!("drawing-{how}"),
            &[0x81 | how << 1, 0xff, 3, 0, 0, 0, 0],
        )?;
    }
    let tensor = br#"{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    let length = (tensor.len() as u64).to_le_bytes();
    let safetensors = [&[0], &length[..], tensor, &[0; 8]].concat();
    put("values", "safetensors", &safetensors)?;
    put("values", "png", &[&[1], GREY_PNG].concat())?;
    put("values", "raw", &[&[3], &[0; 192][..]].concat())?;
    put("trace", "small", &raw_trace()?)?;
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cuda/launch/tests/image/golden");
    for entry in std::fs::read_dir(golden)? {
        let path = entry?.path();
        let kind = path.extension().unwrap_or_default().to_string_lossy();
        if matches!(&*kind, "cubin" | "fatbin" | "ptx") {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            put("cuda_image", &name, &std::fs::read(&path)?)?;
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mali/isa/tests/golden");
    for name in ["scale_add", "loop_with_exits"] {
        let code = std::fs::read(golden.join(name).with_extension("bin"))?;
        put("valhall", name, &code)?;
    }
    put(
        "streams",
        "dispatch",
        &std::fs::read(golden.join("dispatch.bin"))?,
    )?;
    put("valhall", "text", b"LOAD.i32.slot0.wait0 @r0, r2, offset:4")?;
    put("cuda_launch", "launch", CUDA_LAUNCH.as_bytes())?;
    put("cuda_run", "run", CUDA_RUN.as_bytes())?;
    // Original recordings start with three lengths.
    put("import", "empty", &[0; 64])
}

const CUDA_LAUNCH: &str = include_str!("../../../cuda/launch/tests/recording/golden/launch.toml");

const CUDA_RUN: &str = include_str!("../../../cuda/launch/tests/recording/golden/run.toml");

/// Two by two grey pixels.
const GREY_PNG: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0xd, 0xa, 0x1a, 0xa, 0x0, 0x0, 0x0, 0xd, 0x49, 0x48, 0x44, 0x52, 0x0,
    0x0, 0x0, 0x2, 0x0, 0x0, 0x0, 0x2, 0x8, 0x0, 0x0, 0x0, 0x0, 0x57, 0xdd, 0x52, 0xf8, 0x0, 0x0,
    0x0, 0xe, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0x10, 0x50, 0x60, 0x30, 0x70, 0x0, 0x0,
    0x1, 0x76, 0x0, 0xa1, 0xec, 0x30, 0x8a, 0xf4, 0x0, 0x0, 0x0, 0x0, 0x49, 0x45, 0x4e, 0x44, 0xae,
    0x42, 0x60, 0x82,
];

fn raw_trace() -> io::Result<Vec<u8>> {
    let mut trace = Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12")?;
    trace.reg_read(0, 0x7212_0000)?;
    trace.poll(0x20, 0x100, 0, 10_000, &[0, 0x100])?;
    trace.mapping(true, Some(0), 3, 0x10000, 0x2000)?;
    trace.region(0, RegionFlags::READ | RegionFlags::FIRST, 0x10000, 2)?;
    trace.page(0, Phase::Before, 0x10000, &[7; PAGE_SIZE])?;
    trace.submit(1, 0, 0x10040)?;
    trace.irq(Line::Job, Context::HardIrq, 1, |trace| {
        trace.reg_write(0x1004, 2)
    })?;
    trace.end()
}

fn uploaded_code(bytes: &[u8]) -> Vec<Vec<u8>> {
    use gpureplay_format::Action;
    use gpureplay_format::lz4::History;
    let Ok(recording) = Recording::parse(bytes) else {
        return Vec::new();
    };
    let mut code = Vec::new();
    let mut history = Box::new(History::new());
    for segment in recording.segments() {
        history.clear();
        for action in recording.segment_actions(segment).flatten() {
            let Action::Upload {
                va,
                length,
                payload,
            } = action
            else {
                continue;
            };
            let decoded = payload.bytes(&mut history, length as usize);
            let region = recording.region_of(va, 1);
            if region.is_some_and(|region| region.kind == RegionKind::Code.code()) {
                code.extend(decoded.map(<[u8]>::to_vec));
            }
        }
    }
    code.truncate(8);
    code
}
