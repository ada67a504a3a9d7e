// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model tests' GPU on a recording bus, and invariants after any run.
// Each target uses a part.
#![allow(dead_code, unused_imports)]

#[path = "../../../mali/model/tests/driver/machine.rs"]
mod machine;
#[path = "../../../mali/model/tests/driver/picture.rs"]
mod picture;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_memory::{Bus, PAGE_SIZE, Page, Ram};
use mali_model::Options;
use mali_facts::registers::{JobStatus, job_slot};

pub(crate) use machine::{CODE, CONFIG, DATA, Format, GPUS, JOBS, Machine, Rights};
pub(crate) use picture::FRAGMENT_JOB;

const PAGE: u64 = PAGE_SIZE as u64;
const PAGES: usize = 256;
/// Content of a page that no page table names.
const CANARY: u64 = 0x5ca1_ab1e_0dd5_eed5;

pub(crate) struct Recorder {
    ram: Arc<Ram>,
    asked: Mutex<BTreeSet<u64>>,
}

impl Bus for Recorder {
    fn page(&self, address: u64) -> Option<Page<'_>> {
        let page = self.ram.page(address)?;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(address - address % PAGE);
        Some(page)
    }
}

pub(crate) struct Watched {
    pub(crate) machine: Machine<Recorder>,
    pub(crate) ram: Arc<Ram>,
    bus: Arc<Recorder>,
    canary: u64,
}

impl Watched {
    pub(crate) fn new(gpu: u8, format: Format) -> Watched {
        let gpu = GPUS[usize::from(gpu) % GPUS.len()];
        let options = Options {
            threads: 1,
            clause_budget: 4000,
            ..Options::default()
        };
        let ram = Arc::new(Ram::new(PAGES).expect("memory"));
        let bus = Arc::new(Recorder {
            ram: ram.clone(),
            asked: Mutex::default(),
        });
        let machine = Machine::on(bus.clone(), ram.clone(), gpu, format, options);
        machine.memory.compute_job(JOBS, 64, 0);
        let canary = ram.allocate().expect("a page");
        ram.page(canary).expect("the page").fill_u64(CANARY);
        Watched {
            machine,
            ram,
            bus,
            canary,
        }
    }

    /// Replaces the good job by a vertex job for slot 1 and a fragment job for slot 0.
    pub(crate) fn draw(&self, gpu: u8) {
        let v6 = matches!(GPUS[usize::from(gpu) % GPUS.len()], "g71" | "g72");
        picture::write(&self.machine.memory, v6);
    }

    pub(crate) fn submit_and_run(&mut self) {
        self.run(1, JOBS);
    }

    /// The chain must end, and may only touch reachable pages.
    pub(crate) fn run(&mut self, slot: u32, chain: u64) {
        let mut given = self.reachable();
        self.bus.asked.lock().expect("one thread").clear();
        self.machine.submit(slot, chain, CONFIG);
        self.machine.gpu.run();
        let status = self.machine.slot(slot, job_slot::STATUS);
        assert_ne!(status, JobStatus::ACTIVE.0, "the chain has no end");
        let asked = self.bus.asked.lock().expect("one thread").clone();
        if asked.is_subset(&given) {
            return;
        }
        // A job may have written to the tables.
        given.append(&mut self.reachable());
        for page in asked {
            assert!(given.contains(&page), "no page table leads to {page:#x}");
        }
    }

    /// Anything that looks like an entry counts as one.
    fn reachable(&self) -> BTreeSet<u64> {
        let memory = Ram::BASE..Ram::BASE + PAGE * PAGES as u64;
        // The first page that a machine takes is the root.
        let mut tables = BTreeSet::from([memory.start]);
        let mut all = tables.clone();
        for level in 0..4 {
            let mut next = BTreeSet::new();
            for &table in &tables {
                let page = self.ram.page(table).expect("the page");
                for at in (0..PAGE_SIZE).step_by(8) {
                    let entry = page.load_u64(at);
                    let to = entry & 0xffff_ffff_f000;
                    match (entry & 3, level) {
                        (0, _) => {}
                        (1, 0..3) => {
                            // A block: 512 GiB, 1 GiB, 2 MiB.
                            let size = PAGE << (9 * (3 - level));
                            let block = to & !(size - 1);
                            let end = block.saturating_add(size).min(memory.end);
                            all.extend((block.max(memory.start)..end).step_by(PAGE_SIZE));
                        }
                        _ if memory.contains(&to) => _ = next.insert(to),
                        _ => {}
                    }
                }
            }
            all.extend(&next);
            tables = next;
        }
        all
    }

    pub(crate) fn check_canary(&self) {
        let page = self.ram.page(self.canary).expect("the page");
        for at in (0..PAGE_SIZE).step_by(8) {
            assert_eq!(page.load_u64(at), CANARY, "a page outside was written");
        }
    }
}
