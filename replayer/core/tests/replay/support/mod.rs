// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tiny GPU: registers, memory, jobs y += 2 x + 1.
#![allow(unreachable_pub)]

use std::collections::BTreeMap;

use gpureplay_core::{DeviceError, Gpu, Limits, Lines, NoTensors, Options, Tensors, Workspace};
use gpureplay_format::{
    Access, Builder, ElementType, Recording, RegionKind, SegmentKind, Tensor, TensorKind,
};
use mali_drive::{Session, Verified, verify};

pub const PRODUCT: u32 = 0x7212_0000;
pub const DESCRIPTORS: u64 = 0x200_0000;
pub const DATA: u64 = 0x210_0000;
pub const INPUT: u64 = DATA;
pub const OUTPUT: u64 = DATA + 0x800;
pub const COUNT: u32 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    JobFault(u32),
    MmuFault,
    GpuFault,
    /// DONE at once without result; reads only a chain's first header.
    Idle,
    Hang,
    LostInterrupt,
    NotDone,
    SoftResetHangs,
    ResetHangs,
    NoPower,
}

#[derive(Debug)]
pub struct Fake {
    pub registers: BTreeMap<u32, u32>,
    pub memory: BTreeMap<u64, ([u8; 4096], Access)>,
    pub trouble: Trouble,
    pub time: u64,
    pub resets: u32,
    pub accesses: u32,
    pub released: u32,
    pub writes: Vec<(u32, u32)>,
}

impl Fake {
    pub fn new() -> Self {
        let mut fake = Self {
            registers: BTreeMap::new(),
            memory: BTreeMap::new(),
            trouble: Trouble::None,
            time: 0,
            resets: 0,
            accesses: 0,
            released: 0,
            writes: Vec::new(),
        };
        fake.power_on_values();
        fake
    }

    fn power_on_values(&mut self) {
        self.registers.clear();
        for (register, value) in [
            (0, PRODUCT),
            (0x14, 0x2830),
            (0x18, 0xff),
            (0x1c, 7),
            (0x100, 3),
            (0x120, 1),
        ] {
            self.registers.insert(register, value);
        }
    }

    fn set(&mut self, register: u32, bits: u32) {
        *self.registers.entry(register).or_default() |= bits;
    }

    fn get(&self, register: u32) -> u32 {
        self.registers.get(&register).copied().unwrap_or(0)
    }

    fn load(&mut self, va: u64) -> u64 {
        let mut bytes = [0; 8];
        self.read_memory(va, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    /// Without registers; returns 0, or the failed job's status.
    pub fn run(&mut self, header: u64) -> u32 {
        self.run_chain(header);
        match self.get(0x18a4) {
            1 => 0,
            status => status,
        }
    }

    fn run_chain(&mut self, mut header: u64) {
        while header != 0 {
            self.registers.insert(0x1888, header as u32);
            self.registers.insert(0x188c, (header >> 32) as u32);
            match self.trouble {
                Trouble::Hang => return,
                Trouble::Idle => {
                    self.write_memory(header, &1u32.to_le_bytes()).unwrap();
                    break;
                }
                Trouble::JobFault(status) => {
                    self.registers.insert(0x18a4, status);
                    self.write_memory(header, &status.to_le_bytes()).unwrap();
                    self.write_memory(header + 8, &0xdead_0000u64.to_le_bytes())
                        .unwrap();
                    self.set(0x1000, 2 << 16);
                    return;
                }
                Trouble::MmuFault => {
                    self.registers.insert(0x241c, 0x2c3);
                    self.registers.insert(0x2420, 0x1234_5000);
                    self.registers.insert(0x2424, 0x12);
                    self.set(0x2000, 1);
                    return;
                }
                Trouble::GpuFault => {
                    self.registers.insert(0x3c, 0x88);
                    self.set(0x20, 1);
                    return;
                }
                _ => {}
            }
            let (source, target) = (self.load(header + 32), self.load(header + 40));
            for index in 0..self.load(header + 48) {
                let mut value = [0; 4];
                self.read_memory(source + index * 4, &mut value).unwrap();
                let x = f32::from_le_bytes(value);
                self.read_memory(target + index * 4, &mut value).unwrap();
                let y = f32::from_le_bytes(value) + 2.0 * x + 1.0;
                self.write_memory(target + index * 4, &y.to_le_bytes())
                    .unwrap();
            }
            if self.trouble != Trouble::NotDone {
                self.write_memory(header, &1u32.to_le_bytes()).unwrap();
            }
            header = self.load(header + 24);
        }
        self.registers.insert(0x18a4, 1);
        self.set(0x1000, 2);
    }
}

impl Gpu for Fake {
    fn read32(&mut self, register: u32) -> u32 {
        self.accesses += 1;
        self.time += 1;
        self.get(register)
    }

    fn write32(&mut self, register: u32, value: u32) {
        self.accesses += 1;
        self.time += 1;
        self.writes.push((register, value));
        match register {
            0x30 if value == 1 || value == 2 => {
                self.resets += 1;
                self.power_on_values();
                let hangs = self.trouble == Trouble::ResetHangs
                    || value == 1 && self.trouble == Trouble::SoftResetHangs;
                if !hangs {
                    self.set(0x20, 1 << 8);
                }
            }
            0x30 if value == 7 || value == 8 => self.set(0x20, 1 << 17),
            0x180 if self.trouble != Trouble::NoPower => self.set(0x140, value),
            0x1a0 => self.set(0x160, value),
            0x1c0 => self
                .registers
                .entry(0x140)
                .or_default()
                .bitand_assign(!value),
            0x24 | 0x1004 | 0x2004 => {
                self.registers
                    .entry(register - 4)
                    .or_default()
                    .bitand_assign(!value);
            }
            0x18e0 if value == 1 => {
                let header = u64::from(self.get(0x18c4)) << 32 | u64::from(self.get(0x18c0));
                self.run_chain(header);
            }
            _ => drop(self.registers.insert(register, value)),
        }
    }

    fn wait_irq(&mut self, lines: Lines, timeout_us: u32) -> Lines {
        let mut raised = 0;
        for (bit, rawstat) in [(1, 0x1000), (2, 0x2000), (4, 0x20)] {
            if self.get(rawstat) & self.get(rawstat + 8) != 0 {
                raised |= bit;
            }
        }
        raised &= lines.0;
        if raised == 0 || self.trouble == Trouble::LostInterrupt {
            self.time += u64::from(timeout_us);
            return Lines::NONE;
        }
        Lines(raised)
    }

    fn now_us(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    fn map(&mut self, va: u64, pages: u32, access: Access) -> Result<(), DeviceError> {
        for page in 0..u64::from(pages) {
            self.memory.insert(va / 4096 + page, ([0; 4096], access));
        }
        Ok(())
    }

    fn activate(&mut self) -> Result<u8, DeviceError> {
        Ok(0)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        mali_drive::reset(self)
    }

    fn release(&mut self) {
        self.released += 1;
        self.memory.clear();
    }

    fn write_memory(&mut self, va: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        for (va, byte) in (va..).zip(bytes) {
            let page = self
                .memory
                .get_mut(&(va / 4096))
                .ok_or(DeviceError::NotMapped(va))?;
            page.0[va as usize % 4096] = *byte;
        }
        Ok(())
    }

    fn read_memory(&mut self, va: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        for (va, byte) in (va..).zip(bytes) {
            let page = self
                .memory
                .get(&(va / 4096))
                .ok_or(DeviceError::NotMapped(va))?;
            *byte = page.0[va as usize % 4096];
        }
        Ok(())
    }
}

use std::ops::BitAndAssign;

pub struct Bound {
    pub input: Vec<u8>,
    pub output: Vec<u8>,
}

impl Bound {
    pub fn new(values: [f32; COUNT as usize]) -> Self {
        let input = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        Self {
            input,
            output: vec![0; COUNT as usize * 4],
        }
    }

    pub fn values(&self) -> Vec<f32> {
        let chunks = self.output.chunks_exact(4);
        chunks
            .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
            .collect()
    }
}

impl Tensors for Bound {
    fn input(&mut self, tensor: u32) -> Option<&[u8]> {
        (tensor == 0).then_some(&self.input)
    }
    fn output(&mut self, tensor: u32) -> Option<&mut [u8]> {
        (tensor == 1).then_some(&mut self.output)
    }
}

pub fn descriptor(next: u64, source: u64, target: u64) -> Vec<u8> {
    let words = [0, 0, 0, next, source, target, COUNT.into()];
    words
        .iter()
        .flat_map(|word: &u64| word.to_le_bytes())
        .collect()
}

pub fn builder() -> Builder {
    let mut builder = Builder::new(PRODUCT);
    builder.identity(0, 0xffff_0000, PRODUCT);
    builder.region(DESCRIPTORS, 1, Access::READ_WRITE, RegionKind::Descriptors);
    builder.region(DATA, 1, Access::READ_WRITE, RegionKind::Data);
    builder.region(0x220_0000, 1, Access::READ_EXECUTE, RegionKind::Code);
    builder.region(0x230_0000, 1, Access::READ_WRITE, RegionKind::Scratch);
    let shape = [COUNT];
    builder.tensor(Tensor::dense(
        "x",
        TensorKind::Input,
        ElementType::F32,
        &shape,
        INPUT,
    ));
    builder.tensor(Tensor::dense(
        "y",
        TensorKind::Output,
        ElementType::F32,
        &shape,
        OUTPUT,
    ));
    builder
}

pub fn set_up(builder: &mut Builder) {
    builder.segment("setup", SegmentKind::Setup);
    builder.write(0xf04, 0x2_0000);
    builder.upload(DESCRIPTORS, &descriptor(DESCRIPTORS + 64, INPUT, OUTPUT));
    builder.upload(DESCRIPTORS + 64, &descriptor(0, INPUT, OUTPUT));
}

pub fn run(builder: &mut Builder) {
    use gpureplay_format::TensorId;
    builder.segment("run", SegmentKind::Run);
    builder.fill(OUTPUT, COUNT * 4, 0);
    builder.bind_input(TensorId(0));
    submit(builder, 0);
    builder.bind_output(TensorId(1));
}

pub fn submit(builder: &mut Builder, configuration: u16) {
    builder.rearm(DESCRIPTORS);
    builder.rearm(DESCRIPTORS + 64);
    builder.submit_with(1, configuration, DESCRIPTORS, 1_000_000);
}

pub fn recording() -> Vec<u8> {
    let mut builder = builder();
    set_up(&mut builder);
    run(&mut builder);
    builder.finish().unwrap()
}

pub fn verified<'r>(view: &'r Recording<'r>) -> Verified<'r> {
    verify(view, &Limits::DEFAULT).unwrap()
}

pub fn open<'r, 'w, G: Gpu>(
    gpu: G,
    view: &'r Recording<'r>,
    workspace: &'w mut Workspace,
) -> Session<'r, 'w, G> {
    Session::open(
        gpu,
        verified(view),
        workspace,
        Options::default(),
        &mut NoTensors,
    )
    .unwrap()
}
