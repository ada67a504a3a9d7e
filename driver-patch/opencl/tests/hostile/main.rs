// SPDX-License-Identifier: MIT OR Apache-2.0
//! A hostile app sees the same with the layer, which keeps little.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the test plays both sides of a C interface"
)]

#[path = "../app/mod.rs"]
mod app;
mod runtime;

use core::ptr;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use gpureplay_trace::note::{Content, Direction, Note};

use app::*;
use runtime::*;

struct Counting;

static HELD: AtomicIsize = AtomicIsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Relaxed);
        unsafe { System.dealloc(place, layout) };
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

fn kept(work: impl FnOnce()) -> isize {
    let before = HELD.load(Relaxed);
    work();
    HELD.load(Relaxed) - before
}

/// Bytes kept of refused calls.
const LITTLE: isize = 64 << 10;

const LIMIT: Duration = Duration::from_secs(60);

const WILD: usize = 0x5_0008;

fn launch(app: &App, queue: usize, kernel: usize, dimensions: u32, sizes: Sizes) -> i32 {
    let (sizes, event) = ((sizes, ptr::null()), ptr::null_mut());
    app.launch((queue, kernel), dimensions, sizes, event)
}

fn what_the_runtime_never_follows(app: &App, _: &Path) {
    let wild = ptr::without_provenance::<usize>(WILD);
    let sizes = [4usize, 1, 1];
    assert_eq!(launch(app, 0, WILD, 1, sizes.as_ptr()), BAD_QUEUE);
    assert_eq!(launch(app, 0, KERNEL, 3, wild), BAD_QUEUE);
    assert_eq!(launch(app, QUEUE, WILD, 1, wild), BAD_KERNEL);
    for dimensions in [0, 4, 77, u32::MAX] {
        assert_eq!(launch(app, QUEUE, KERNEL, dimensions, wild), BAD_DIMENSIONS);
    }
    assert_eq!(launch(app, QUEUE, KERNEL, 2, ptr::null()), BAD_SIZES);

    let mut status = 1;
    let create = app.get::<CreateQueue>(CREATE_QUEUE_WITH_PROPERTIES);
    let list = ptr::without_provenance(WILD);
    assert_eq!(create(0, DEVICE, list, &mut status), 0);
    assert_eq!(status, BAD_CONTEXT);
    let create = app.get::<CreateKernels>(CREATE_KERNELS);
    let count = ptr::without_provenance_mut(WILD);
    assert_eq!(create(0, 1, ptr::null_mut(), count), BAD_PROGRAM);
}

fn what_is_refused_is_not_kept(app: &App, _: &Path) {
    let sizes = [4usize];
    let svm = app.get::<SetSvm>(SET_SVM);
    let kept = kept(|| {
        for turn in 1..20_000usize {
            assert_eq!(svm(WILD + turn, turn as u32, ptr::null()), BAD_KERNEL);
            assert_eq!(svm(KERNEL, turn as u32, ptr::null()), BAD_ARGUMENT);
            assert_eq!(
                launch(app, WILD + turn, KERNEL, 1, sizes.as_ptr()),
                BAD_QUEUE
            );
            assert_eq!(
                launch(app, QUEUE, WILD + turn, 1, sizes.as_ptr()),
                BAD_KERNEL
            );
        }
    });
    assert!(kept < LITTLE, "{kept} bytes are kept");
}

fn what_is_released_is_not_kept(app: &App, _: &Path) {
    let create = app.get::<CreateKernel>(CREATE_KERNEL);
    let release = app.get::<Release>(RELEASE_KERNEL);
    let kept = kept(|| {
        for _ in 0..5_000 {
            let mut status = 1;
            let kernel = create(PROGRAM, c"k".as_ptr(), &mut status);
            assert_eq!(launch(app, QUEUE, kernel, 1, [4usize].as_ptr()), 0);
            assert_eq!(release(kernel), 0);
            assert_eq!(launch(app, QUEUE, kernel, 1, [4usize].as_ptr()), BAD_KERNEL);
        }
    });
    assert!(kept < LITTLE, "{kept} bytes are kept");
}

fn reads_without_an_end(app: &App, _: &Path) {
    let mut to = [0u8; 4];
    EVENT_STATUS.store(3, Relaxed);
    for _ in 0..20_000 {
        assert_eq!(app.read((QUEUE, BUFFER), 0, &mut to, ptr::null_mut()), 0);
    }
    let held = EVENTS.load(Relaxed);
    assert!((1..=4096).contains(&held), "{held} events are held");
    EVENT_STATUS.store(0, Relaxed);
    assert_eq!(app.get::<Release>(FINISH)(QUEUE), 0);
    assert_eq!(EVENTS.load(Relaxed), 0, "events after the end of all reads");
}

/// The runtime calls the app, which calls the layer.
fn the_end_of_an_event_calls_back(app: &App, _: &Path) {
    static INFO: AtomicUsize = AtomicUsize::new(0);
    INFO.store(app.get::<usize>(EVENT_INFO), Relaxed);
    fn again() {
        let info: Info = unsafe { core::mem::transmute(INFO.load(Relaxed)) };
        let mut status = 0i32;
        let place = ptr::from_mut(&mut status).cast();
        assert_eq!(info(0x77, 0x11d3, 4, place, ptr::null_mut()), 0);
    }
    *ON_RELEASE.lock().unwrap() = Some(again);
    let mut to = [0u8; 4];
    assert_eq!(app.read((QUEUE, BUFFER), 0, &mut to, ptr::null_mut()), 0);
    assert_eq!(app.get::<Release>(FINISH)(QUEUE), 0);
    *ON_RELEASE.lock().unwrap() = None;
}

fn mapped_memory_that_is_gone(app: &App, _: &Path) {
    EVENT_STATUS.store(3, Relaxed);
    let memory = app.map((QUEUE, BUFFER), 0, 1, SIZE);
    forget_mapping(memory);
    EVENT_STATUS.store(0, Relaxed);
    assert_eq!(app.get::<Release>(FINISH)(QUEUE), 0);
    let memory = app.map((QUEUE, BUFFER), 1, 3, SIZE);
    forget_mapping(memory);
    assert_eq!(app.unmap((QUEUE, BUFFER), memory), 0);
}

/// Writes are told when an unmap succeeds.
fn refused_unmaps(app: &App, notes: &Path) {
    let memory = app.map((QUEUE, BUFFER), 1, 2, SIZE);
    unsafe { memory.write(0x99) };
    assert_eq!(app.unmap((0, BUFFER), memory), BAD_QUEUE);
    assert_eq!(app.unmap((QUEUE, BUFFER), memory), 0);
    let text = fs::read_to_string(notes).unwrap();
    let last = text.lines().last().unwrap().strip_prefix("note ").unwrap();
    let Some(Ok(Note::Transfer(last))) = Note::parse(last) else {
        panic!("no write: {last}");
    };
    assert_eq!((last.direction, last.size), (Direction::Write, SIZE as u64));
    assert!(matches!(last.content, Content::Hash(_)));
}

fn writes_of_more_than_there_is(app: &App, _: &Path) {
    let write = app.get::<Transfer>(WRITE_BUFFER);
    let (none, event) = (ptr::null(), ptr::null_mut());
    let create = app.get::<CreateBuffer>(CREATE_BUFFER);
    // CL_MEM_USE_HOST_PTR: a runtime may look there when a kernel does.
    let host = ptr::without_provenance(WILD);
    assert_eq!(create(CONTEXT, 8, SIZE, host, &mut 1), BUFFER);
    for size in [usize::MAX - 3, usize::MAX / 2, 1 << 40] {
        let from = ptr::without_provenance_mut(WILD);
        assert_eq!(write(QUEUE, BUFFER, 0, 4, size, from, 0, none, event), 0);
    }
}

fn timed_commands_that_wait_for_the_app(app: &App, _: &Path) {
    let mut status = 1;
    let create = app.get::<CreateQueue>(CREATE_QUEUE_WITH_PROPERTIES);
    let queue = create(CONTEXT, DEVICE, TIMED.as_ptr(), &mut status);
    assert_eq!((queue, status), (QUEUE, 0));
    let user = app.get::<CreateUserEvent>(CREATE_USER_EVENT)(CONTEXT, &mut status);
    let read = app.get::<Transfer>(READ_BUFFER);
    let (mut to, mut event) = ([0u8; 4], 0);
    let mut read = |event| {
        assert_eq!(
            read(queue, BUFFER, 0, 0, 4, to.as_mut_ptr(), 1, &user, event),
            0
        )
    };
    read(&mut event);
    assert_eq!(app.get::<SetUserEvent>(SET_USER_EVENT)(user, 0), 0);
    read(&mut event);
    let mut time = 0u64;
    let place = ptr::from_mut(&mut time).cast();
    let info = app.get::<Info>(PROFILING_INFO);
    assert_eq!(info(event, 0x1283, 8, place, ptr::null_mut()), 0);
    assert_ne!(time, 0);
}

fn threads_until_the_exit(app: &App, notes: &Path) {
    let table = app.0.expose_provenance();
    for thread in 0..4u64 {
        std::thread::spawn(move || {
            let app = App(ptr::with_exposed_provenance(table));
            let mut random = 0x9e37_79b9_7f4a_7c15 ^ thread;
            loop {
                anything(&app, &mut random);
            }
        });
    }
    std::thread::sleep(Duration::from_millis(300));
    fs::remove_file(notes).unwrap();
    std::process::exit(0);
}

thread_local! {
    static TO: Cell<[u8; 4]> = const { Cell::new([0; 4]) };
}

fn anything(app: &App, random: &mut u64) {
    let mut below = |bound: usize| {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        (*random >> 16) as usize % bound
    };
    const HANDLES: [usize; 8] = [0, CONTEXT, QUEUE, QUEUE, PROGRAM, BUFFER, KERNEL, WILD];
    let (first, second) = (HANDLES[below(8)], HANDLES[below(8)]);
    let mut status = 0;
    match below(7) {
        0 => drop(launch(
            app,
            first,
            second,
            below(6) as u32,
            [1, 1, 1].as_ptr(),
        )),
        1 => drop(app.get::<SetSvm>(SET_SVM)(
            first,
            below(3) as u32,
            ptr::null(),
        )),
        2 => drop(app.get::<Release>(FINISH)(first)),
        3 => {
            let create = app.get::<CreateKernel>(CREATE_KERNEL);
            let kernel = create(PROGRAM, c"k".as_ptr(), &mut status);
            launch(app, first, kernel, 1, [1].as_ptr());
            app.get::<Release>(RELEASE_KERNEL)(kernel);
        }
        4 => {
            // Other threads do not write there, and its own ends with the program.
            let to = unsafe { &mut *TO.with(Cell::as_ptr) };
            app.read((QUEUE, second), 0, to, ptr::null_mut());
        }
        5 => {
            let memory = app.map((QUEUE, BUFFER), below(2) as u32, 1 << below(3), SIZE);
            app.unmap((first, BUFFER), memory);
            app.unmap((QUEUE, BUFFER), memory);
            forget_mapping(memory);
        }
        _ => {
            let create = app.get::<CreateQueue>(CREATE_QUEUE_WITH_PROPERTIES);
            create(first, second, ptr::null(), &mut status);
        }
    }
}

#[test]
fn app() {
    let Some(part) = std::env::var_os(PART) else {
        return;
    };
    let (app, path) = App::load("hostile", &functions());
    let mut status = 1;
    let create = app.get::<CreateBuffer>(CREATE_BUFFER);
    assert_eq!(create(CONTEXT, 0, SIZE, ptr::null(), &mut status), BUFFER);
    let create = app.get::<CreateKernel>(CREATE_KERNEL);
    assert_eq!(create(PROGRAM, c"k".as_ptr(), &mut status), KERNEL);
    let part = PARTS.iter().find(|(name, _)| part == *name).unwrap().1;
    part(&app, &path);
    fs::remove_file(&path).unwrap();
}

const PART: &str = "GPUREPLAY_TEST_PART";

macro_rules! parts {
    ($($name:ident),+ $(,)?) => {
        type Part = fn(&App, &std::path::Path);
        const PARTS: &[(&str, Part)] = &[$((stringify!($name), $name)),+];
        mod seen {
            $(#[test]
            fn $name() {
                super::play(stringify!($name));
            })+
        }
    };
}

parts! {
    what_the_runtime_never_follows,
    what_is_refused_is_not_kept,
    what_is_released_is_not_kept,
    reads_without_an_end,
    the_end_of_an_event_calls_back,
    mapped_memory_that_is_gone,
    refused_unmaps,
    writes_of_more_than_there_is,
    timed_commands_that_wait_for_the_app,
    threads_until_the_exit,
}

fn play(part: &str) {
    let mut app = Command::new(std::env::current_exe().unwrap());
    let app = app.args(["app", "--exact", "--nocapture"]).env(PART, part);
    let mut app = app.spawn().unwrap();
    let start = Instant::now();
    while app.try_wait().unwrap().is_none() && start.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = app.try_wait().unwrap();
    if ended.is_none() {
        app.kill().unwrap();
        app.wait().unwrap();
    }
    assert!(
        ended.is_some_and(|status| status.success()),
        "{part}: {ended:?} (none: it hung)"
    );
}
