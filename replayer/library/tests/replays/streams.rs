// SPDX-License-Identifier: MIT OR Apache-2.0
//! A Mali-G610's command stream: saxpy with a = 2.5, from Debian's Mesa 25.0.7, recorded at panthor's requests on the
//! model's render node.

use std::path::PathBuf;

use gpureplay_format::layout::{FAMILY_STREAMS, Platform};
use gpureplay_format::{Access, Builder, RegionKind, SegmentKind};
use gpureplay_library::{Device, ModelOptions, Options, Recording, Session, TensorKind};
use gpureplay_tensors::Tensor;

fn path() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/saxpy-g610.gpr"
    ))
}

fn values(seed: u32) -> Vec<f32> {
    let value = |at: u32| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8) as f32 / 4096.0;
    (0..1024).map(value).collect()
}

fn bind(session: &mut Session, name: &str, values: &[f32]) {
    session
        .bind(name, Tensor::from_f32(&[1024], values).unwrap())
        .unwrap();
}

#[test]
fn a_stream_replays_with_inputs_that_were_not_recorded() {
    let recording = Recording::open(path()).unwrap();
    let layer = &recording.layers()[0];
    assert_eq!((layer.chains, layer.jobs), (1, 1));
    let report = recording.verified().deep().unwrap();
    let jobs: Vec<_> = report.jobs().collect();
    assert_eq!(jobs.len(), 1);
    let shaders = jobs[0].uses.iter();
    let shaders = shaders.filter(|it| it.purpose.name() == "shader");
    assert_eq!(shaders.count(), 1, "{:#x?}", jobs[0].uses);
    let mut session = recording.session(Options::default()).unwrap();
    for seed in [1, 77] {
        let (x, y) = (values(seed), values(seed + 5));
        bind(&mut session, "saxpy.x", &x);
        bind(&mut session, "saxpy.y", &y);
        session.run().unwrap();
        let out = session.read("saxpy.y-2").unwrap();
        let found: Vec<f32> = out.values().map(|value| value as f32).collect();
        let expected = x.iter().zip(&y).map(|(x, y)| 2.5f32.mul_add(*x, *y));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }
    // It is its own form with each job alone.
    assert!(recording.verified().chains().is_err());
    assert_eq!(recording.apart().unwrap().layers(), recording.layers());
}

#[test]
fn neither_family_replays_on_a_device_of_the_other() {
    let on = |recording: &Recording, gpu: &str| {
        let choice = format!("model:{gpu}").parse().unwrap();
        let id = recording.verified().recording().gpu_id();
        let device = Device::open(&choice, id, ModelOptions::default()).unwrap();
        let mut session = Session::on(recording.clone(), device);
        let tensors = recording.tensors().iter();
        for input in tensors.filter(|it| it.kind == TensorKind::Input) {
            let zeros = Tensor::zeros(input.dtype, &input.shape).unwrap();
            session.bind(&input.name, zeros).unwrap();
        }
        let refused = session.run().unwrap_err().to_string();
        session.ignore_identity(true);
        (refused, session.run().unwrap_err().to_string())
    };
    let stream = Recording::open(path()).unwrap();
    let chain = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/saxpy-g52");
    let chain = Recording::open(chain).unwrap();
    for (recording, gpu) in [(&stream, "g52"), (&chain, "g610")] {
        let (refused, forced) = on(recording, gpu);
        assert!(refused.contains("GPU_ID"), "{refused}");
        assert!(!forced.contains("please report"), "{forced}");
    }
}

#[test]
fn a_hostile_launch_is_refused_by_name() {
    const GPU: u32 = 0xa867_0005;
    let mut builder = Builder::new(GPU);
    builder.platform(Platform {
        family: FAMILY_STREAMS,
        ..Platform::of(GPU)
    });
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(0x1000, 1, Access::READ_WRITE, RegionKind::Data);
    builder.segment("run", SegmentKind::Run);
    builder.launch(0, &[0, 0x15 << 24], 1000);
    let error = Recording::from_bytes(builder.finish().unwrap()).unwrap_err();
    let error = error.to_string();
    let named = "rule job-configuration broken by the launch of action 0: instruction 0, STORE_MULTIPLE, is not allowed";
    assert!(error.contains(named), "{error}");
}
