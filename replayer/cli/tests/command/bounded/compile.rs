// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces with expensive notes.

use gpureplay_trace::{Driver, Phase, RegionFlags, Writer};

use super::*;

fn trace(notes: impl Iterator<Item = String>, jobs: usize) -> Vec<u8> {
    trace_of(notes.map(Some).chain((0..jobs).map(|_| None)))
}

fn trace_of(steps: impl Iterator<Item = Option<String>>) -> Vec<u8> {
    let mut trace = begun_with_jobs();
    for step in steps {
        match step {
            Some(note) => trace.note(&note).unwrap(),
            None => submit(&mut trace),
        }
    }
    trace.end().unwrap()
}

fn begun_with_jobs() -> Writer<Vec<u8>> {
    let mut page = [0; 4096];
    page[16] = 1 | 4 << 1;
    let mut trace = empty();
    trace.reg_read(0, GPU).unwrap();
    trace.region(0, RegionFlags(3), JOBS, 1).unwrap();
    trace.page(0, Phase::Before, JOBS, &page).unwrap();
    trace.reg_write(0x18c0, JOBS as u32).unwrap();
    trace
}

fn empty() -> Writer<Vec<u8>> {
    Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12").unwrap()
}

fn submit(trace: &mut Writer<Vec<u8>>) {
    trace.submit(1, 0, JOBS).unwrap();
    trace.complete(1, 1).unwrap();
}

fn compiled(trace: &[u8]) -> (i32, String, String) {
    compiled_from(trace, false)
}

fn compiled_from(trace: &[u8], twice: bool) -> (i32, String, String) {
    let folder = Folder::default();
    let path = folder.text("trace");
    std::fs::write(&path, trace).unwrap();
    let second = match twice {
        true => format!("--second {path}"),
        false => String::new(),
    };
    let compile = format!("compile --suggest {path} {second}");
    limited(MEMORY, &compile)
}

fn launch(id: usize, queue: usize, items: u64) -> String {
    format!("cl2 launch id={id} queue={queue} kernel=k global={items},1,1 local=-")
}

#[test]
fn pages_may_come_in_descending_order() {
    let mut trace = empty();
    for page in (1..350_000).rev() {
        trace
            .page(0, Phase::Before, page << 12, &[0; 4096])
            .unwrap();
    }
    compiled(&trace.end().unwrap()).ended(3, "no GPU job");
}

#[test]
fn launches_of_many_small_chains_are_matched_in_bounded_time() {
    let launches = (0..4000).map(|id| launch(id, 1, 1 << 40));
    compiled(&trace(launches, 4000)).gave(0);
}

#[test]
fn launches_of_many_queues_are_matched_in_bounded_memory() {
    let launches = (0..1000).map(|id| launch(id, id + 1, 1));
    compiled(&trace(launches, 1000)).gave(0);
}

#[test]
fn launches_that_are_all_alike_are_no_loop_that_is_looked_for_without_end() {
    let launches = (0..30_000).map(|id| launch(id, 1, 1));
    compiled(&trace(launches, 1)).gave(0);
}

fn given(objects: impl Iterator<Item = usize>) -> String {
    objects.map(|object| format!(" ::o{object}")).collect()
}

fn written(object: usize, offset: usize, hash: u64) -> String {
    format!("cl2 write at={object}+{offset} size=4 hash={hash:x} queue=- complete=1")
}

#[test]
fn turns_of_launches_with_many_arguments_are_looked_for_in_bounded_time() {
    let steps = 8000;
    let step = |at: usize| match at % 2 {
        0 => written(0, 0, 7),
        _ => {
            let last = 300 + usize::from(at + 1 == steps);
            format!("{}{}", launch(at, 1, 1), given((1..255).chain([last])))
        }
    };
    compiled(&trace((0..steps).map(step), 1)).gave(0);
}

#[test]
fn what_launches_with_many_arguments_read_is_looked_for_in_bounded_time() {
    let parts = (0..255).map(|id| format!("cl2 object id={} kind=part of=0+{id} size=1", id + 1));
    let notes = ["cl2 object id=0 kind=buffer size=65536".to_owned()].into_iter();
    let notes = notes.chain(parts);
    let notes = notes.chain((0..12_000).map(|at| written(0, 1000 + 4 * at, at as u64)));
    let launches = (0..12_000).map(|at| launch(at, 1, 1) + &given(1..256));
    compiled(&trace(notes.chain(launches), 1)).ended(3, "takes too long");
}

#[test]
fn queues_that_are_idle_again_and_again_are_matched_in_bounded_time() {
    let queues = 17;
    let notes = (0..5_000).flat_map(|_| {
        let launches = (0..queues).map(|at| Some(launch(at, at, 1)));
        let idle = (0..queues).map(|at| Some(format!("cl2 idle queue={at}")));
        launches.chain((0..queues).map(|_| None)).chain(idle)
    });
    compiled(&trace_of(notes)).gave(0);
}

/// Every four bytes of a page are written into each buffer; a launch is given them. A last buffer is written and
/// given to another launch. Then come `jobs` jobs.
fn trace_of_writes(buffers: usize, jobs: usize) -> Vec<u8> {
    let data: [u8; 4096] = std::array::from_fn(|at| (at % 251) as u8 + 1);
    let write = |buffer: usize, at: usize| {
        let hash = gpureplay_trace::note::content_hash(&data[at..at + 4]);
        written(buffer, at, hash)
    };
    let mut trace = begun_with_jobs();
    trace.region(0, RegionFlags(3), DATA, 100).unwrap();
    trace.mapping(true, Some(0), 0, DATA, 4096).unwrap();
    trace.page(0, Phase::Before, DATA, &data).unwrap();
    for id in 0..=buffers {
        let object = format!("cl2 object id={id} kind=buffer size=4096");
        trace.note(&object).unwrap();
    }
    for (id, at) in (0..buffers).flat_map(|id| (0..1000).map(move |at| (id, 4 * at))) {
        trace.note(&write(id, at)).unwrap();
    }
    trace.note(&(launch(0, 1, 1) + &given(0..buffers))).unwrap();
    trace.note(&write(buffers, 4000)).unwrap();
    let last = launch(1, 1, 1) + &given(buffers..buffers + 1);
    trace.note(&last).unwrap();
    (0..jobs).for_each(|_| submit(&mut trace));
    trace.end().unwrap()
}

#[test]
fn weights_are_looked_for_among_what_the_app_loads_in_one_pass() {
    let (code, ..) = compiled(&trace_of_writes(50, 100_000));
    assert_eq!(code, 0);
}

#[test]
fn values_of_a_second_run_are_looked_up() {
    let (code, ..) = compiled_from(&trace_of_writes(150, 2), true);
    assert_eq!(code, 0);
}
