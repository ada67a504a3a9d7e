// SPDX-License-Identifier: MIT OR Apache-2.0
//! A test family: words as work, no headers, 32-bit addresses.

use gpureplay_core::gpu::poll;
use gpureplay_core::{
    DeviceError, Driver, ErrorKind, Failed, Family, Gpu, Limits, Lines, NoTensors, Options, Rule,
    Session, Submission, Workspace, verify,
};
use gpureplay_format::layout::{Header, IdentityCheck, Platform};
use gpureplay_format::{
    Access, Builder, ElementType, Recording, RegionKind, Section, SegmentKind, Tensor, TensorId,
    TensorKind,
};
use mali_drive as mali;

use crate::support::{Bound, COUNT, DATA, Fake, INPUT, OUTPUT};

const PRODUCT: u32 = 0x1234_0001;
const IDENTITY: u32 = 0x8000;
const SETTING: u16 = 0x8004;
/// Source, target, number of elements, which starts the work.
const WORDS: [u32; 3] = [0x8010, 0x8014, 0x8018];
/// 0 runs, 1 done, 2 failed.
const STATUS: u32 = 0x801c;

#[derive(Debug)]
struct Adder;

impl Family for Adder {
    const ID: u16 = 0xfffe;
    const LAUNCHES: bool = true;
    const ADDRESS_BITS: u32 = 32;
    type State = u32;
    const RESET: u32 = 0;

    fn is_identity(register: u32) -> bool {
        register == IDENTITY
    }
    fn demands_product(check: &IdentityCheck, gpu_id: u32) -> bool {
        check.mask == u32::MAX && check.value == gpu_id
    }
    fn may_write(_: u32, register: u32, value: u32) -> bool {
        register == SETTING.into() && value <= 1
    }
    fn suits(_: RegionKind, access: Access) -> bool {
        !access.contains(Access::EXECUTE)
    }
    fn may_rearm(_: &Recording<'_>, _: u64) -> bool {
        unreachable!("a launch has no header")
    }
    fn check(recording: &Recording<'_>, work: &Submission<'_>) -> Result<(), Rule> {
        let words = words(work);
        let inside = |va: u32| recording.region_of(va.into(), u64::from(words[2]) * 4);
        let sound = work.queue() == 0
            && work.words.len() == size_of_val(&WORDS)
            && inside(words[0]).is_some()
            && inside(words[1]).is_some();
        sound.then_some(()).ok_or(Rule::JobConfiguration)
    }
    fn fits<G: Gpu>(_: &mut Driver<G, u32>, _: u64) -> Result<(), Failed> {
        Ok(())
    }
    fn power_up<G: Gpu>(at: &mut Driver<G, u32>, _: &Header) -> Result<(), Failed> {
        at.state += 1;
        Ok(())
    }
    fn submit<G: Gpu>(at: &mut Driver<G, u32>, work: &Submission<'_>) -> Result<(), Failed> {
        assert_eq!(at.state, 1, "one power-up after each reset");
        for (register, word) in WORDS.into_iter().zip(words(work)) {
            at.gpu.write32(register, word);
        }
        let timeout_us = work.timeout_us();
        match poll(&mut at.gpu, STATUS, 1, 1, timeout_us) {
            Ok(()) => Ok(()),
            Err(2) => at.fail(ErrorKind::GpuFault {
                status: 2,
                address: 0,
            }),
            Err(status) => at.fail(ErrorKind::JobTimeout {
                slot: work.queue(),
                status,
                tail: 0,
                timeout_us,
            }),
        }
    }
    fn done<G: Gpu>(_: &mut Driver<G, u32>, _: u64) -> Result<(), Failed> {
        unreachable!("a launch has no header")
    }
}

fn words(work: &Submission<'_>) -> [u32; 3] {
    let mut words = work.words.chunks_exact(4);
    [(); 3].map(|()| {
        let word = words.next().unwrap_or(&[0; 4]);
        u32::from_le_bytes(word.try_into().unwrap())
    })
}

struct Device {
    fake: Fake,
    hangs: bool,
    setting: u32,
    words: [u32; 3],
    status: u32,
    launches: u32,
}

impl Device {
    fn new() -> Self {
        Self {
            fake: Fake::new(),
            hangs: false,
            setting: 0,
            words: [0; 3],
            status: 0,
            launches: 0,
        }
    }

    fn launch(&mut self) {
        self.launches += 1;
        let [source, target, count] = self.words.map(u64::from);
        for at in (0..count * 4).step_by(4) {
            let mut value = [0; 4];
            self.fake.read_memory(source + at, &mut value).unwrap();
            let value = f32::from_le_bytes(value) + 1.0;
            self.fake
                .write_memory(target + at, &value.to_le_bytes())
                .unwrap();
        }
        self.status = u32::from(!self.hangs);
    }
}

impl gpureplay_core::Wrapper for Device {
    type Inner = Fake;

    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }
    fn read32(&mut self, register: u32) -> u32 {
        self.fake.time += 1;
        match register {
            IDENTITY => PRODUCT,
            STATUS => self.status,
            _ => panic!("read of {register:#x}"),
        }
    }
    fn write32(&mut self, register: u32, value: u32) {
        match WORDS.iter().position(|it| *it == register) {
            Some(word) => self.words[word] = value,
            None if register == SETTING.into() => self.setting = value,
            None => panic!("write of {register:#x}"),
        }
        if register == WORDS[2] {
            self.launch();
        }
    }
    fn wait_irq(&mut self, _: Lines, _: u32) -> Lines {
        Lines::NONE
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        self.status = 0;
        Ok(())
    }
}

fn recording(run: impl FnOnce(&mut Builder)) -> Vec<u8> {
    let mut builder = Builder::new(PRODUCT);
    builder.platform(Platform {
        family: Adder::ID,
        ..Platform::of(PRODUCT)
    });
    builder.identity(IDENTITY, u32::MAX, PRODUCT);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    for (name, kind, va) in [
        ("x", TensorKind::Input, INPUT),
        ("y", TensorKind::Output, OUTPUT),
    ] {
        builder.tensor(Tensor::dense(name, kind, ElementType::F32, &[COUNT], va));
    }
    builder.segment("setup", SegmentKind::Setup);
    builder.write(SETTING, 1);
    builder.segment("run", SegmentKind::Run);
    builder.bind_input(TensorId(0));
    run(&mut builder);
    builder.bind_output(TensorId(1));
    builder.finish().unwrap()
}

fn adds(builder: &mut Builder) {
    builder.launch(0, &[INPUT as u32, OUTPUT as u32, COUNT], 1000);
}

fn rule<F: Family>(file: &[u8]) -> (Rule, Section) {
    let recording = Recording::parse(file).unwrap();
    let violation = verify::<F>(&recording, &Limits::DEFAULT).err().unwrap();
    (violation.rule, violation.section)
}

#[test]
fn launches_run_with_new_inputs_and_recover() {
    // The second takes the first one's result; its words follow an upload's bytes.
    let file = recording(|builder| {
        adds(builder);
        builder.upload(DATA + 0x400, &[7, 1, 7, 2, 7, 3]);
        builder.launch(0, &[OUTPUT as u32, OUTPUT as u32, COUNT], 1000);
    });
    let recording = Recording::parse(&file).unwrap();
    assert_eq!(
        (recording.header().minor.get(), file[44..46].to_vec()),
        (3, vec![0xfe, 0xff])
    );
    let verified = verify::<Adder>(&recording, &Limits::DEFAULT).unwrap();
    let mut workspace = Workspace::new();
    let options = Options::default();
    let mut session = Session::open(
        Device::new(),
        verified,
        &mut workspace,
        options,
        &mut NoTensors,
    )
    .unwrap();
    for value in [1.5, -7.0] {
        let mut bound = Bound::new([value; COUNT as usize]);
        session.run(&mut bound).unwrap();
        assert_eq!(bound.values(), [value + 2.0; COUNT as usize]);
        assert_eq!(session.submits(), 2);
    }
    let mut bytes = [0; 6];
    session.gpu().read_memory(DATA + 0x400, &mut bytes).unwrap();
    assert_eq!((bytes, session.gpu().setting), ([7, 1, 7, 2, 7, 3], 1));
    session.gpu().hangs = true;
    let mut bound = Bound::new([1.0; COUNT as usize]);
    let error = session.run(&mut bound).unwrap_err();
    let kind = ErrorKind::JobTimeout {
        slot: 0,
        status: 0,
        tail: 0,
        timeout_us: 1000,
    };
    assert_eq!((error.kind, error.submits), (kind, 1));
    session.gpu().hangs = false;
    session.run(&mut bound).unwrap();
    assert_eq!(bound.values(), [3.0; COUNT as usize]);
    let launches = session.gpu().launches;
    session.skip_segment(1, &mut bound).unwrap();
    assert_eq!(session.gpu().launches, launches);
}

#[test]
fn a_recording_is_verified_by_its_own_family_only() {
    let family = (Rule::Family, Section::Header);
    assert_eq!(rule::<mali::Mali>(&recording(adds)), family);
    assert_eq!(rule::<Adder>(&crate::support::recording()), family);
}

#[test]
fn launches_and_chains_do_not_mix() {
    let form = (Rule::ActionForm, Section::Actions);
    let mut builder = crate::support::builder();
    crate::support::set_up(&mut builder);
    crate::support::run(&mut builder);
    builder.launch(0, &[1, 2, 3], 1000);
    assert_eq!(rule::<mali::Mali>(&builder.finish().unwrap()), form);
    let rearmed = recording(|builder| builder.rearm(DATA));
    assert_eq!(rule::<Adder>(&rearmed), form);
    let submitted = recording(|builder| builder.submit(1, DATA, 1000));
    assert_eq!(rule::<Adder>(&submitted), form);
}

#[test]
fn a_launch_keeps_the_rules_of_its_family_and_is_bounded() {
    let launched = |queue, words: &[u32], timeout_us| {
        rule::<Adder>(&recording(|builder| {
            builder.launch(queue, words, timeout_us);
        }))
        .0
    };
    let right = [INPUT as u32, OUTPUT as u32, COUNT];
    assert_eq!(launched(1, &right, 1000), Rule::JobConfiguration);
    assert_eq!(launched(0, &right[..2], 1000), Rule::JobConfiguration);
    assert_eq!(launched(0, &[0, 0, 1], 1000), Rule::JobConfiguration);
    assert_eq!(launched(0, &right, 0), Rule::BoundedWait);
    assert_eq!(launched(0, &right, u32::MAX), Rule::BoundedWait);
    let hours = recording(|builder| {
        for _ in 0..61 {
            builder.launch(0, &right, 60_000_000);
        }
    });
    assert_eq!(rule::<Adder>(&hours).0, Rule::TotalTime);
}

#[test]
fn the_form_of_a_launch_is_checked() {
    let spoilt = |spoil: &dyn Fn(&mut gpureplay_format::layout::ActionEntry)| {
        let file = recording(adds);
        let recording = Recording::parse(&file).unwrap();
        let mut actions = recording.action_entries().to_vec();
        let launch = actions.iter_mut().find(|it| it.op == 9).unwrap();
        spoil(launch);
        let mut sections = recording.sections();
        let bytes: Vec<u8> = actions
            .iter()
            .flat_map(zerocopy::IntoBytes::as_bytes)
            .copied()
            .collect();
        sections[3] = &bytes;
        let platform = recording.header().platform();
        rule::<Adder>(&gpureplay_format::encode::assemble(platform, &sections)).0
    };
    assert_eq!(spoilt(&|it| it.d.set(1)), Rule::ActionForm);
    assert_eq!(spoilt(&|it| it.b.set(11)), Rule::ActionForm);
    assert_eq!(spoilt(&|it| it.b.set(16)), Rule::UploadData);
}
