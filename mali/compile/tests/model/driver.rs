// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small driver for the GPU model that writes raw traces.
use std::collections::{BTreeMap, BTreeSet};

use gpureplay_core::{Gpu, Lines};
use gpureplay_format::Access;
use gpureplay_on_model::OnModel;
use gpureplay_trace::note::Note;
use gpureplay_trace::{Context, Driver as DriverKind, Line, PAGE_SIZE, Phase, RegionFlags, Writer};
use mali_facts::registers::{address_space, gpu, job, job_slot, mmu};
use mali_model::{Options, Profile};

pub(crate) const PAGE: u64 = PAGE_SIZE as u64;

/// `c[i] = a[i] + b[i]` on floats, as Mesa 25.0 compiles it for Mali-G52; pushed uniforms are the three pointers.
const VECTOR_ADD: &str = "\
    294200c043c0888b916507c0480840292142\
    00c00bc08a839165070c0240c058018082102818cb80171837e004c601b46380c3202818cb8013ca060080c1c2580700\
    00205818cb80e33130e007c601ac76000000e001000000000000000000002d8100004018cb80131807c0680840312581\
    c3102818cb8017180f248841c158ab0000405818cb801f1837e084b20100530000305818cb80e3310000000000002d82\
    00004018cb8013180700400080012582001028 18cb801718170c00311802ab0082100818cb801f18075894b201005300\
    00005818cb80e3b1000000000000";

pub(crate) fn vector_add_code() -> Vec<u8> {
    let digits: Vec<u8> = VECTOR_ADD.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks_exact(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// 1024 elements, at the address `base`.
pub(crate) fn vector_add(base: u64, code: u64, a: u64, b: u64, c: u64) -> Vec<u8> {
    let mut bytes = vec![0; 0x200];
    let mut put = |at: usize, word: u64| {
        bytes[at..at + 4].copy_from_slice(&(word as u32).to_le_bytes());
    };
    // Header: compute, 64-bit, index 1.
    put(0x10, 0x0001_0009);
    // 16 threads a group, 64 groups.
    put(0x20, 0x3ff);
    put(0x24, 4 | 4 << 5 | 4 << 10 | 10 << 16 | 10 << 22 | 4 << 28);
    put(0x28, 7 << 26);
    put(0x40, 3);
    put(0x58, base + 0x1c0);
    put(0x70, base + 0x180);
    put(0x78, base + 0x100);
    put(0xb0, base + 0x140);
    // Renderer state: one uniform buffer, 32 registers, preload of the global id, three pushed uniforms.
    put(0x100, code);
    put(0x110, 0x2001);
    put(0x130, 0x1_9000);
    // Local storage: none.
    put(0x144, 31);
    put(0x180, a);
    put(0x188, b);
    put(0x190, c);
    bytes
}

pub(crate) struct Driver {
    device: OnModel,
    trace: Writer<Vec<u8>>,
    logged: BTreeMap<u64, [u8; PAGE_SIZE]>,
    mapped: BTreeMap<u64, RegionFlags>,
    growing: BTreeSet<u64>,
}

impl Driver {
    /// Address, pages, executable.
    pub(crate) fn probe(buffers: &[(u64, u32, bool)]) -> Driver {
        let mut device =
            OnModel::new(Profile::by_name("g52").unwrap(), Options::default()).unwrap();
        device.reset().unwrap();
        let trace = Writer::begin(
            Vec::new(),
            DriverKind::Panfrost,
            false,
            "panfrost",
            "6.12.0-test",
        )
        .unwrap();
        let mut driver = Driver {
            device,
            trace,
            logged: BTreeMap::new(),
            mapped: BTreeMap::new(),
            growing: BTreeSet::new(),
        };
        driver.write(gpu::GPU_CMD, 1);
        for register in [
            gpu::GPU_ID,
            gpu::SHADER_PRESENT_LO,
            gpu::SHADER_PRESENT_HI,
            gpu::JS_PRESENT,
            gpu::THREAD_MAX_THREADS,
            gpu::THREAD_TLS_ALLOC,
        ] {
            driver.read(register);
        }
        driver.write(gpu::TILER_CONFIG, 0);
        driver.write(gpu::JM_CONFIG, 0x000f_0000);
        driver.write(gpu::PWR_KEY, 0x2968_a819);
        driver.write(gpu::L2_PWRON_LO, 1);
        driver
            .trace
            .poll(gpu::L2_READY_LO, 1, 0, 20_000, &[0, 1])
            .unwrap();
        driver.write(gpu::SHADER_PWRON_LO, 3);
        driver.write(job::JOB_INT_MASK, u32::MAX);
        driver.write(mmu::MMU_INT_MASK, u32::MAX);
        for (va, pages, execute) in buffers {
            driver.map(*va, *pages, *execute);
        }
        let space = driver.device.activate().unwrap();
        assert_eq!(space, 0);
        let table = address_space::offset(0, address_space::TRANSTAB_LO);
        for offset in [table, table + 4] {
            let value = driver.device.read32(offset);
            driver.trace.reg_write(offset, value).unwrap();
        }
        driver
    }

    fn map(&mut self, va: u64, pages: u32, execute: bool) {
        self.trace
            .mapping(true, None, 0, va, u64::from(pages) * PAGE)
            .unwrap();
        let mut flags = RegionFlags::READ | RegionFlags::WRITE;
        if execute {
            flags = flags | RegionFlags::EXECUTE;
        }
        self.device
            .map(
                va,
                pages,
                if execute {
                    Access::READ_EXECUTE
                } else {
                    Access::READ_WRITE
                },
            )
            .unwrap();
        for page in 0..u64::from(pages) {
            self.mapped.insert(va + page * PAGE, flags);
        }
    }

    fn write(&mut self, register: u32, value: u32) {
        self.trace.reg_write(register, value).unwrap();
        self.device.write32(register, value);
    }

    fn read(&mut self, register: u32) -> u32 {
        let value = self.device.read32(register);
        self.trace.reg_read(register, value).unwrap();
        value
    }

    pub(crate) fn store(&mut self, va: u64, bytes: &[u8]) {
        self.device.write_memory(va, bytes).unwrap();
    }

    #[allow(dead_code, reason = "not every test gives an address again")]
    pub(crate) fn renew(&mut self, va: u64, pages: u32) {
        let bytes = u64::from(pages) * PAGE;
        self.trace.mapping(true, None, 0, va, bytes).unwrap();
        self.store(va, &vec![0; bytes as usize]);
    }

    #[allow(dead_code, reason = "not every test stores floats")]
    pub(crate) fn store_floats(&mut self, va: u64, values: impl IntoIterator<Item = f32>) {
        let bytes: Vec<u8> = values.into_iter().flat_map(f32::to_le_bytes).collect();
        self.store(va, &bytes);
    }

    pub(crate) fn load(&mut self, va: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.device.read_memory(va, &mut bytes).unwrap();
        bytes
    }

    /// On the next job's page fault, as kbase grows memory.
    #[allow(dead_code, reason = "not every test has memory that grows")]
    pub(crate) fn grows(&mut self, va: u64) {
        assert!(self.mapped.contains_key(&va));
        self.growing.insert(va);
    }

    /// The next list of regions shows the page table.
    fn grow(&mut self) {
        for va in std::mem::take(&mut self.growing) {
            self.trace
                .irq(Line::Mmu, Context::HardIrq, 1, |t| {
                    t.reg_read(mmu::MMU_INT_STAT, 1)?;
                    let low = address_space::offset(0, address_space::FAULTADDRESS_LO);
                    t.reg_read(low + 4, (va >> 32) as u32)?;
                    t.reg_read(low, va as u32)
                })
                .unwrap();
            self.write(mmu::MMU_INT_CLEAR, 1);
        }
    }

    fn list(&mut self) {
        let mut first = RegionFlags::FIRST;
        for (va, flags) in &self.mapped {
            if !self.growing.contains(va) {
                self.trace.region(0, *flags | first, *va, 1).unwrap();
                first = RegionFlags(0);
            }
        }
    }

    fn dump(&mut self, phase: Phase) {
        for va in self.mapped.keys() {
            if self.growing.contains(va) {
                continue;
            }
            let mut bytes = [0; PAGE_SIZE];
            self.device.read_memory(*va, &mut bytes).unwrap();
            if self.logged.get(va) != Some(&bytes) {
                self.trace.page(0, phase, *va, &bytes).unwrap();
                self.logged.insert(*va, bytes);
            }
        }
    }

    pub(crate) fn run(&mut self, at: u64, job: &[u8]) {
        self.store(at, job);
        self.submit(at);
    }

    pub(crate) fn submit(&mut self, chain: u64) {
        let register = |r| job_slot::offset(1, r);
        self.read(register(job_slot::COMMAND_NEXT));
        self.write(register(job_slot::HEAD_NEXT_LO), chain as u32);
        self.write(register(job_slot::HEAD_NEXT_HI), (chain >> 32) as u32);
        self.write(register(job_slot::AFFINITY_NEXT_LO), 3);
        self.write(register(job_slot::CONFIG_NEXT), 0x0008_7b00);
        self.list();
        self.dump(Phase::Before);
        self.trace.submit(1, 0, chain).unwrap();
        self.write(register(job_slot::COMMAND_NEXT), 1);
        let lines = self.device.wait_irq(Lines::ALL, 1_000_000);
        assert_eq!(lines, Lines::JOB);
        if !self.growing.is_empty() {
            self.grow();
            self.list();
        }
        let (status, raw) = (
            self.device.read32(register(job_slot::STATUS)),
            self.device.read32(job::JOB_INT_RAWSTAT),
        );
        self.trace
            .irq(Line::Job, Context::HardIrq, 2, |t| {
                t.reg_read(job::JOB_INT_STAT, raw)
            })
            .unwrap();
        self.dump(Phase::After);
        self.trace.complete(1, status).unwrap();
        self.write(job::JOB_INT_CLEAR, raw);
    }

    #[allow(dead_code, reason = "the command's tests play apps without a layer")]
    pub(crate) fn note(&mut self, note: &Note) {
        self.trace.note(&note.to_string()).unwrap();
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.trace.end().unwrap()
    }
}
