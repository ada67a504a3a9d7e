// SPDX-License-Identifier: MIT OR Apache-2.0
//! A real kernel's dump (c[i] = a[i] + b[i], Mesa, G52), with new inputs.

use std::collections::BTreeMap;
use std::process::Command;

use gpureplay_core::Workspace;
use gpureplay_format::{Access, Builder, ElementType, RegionKind, SegmentKind, Tensor, TensorKind};
use gpureplay_kit::{Values, floats, model, open, shared};

const JOB: u64 = 0xf7f6_f1c0;
const PUSH_UNIFORMS: u64 = 0xf7f6_f150;
const SHADER: u64 = 0xf7fe_f780;
const THREADS: usize = 64;

/// Lines: offset, sixteen bytes; a star repeats.
fn buffers(text: &str) -> BTreeMap<u64, Vec<u8>> {
    let mut buffers = BTreeMap::new();
    let mut current: Option<(u64, Vec<u8>)> = None;
    let mut repeat = false;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("Buffer: ") {
            buffers.extend(current.take());
            let va = rest.split_whitespace().last().unwrap();
            current = Some((u64::from_str_radix(va, 16).unwrap(), Vec::new()));
        } else if let Some((_, bytes)) = &mut current {
            let mut words = line.split_whitespace();
            let Some(first) = words.next() else { continue };
            if first == "*" {
                repeat = true;
                continue;
            }
            let Ok(offset) = usize::from_str_radix(first, 16) else {
                continue;
            };
            if repeat {
                let last = bytes[bytes.len() - 16..].to_vec();
                while bytes.len() < offset {
                    bytes.extend_from_slice(&last);
                }
                repeat = false;
            }
            assert_eq!(bytes.len(), offset, "{line}");
            bytes.extend(words.map(|word| u8::from_str_radix(word, 16).unwrap()));
        }
    }
    buffers.extend(current);
    buffers
}

fn recording(buffers: &BTreeMap<u64, Vec<u8>>) -> Vec<u8> {
    let holder = |va: u64| *buffers.range(..=va).next_back().unwrap().0;
    let (jobs, code, state) = (holder(JOB), holder(SHADER), &buffers[&holder(JOB)]);
    let offset = (PUSH_UNIFORMS - jobs) as usize;
    let pointer = |at: usize| {
        u64::from_le_bytes(
            state[offset + at * 8..offset + at * 8 + 8]
                .try_into()
                .unwrap(),
        )
    };
    let mut builder = Builder::new(0x7212_0000);
    builder.identity(0, 0xffff_0000, 0x7212_0000);
    for (&va, bytes) in buffers {
        let (access, kind) = match va {
            va if va == jobs => (Access::READ_WRITE, RegionKind::Descriptors),
            va if va == code => (Access::READ_EXECUTE, RegionKind::Code),
            _ => (Access::READ_WRITE, RegionKind::Data),
        };
        builder.region(va, bytes.len().div_ceil(4096) as u32, access, kind);
    }
    let mut tensor = |name, kind, at| {
        let shape = [THREADS as u32];
        builder.tensor(Tensor::dense(
            name,
            kind,
            ElementType::F32,
            &shape,
            pointer(at),
        ))
    };
    let a = tensor("a", TensorKind::Input, 0);
    let b = tensor("b", TensorKind::Input, 1);
    let c = tensor("c", TensorKind::Output, 2);
    builder.segment("setup", SegmentKind::Setup);
    for (&va, bytes) in buffers {
        builder.upload(va, bytes);
    }
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(a);
    builder.bind_input(b);
    builder.rearm(JOB);
    builder.submit(1, JOB, 1_000_000);
    builder.bind_output(c);
    builder.finish().unwrap()
}

#[test]
fn a_real_kernel_replays_with_other_inputs() {
    let Some(dump) = shared("reference/shader-samples/7212/vecadd.trace.txt.xz") else {
        return;
    };
    let Ok(unpacked) = Command::new("xz").arg("-dc").arg(dump).output() else {
        eprintln!("skipped: no xz to unpack the dump");
        return;
    };
    let buffers = buffers(&String::from_utf8(unpacked.stdout).unwrap());
    let file = recording(&buffers);
    let mut workspace = Workspace::new();
    let ramp: Vec<f32> = (0..THREADS).map(|i| i as f32 * 0.75 - 3.0).collect();
    let other: Vec<f32> = (0..THREADS).map(|i| 1000.0 / (i as f32 + 1.0)).collect();
    let mut values = Values::of(&file);
    values.set("a", floats(&ramp)).set("b", floats(&other));
    let view = gpureplay_kit::view(&file);
    let mut session = open(model("g52"), &view, &mut workspace, &mut values);
    for (a, b) in [(&ramp, &other), (&other, &other), (&other, &ramp)] {
        values.set("a", floats(a)).set("b", floats(b));
        session.run(&mut values).unwrap();
        let expected: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
        assert_eq!(values.floats("c"), expected);
    }
    session.finish().unwrap();
}
