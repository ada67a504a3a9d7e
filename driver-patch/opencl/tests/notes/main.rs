// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an app sees, and what the notes say.
//!
//! One test: a process loads the layer once, and the environment names its file.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the test plays both sides of a C interface, with memory of its own"
)]

#[path = "../app/mod.rs"]
mod app;
mod copies;
mod runtime;

use core::ffi::c_void;
use std::ffi::CStr;
use std::fs;
use std::sync::atomic::Ordering;

use gpureplay_opencl::entry::clGetLayerInfo;
use gpureplay_trace::note::{Content, Direction, Note, ObjectKind, Place, Value, content_hash};

use app::*;
use copies::{copies, copies_are_noted};
use runtime::*;

type CreateQueue = extern "C" fn(usize, usize, u64, *mut i32) -> usize;
type CreateSubBuffer = extern "C" fn(usize, u64, u32, *const [usize; 2], *mut i32) -> usize;
type SetArg = extern "C" fn(usize, u32, usize, *const c_void) -> i32;

#[test]
fn notes_say_what_the_app_does_and_the_app_sees_its_runtime() {
    let mut version = [0u8; 4];
    let mut needed = 0;
    let status = unsafe { clGetLayerInfo(0x4240, 4, version.as_mut_ptr().cast(), &mut needed) };
    assert_eq!((status, u32::from_ne_bytes(version), needed), (0, 100, 4));
    let mut name = [0u8; 16];
    unsafe { clGetLayerInfo(0x4241, 16, name.as_mut_ptr().cast(), &mut needed) };
    assert_eq!(CStr::from_bytes_until_nul(&name).unwrap(), c"gpureplay");

    let (app, path) = App::load("notes", &functions());
    let none: *const usize = core::ptr::null();
    let no_event = core::ptr::null_mut();
    let mut status = 1;
    // The runtime refuses to time a queue; the app does not notice.
    let queue = app.get::<CreateQueue>(CREATE_QUEUE)(1, 2, 2, &mut status);
    assert!(queue != 0 && status == 0);
    let bytes: Vec<u8> = (0..64).collect();
    let buffer =
        app.get::<CreateBuffer>(CREATE_BUFFER)(1, 1 << 5, 64, bytes.as_ptr().cast(), &mut status);
    let region = [16, 32];
    let part =
        app.get::<CreateSubBuffer>(CREATE_SUB_BUFFER)(buffer, 0, 0x1220, &region, &mut status);
    let kernel = app.get::<CreateKernel>(CREATE_KERNEL)(3, c"scale".as_ptr(), &mut status);
    let set = app.get::<SetArg>(SET_ARG);
    assert_eq!(set(kernel, 0, 8, (&raw const part).cast()), 0);
    let factor = 2.5f32;
    assert_eq!(set(kernel, 1, 4, (&raw const factor).cast()), 0);
    assert_eq!(set(kernel, 2, 256, none.cast()), 0);
    assert_eq!(
        set(kernel, 3, 4, bytes.as_ptr().cast()),
        -49,
        "the runtime's own error"
    );

    let write = app.get::<Transfer>(WRITE_BUFFER);
    assert_eq!(
        write(
            queue,
            part,
            0,
            4,
            8,
            bytes.as_ptr().cast_mut(),
            0,
            none,
            no_event
        ),
        0
    );
    assert_eq!(
        write(
            queue,
            part,
            0,
            0,
            65,
            bytes.as_ptr().cast_mut(),
            0,
            none,
            no_event
        ),
        -30
    );
    let before = FINISHED.load(Ordering::Relaxed);
    let mut event = 0;
    let sizes = [24usize, 2];
    let global = sizes.as_ptr();
    assert_eq!(
        app.launch((queue, kernel), 2, (global, none), &mut event),
        0
    );
    assert_eq!(
        FINISHED.load(Ordering::Relaxed) - before,
        1,
        "who wants times waits"
    );
    let mut times = [0u64; 2];
    for (what, time) in [0x1282, 0x1283].into_iter().zip(&mut times) {
        let info = app.get::<Info>(PROFILING_INFO);
        assert_eq!(
            info(
                event,
                what,
                8,
                core::ptr::from_mut(time).cast(),
                &mut needed
            ),
            0
        );
    }
    assert!(times[0] <= times[1]);

    let mut out = [0u8; 16];
    assert_eq!(app.read((queue, buffer), 1, &mut out, no_event), 0);
    assert_eq!(out, [7; 16]);
    // Mapped for reading and writing: changed, then not.
    for change in [true, false] {
        let memory = app.map((queue, buffer), 1, 3, 64);
        if change {
            unsafe { memory.write(99) };
        }
        assert_eq!(app.unmap((queue, buffer), memory), 0);
    }
    // This queue is not timed: no waits.
    let plain = app.get::<CreateQueue>(CREATE_QUEUE)(1, 2, 0, &mut status);
    let finished = FINISHED.load(Ordering::Relaxed);
    let go = || app.launch((plain, kernel), 1, (global, global), no_event);
    assert_eq!(go(), 0);
    let mut late = [0u8; 16];
    let mut asked = 0;
    for event in [no_event, &raw mut asked] {
        assert_eq!(app.read((plain, buffer), 0, &mut late, event), 0);
    }
    let wait = app.get::<extern "C" fn(u32, *const usize) -> i32>(WAIT_FOR_EVENTS);
    assert_eq!(wait(1, &asked), 0);
    EVENT_STATUS.store(3, Ordering::Relaxed);
    app.read((plain, buffer), 0, &mut late, no_event);
    type Callback = extern "C" fn(usize, i32, *const c_void, *mut c_void) -> i32;
    app.get::<Callback>(SET_EVENT_CALLBACK)(asked, 0, none.cast(), core::ptr::null_mut());
    assert_eq!(wait(1, &asked), 0);
    EVENT_STATUS.store(3, Ordering::Relaxed);
    for flags in [1, 3] {
        let memory = app.map((plain, buffer), 0, flags, 64);
        assert_eq!(app.unmap((plain, buffer), memory), 0);
    }
    assert_eq!(wait(1, &asked), 0);
    assert_eq!(FINISHED.load(Ordering::Relaxed), finished);
    // The launch's and the app's own: the layer keeps none.
    assert_eq!(EVENTS.load(Ordering::Relaxed), 2);
    assert_eq!(app.get::<Release>(RELEASE_MEMORY)(part), 0);
    assert_eq!(set(kernel, 0, 8, (&raw const part).cast()), 0);
    go();
    assert_eq!(app.get::<Release>(FINISH)(plain), 0);
    copies(&app, plain, buffer);

    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let parse = |line: &str| {
        Note::parse(line.strip_prefix("note ").unwrap())
            .unwrap()
            .unwrap()
    };
    let notes: Vec<Note> = text.lines().map(parse).collect();
    let mut notes = notes.into_iter();
    let mut next = || notes.next().unwrap();
    assert!(
        matches!(next(), Note::Object(o) if (o.id, o.kind, o.size) == (0, ObjectKind::Buffer, 64))
    );
    let transfer = |note, direction, (object, offset), size, content, queue| {
        let Note::Transfer(t) = note else {
            panic!("{note}")
        };
        let at = Place { object, offset };
        assert_eq!(
            (t.direction, t.at, t.size, t.content),
            (direction, at, size, content)
        );
        let complete = !matches!(content, Content::Later(_));
        assert_eq!((t.queue, t.complete), (queue, complete));
    };
    let hash = |bytes: &[u8]| Content::Hash(content_hash(bytes));
    let idle = |note| assert_eq!(note, Note::Idle { queue: 0 });
    transfer(next(), Direction::Write, (0, 0), 64, hash(&bytes), None);
    let of = Place {
        object: 0,
        offset: 16,
    };
    assert!(
        matches!(next(), Note::Object(o) if (o.id, o.kind, o.size) == (1, ObjectKind::Part(of), 32))
    );
    transfer(
        next(),
        Direction::Write,
        (1, 4),
        8,
        hash(&bytes[..8]),
        Some(0),
    );
    idle(next());
    let Note::Launch(launched) = next() else {
        panic!()
    };
    assert_eq!(
        (launched.kernel.as_str(), launched.global),
        ("scale", [24, 2, 1])
    );
    assert!(launched.local.is_none() && launched.queue == 0);
    let told: Vec<_> = launched
        .arguments
        .iter()
        .map(|a| (a.name.as_str(), a.type_name.as_str(), &a.value))
        .collect();
    assert_eq!(
        told,
        [
            ("x", "const half*", &Value::Object(1)),
            (
                "factor",
                "float",
                &Value::Scalar(2.5f32.to_ne_bytes().to_vec())
            ),
            ("tmp", "int*", &Value::Local(256)),
        ]
    );
    idle(next());
    transfer(next(), Direction::Read, (0, 0), 16, hash(&[7; 16]), Some(0));
    idle(next());
    let mut changed = [0; 64];
    changed[0] = 99;
    for direction in [Direction::Write, Direction::Unchanged] {
        idle(next());
        transfer(next(), direction, (0, 0), 64, hash(&changed), Some(0));
        idle(next());
    }
    assert!(
        matches!(next(), Note::Launch(l) if (l.id, l.queue, l.local) == (1, 1, Some([24, 1, 1])))
    );
    for id in 0..2 {
        let later = Content::Later(id);
        transfer(next(), Direction::Read, (0, 0), 16, later, Some(1));
    }
    for id in 0..2 {
        let hash = content_hash(&[7; 16]);
        assert_eq!(next(), Note::Content { id, hash });
    }
    transfer(
        next(),
        Direction::Read,
        (0, 0),
        16,
        Content::Later(2),
        Some(1),
    );
    let later = Content::Later(3);
    transfer(next(), Direction::Read, (0, 0), 64, later, Some(1));
    assert!(
        matches!(next(), Note::Transfer(t) if (t.direction, t.size, t.content) == (Direction::Write, 64, Content::Unseen))
    );
    let number = Value::Scalar(part.to_ne_bytes().to_vec());
    assert!(matches!(next(), Note::Launch(l) if l.arguments[0].value == number));
    assert_eq!(next(), Note::Idle { queue: 1 });
    copies_are_noted(&mut next);
    assert!(notes.next().is_none());
}
