// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU with hand-made page tables and jobs.

use std::collections::HashMap;
use std::sync::Arc;

use gpureplay_memory::{Bus, Ram};
use mali_facts::Memory;
use mali_facts::registers::{
    AddressSpaceCommand, FaultAccess, FaultStatus, GpuCommand, JobCommand, JobStatus,
    TranslationConfig, TranslationTable, address_space, gpu, job, job_slot, mmu,
};
use mali_facts::valhall::{ComputePayload, ShaderEnvironment, ShaderProgram};
use mali_facts::{Invocation, JobType, job as job_header};
use mali_isa::valhall::assemble;
use mali_model::{Gpu, Options, Profile};

pub(crate) const GPUS: [&str; 6] = ["g31", "g52", "g57", "g71", "g72", "g76"];

pub(crate) const BIFROST: [&str; 5] = ["g31", "g52", "g71", "g72", "g76"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Lpae,
    AArch64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    ReadWrite,
    ReadOnly,
    Execute,
}

/// `u2[i] = u0[i] + u1[i]` in floats, one per thread: Bifrost code from a runtime.
pub(crate) const ADD: [u8; 0x110] = [
    0x29, 0x42, 0x00, 0xc0, 0x43, 0xc0, 0x88, 0x8b, 0x91, 0x65, 0x07, 0xc0, 0x48, 0x08, 0x40, 0x29,
    0x21, 0x42, 0x00, 0xc0, 0x0b, 0xc0, 0x8a, 0x83, 0x91, 0x65, 0x07, 0x0c, 0x02, 0x40, 0xc0, 0x58,
    0x01, 0x80, 0x82, 0x10, 0x28, 0x18, 0xcb, 0x80, 0x17, 0x18, 0x37, 0xe0, 0x04, 0xc6, 0x01, 0xb4,
    0x63, 0x80, 0xc3, 0x20, 0x28, 0x18, 0xcb, 0x80, 0x13, 0xca, 0x06, 0x00, 0x80, 0xc1, 0xc2, 0x58,
    0x07, 0x00, 0x00, 0x20, 0x58, 0x18, 0xcb, 0x80, 0xe3, 0x31, 0x30, 0xe0, 0x07, 0xc6, 0x01, 0xac,
    0x76, 0x00, 0x00, 0x00, 0xe0, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x2d, 0x81, 0x00, 0x00, 0x40, 0x18, 0xcb, 0x80, 0x13, 0x18, 0x07, 0xc0, 0x68, 0x08, 0x40, 0x31,
    0x25, 0x81, 0xc3, 0x10, 0x28, 0x18, 0xcb, 0x80, 0x17, 0x18, 0x0f, 0x24, 0x88, 0x41, 0xc1, 0x58,
    0xab, 0x00, 0x00, 0x40, 0x58, 0x18, 0xcb, 0x80, 0x1f, 0x18, 0x37, 0xe0, 0x84, 0xb2, 0x01, 0x00,
    0x53, 0x00, 0x00, 0x30, 0x58, 0x18, 0xcb, 0x80, 0xe3, 0x31, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x2d, 0x82, 0x00, 0x00, 0x40, 0x18, 0xcb, 0x80, 0x13, 0x18, 0x07, 0x00, 0x40, 0x00, 0x80, 0x01,
    0x25, 0x82, 0x00, 0x10, 0x28, 0x18, 0xcb, 0x80, 0x17, 0x18, 0x17, 0x0c, 0x00, 0x31, 0x18, 0x02,
    0xab, 0x00, 0x82, 0x10, 0x08, 0x18, 0xcb, 0x80, 0x1f, 0x18, 0x07, 0x58, 0x94, 0xb2, 0x01, 0x00,
    0x53, 0x00, 0x00, 0x00, 0x58, 0x18, 0xcb, 0x80, 0xe3, 0xb1, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
];

/// The same for Valhall; pointers are u0, u2 and u4.
const ADD_WORDS: [&str; 11] = [
    "LSHIFT_OR.i32 r0, r60, 0x3020100.b22, 0x0",
    "IADD.u32 r2, u0, r0",
    "MOV.i32 r3, u1",
    "IADD.u32 r4, u2, r0",
    "MOV.i32 r5, u3",
    "IADD.u32 r6, u4, r0",
    "MOV.i32 r7, u5",
    "LOAD.i32.unsigned.slot0 @r0, r2, offset:0",
    "LOAD.i32.unsigned.slot1.wait01 @r1, r4, offset:0",
    "FADD.f32 r0, r0, r1",
    "STORE.i32.slot2.end @r0, r6, offset:0",
];

pub(crate) const ENVIRONMENT: u64 = job_header::PAYLOAD + ComputePayload::SIZE as u64;

pub(crate) const JOBS: u64 = 0x200_0000;
pub(crate) const CODE: u64 = 0x300_0000;
pub(crate) const DATA: u64 = 0x400_0000;
pub(crate) const NOWHERE: u64 = 0x7_0000_0000;

/// As panfrost configures a job slot for address space 0.
pub(crate) const CONFIG: u32 = 0x8_7300;

pub(crate) struct Machine<B: Bus = Ram> {
    pub(crate) gpu: Gpu<B>,
    pub(crate) memory: PageMemory,
}

pub(crate) struct PageMemory {
    ram: Arc<Ram>,
    root: u64,
    format: Format,
    valhall: bool,
    pages: HashMap<u64, u64>,
}

impl Machine {
    pub(crate) fn new() -> Machine {
        Machine::of("g52")
    }

    pub(crate) fn of(name: &str) -> Machine {
        Machine::with(name, Format::Lpae, Options::default())
    }

    pub(crate) fn with(name: &str, format: Format, options: Options) -> Machine {
        let ram = Arc::new(Ram::new(4096).unwrap());
        let options = Options {
            threads: 1,
            ..options
        };
        Machine::on(ram.clone(), ram, name, format, options)
    }
}

impl<B: Bus> Machine<B> {
    pub(crate) fn on(
        bus: Arc<B>,
        ram: Arc<Ram>,
        name: &str,
        format: Format,
        options: Options,
    ) -> Machine<B> {
        let root = ram.allocate().unwrap();
        let profile = Profile::by_name(name).unwrap();
        let gpu = Gpu::new(profile, bus, options);
        let memory = PageMemory {
            ram,
            root,
            format,
            valhall: profile.architecture.has_resource_tables(),
            pages: HashMap::new(),
        };
        let mut machine = Machine { gpu, memory };
        machine.memory.map(JOBS, 16, Rights::ReadWrite);
        machine.memory.map(CODE, 1, Rights::Execute);
        machine.memory.map(DATA, 16, Rights::ReadWrite);
        machine.power_on();
        machine.activate();
        machine
    }

    pub(crate) fn power_on(&mut self) {
        for (present, on) in [
            (gpu::L2_PRESENT_LO, gpu::L2_PWRON_LO),
            (gpu::SHADER_PRESENT_LO, gpu::SHADER_PWRON_LO),
            (gpu::TILER_PRESENT_LO, gpu::TILER_PWRON_LO),
        ] {
            let units = self.gpu.read32(present);
            self.gpu.write32(on, units);
        }
    }

    pub(crate) fn activate(&mut self) {
        let (table, config) = match self.memory.format {
            Format::Lpae => (TranslationTable::legacy(self.memory.root, true).0, 0),
            Format::AArch64 => (self.memory.root, TranslationConfig::aarch64_4k().0),
        };
        self.write64(address_space::offset(0, address_space::TRANSTAB_LO), table);
        self.write64(address_space::offset(0, address_space::TRANSCFG_LO), config);
        self.space_command(AddressSpaceCommand::Update);
    }

    pub(crate) fn space_command(&mut self, command: AddressSpaceCommand) {
        self.gpu.write32(
            address_space::offset(0, address_space::COMMAND),
            command as u32,
        );
    }

    pub(crate) fn write64(&mut self, low: u32, value: u64) {
        self.gpu.write32(low, value as u32);
        self.gpu.write32(low + 4, (value >> 32) as u32);
    }

    pub(crate) fn read64(&mut self, low: u32) -> u64 {
        u64::from(self.gpu.read32(low)) | u64::from(self.gpu.read32(low + 4)) << 32
    }

    pub(crate) fn mmu_fault(&mut self) -> (FaultStatus, u64) {
        let status = address_space::offset(0, address_space::FAULTSTATUS);
        let address = address_space::offset(0, address_space::FAULTADDRESS_LO);
        (FaultStatus(self.gpu.read32(status)), self.read64(address))
    }

    pub(crate) fn command(&mut self, command: GpuCommand) {
        self.gpu.write32(gpu::GPU_CMD, command as u32);
    }

    pub(crate) fn status(&mut self, slot: u32) -> JobStatus {
        JobStatus(self.slot(slot, job_slot::STATUS))
    }

    pub(crate) fn run(&mut self, slot: u32, head: u64) -> JobStatus {
        self.submit(slot, head, CONFIG);
        self.gpu.run();
        self.status(slot)
    }

    #[track_caller]
    pub(crate) fn expect_failure(&mut self, name: &str, status: JobStatus, pointer: u64) {
        let got = self.status(1);
        assert_eq!(got, status, "{name}: got {got}");
        let header = self.memory.read32(JOBS) & 0xff;
        assert_eq!(header, status.0, "{name}: header");
        let named = self.memory.read64(JOBS + 8);
        assert_eq!(named, pointer, "{name}: fault pointer");
        assert_eq!(self.tail(1), JOBS, "{name}");
        assert_eq!(self.job_interrupts(), job::failed(1), "{name}");
    }

    #[track_caller]
    pub(crate) fn expect_mmu(
        &mut self,
        name: &str,
        interrupt: u32,
        fault: (JobStatus, FaultAccess, u64),
    ) {
        assert_eq!(self.mmu_interrupts(), interrupt, "{name}");
        let (status, address) = self.mmu_fault();
        let shown = (status.code(), status.access(), address);
        assert_eq!(shown, fault, "{name}: {status}");
    }

    #[track_caller]
    pub(crate) fn expect_next(&mut self, name: &str) {
        self.clear_interrupts();
        self.memory.compute_job(JOBS, 64, 0);
        let status = self.run(1, JOBS);
        assert_eq!(status, JobStatus::DONE, "{name}: the next job: {status}");
        self.memory.expect_sums(64);
        let interrupts = (self.job_interrupts(), self.mmu_interrupts());
        assert_eq!(interrupts, (job::done(1), 0), "{name}");
    }

    pub(crate) fn slot(&mut self, slot: u32, register: u32) -> u32 {
        self.gpu.read32(job_slot::offset(slot, register))
    }

    pub(crate) fn set_slot(&mut self, slot: u32, register: u32, value: u32) {
        self.gpu.write32(job_slot::offset(slot, register), value);
    }

    pub(crate) fn tail(&mut self, slot: u32) -> u64 {
        self.read64(job_slot::offset(slot, job_slot::TAIL_LO))
    }

    pub(crate) fn submit(&mut self, slot: u32, head: u64, config: u32) {
        let cores = self.gpu.read32(gpu::SHADER_PRESENT_LO);
        self.submit_on(slot, head, config, cores);
    }

    pub(crate) fn submit_on(&mut self, slot: u32, head: u64, config: u32, cores: u32) {
        self.write64(job_slot::offset(slot, job_slot::HEAD_NEXT_LO), head);
        self.write64(
            job_slot::offset(slot, job_slot::AFFINITY_NEXT_LO),
            cores.into(),
        );
        self.set_slot(slot, job_slot::CONFIG_NEXT, config);
        self.set_slot(slot, job_slot::COMMAND_NEXT, JobCommand::Start as u32);
    }

    pub(crate) fn job_interrupts(&mut self) -> u32 {
        self.gpu.read32(job::JOB_INT_RAWSTAT)
    }

    pub(crate) fn mmu_interrupts(&mut self) -> u32 {
        self.gpu.read32(mmu::MMU_INT_RAWSTAT)
    }

    pub(crate) fn clear_interrupts(&mut self) {
        self.gpu.write32(job::JOB_INT_CLEAR, u32::MAX);
        self.gpu.write32(mmu::MMU_INT_CLEAR, u32::MAX);
    }
}

impl PageMemory {
    pub(crate) fn ram(&self) -> &Arc<Ram> {
        &self.ram
    }

    pub(crate) fn root(&self) -> u64 {
        self.root
    }

    pub(crate) fn map(&mut self, va: u64, count: u64, rights: Rights) {
        for page in 0..count {
            let va = va + page * 4096;
            let address = *self
                .pages
                .entry(va)
                .or_insert_with(|| self.ram.allocate().unwrap());
            self.enter(va, address, rights);
        }
    }

    pub(crate) fn set_entry(&self, va: u64, level: u32, entry: u64) {
        let mut table = self.root;
        for above in 0..level {
            let page = self.ram.page(table).unwrap();
            let offset = (va >> (39 - 9 * above) & 511) as usize * 8;
            if page.load_u64(offset) == 0 {
                page.store_u64(offset, self.ram.allocate().unwrap() | 3);
            }
            table = page.load_u64(offset) & 0xffff_ffff_f000;
        }
        let offset = (va >> (39 - 9 * level) & 511) as usize * 8;
        self.ram.page(table).unwrap().store_u64(offset, entry);
    }

    fn enter(&self, va: u64, address: u64, rights: Rights) {
        let never = 1 << 54;
        let bits = match (self.format, rights) {
            (Format::Lpae, Rights::ReadWrite) => 1 | 3 << 6 | never,
            (Format::Lpae, Rights::ReadOnly) => 1 | 1 << 6 | never,
            (Format::Lpae, Rights::Execute) => 1 | 3 << 6,
            (Format::AArch64, Rights::ReadWrite) => 3 | 1 << 6 | 1 << 10 | never,
            (Format::AArch64, Rights::ReadOnly) => 3 | 3 << 6 | 1 << 10 | never,
            (Format::AArch64, Rights::Execute) => 3 | 1 << 6 | 1 << 10,
        };
        self.set_entry(va, 3, address | bits);
    }

    pub(crate) fn write(&self, mut va: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let offset = (va & 4095) as usize;
            let (part, rest) = bytes.split_at(bytes.len().min(4096 - offset));
            let page = self.ram.page(self.pages[&(va & !4095)]).unwrap();
            page.copy_from_slice(offset, part);
            va += part.len() as u64;
            bytes = rest;
        }
    }

    pub(crate) fn write64(&self, va: u64, value: u64) {
        self.write(va, &value.to_le_bytes());
    }

    pub(crate) fn write32(&self, va: u64, value: u32) {
        self.write(va, &value.to_le_bytes());
    }

    pub(crate) fn write_words(&self, va: u64, words: &[u32]) {
        for (va, word) in (va..).step_by(4).zip(words) {
            self.write32(va, *word);
        }
    }

    pub(crate) fn read32(&self, va: u64) -> u32 {
        let mut bytes = [0; 4];
        assert!(self.read(va, &mut bytes));
        u32::from_le_bytes(bytes)
    }

    pub(crate) fn read64(&self, va: u64) -> u64 {
        u64::from(self.read32(va)) | u64::from(self.read32(va + 4)) << 32
    }

    pub(crate) fn job(&self, address: u64, job_type: JobType, next: u64) {
        self.write(address, &[0; 192]);
        self.write32(address + 16, 1 | (job_type as u32) << 1 | 1 << 16);
        self.write64(address + 24, next);
    }

    pub(crate) fn write_value_job(&self, address: u64, target: u64, value: u64, next: u64) {
        self.job(address, JobType::WriteValue, next);
        self.write64(address + 32, target);
        self.write32(address + 40, 7);
        self.write64(address + 48, value);
    }

    /// Adds `count` floats at DATA and DATA + 0x1000 to DATA + 0x2000, in groups of 16. The state lies at
    /// `address + 0x100`.
    pub(crate) fn compute_job(&self, address: u64, count: u32, next: u64) {
        self.job(address, JobType::Compute, next);
        if self.valhall {
            self.valhall_job(address, count);
        } else {
            self.bifrost_job(address, count);
        }
        for (slot, pointer) in [DATA, DATA + 0x1000, DATA + 0x2000].into_iter().enumerate() {
            self.write64(address + 0x180 + 8 * slot as u64, pointer);
        }
        for index in 0..count {
            let at = u64::from(index) * 4;
            self.write32(DATA + at, (index as f32).to_bits());
            self.write32(DATA + 0x1000 + at, (0.5 * index as f32).to_bits());
            self.write32(DATA + 0x2000 + at, 0);
        }
    }

    pub(crate) fn code_pointer(&self, state: u64) -> u64 {
        state + if self.valhall { 8 } else { 0 }
    }

    fn bifrost_job(&self, address: u64, count: u32) {
        self.write(CODE, &ADD);
        let invocation = Invocation::pack([16, 1, 1], [count / 16, 1, 1]).unwrap();
        self.write_words(address + 32, &invocation.words);
        self.write32(address + 64, 3);
        self.write64(address + 64 + 12 * 4, address + 0x180);
        self.write64(address + 64 + 14 * 4, address + 0x100);
        self.write64(address + 0x100, CODE);
        // 32 registers, global invocation X, three uniform slots.
        self.write32(address + 0x110, 2 << 12);
        self.write32(address + 0x130, 1 << 12 | 3 << 15);
    }

    pub(crate) fn write_code(&self, texts: &[&str]) {
        for (at, text) in (CODE..).step_by(8).zip(texts) {
            self.write64(at, assemble(text).unwrap());
        }
    }

    fn valhall_job(&self, address: u64, count: u32) {
        self.write_code(&ADD_WORDS);
        let payload = ComputePayload { words: [0; 8] }
            .with("Work group size X", 15)
            .with("Work group count X", u64::from(count / 16))
            .with("Work group count Y", 1)
            .with("Work group count Z", 1);
        self.write(address + job_header::PAYLOAD, &payload.to_bytes());
        let environment = ShaderEnvironment { words: [0; 16] }
            .with("FAU count", 3)
            .with("Shader", address + 0x100)
            .with("FAU", address + 0x180);
        self.write(address + ENVIRONMENT, &environment.to_bytes());
        let program = ShaderProgram { words: [0; 8] }
            .with("Type", 8)
            .with("Stage", 1)
            .with("Preload", 1 << 12)
            .with("Binary", CODE);
        self.write(address + 0x100, &program.to_bytes());
    }

    #[track_caller]
    pub(crate) fn expect_sums(&self, count: u32) {
        for index in 0..count {
            let sum = f32::from_bits(self.read32(DATA + 0x2000 + u64::from(index) * 4));
            assert_eq!(sum, 1.5 * index as f32, "sum {index}");
        }
    }
}

impl Memory for PageMemory {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        for (at, byte) in (va..).zip(to) {
            let Some(address) = self.pages.get(&(at & !4095)) else {
                return false;
            };
            *byte = self
                .ram
                .page(*address)
                .unwrap()
                .load_u8((at & 4095) as usize);
        }
        true
    }
}
