// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU with a dump, driven as by a kernel driver.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use gpureplay_memory::{Bus, Ram};
use mali_model::{Gpu, Level, Log, Observer, Options, Profile};

use crate::dump::Dump;

#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn level(&self) -> Level {
        Level::Warning
    }

    fn write(&self, _: Level, text: std::fmt::Arguments<'_>) {
        self.0.lock().unwrap().push(text.to_string());
    }
}

pub(crate) struct Machine {
    gpu: Gpu<Ram>,
    ram: Arc<Ram>,
    root: u64,
    pages: HashMap<u64, u64>,
    chain: u64,
    lines: Arc<Lines>,
}

impl Machine {
    pub(crate) fn new(product: u16, dump: &Dump, threads: usize) -> Machine {
        Machine::watched(product, dump, threads, None)
    }

    pub(crate) fn watched(
        product: u16,
        dump: &Dump,
        threads: usize,
        observer: Option<Arc<dyn Observer>>,
    ) -> Machine {
        let ram = Arc::new(Ram::new(1 << 16).unwrap());
        let lines = Arc::new(Lines::default());
        let options = Options {
            threads,
            log: lines.clone(),
            clause_budget: 1 << 24,
            observer,
            // With several threads also in an order by lot.
            seed: threads as u64 - 1,
            ..Options::default()
        };
        let profile = Profile::by_product(product).expect("the model has this GPU");
        let root = ram.allocate().unwrap();
        let gpu = Gpu::new(profile, ram.clone(), options);
        let mut machine = Machine {
            gpu,
            ram,
            root,
            pages: HashMap::new(),
            chain: dump.chain,
            lines,
        };
        for (address, bytes) in &dump.buffers {
            machine.map(*address, bytes.len() as u64);
            machine.write(*address, bytes);
        }
        machine.power_on();
        machine
    }

    fn power_on(&mut self) {
        for (present, on) in [(0x100, 0x180), (0x110, 0x190), (0x120, 0x1a0)] {
            let cores = self.gpu.read32(present);
            self.gpu.write32(on, cores);
        }
        // Mali LPAE, table mode, inner reads.
        self.gpu.write32(0x2400, self.root as u32 | 7);
        self.gpu.write32(0x2404, (self.root >> 32) as u32);
        self.gpu.write32(0x2408, 0x8888_8888);
        self.gpu.write32(0x240c, 0x8888_8888);
        self.gpu.write32(0x2418, 1);
    }

    pub(crate) fn map(&mut self, address: u64, bytes: u64) {
        for page in (address >> 12)..(address + bytes).div_ceil(4096) {
            if self.pages.contains_key(&page) {
                continue;
            }
            let leaf = self.ram.allocate().unwrap();
            self.pages.insert(page, leaf);
            let mut table = self.root;
            for level in 0..3 {
                let entry = table + (page >> (27 - 9 * level) & 511) * 8;
                let known = self.word(entry);
                table = if known == 0 {
                    let new = self.ram.allocate().unwrap();
                    self.ram.write(entry, &(new | 3).to_le_bytes()).unwrap();
                    new
                } else {
                    known & !0xfff
                };
            }
            self.ram
                .write(
                    table + (page & 511) * 8,
                    &(leaf | 1 | 1 << 6 | 1 << 7).to_le_bytes(),
                )
                .unwrap();
        }
    }

    fn word(&self, bus: u64) -> u64 {
        let mut bytes = [0; 8];
        self.ram.read(bus, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    pub(crate) fn write(&self, address: u64, bytes: &[u8]) {
        for (i, byte) in bytes.iter().enumerate() {
            let at = address + i as u64;
            let page = self.ram.page(self.pages[&(at >> 12)]).unwrap();
            page.store_u8((at & 0xfff) as usize, *byte);
        }
    }

    pub(crate) fn read(&self, address: u64, count: usize) -> Vec<u8> {
        let byte = |at: u64| {
            self.ram
                .page(self.pages[&(at >> 12)])
                .unwrap()
                .load_u8((at & 0xfff) as usize)
        };
        (address..address + count as u64).map(byte).collect()
    }

    pub(crate) fn pointer(&self, address: u64) -> u64 {
        self.read(address, 8)
            .iter()
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// The pointer `word` words after the first job's start.
    pub(crate) fn draw(&self, word: u64) -> u64 {
        self.pointer(self.chain + word * 4)
    }

    pub(crate) fn run(&mut self) -> Result<(), String> {
        // The dumps' storage, for four cores of 256 threads, is enough for one core.
        let affinity = 1;
        let chain = self.chain;
        self.gpu.write32(0x1004, u32::MAX);
        for (offset, value) in [
            (0xc0, chain as u32),
            (0xc4, (chain >> 32) as u32),
            (0xd0, affinity),
            (0xd4, 0),
            (0xd8, 0),
            (0xe0, 1),
        ] {
            self.gpu.write32(0x1800 + offset, value);
        }
        self.gpu.run();
        let (raw, status) = (self.gpu.read32(0x1000), self.gpu.read32(0x18a4));
        let header = self.read(chain, 4);
        if raw == 2 && status == 1 && header == [1, 0, 0, 0] {
            return Ok(());
        }
        let lines = self.lines.0.lock().unwrap().join("; ");
        Err(format!(
            "interrupts {raw:#x}, status {status:#x}, header {header:x?}: {lines}"
        ))
    }
}
