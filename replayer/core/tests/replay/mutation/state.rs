// SPDX-License-Identifier: MIT OR Apache-2.0
//! The engine's order, registers and tensors.

use gpureplay_core::{
    DeviceError, ErrorKind, Family, Gpu, Limits, NoTensors, Options, Tensors, Workspace, Wrapper,
};
use gpureplay_format::layout::{IdentityCheck, Platform};
use gpureplay_format::{
    Access, Axis, ElementType, Piece, Recording, RegionKind, SegmentKind, Tensor, TensorId,
    TensorKind,
};
use mali_drive::page_table::{Format, PageTables, TableMemory};
use mali_drive::{Session, verify};

use super::{RAMP, Registers, opened};
use crate::support::{self, Bound, COUNT, DATA, Fake, OUTPUT, PRODUCT, recording};

#[test]
fn a_poll_ends_behind_its_bound() {
    struct Clock(Fake, u64);
    impl Wrapper for Clock {
        type Inner = Fake;
        fn inner(&mut self) -> &mut Fake {
            &mut self.0
        }
        fn now_us(&mut self) -> u64 {
            self.1 += 10;
            self.1
        }
        fn read32(&mut self, _: u32) -> u32 {
            u32::from(self.1 >= 40)
        }
    }
    let poll = |bound| gpureplay_core::gpu::poll(&mut Clock(Fake::new(), 0), 0, 1, 1, bound);
    // The poll starts at 10 and reads at 20, 30 and 40.
    assert_eq!((poll(9), poll(19), poll(20)), (Err(0), Err(0), Ok(())));
}

#[test]
fn settings_come_before_power_and_power_once() {
    let mut builder = support::builder();
    support::set_up(&mut builder);
    support::submit(&mut builder, 0);
    support::run(&mut builder);
    let (file, mut workspace) = (builder.finish().unwrap(), Workspace::new());
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    let mut bound = Bound::new(RAMP);
    session.run(&mut bound).unwrap();
    session.run(&mut bound).unwrap();
    let writes = &session.gpu().writes;
    let at = |register| writes.iter().position(|write| write.0 == register);
    let count = |register| writes.iter().filter(|write| write.0 == register).count();
    assert!(at(0xf04) < at(0x1a0), "the setting, then the power");
    assert!(at(0x180) < at(0x18e0), "the power, then the chain");
    assert_eq!([0xf04, 0x1a0, 0x180].map(count), [1, 1, 1]);
    // The GPU's faults, and all other lines.
    for mask in [(0x28, 0x81), (0x1008, u32::MAX), (0x2008, u32::MAX)] {
        assert!(writes.contains(&mask), "{mask:x?}");
    }
    for clear in [0x24, 0x1004, 0x2004] {
        assert!(writes.contains(&(clear, u32::MAX)), "{clear:#x}");
    }
}

struct Shared {
    fake: Fake,
    takes: u32,
}

impl Wrapper for Shared {
    type Inner = Fake;

    fn inner(&mut self) -> &mut Fake {
        &mut self.fake
    }
    fn lend(&mut self) -> Result<bool, DeviceError> {
        if self.takes == 0 {
            return Ok(false);
        }
        self.takes -= 1;
        self.fake.reset().map(|()| true)
    }
}

#[test]
fn a_gpu_that_was_lent_is_set_and_powered_again() {
    let mut builder = support::builder();
    support::set_up(&mut builder);
    support::submit(&mut builder, 0);
    support::run(&mut builder);
    let (file, view_of) = (builder.finish().unwrap(), Recording::parse);
    let view = view_of(&file).unwrap();
    // It can be lent after set-up's chain, and after the run's.
    for takes in 0..3 {
        let mut workspace = Workspace::new();
        let gpu = Shared {
            fake: Fake::new(),
            takes,
        };
        let mut session = opened(gpu, &view, &mut workspace).unwrap();
        let mut bound = Bound::new(RAMP);
        session.run(&mut bound).unwrap();
        let expected: Vec<f32> = RAMP.iter().map(|x| 2.0 * (2.0 * x + 1.0)).collect();
        assert_eq!(bound.values(), expected, "lent {takes} times");
        let fake = &session.gpu().fake;
        let count = |register| fake.writes.iter().filter(|it| it.0 == register).count() as u32;
        let expected = [1 + takes; 3];
        assert_eq!([0xf04, 0x1a0, 0x180].map(count), expected, "{takes}");
        let last = |register| fake.writes.iter().rposition(|it| it.0 == register);
        assert!(last(0xf04) < last(0x1a0), "{takes}");
    }
}

#[test]
fn weights_inside_may_stay_unbound_and_those_outside_may_not() {
    for (external, expected) in [
        (false, Ok(())),
        (true, Err(ErrorKind::Unbound { tensor: 2 })),
    ] {
        let mut builder = support::builder();
        let shape = [COUNT];
        let mut weight = Tensor::dense(
            "w",
            TensorKind::Weight,
            ElementType::F32,
            &shape,
            DATA + 0x400,
        );
        weight.external = external;
        builder.tensor(weight);
        support::set_up(&mut builder);
        builder.bind_input(TensorId(2));
        support::run(&mut builder);
        let (file, mut workspace) = (builder.finish().unwrap(), Workspace::new());
        let view = Recording::parse(&file).unwrap();
        let opened = opened(Fake::new(), &view, &mut workspace).map(drop);
        assert_eq!(opened, expected, "external: {external}");
    }
    // Left-out jobs need no values.
    let (file, mut workspace) = (recording(), Workspace::new());
    let view = Recording::parse(&file).unwrap();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    assert!(session.skip_segment(1, &mut NoTensors).is_ok());
    let error = session.run(&mut NoTensors).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unbound { tensor: 0 });
}

#[test]
fn a_tensor_of_pieces_and_axes_goes_where_these_say() {
    // [2, 3, 4] of u16 in two pieces of [3, 4]; the last axis strides 3 elements in the array and 2 bytes in
    // memory: transposed, memory rows 10 bytes apart.
    let mut builder = support::builder();
    let axis = |extent, element_stride, byte_stride| Axis {
        extent,
        element_stride,
        byte_stride,
    };
    let piece = |va, element| Piece {
        va,
        element,
        axes: vec![axis(3, 1, 10), axis(4, 3, 2)],
    };
    builder.tensor(Tensor {
        name: "t".into(),
        kind: TensorKind::Weight,
        element: ElementType::U16,
        shape: vec![2, 4, 3],
        pieces: vec![piece(DATA + 0x400, 0), piece(DATA + 0x500, 12)],
        external: true,
    });
    support::set_up(&mut builder);
    builder.bind_input(TensorId(2));
    support::run(&mut builder);
    let file = builder.finish().unwrap();
    let view = Recording::parse(&file).unwrap();
    let values: Vec<u8> = (0..24_u16)
        .flat_map(|at| (at + 100).to_le_bytes())
        .collect();
    struct Weight<'a>(&'a [u8]);
    impl Tensors for Weight<'_> {
        fn input(&mut self, tensor: u32) -> Option<&[u8]> {
            (tensor == 2).then_some(self.0)
        }
        fn output(&mut self, _: u32) -> Option<&mut [u8]> {
            None
        }
    }
    let mut workspace = Workspace::new();
    let verified = verify(&view, &Limits::DEFAULT).unwrap();
    let mut session = Session::open(
        Fake::new(),
        verified,
        &mut workspace,
        Options::default(),
        &mut Weight(&values),
    )
    .unwrap();
    let mut expected = [0_u8; 0x200];
    for block in 0..2 {
        for (row, column) in (0..3).flat_map(|row| (0..4).map(move |column| (row, column))) {
            let value = 100 + 12 * block as u16 + row as u16 + 3 * column as u16;
            let at = 0x100 * block + 10 * row + 2 * column;
            expected[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
    }
    let page = session.gpu().memory[&(DATA / 4096)].0;
    assert_eq!(page[0x400..0x600], expected);
    let mut back = vec![0; values.len()];
    session.read_tensor(2, &mut back).unwrap();
    assert_eq!(back, values);
}

#[test]
fn chains_lie_anywhere_in_slots_that_are_there_on_cores_in_use() {
    const HIGH: u64 = 0x7_0200_0000;
    let mut builder = support::builder();
    builder.region(HIGH, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.platform(Platform {
        unused_cores: 1,
        ..Platform::of(PRODUCT)
    });
    builder.segment("setup", SegmentKind::Setup);
    builder.upload(HIGH, &support::descriptor(0, DATA, OUTPUT));
    builder.segment("run", SegmentKind::Run);
    builder.fill(OUTPUT, COUNT * 4, 0);
    builder.bind_input(TensorId(0));
    builder.rearm(HIGH);
    builder.submit(1, HIGH, 1_000_000);
    builder.bind_output(TensorId(1));
    let file = builder.finish().unwrap();
    let view = Recording::parse(&file).unwrap();
    let mut workspace = Workspace::new();
    let mut session = opened(Fake::new(), &view, &mut workspace).unwrap();
    let mut bound = Bound::new(RAMP);
    session.run(&mut bound).unwrap();
    let expected: Vec<f32> = RAMP.iter().map(|x| 2.0 * x + 1.0).collect();
    assert_eq!(bound.values(), expected);
    let writes = &session.gpu().writes;
    // The first of two cores.
    for write in [(0x18c4, 7), (0x18c0, 0x200_0000), (0x18d0, 2), (0x18d4, 0)] {
        assert!(writes.contains(&write), "{write:x?}");
    }
    drop(session);
    for (slots, there) in [(7, true), (2, true), (5, false), (0xfd, false), (0, false)] {
        let gpu = Registers {
            answers: vec![(0x1c, slots)],
            ..Registers::new()
        };
        let mut session = opened(gpu, &view, &mut workspace).unwrap();
        let ran = session.run(&mut Bound::new(RAMP)).map_err(|it| it.kind);
        let expected = if there {
            Ok(())
        } else {
            Err(ErrorKind::NoSuchSlot(1))
        };
        assert_eq!(ran, expected, "{slots:#x}");
    }
}

#[test]
fn the_product_is_demanded_by_its_own_register_whole() {
    let demands = |register: u32, mask: u32, value: u32| {
        let check = IdentityCheck {
            register: register.into(),
            mask: mask.into(),
            value: value.into(),
        };
        mali_drive::Mali::demands_product(&check, PRODUCT)
    };
    assert!(demands(0, 0xffff_0000, PRODUCT));
    assert!(demands(0, u32::MAX, PRODUCT | 0x1234));
    assert!(!demands(4, 0xffff_0000, PRODUCT));
    assert!(!demands(0, 0xfffe_0000, PRODUCT));
    assert!(!demands(0, 0, PRODUCT));
    assert!(!demands(0, 0x0000_ffff, PRODUCT));
    assert!(!demands(0, 0xffff_0000, PRODUCT ^ 1 << 16));
}

#[test]
fn tables_above_four_gigabytes_are_given_to_an_address_space() {
    struct High;
    impl TableMemory for High {
        fn allocate(&mut self) -> Option<u64> {
            Some(0x12_3456_7000)
        }
        fn read(&mut self, _: u64) -> u64 {
            0
        }
        fn write(&mut self, _: u64, _: u64) {}
    }
    for (format, table, mode) in [
        (Format::Lpae, 0x3456_7007, 0),
        (Format::AArch64, 0x3456_7000, 6),
    ] {
        let tables = PageTables::new(format, &mut High).unwrap();
        let mut fake = Fake::new();
        tables.activate(&mut fake, 3, false).unwrap();
        // Address space 3 begins at 0x24c0.
        let value = |offset: u32| {
            let of = |write: &&(u32, u32)| write.0 == 0x24c0 + offset;
            fake.writes.iter().rfind(of).map(|write| write.1)
        };
        assert_eq!(value(0), Some(table), "{format:?}");
        assert_eq!(value(4), Some(0x12));
        assert_eq!(value(0x18), Some(1), "the update");
        assert_eq!(value(0x30).map(|it| it & 0xf), Some(mode));
        fake.registers.insert(0x24c0 + 0x28, 1);
        let stuck = tables.activate(&mut fake, 3, false);
        assert_eq!(stuck, Err(DeviceError::AddressSpaceStuck));
    }
}
