// SPDX-License-Identifier: MIT OR Apache-2.0
//! A damaged file is refused, its section named.

use gpureplay_format::layout::{Header, SECTIONS, SectionEntry};
use gpureplay_format::{
    Access, Action, Builder, ElementType, Fault, Opcode, Payload, Recording, RegionKind, Section,
    SegmentKind, Tensor, TensorKind,
};
use zerocopy::FromBytes;

fn recording() -> Vec<u8> {
    let mut builder = Builder::new(0x7212_0000);
    builder.identity(0, 0xffff_0000, 0x7212_0000);
    builder.region(0x200_0000, 2, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(0x210_0000, 1, Access::READ_WRITE, RegionKind::Data);
    let input = Tensor::dense(
        "input",
        TensorKind::Input,
        ElementType::F32,
        &[4, 8],
        0x210_0000,
    );
    let output = Tensor::dense(
        "output",
        TensorKind::Output,
        ElementType::F16,
        &[9],
        0x210_0200,
    );
    let (input, output) = (builder.tensor(input), builder.tensor(output));
    builder.segment("setup", SegmentKind::Setup);
    builder.write(0xf04, 0x10000);
    let text: Vec<u8> = (0..300u32).map(|i| (i % 7 * 31) as u8).collect();
    builder.upload(0x200_0000, &text);
    let noise: Vec<u8> = (0..90u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    builder.upload(0x200_1000, &noise);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(input);
    builder.rearm(0x200_0000);
    builder.submit(1, 0x200_0000, 1_000_000);
    builder.bind_output(output);
    builder.finish().unwrap()
}

fn section_at(file: &[u8], at: usize) -> Section {
    let (table, _) =
        <[SectionEntry; SECTIONS]>::ref_from_prefix(&file[size_of::<Header>()..]).unwrap();
    let found = table.iter().find(|entry| {
        let start = entry.offset.get() as usize;
        (start..(start + entry.length.get() as usize).next_multiple_of(8)).contains(&at)
    });
    found.map_or(Section::Header, |entry| {
        Section::from_code(entry.kind.get()).unwrap()
    })
}

#[test]
fn every_flipped_byte_is_refused_with_its_section() {
    let file = recording();
    Recording::parse(&file).unwrap();
    for at in 0..file.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= flip;
            let error = Recording::parse(&damaged).unwrap_err();
            assert_eq!(
                error.section,
                section_at(&file, at),
                "byte {at} ^ {flip:#x}: {error:?}"
            );
        }
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let file = recording();
    for length in 0..file.len() {
        let error = Recording::parse(&file[..length]).unwrap_err();
        assert!(
            matches!(error.fault, Fault::NotARecording | Fault::Length),
            "{length}: {error:?}"
        );
    }
    let mut longer = file.clone();
    longer.extend_from_slice(&[0; 8]);
    assert_eq!(Recording::parse(&longer).unwrap_err().fault, Fault::Length);
}

#[test]
fn another_major_version_says_so() {
    for version in [0, 1, 3] {
        let mut file = recording();
        file[8] = version;
        let error = Recording::parse(&file).unwrap_err();
        assert_eq!(
            (error.section, error.fault),
            (Section::Header, Fault::Version(version.into()))
        );
    }
}

#[test]
fn what_was_built_is_what_is_read() {
    let file = recording();
    let recording = Recording::parse(&file).unwrap();
    assert_eq!(recording.gpu_id(), 0x7212_0000);
    assert_eq!(recording.regions().len(), 2);
    assert_eq!(
        recording.region_of(0x200_0010, 0x1ff0).unwrap().va.get(),
        0x200_0000
    );
    assert!(recording.region_of(0x200_0010, 0x1ff1).is_none());
    assert!(recording.region_of(0x1ff_ffff, 1).is_none());

    let (index, tensor) = recording.tensor_named("output").unwrap();
    assert_eq!((index, recording.tensor_bytes(tensor)), (1, Some(18)));
    assert!(recording.tensor_named("out").is_none());

    let [setup, run] = recording.segments() else {
        panic!()
    };
    assert_eq!(
        (
            recording.name(setup.name.get()),
            recording.name(run.name.get())
        ),
        ("setup", "run")
    );
    let actions: Vec<_> = recording
        .segment_actions(setup)
        .map(Result::unwrap)
        .collect();
    assert_eq!(
        actions[0],
        Action::Write {
            register: 0xf04,
            value: 0x10000
        }
    );
    let Action::Upload {
        va,
        length,
        payload: Payload::Lz4(block),
    } = actions[1]
    else {
        panic!("{:?}", actions[1])
    };
    assert_eq!((va, length), (0x200_0001, 299));
    assert!(block.len() < 60, "{}", block.len());
    assert!(
        matches!(actions[2], Action::Upload { payload: Payload::Raw(bytes), .. } if bytes.len() >= 88)
    );
    let actions: Vec<_> = recording.segment_actions(run).map(Result::unwrap).collect();
    assert_eq!(
        actions[2],
        Action::Submit {
            slot: 1,
            config: 0x3700,
            timeout_us: 1_000_000,
            chain: 0x200_0000
        }
    );
    assert_eq!(recording.count(run, Opcode::Submit), 1);
    assert_eq!(recording.count(run, Opcode::Rearm), 1);
}
