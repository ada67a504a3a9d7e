// SPDX-License-Identifier: MIT OR Apache-2.0
//! One job on two drivers: panfrost, and Arm's kbase (`cargo xtask guest kbase`). Recordings may differ only as
//! driver-patch/kbase/README.md explains.

use std::collections::BTreeMap;

use gpureplay_format::lz4::History;
use gpureplay_format::{Access, Action, PAGE_SIZE, Payload, Recording};
use gpureplay_kit::shipped;

/// Code moves by whole windows of 16 MiB.
const WINDOW: u64 = 1 << 24;
/// SHADER_CONFIG: panfrost leaves it.
const ONLY_KBASE: [u16; 1] = [0xf04];

type Page = [u8; PAGE_SIZE as usize];

#[derive(Default)]
struct Course {
    writes: Vec<Write>,
    /// Other actions than register writes, uploads, fills and seeks.
    steps: Vec<String>,
    /// Nonzero pages after all uploads.
    memory: BTreeMap<u64, Page>,
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(shipped(name).join("recording.gpr")).unwrap()
}

fn course(recording: &Recording<'_>) -> Course {
    let mut out = Course::default();
    let mut memory: BTreeMap<u64, Page> = BTreeMap::new();
    let mut put = |va: u64, bytes: &[u8]| {
        for (at, byte) in (va..).zip(bytes) {
            let page = memory.entry(at - at % u64::from(PAGE_SIZE));
            page.or_insert([0; PAGE_SIZE as usize])[(at % u64::from(PAGE_SIZE)) as usize] = *byte;
        }
    };
    for segment in recording.segments() {
        let mut history = Box::new(History::new());
        for action in recording.segment_actions(segment) {
            match action.unwrap() {
                Action::Write { register, value } => out.writes.push((register, value)),
                Action::Upload {
                    va,
                    length,
                    payload,
                } => match payload {
                    Payload::Raw(bytes) => put(va, bytes),
                    Payload::Lz4(block) => {
                        put(va, history.decode(block, length as usize).unwrap());
                    }
                },
                Action::Fill { va, length, byte } => put(va, &vec![byte; length as usize]),
                Action::Seek { .. } => {}
                other => out.steps.push(format!("{other:x?}")),
            }
        }
    }
    memory.retain(|_, page| page.iter().any(|&byte| byte != 0));
    out.memory = memory;
    out
}

fn is_code(recording: &Recording<'_>, va: u64) -> bool {
    let region = recording.region_of(va, 1);
    region.is_some_and(|region| Access(region.access).contains(Access::EXECUTE))
}

struct Side<'a> {
    recording: &'a Recording<'a>,
    course: Course,
}

fn code_window(recording: &Recording<'_>) -> Option<u64> {
    let mut regions = recording.regions().iter();
    let code = regions.find(|region| is_code(recording, region.va.get()))?;
    Some(code.va.get() & !(WINDOW - 1))
}

type Write = (u16, u32);

fn same(panfrost: &Side<'_>, kbase: &Side<'_>) -> Result<(), String> {
    let (first, second) = (&panfrost.course, &kbase.course);
    let known = |write: &&Write| first.writes.contains(write);
    let (common, only): (Vec<&Write>, Vec<&Write>) = second.writes.iter().partition(known);
    if only.iter().map(|write| write.0).ne(ONLY_KBASE) {
        return Err(format!("only kbase writes {only:x?}"));
    }
    if common.into_iter().ne(&first.writes) {
        return Err("register writes differ".into());
    }
    if first.steps != second.steps {
        return Err(format!("{:#?}\n{:#?}", first.steps, second.steps));
    }
    let names = |side: &Side<'_>| -> Vec<String> {
        let tensors = side.recording.tensors().iter();
        tensors
            .map(|tensor| side.recording.name(tensor.name.get()).to_string())
            .collect()
    };
    if names(panfrost) != names(kbase) {
        return Err("tensors differ".into());
    }
    same_memory(panfrost, kbase)
}

/// Code at one distance, and one pointer to it in the renderer state.
fn same_memory(panfrost: &Side<'_>, kbase: &Side<'_>) -> Result<(), String> {
    let windows = code_window(panfrost.recording).zip(code_window(kbase.recording));
    let (from, to) = windows.ok_or("a recording has no code")?;
    let (first, second) = (&panfrost.course.memory, &kbase.course.memory);
    if first.len() != second.len() {
        return Err(format!("{} pages and {}", first.len(), second.len()));
    }
    let mut moved = 0;
    for (&va, page) in first {
        let code = is_code(panfrost.recording, va);
        let place = if code { va - from + to } else { va };
        let other = second
            .get(&place)
            .ok_or_else(|| format!("nothing at {place:#x}"))?;
        let words = page.chunks_exact(8).zip(other.chunks_exact(8));
        for (x, y) in words.filter(|(x, y)| x != y) {
            let word = |bytes: &[u8]| bytes.iter().rfold(0, |sum, &b| sum << 8 | u64::from(b));
            let (x, y) = (word(x), word(y));
            if !is_code(panfrost.recording, x) || x - from + to != y {
                return Err(format!("in the page {va:#x}: {x:#x} and {y:#x}"));
            }
            moved += 1;
        }
    }
    if from == to || moved != 1 {
        return Err(format!("code at {from:#x} and {to:#x}, {moved} pointers"));
    }
    Ok(())
}

fn compare(change: impl FnOnce(&mut Course)) -> Result<(), String> {
    let (a, b) = (read("saxpy-g52"), read("saxpy-kbase-g52"));
    let (a, b) = (Recording::parse(&a).unwrap(), Recording::parse(&b).unwrap());
    let side = |recording| Side {
        recording,
        course: course(recording),
    };
    let (panfrost, mut kbase) = (side(&a), side(&b));
    assert!(panfrost.course.memory.len() >= 5 && panfrost.course.steps.len() >= 5);
    change(&mut kbase.course);
    same(&panfrost, &kbase)
}

#[test]
fn a_job_on_kbase_is_the_job_on_panfrost() {
    assert_eq!(compare(|_| {}), Ok(()));
}

#[test]
fn other_differences_are_seen() {
    let register = |index: usize| compare(move |course| course.writes[index].1 ^= 1);
    let writes = {
        let bytes = read("saxpy-kbase-g52");
        course(&Recording::parse(&bytes).unwrap()).writes
    };
    for (index, (number, _)) in writes.iter().enumerate() {
        assert_eq!(register(index).is_err(), !ONLY_KBASE.contains(number));
    }
    let changes: [fn(&mut Course); 6] = [
        |course| course.writes.extend_from_within(1..),
        |course| course.writes.truncate(course.writes.len() - 1),
        |course| course.writes.push((0x1234, 0)),
        |course| course.steps.truncate(course.steps.len() - 1),
        |course| course.steps.swap(0, 1),
        |course| course.memory.retain(|&va, _| va != 0xa00_7000),
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert!(compare(change).is_err(), "change {index}");
    }
    let pages = {
        let bytes = read("saxpy-kbase-g52");
        course(&Recording::parse(&bytes).unwrap()).memory
    };
    for va in pages.into_keys() {
        let change = move |course: &mut Course| course.memory.get_mut(&va).unwrap()[17] ^= 1;
        assert!(compare(change).is_err(), "{va:#x}");
    }
}
