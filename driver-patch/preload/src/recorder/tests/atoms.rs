// SPDX-License-Identifier: MIT OR Apache-2.0
//! kbase on the test's driver: cookies, addresses, growth, refusals.

use gpureplay_trace::ErrorCode;
use mali_uapi::kbase::request::{Atom, Event, event, flags, requirement};

use super::*;
use crate::recorder::atoms::refusal;
use crate::regions::Region;

const MALI: RawFd = 33;
const COOKIE: u64 = 0x4_1000;

impl App {
    fn on_kbase() -> Self {
        let mut app = Self::new();
        // No job: nothing is written of panfrost.
        app.recorder = Recorder::new(Fake(app.state.clone()), app.trace());
        assert_eq!(app.recorder.kind(MALI), Some(Driven::Kbase));
        app
    }

    /// By a mapped cookie, as libmali on 64 bits.
    fn region(&mut self, handle: u32, pages: u64, flags: u64, grows: bool) {
        let region = Region {
            at: COOKIE,
            pages,
            flags,
            grows,
        };
        self.recorder.made_region(MALI, region);
        self.recorder.placed(MALI, COOKIE, u64::from(handle) << 20);
    }

    fn atom(&mut self, code: u32, work: impl FnOnce(&Self)) {
        let atom = Atom {
            chain: 1 << 20,
            requirements: requirement::COMPUTE,
            ..Atom::default()
        };
        self.recorder.before_atom(MALI);
        self.recorder.started_atom(MALI, &atom, 0);
        self.write(MALI, 1, 0, u64::from(code));
        work(self);
        self.recorder.ended_atom(MALI, &atom, code);
    }
}

const DATA: u64 = flags::GPU_READ | flags::GPU_WRITE;

#[test]
fn a_region_is_there_from_its_mapping_until_it_is_unmapped() {
    let mut app = App::on_kbase();
    app.region(1, 1, DATA, false);
    let code = Region {
        at: 2 << 20,
        pages: 2,
        flags: flags::GPU_READ | flags::GPU_EXECUTE,
        grows: false,
    };
    app.recorder.made_region(MALI, code);
    assert!(app.recorder.has_regions((2 << 20) + 0x1fff, 1));
    assert!(!app.recorder.has_regions((2 << 20) + 0x2000, 0x1000));
    app.atom(event::DONE, |app| app.write(MALI, 1, 1, 0));
    app.write(MALI, 2, WORDS, 6);
    app.atom(event::DONE, |_| {});
    assert!(app.recorder.has_regions(2 << 20, 1));
    // The driver frees all of it.
    app.recorder.vacated((2 << 20) + 0x1000, 0x1000);
    assert!(!app.recorder.has_regions(2 << 20, 1));
    app.atom(event::DONE, |_| {});
    let lines = app.end();
    assert_eq!(lines[0], "begin true true");
    let expected = [
        "region 0 rw-c 0x100000 1",
        "region 0 r-xc 0x200000 2",
        "before 0x100000 0",
        "before 0x200000 0",
        "before 0x201000 0",
        "table 0x1007",
        "submit 1 0x100000",
        "after 0x100000 1",
        "complete 0x1",
        "before 0x201000 6",
        "table 0x1007",
        "submit 1 0x100000",
        "complete 0x1",
        "unmap 0x200000",
        "region 0 rw-c 0x100000 1",
        "table 0x1007",
        "submit 1 0x100000",
        "complete 0x1",
        "end",
    ];
    assert_eq!(last(&lines, 2), expected);
}

#[test]
fn pages_that_a_region_gets_in_a_job_are_its_own() {
    let mut app = App::on_kbase();
    app.region(1, 1, DATA, false);
    app.region(2, 4, DATA | flags::GROW, true);
    app.state.pages.borrow_mut().insert(2 << 20, 1);
    app.atom(event::DONE, |app| {
        app.state.pages.borrow_mut().insert(2 << 20, 3);
        app.write(MALI, 2, 2 * WORDS, 9);
        // This page is not committed: what memory holds does not count.
        app.write(MALI, 2, 3 * WORDS, 7);
    });
    let lines = app.end();
    let expected = [
        "region 0 rw-c 0x100000 1",
        "region 0 rw-c 0x200000 1",
        "before 0x100000 0",
        "before 0x200000 0",
        "table 0x1007",
        "submit 1 0x100000",
        "region 0 rw-c 0x100000 1",
        "region 0 rw-c 0x200000 3",
        "after 0x100000 1",
        "after 0x201000 0",
        "after 0x202000 9",
        "complete 0x1",
        "end",
    ];
    assert_eq!(last(&lines, 2), expected);
}

#[test]
fn a_fault_is_the_status_of_the_header() {
    let mut app = App::on_kbase();
    app.region(1, 1, DATA, false);
    app.atom(0x58, |_| {});
    assert!(app.end().contains(&"complete 0x58".to_owned()));
}

#[test]
fn events_wait_for_the_app_in_their_order() {
    let mut app = App::on_kbase();
    assert!(!app.recorder.has_event(MALI));
    for atom in [4, 2] {
        let event = Event {
            code: event::DONE,
            atom,
            ..Event::default()
        };
        app.recorder.keep_event(MALI, event);
    }
    let mut next = || app.recorder.next_event(MALI).map(|event| event.atom);
    assert_eq!([next(), next(), next()], [Some(4), Some(2), None]);
}

#[test]
fn what_is_not_followed_is_refused_by_its_name() {
    let of = |requirements| {
        let atom = Atom {
            requirements,
            ..Atom::default()
        };
        refusal(&atom).map(|(code, _)| code)
    };
    assert_eq!(of(requirement::JIT_ALLOC), Some(ErrorCode::JitMemory));
    assert_eq!(of(requirement::JIT_FREE), Some(ErrorCode::JitMemory));
    // A fence that is waited for, and a render pass.
    assert_eq!(of(requirement::SOFT_JOB | 3), Some(ErrorCode::SoftJob));
    let pass = requirement::COMPUTE | 1 << 18;
    assert_eq!(of(pass), Some(ErrorCode::SoftJob));
    // Nine in the low bits alone is a fragment and a cache flush.
    assert_eq!(of(9), None);
    assert_eq!(of(requirement::COMPUTE), None);

    let mut app = App::on_kbase();
    app.region(1, 1, DATA, false);
    assert!(!app.recorder.is_refused(MALI));
    app.recorder
        .refuses(MALI, ErrorCode::JitMemory, requirement::JIT_ALLOC.into());
    assert!(app.recorder.is_refused(MALI));
    let lines = app.end();
    assert!(lines.contains(&"error 14 0x209".to_owned()), "{lines:?}");
}
