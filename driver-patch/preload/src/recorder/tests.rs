// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an app's calls to the trace, on the test's driver.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gpureplay_trace::{Driver as Driven, Event, PAGE_SIZE, Reader};
use mali_facts::registers::JobStatus;
use mali_uapi::kbase::Property;
use mali_uapi::panthor::GpuInfo;

use super::Recorder;
use crate::driver::{Driver, Mapped};
use crate::memory::{View, WORDS};
use crate::object::Object;
use crate::threads::Asleep;
use mali_uapi::panfrost::request::{self as uapi, CreateBo, Madvise, Submit};

type Memory = Arc<Vec<AtomicU64>>;

impl View for Memory {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

#[derive(Default)]
struct State {
    memory: RefCell<BTreeMap<(RawFd, u32), Memory>>,
    pages: RefCell<BTreeMap<u64, u64>>,
    clock: Cell<u64>,
    asleep: Cell<bool>,
}

struct Fake(Rc<State>);

/// Below ten one file of panfrost, below twenty another.
impl Driver for Fake {
    fn kind(&self, fd: RawFd) -> Option<Driven> {
        match fd {
            0..20 => Some(Driven::Panfrost),
            20..30 => Some(Driven::Panthor),
            30..40 => Some(Driven::Kbase),
            _ => None,
        }
    }
    fn gpu_info(&self, _: RawFd) -> Option<GpuInfo> {
        Some(GpuInfo {
            gpu_id: 0xa867_0005,
            shader_present: 0x5_0005,
            ..GpuInfo::default()
        })
    }
    fn is_same_file(&self, a: RawFd, b: RawFd) -> bool {
        a / 10 == b / 10
    }
    fn param(&self, _: RawFd, param: u32) -> Option<u64> {
        BTreeMap::from([(0, 0x7212), (1, 0), (2, 3), (7, 7)])
            .get(&param)
            .copied()
    }
    fn tree_is_coherent(&self, _: RawFd) -> bool {
        true
    }
    fn properties(&self, _: RawFd) -> Vec<Property> {
        vec![(25, 3), (55, 0x7212_0000), (60, 0)]
    }
    fn committed(&self, _: RawFd, va: u64) -> Option<u64> {
        self.0.pages.borrow().get(&va).copied()
    }
    fn map(&self, fd: RawFd, kind: Driven, object: &Object) -> Option<Mapped> {
        let (size, handle) = (object.size, object.handle);
        let handle = match kind {
            Driven::Kbase => (object.va >> 20) as u32,
            _ => handle,
        };
        let mut memory = self.0.memory.borrow_mut();
        let words = || Arc::new((0..size / 8).map(|_| AtomicU64::new(0)).collect());
        let memory = memory.entry((fd / 10, handle)).or_insert_with(words);
        Some(Mapped {
            offset: u64::from(handle) << 32,
            view: Box::new(memory.clone()),
        })
    }
    fn address(&self, _: RawFd, handle: u32) -> Option<u64> {
        Some(u64::from(handle) << 20)
    }
    fn shared_size(&self, _: RawFd) -> Option<u64> {
        Some(PAGE as u64)
    }
    fn invalidate(&self, _: RawFd, _: Driven, _: &Object) -> bool {
        false
    }
    fn asleep(&self) -> Option<Asleep> {
        self.0.asleep.get().then(|| Asleep(vec![(7, 1)]))
    }
    fn release(&self) -> String {
        "6.12".into()
    }
    fn now(&self) -> u64 {
        self.0.clock.replace(self.0.clock.get() + 1_000_000)
    }
}

const PAGE: usize = PAGE_SIZE;
const FD: RawFd = 3;

struct App {
    state: Rc<State>,
    recorder: Recorder<Fake>,
    folder: tempfile::TempDir,
}

impl App {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let state = Rc::<State>::default();
        let recorder = Recorder::new(Fake(state.clone()), folder.path().join("trace"));
        let mut app = Self {
            state,
            recorder,
            folder,
        };
        assert!(app.recorder.kind(FD).is_some());
        app
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("trace")
    }

    /// Address: the handle in units of 1 MiB.
    fn create(&mut self, fd: RawFd, handle: u32, flags: u32, pages: u32) {
        let made = CreateBo {
            size: pages * PAGE as u32,
            flags,
            handle,
            pad: 0,
            va: u64::from(handle) << 20,
        };
        self.recorder.created(fd, &made);
    }

    fn maps(&mut self, handle: u32) {
        self.recorder.maps(FD, u64::from(handle) << 32);
    }

    fn write(&self, fd: RawFd, handle: u32, word: usize, value: u64) {
        let memory = self.state.memory.borrow();
        memory[&(fd / 10, handle)][word].store(value, Ordering::Relaxed);
    }

    /// The header is at the start of object 1.
    fn job(&mut self, fd: RawFd, handles: &[u32], status: u64, work: impl FnOnce(&Self)) {
        let job = Submit {
            head: 1 << 20,
            in_syncs: 0,
            in_sync_count: 0,
            out_sync: 0,
            handles: 0,
            handle_count: 0,
            requirements: 0,
        };
        let wrong = self.recorder.before_job(fd, handles);
        self.recorder.started(fd, &job, 0, &wrong);
        self.write(fd, 1, 0, status);
        work(self);
        self.recorder.ended_job(fd, &job, status == 1);
    }

    /// Trace without identity and job slots, a line a record.
    fn end(mut self) -> Vec<String> {
        self.recorder.end();
        let trace = fs::read(self.trace()).unwrap();
        let mut reader = Reader::new(trace.as_slice());
        let mut lines = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            lines.push(match record.event {
                Event::RegRead { .. } => continue,
                Event::RegWrite { offset, value } if offset & !0x3c0 == 0x2400 => {
                    format!("table {value:#x}")
                }
                Event::RegWrite { .. } => continue,
                Event::Begin(begin) => format!("begin {} {}", begin.coherent, begin.in_app),
                Event::Map { va, size, .. } => format!("map {va:#x} {size:#x}"),
                Event::Unmap { va, .. } => format!("unmap {va:#x}"),
                Event::Region {
                    space,
                    flags,
                    va,
                    pages,
                } => format!("region {space} {flags} {va:#x} {pages}"),
                Event::Page {
                    phase, va, bytes, ..
                } => {
                    let first = bytes.map(|bytes| bytes[0]);
                    format!("{phase} {va:#x} {}", first.unwrap_or(0))
                }
                Event::Submit {
                    slot, chain_head, ..
                } => format!("submit {slot} {chain_head:#x}"),
                Event::Complete { status, .. } => format!("complete {status:#x}"),
                Event::Note(text) => format!("note {text}"),
                Event::Error { code, detail } => format!("error {} {detail:#x}", code.code()),
                Event::End { .. } => "end".into(),
                other => format!("{other:?}"),
            });
        }
        lines
    }
}

fn last(lines: &[String], count: usize) -> Vec<&str> {
    let lines = lines.iter().map(String::as_str);
    lines
        .skip_while(|line| !line.starts_with("map"))
        .skip(count)
        .collect()
}

#[test]
fn a_job_has_what_the_app_wrote_before_it_and_what_it_wrote_after_it() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.create(FD, 2, uapi::NO_EXECUTE, 2);
    app.maps(1);
    app.maps(2);
    app.write(FD, 2, WORDS, 5);
    app.job(FD, &[1, 2], 1, |app| app.write(FD, 2, 1, 7 << 8));
    app.write(FD, 2, WORDS, 6);
    app.job(FD, &[1, 2], 1, |app| app.write(FD, 2, 0, 9));
    let lines = app.end();
    assert_eq!(lines[0], "begin true true");
    let expected = [
        "region 0 rwxc 0x100000 1",
        "region 0 rw-c 0x200000 2",
        "before 0x100000 0",
        "before 0x200000 0",
        "before 0x201000 5",
        "table 0x1007",
        "submit 1 0x100000",
        "after 0x100000 1",
        "after 0x200000 0",
        "complete 0x1",
        "before 0x201000 6",
        "table 0x1007",
        "submit 1 0x100000",
        "after 0x200000 9",
        "complete 0x1",
        "end",
    ];
    assert_eq!(last(&lines, 2), expected);
}

#[test]
fn notes_that_come_first_follow_begin() {
    let mut app = App::new();
    app.recorder = Recorder::new(Fake(app.state.clone()), app.trace());
    app.recorder.note("early");
    assert!(app.recorder.kind(FD).is_some());
    app.recorder.note("late");
    app.create(FD, 1, 0, 1);
    app.job(FD, &[1], 1, |_| {});
    let lines = app.end();
    assert_eq!(lines[..3], ["begin true true", "note early", "note late"]);
}

#[test]
fn a_job_that_writes_what_it_does_not_list_fails_the_recording() {
    for freed in [false, true] {
        let mut app = App::new();
        app.create(FD, 1, 0, 1);
        app.create(FD, 2, 0, 3);
        app.job(FD, &[1, 2], 1, |_| {});
        app.job(FD, &[1], 1, |app| app.write(FD, 2, 2 * WORDS, 3));
        match freed {
            true => app.recorder.freed(FD, 2),
            false => app.job(FD, &[1, 2], 1, |_| {}),
        }
        let lines = app.end();
        assert!(lines.contains(&"error 11 0x202000".to_owned()), "{lines:?}");
    }
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.create(FD, 2, 0, 3);
    app.maps(2);
    app.job(FD, &[1, 2], 1, |_| {});
    app.write(FD, 2, 2 * WORDS, 3);
    app.job(FD, &[1, 2], 1, |_| {});
    let lines = app.end();
    assert!(lines.contains(&"before 0x202000 3".to_owned()));
    assert!(
        lines.iter().all(|line| !line.starts_with("error")),
        "{lines:?}"
    );
}

#[test]
fn what_a_job_does_not_list_waits_for_one_that_does_or_for_a_note() {
    for note in ["", "cl2 write at=0+0 size=4 hash=1 queue=0 complete=1"] {
        let mut app = App::new();
        app.recorder
            .note("cl2 launch id=0 queue=0 kernel=k global=1,1,1 local=-");
        app.create(FD, 1, 0, 1);
        app.create(FD, 2, 0, 1);
        app.maps(2);
        app.job(FD, &[1], 1, |_| {});
        app.write(FD, 2, 0, 3);
        app.recorder.note(note);
        app.job(FD, &[1], 1, |_| {});
        app.job(FD, &[1, 2], 1, |_| {});
        let lines = app.end();
        let at = |text: &str| lines.iter().position(|line| line == text).unwrap();
        let submits = lines[..at("before 0x200000 3")].iter();
        let submits = submits.filter(|line| line.starts_with("submit")).count();
        assert_eq!(submits, if note.is_empty() { 2 } else { 1 }, "{lines:?}");
    }
}

#[test]
fn a_job_that_writes_what_the_app_has_mapped_is_found_while_the_app_sleeps() {
    for asleep in [true, false] {
        let mut app = App::new();
        app.state.asleep.set(asleep);
        app.create(FD, 1, 0, 1);
        app.create(FD, 2, 0, 3);
        app.maps(2);
        app.state.clock.set(1_000_000_000);
        app.job(FD, &[1, 2], 1, |_| {});
        app.job(FD, &[1], 1, |app| app.write(FD, 2, WORDS, 3));
        let found = app.end().contains(&"error 11 0x201000".to_owned());
        assert_eq!(found, asleep);
    }
}

#[test]
fn purgeable_objects_are_not_read_and_heaps_are_not_there() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.create(FD, 2, 0, 1);
    app.create(FD, 3, uapi::HEAP | uapi::NO_EXECUTE, 1);
    app.maps(2);
    let mut advice = Madvise {
        handle: 2,
        advice: 1,
        retained: 0,
    };
    app.recorder.advises(FD, &advice);
    app.write(FD, 2, 0, 4);
    app.job(FD, &[1, 3], 1, |_| {});
    advice.advice = uapi::WILL_NEED;
    app.recorder.advises(FD, &advice);
    advice.retained = 1;
    app.recorder.advised(FD, &advice);
    app.job(FD, &[1, 2], 1, |_| {});
    // It is not read again, and a job that lists it cannot be recorded.
    advice.retained = 0;
    app.recorder.advised(FD, &advice);
    app.job(FD, &[1, 2], 1, |_| {});
    let lines = app.end();
    let of = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!(of("0x300000"), 0);
    assert_eq!(of("before 0x200000 4"), 1);
    assert_eq!(of("after 0x200000"), 0);
    assert_eq!(of("error 3 0x200000"), 1);
    let first = lines.iter().position(|line| line.starts_with("submit"));
    let seen = lines.iter().position(|line| line == "before 0x200000 4");
    assert!(seen > first);
}

#[test]
fn shared_objects_are_looked_at_whoever_lists_them() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.recorder.imported(FD, 50, 2);
    app.create(FD, 3, 0, 1);
    app.recorder.exported(FD, 3);
    app.job(FD, &[1], 1, |_| {});
    app.write(FD, 2, 0, 8);
    app.job(FD, &[1], 1, |app| app.write(FD, 3, 0, 9));
    let lines = app.end();
    assert!(lines.contains(&"map 0x200000 0x1000".to_owned()));
    assert!(lines.contains(&"before 0x200000 8".to_owned()));
    assert!(lines.contains(&"after 0x300000 9".to_owned()));
    assert!(lines.iter().all(|line| !line.starts_with("error")));
}

#[test]
fn files_have_a_page_table_each_until_their_last_number_is_closed() {
    let mut app = App::new();
    assert!(app.recorder.kind(5).is_some());
    assert!(app.recorder.kind(13).is_some());
    assert!(app.recorder.kind(40).is_none());
    app.create(5, 1, 0, 1);
    app.create(13, 1, 0, 1);
    app.job(FD, &[1], 1, |_| {});
    app.job(13, &[1], 1, |_| {});
    app.recorder.closes(FD);
    app.job(5, &[1], 1, |_| {});
    app.recorder.closes(5);
    let lines = app.end();
    let tables = lines.iter().filter(|line| line.starts_with("table 0x"));
    let tables: Vec<&str> = tables.map(String::as_str).collect();
    assert_eq!(tables, ["table 0x1007", "table 0x2007", "table 0x1007"]);
    assert_eq!(lines[lines.len() - 2..], ["unmap 0x100000", "end"]);
}

#[test]
fn a_fault_is_the_status_in_the_chain() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    let fault = u64::from(JobStatus::TRANSLATION_FAULT_3.0);
    app.job(FD, &[1], fault, |_| {});
    let lines = app.end();
    assert!(lines.contains(&"complete 0xc3".to_owned()), "{lines:?}");
}

#[test]
fn what_was_made_unseen_is_named_by_its_handle() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.job(FD, &[1, 77], 1, |_| {});
    assert!(app.end().contains(&"error 13 0x4d".to_owned()));
}

#[test]
fn an_app_without_a_job_leaves_no_trace() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.recorder.note("hello");
    app.recorder.end();
    assert!(!app.trace().exists());
    assert!(!app.recorder.wants_notes());
}

#[test]
fn a_job_that_was_let_through_fails_the_recording_though_it_is_the_only_one() {
    let mut app = App::new();
    app.create(FD, 1, 0, 1);
    app.recorder.lost_job(&Submit::default());
    assert_eq!(last(&app.end(), 1), ["error 9 0x2", "end"]);
}

mod atoms;
mod streams;
