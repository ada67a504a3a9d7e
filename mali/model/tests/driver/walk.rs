// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walking chains without running them.

use mali_facts::{
    Access, Text,
    walk::{MemoryUse, Problem, Purpose, Visitor, walk_chain},
};
use mali_model::{Architecture, Profile};

use crate::machine::{CODE, DATA, JOBS, Machine, NOWHERE};

#[derive(Default)]
struct Collect {
    uses: Vec<MemoryUse>,
    problems: Vec<String>,
}

impl Visitor for Collect {
    fn memory(&mut self, memory: &MemoryUse) {
        self.uses.push(*memory);
    }

    fn problem(&mut self, address: u64, problem: &Problem) {
        self.problems.push(format!("{address:#x}: {problem}"));
    }
}

fn collect(machine: &Machine, head: u64) -> (u32, Collect) {
    let mut found = Collect::default();
    let profile = Profile::by_name("g52").unwrap();
    let jobs = walk_chain(&machine.memory, profile, head, &mut found);
    (jobs, found)
}

#[test]
fn everything_a_chain_names_is_found() {
    let machine = Machine::new();
    machine
        .memory
        .write_value_job(JOBS, DATA + 8, 1, JOBS + 0x400);
    machine.memory.compute_job(JOBS + 0x400, 64, 0);
    let (jobs, found) = collect(&machine, JOBS);
    assert_eq!((jobs, found.problems), (2, vec![]));
    for (purpose, address, length, access) in [
        (Purpose::Value, DATA + 8, Some(8), Access::Write),
        (Purpose::Shader, CODE, None, Access::Execute),
        (Purpose::PushUniforms, JOBS + 0x580, Some(24), Access::Read),
        (Purpose::Descriptor, JOBS + 0x500, Some(64), Access::Read),
        (Purpose::Status, JOBS + 0x400, Some(16), Access::Write),
    ] {
        let expected = (purpose, 0, address, length, access);
        let mut uses = found.uses.iter();
        assert!(
            uses.any(|it| (it.purpose, it.index, it.address, it.length, it.access) == expected),
            "{expected:x?} in {:x?}",
            found.uses
        );
    }
}

#[test]
fn broken_chains_are_explained() {
    let machine = Machine::new();
    machine.memory.write_value_job(JOBS, DATA, 1, JOBS + 0x40);
    machine.memory.write_value_job(JOBS + 0x40, DATA, 1, JOBS);
    let (jobs, found) = collect(&machine, JOBS);
    assert_eq!(
        (jobs, found.problems),
        (2, vec![format!("{JOBS:#x}: the chain returns to this job")])
    );
    let (_, found) = collect(&machine, NOWHERE);
    assert_eq!(
        found.problems,
        [format!("{NOWHERE:#x}: Job header cannot be read")]
    );
    let (_, found) = collect(&machine, JOBS + 4);
    assert_eq!(found.problems.len(), 1);
}

#[test]
fn dumps_name_every_field() {
    let machine = Machine::new();
    machine.memory.compute_job(JOBS, 64, 0);
    let mut text = String::new();
    let mut writer = Text::new(&mut text, Architecture::V7);
    let profile = Profile::by_name("g52").unwrap();
    walk_chain(&machine.memory, profile, JOBS, &mut writer);
    writer.finish().unwrap();
    for line in [
        "job 0x2000000 COMPUTE",
        "  Job header at 0x2000000",
        "    Type: COMPUTE",
        "    work groups of [16, 1, 1] threads: [4, 1, 1]",
        "  Renderer state at 0x2000100",
        "    Shader: 0x3000000",
        "    Shader register allocation: 32 per thread",
        "    Uniform count: 3",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}
