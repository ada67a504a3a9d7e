// SPDX-License-Identifier: MIT OR Apache-2.0
//! Gaps found by `cargo xtask mutation`.

mod state;

use crate::support::{
    self, Bound, COUNT, DATA, DESCRIPTORS, Fake, OUTPUT, PRODUCT, Trouble, recording,
};
use gpureplay_core::{ErrorKind, Gpu, Limits, Lines, NoTensors, Options, Rule, Workspace, Wrapper};
use gpureplay_format::{
    Access, Axis, Builder, ElementType, Piece, Recording, RegionKind, SegmentKind, Tensor,
    TensorId, TensorKind,
};
use mali_drive::{Session, clean_caches, verify};

const CODE: u64 = 0x220_0000;
const RAMP: [f32; 16] = [
    0., 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12., 13., 14., 15.,
];

fn opened<'a, G: Gpu>(
    gpu: G,
    view: &'a Recording<'a>,
    workspace: &'a mut Workspace,
) -> Result<Session<'a, 'a, G>, ErrorKind> {
    let verified = verify(view, &Limits::DEFAULT).unwrap();
    Session::open(gpu, verified, workspace, Options::default(), &mut NoTensors)
        .map_err(|error| error.kind)
}

fn written(builder: Builder, register: u32) -> Vec<u32> {
    let (file, mut workspace) = (builder.finish().unwrap(), Workspace::new());
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    session.run(&mut Bound::new(RAMP)).unwrap();
    let writes = session.gpu().writes.iter();
    let own = writes.filter(|(of, _)| *of == register);
    own.map(|(_, value)| *value).collect()
}

fn broken(change: impl FnOnce(&mut Builder)) -> Option<Rule> {
    let mut builder = support::builder();
    support::set_up(&mut builder);
    change(&mut builder);
    support::run(&mut builder);
    let file = builder.finish().unwrap();
    verify(&Recording::parse(&file).unwrap(), &Limits::DEFAULT)
        .err()
        .map(|violation| violation.rule)
}

#[test]
fn code_is_uploaded_by_set_up_alone() {
    assert_eq!(broken(|builder| builder.upload(CODE, &[7; 64])), None);
    assert_eq!(broken(|builder| builder.fill(CODE, 64, 7)), None);
    for fill in [true, false] {
        let refused = broken(|builder| {
            builder.segment("first", SegmentKind::Run);
            match fill {
                true => builder.fill(CODE, 64, 7),
                false => builder.upload(CODE, &[7; 64]),
            }
        });
        assert_eq!(refused, Some(Rule::UploadRegion));
    }
}

#[test]
fn the_width_of_addresses_is_compared() {
    // The end, 0x230_1000, has 26 bits; higher bits mean something else.
    for (features, expected) in [
        (0, Ok(())),
        (0x2830, Ok(())),
        (0x281a, Ok(())),
        (0x2819, Err(ErrorKind::AddressRange(25))),
        (0x0119, Err(ErrorKind::AddressRange(25))),
        (0xff00, Ok(())),
        (1, Err(ErrorKind::AddressRange(1))),
    ] {
        let (file, mut workspace) = (recording(), Workspace::new());
        let gpu = Registers {
            answers: vec![(0x14, features)],
            ..Registers::new()
        };
        let view = Recording::parse(&file).unwrap();
        let opened = opened(gpu, &view, &mut workspace).map(drop);
        assert_eq!(opened, expected, "{features:#x}");
    }
}

struct Registers {
    fake: Fake,
    answers: Vec<(u32, u32)>,
    reads_before_power: u32,
    reads: u32,
}

impl Registers {
    fn new() -> Self {
        Self {
            fake: Fake::new(),
            answers: Vec::new(),
            reads_before_power: 0,
            reads: 0,
        }
    }
}

impl Wrapper for Registers {
    type Inner = Fake;

    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }

    fn read32(&mut self, register: u32) -> u32 {
        let read = self.fake.read32(register);
        if register == 0x140 {
            self.reads += 1;
            if self.reads <= self.reads_before_power {
                return 0;
            }
        }
        let answer = self.answers.iter().find(|(of, _)| *of == register);
        answer.map_or(read, |(_, answer)| *answer)
    }
}

#[test]
fn a_poll_goes_on_until_its_bound() {
    let (file, mut workspace) = (recording(), Workspace::new());
    let gpu = Registers {
        reads_before_power: 200,
        ..Registers::new()
    };
    let view = Recording::parse(&file).unwrap();
    assert!(opened(gpu, &view, &mut workspace).is_ok());
    let mut workspace = Workspace::new();
    let mut fake = Fake::new();
    fake.trouble = Trouble::NoPower;
    let view = Recording::parse(&file).unwrap();
    let failed = opened(&mut fake, &view, &mut workspace).map(drop);
    assert!(matches!(failed, Err(ErrorKind::NoPower { .. })));
    assert!((20_000..1_000_000).contains(&fake.time), "{}", fake.time);
}

#[test]
fn a_job_has_all_of_its_time() {
    let (file, mut workspace) = (recording(), Workspace::new());
    let mut fake = Fake::new();
    fake.trouble = Trouble::Hang;
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(&mut fake, &view, &mut workspace).unwrap();
    let started = session.gpu().time;
    let error = session.run(&mut Bound::new(RAMP)).unwrap_err();
    assert!(matches!(
        error.kind,
        ErrorKind::JobTimeout {
            timeout_us: 1_000_000,
            ..
        }
    ));
    let passed = session.gpu().time - started;
    assert!((1_000_000..2_000_000).contains(&passed), "{passed}");
}

/// Its clock advances in waits alone.
struct Waiting {
    fake: Fake,
    ends: u64,
    waits: Vec<u32>,
    reads: u32,
}

impl Waiting {
    fn clock(&self) -> u64 {
        self.waits.iter().map(|&wait| u64::from(wait)).sum()
    }
}

impl Wrapper for Waiting {
    type Inner = Fake;

    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }

    fn read32(&mut self, register: u32) -> u32 {
        let read = self.fake.read32(register);
        if register != 0x1000 {
            return read;
        }
        self.reads += 1;
        assert!(self.reads < 1000, "asked again and again without a wait");
        if self.clock() < self.ends { 0 } else { read }
    }

    fn wait_irq(&mut self, _: Lines, timeout_us: u32) -> Lines {
        self.waits.push(timeout_us);
        Lines::NONE
    }

    fn now_us(&mut self) -> u64 {
        self.clock()
    }
}

#[test]
fn a_chain_that_ends_in_its_last_wait_is_right() {
    let file = recording();
    let view = Recording::parse(&file).unwrap();
    // The last wait begins exactly at the end of the time.
    for (ends, well) in [(20_000, true), (1_020_000, true), (1_040_000, false)] {
        let mut workspace = Workspace::new();
        let mut gpu = Waiting {
            fake: Fake::new(),
            ends: 0,
            waits: Vec::new(),
            reads: 0,
        };
        let mut session = opened(&mut gpu, &view, &mut workspace).unwrap();
        session.gpu().waits.clear();
        session.gpu().ends = ends;
        let ended = session.run(&mut Bound::new(RAMP));
        assert_eq!(ended.is_ok(), well, "{ends}");
        let waits = session
            .gpu()
            .waits
            .iter()
            .take_while(|&&wait| wait == 20_000);
        assert_eq!(waits.count() as u64, ends.min(1_020_000) / 20_000);
    }
}

#[test]
fn a_chain_that_differs_in_its_configuration_alone_gets_it() {
    const CONFIGURATIONS: [u16; 3] = [1 << 8, 0, 0];
    let mut builder = support::builder();
    support::set_up(&mut builder);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(TensorId(0));
    for configuration in CONFIGURATIONS {
        support::submit(&mut builder, configuration);
    }
    builder.bind_output(TensorId(1));
    let configured = written(builder, 0x18d8).into_iter();
    let values: Vec<u32> = configured.map(|value| value & 0xffff).collect();
    assert_eq!(values, [1 << 8, 0]);
}

#[test]
fn a_chain_that_differs_in_its_high_word_alone_gets_it() {
    const HIGH: u64 = DESCRIPTORS + (1 << 32);
    let mut builder = support::builder();
    builder.region(HIGH, 1, Access::READ_WRITE, RegionKind::Descriptors);
    support::set_up(&mut builder);
    builder.upload(HIGH, &support::descriptor(0, DATA, OUTPUT));
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(TensorId(0));
    for headers in [&[DESCRIPTORS, DESCRIPTORS + 64][..], &[HIGH]] {
        headers.iter().for_each(|&header| builder.rearm(header));
        builder.submit(1, headers[0], 1_000_000);
    }
    builder.bind_output(TensorId(1));
    assert_eq!(written(builder, 0x18c4), [0, 1]);
}

#[test]
fn a_chain_is_configured_as_recorded_but_for_its_flag() {
    const START_CLEAN: u16 = 1 << 8;
    const CHAIN_FLAG: u16 = 1 << 11;
    let mut builder = support::builder();
    support::set_up(&mut builder);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(TensorId(0));
    support::submit(&mut builder, START_CLEAN | CHAIN_FLAG);
    builder.bind_output(TensorId(1));
    // Address space 0, priority above.
    let expected = [8 << 16 | u32::from(START_CLEAN)];
    assert_eq!(written(builder, 0x18d8), expected);
}

#[test]
fn lines_intersect_if_they_share_one() {
    for (one, other) in (0..8).flat_map(|one| (0..8).map(move |other| (one, other))) {
        let shared = (0..3).any(|line| one >> line & other >> line & 1 == 1);
        assert_eq!(Lines(one).intersects(Lines(other)), shared, "{one} {other}");
    }
}

#[test]
fn a_tensor_that_is_not_there_is_not_read() {
    let (file, mut workspace) = (recording(), Workspace::new());
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    assert!(session.read_tensor(0, &mut [0; 64]).is_ok());
    let wrong = session.read_tensor(0, &mut [0; 63]).unwrap_err();
    assert_eq!(
        wrong.kind,
        ErrorKind::TensorSize {
            tensor: 0,
            expected: 64,
            found: 63
        }
    );
    assert!(session.read_tensor(9, &mut [0; 64]).is_err());
}

#[test]
fn elements_that_are_no_neighbours_are_moved_one_by_one() {
    let mut builder = Builder::new(PRODUCT);
    builder.identity(0, 0xffff_0000, PRODUCT);
    builder.region(DESCRIPTORS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    let axis = Axis {
        extent: COUNT,
        element_stride: 1,
        byte_stride: 16,
    };
    builder.tensor(Tensor {
        name: "y".into(),
        kind: TensorKind::Output,
        element: ElementType::F32,
        shape: vec![COUNT],
        pieces: vec![Piece {
            va: OUTPUT,
            element: 0,
            axes: vec![axis],
        }],
        external: false,
    });
    builder.segment("setup", SegmentKind::Setup);
    let spread: Vec<u8> = (0..COUNT * 16).map(|at| at as u8).collect();
    builder.upload(OUTPUT, &spread);
    builder.upload(DESCRIPTORS, &support::descriptor(0, DATA, DATA));
    builder.segment("run", SegmentKind::Run);
    builder.rearm(DESCRIPTORS);
    builder.submit(1, DESCRIPTORS, 1_000_000);
    builder.bind_output(TensorId(0));
    let (file, mut workspace) = (builder.finish().unwrap(), Workspace::new());
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    let mut output = vec![0; COUNT as usize * 4];
    session.run(&mut Output(&mut output)).unwrap();
    let expected: Vec<u8> = spread
        .chunks(16)
        .flat_map(|chunk| chunk[..4].to_vec())
        .collect();
    assert_eq!(output, expected);
}

struct Output<'a>(&'a mut [u8]);

impl gpureplay_core::Tensors for Output<'_> {
    fn input(&mut self, _: u32) -> Option<&[u8]> {
        None
    }

    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        (tensor == 0).then_some(&mut *self.0)
    }
}

#[test]
fn skipping_a_segment_does_what_the_processor_does() {
    let (file, mut workspace) = (recording(), Workspace::new());
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    session.skip_segment(1, &mut Bound::new(RAMP)).unwrap();
    assert_eq!(session.submits(), 0);
    let mut input = [0; 64];
    session.read_tensor(0, &mut input).unwrap();
    assert_eq!(input[..], Bound::new(RAMP).input[..]);
    assert!(session.skip_segment(99, &mut NoTensors).is_err());
}

#[test]
fn caches_are_cleaned_by_a_command() {
    let mut fake = Fake::new();
    assert_eq!(clean_caches(&mut fake), Ok(()));
    assert_eq!(fake.writes, [(0x24, 1 << 17), (0x30, 8)]);
    let mut never = Registers {
        answers: vec![(0x20, 0)],
        ..Registers::new()
    };
    assert_eq!(clean_caches(&mut never), Err(0));
}
