// SPDX-License-Identifier: MIT OR Apache-2.0
//! An app on a runtime of this test's own, with the layer between: what the app sees, and what the notes say.
//!
//! One test: the layer is loaded once in a process, and its file is named by the environment.
#![allow(
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "the test plays both sides of a C interface, with memory of its own"
)]

use core::ffi::{c_char, c_void};
use std::ffi::CStr;
use std::fs;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use gpureplay_opencl::entry::{clGetLayerInfo, clInitLayer};
use gpureplay_trace::note::{
    Content, Copied, Direction, Filled, Note, ObjectKind, Place, Value, content_hash,
};

/// Places in the dispatch table, from `CL/cl_icd.h`.
const CREATE_QUEUE: usize = 9;
const CREATE_BUFFER: usize = 14;
const CREATE_KERNEL: usize = 34;
const SET_ARG: usize = 38;
const PROGRAM_INFO: usize = 32;
const BUILD_INFO: usize = 33;
const KERNEL_INFO: usize = 39;
const PROFILING_INFO: usize = 45;
const FINISH: usize = 47;
const READ_BUFFER: usize = 48;
const WRITE_BUFFER: usize = 49;
const MAP_BUFFER: usize = 56;
const UNMAP: usize = 58;
const LAUNCH: usize = 59;
const CREATE_SUB_BUFFER: usize = 82;
const RELEASE_MEMORY: usize = 18;
const MEMORY_INFO: usize = 20;
const WAIT_FOR_EVENTS: usize = 41;
const EVENT_INFO: usize = 42;
const RETAIN_EVENT: usize = 43;
const RELEASE_EVENT: usize = 44;
const SET_EVENT_CALLBACK: usize = 81;
const ARG_INFO: usize = 101;
const IMAGE_INFO: usize = 21;
const CREATE_SAMPLER: usize = 22;
const SAMPLER_INFO: usize = 25;
const COPY_BUFFER: usize = 50;
const COPY_IMAGE: usize = 53;
const COPY_IMAGE_TO_BUFFER: usize = 54;
const COPY_BUFFER_TO_IMAGE: usize = 55;
const COPY_RECTANGLE: usize = 88;
const CREATE_IMAGE: usize = 96;
const FILL_BUFFER: usize = 102;
const FILL_IMAGE: usize = 103;
const ENTRIES: usize = 149;

/// Handles are numbers of no meaning.
static HANDLES: AtomicUsize = AtomicUsize::new(0x1000);
static FINISHED: AtomicUsize = AtomicUsize::new(0);
/// References to events that the app or the layer holds.
static EVENTS: AtomicIsize = AtomicIsize::new(0);
/// What the runtime answers for every event: 0 is complete, 3 queued.
static EVENT_STATUS: AtomicUsize = AtomicUsize::new(3);
/// The kernel whose arguments are samplers.
static SAMPLING: AtomicUsize = AtomicUsize::new(0);
static mut MAPPED: [u8; 64] = [0; 64];

fn handle() -> usize {
    HANDLES.fetch_add(16, Ordering::Relaxed)
}

extern "C" fn create_queue(_: usize, _: usize, properties: u64, status: *mut i32) -> usize {
    // No profiling here.
    let refused = properties & 2 != 0;
    unsafe { status.write(if refused { -35 } else { 0 }) };
    if refused { 0 } else { handle() }
}

extern "C" fn create_buffer(_: usize, _: u64, _: usize, _: *mut c_void, _: *mut i32) -> usize {
    handle()
}

extern "C" fn create_sub_buffer(_: usize, _: u64, _: u32, _: *const c_void, _: *mut i32) -> usize {
    handle()
}

extern "C" fn create_kernel(_: usize, _: *const c_char, _: *mut i32) -> usize {
    handle()
}

extern "C" fn set_arg(_: usize, index: u32, _: usize, _: *const c_void) -> i32 {
    if index < 3 { 0 } else { -49 }
}

fn answer(bytes: &[u8], size: usize, value: *mut c_void) -> i32 {
    assert!(size >= bytes.len());
    unsafe {
        value
            .cast::<u8>()
            .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
    };
    0
}

extern "C" fn kernel_info(
    _: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    match what {
        0x1190 => answer(b"scale\0", size, value),
        0x1191 => answer(&3u32.to_ne_bytes(), size, value),
        0x1194 => answer(&PROGRAM.to_ne_bytes(), size, value),
        _ => -30,
    }
}

/// The program and the device of all kernels.
const PROGRAM: usize = 3;
const DEVICE: usize = 5;

/// An answer whose length may be asked for.
fn long(bytes: &[u8], size: usize, value: *mut c_void, needed: *mut usize) -> i32 {
    if !needed.is_null() {
        unsafe { needed.write(bytes.len()) };
    }
    if value.is_null() {
        0
    } else {
        answer(bytes, size, value)
    }
}

extern "C" fn program_info(
    program: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    assert_eq!(program, PROGRAM);
    let source = b"#ifdef SMALL\ntypedef half real;\n#else\ntypedef float real;\n#endif\n\0";
    match what {
        0x1163 => long(&DEVICE.to_ne_bytes(), size, value, needed),
        0x1164 => long(source, size, value, needed),
        _ => -30,
    }
}

extern "C" fn build_info(
    program: usize,
    device: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> i32 {
    assert_eq!((program, device, what), (PROGRAM, DEVICE, 0x1182));
    long(b"-DSMALL=1\0", size, value, needed)
}

extern "C" fn arg_info(
    kernel: usize,
    index: u32,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    let (name, type_name): (&[u8], &[u8]) = [
        (&b"x\0"[..], &b"real*\0"[..]),
        (b"factor\0", b"float\0"),
        (b"tmp\0", b"int*\0"),
    ][index as usize];
    let type_name = match kernel == SAMPLING.load(Ordering::Relaxed) {
        true => b"sampler_t\0",
        false => type_name,
    };
    match what {
        0x1198 => answer(type_name, size, value),
        0x1199 => answer(&u64::from(index == 0).to_ne_bytes(), size, value),
        0x119a => answer(name, size, value),
        _ => -30,
    }
}

extern "C" fn profiling_info(_: usize, _: u32, _: usize, _: *mut c_void, _: *mut usize) -> i32 {
    -7
}

extern "C" fn finish(_: usize) -> i32 {
    FINISHED.fetch_add(1, Ordering::Relaxed);
    0
}

fn new_event(event: *mut usize) {
    if !event.is_null() {
        EVENTS.fetch_add(1, Ordering::Relaxed);
        unsafe { event.write(handle()) };
    }
}

extern "C" fn read_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: usize,
    size: usize,
    to: *mut c_void,
    _: u32,
    _: *const usize,
    event: *mut usize,
) -> i32 {
    unsafe { to.cast::<u8>().write_bytes(7, size) };
    new_event(event);
    0
}

extern "C" fn wait_for_events(_: u32, _: *const usize) -> i32 {
    EVENT_STATUS.store(0, Ordering::Relaxed);
    0
}

extern "C" fn event_info(
    _: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    let status = EVENT_STATUS.load(Ordering::Relaxed) as u32;
    match what {
        0x11d3 => answer(&status.to_ne_bytes(), size, value),
        _ => -30,
    }
}

extern "C" fn retain_event(_: usize) -> i32 {
    EVENTS.fetch_add(1, Ordering::Relaxed);
    0
}

extern "C" fn release_event(_: usize) -> i32 {
    EVENTS.fetch_sub(1, Ordering::Relaxed);
    0
}

extern "C" fn set_event_callback(_: usize, _: i32, _: *const c_void, _: *mut c_void) -> i32 {
    0
}

extern "C" fn release_memory(_: usize) -> i32 {
    0
}

extern "C" fn memory_info(
    _: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    match what {
        0x1105 => answer(&1u32.to_ne_bytes(), size, value),
        _ => -30,
    }
}

extern "C" fn write_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: usize,
    size: usize,
    _: *const c_void,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    if size > 64 { -30 } else { 0 }
}

extern "C" fn map_buffer(
    _: usize,
    _: usize,
    _: u32,
    _: u64,
    _: usize,
    _: usize,
    _: u32,
    _: *const usize,
    event: *mut usize,
    status: *mut i32,
) -> *mut c_void {
    new_event(event);
    unsafe { status.write(0) };
    (&raw mut MAPPED).cast()
}

extern "C" fn unmap(
    _: usize,
    _: usize,
    _: *mut c_void,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    0
}

extern "C" fn launch(
    _: usize,
    _: usize,
    _: u32,
    _: *const usize,
    _: *const usize,
    _: *const usize,
    _: u32,
    _: *const usize,
    event: *mut usize,
) -> i32 {
    new_event(event);
    0
}

extern "C" fn create_image(
    _: usize,
    _: u64,
    _: *const c_void,
    _: *const c_void,
    _: *mut c_void,
    _: *mut i32,
) -> usize {
    handle()
}

extern "C" fn image_info(
    _: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    match what {
        0x1111 => answer(&4usize.to_ne_bytes(), size, value),
        _ => -30,
    }
}

extern "C" fn create_sampler(_: usize, _: u32, _: u32, _: u32, _: *mut i32) -> usize {
    handle()
}

extern "C" fn sampler_info(
    _: usize,
    what: u32,
    size: usize,
    value: *mut c_void,
    _: *mut usize,
) -> i32 {
    answer(&(what - 0x1150).to_ne_bytes(), size, value)
}

type Wide = usize;

extern "C" fn copy_buffer(
    _: Wide,
    _: Wide,
    _: Wide,
    _: Wide,
    _: Wide,
    size: Wide,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    if size > 64 { -30 } else { 0 }
}

extern "C" fn copy_rectangle(
    _: Wide,
    _: Wide,
    _: Wide,
    _: *const [usize; 3],
    _: *const [usize; 3],
    _: *const [usize; 3],
    _: Wide,
    _: Wide,
    _: Wide,
    _: Wide,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    0
}

/// Copies of images have as many arguments, each as wide, as this.
extern "C" fn copy_images(
    _: Wide,
    _: Wide,
    _: Wide,
    _: Wide,
    _: Wide,
    _: Wide,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    0
}

extern "C" fn fill_buffer(
    _: Wide,
    _: Wide,
    _: *const c_void,
    _: Wide,
    _: Wide,
    _: Wide,
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    0
}

extern "C" fn fill_image(
    _: Wide,
    _: Wide,
    _: *const c_void,
    _: *const [usize; 3],
    _: *const [usize; 3],
    _: u32,
    _: *const usize,
    _: *mut usize,
) -> i32 {
    0
}

/// The app's view: its table, entry by entry.
struct App(*const usize);

impl App {
    /// A function of the table.
    fn get<T>(&self, place: usize) -> T {
        let address = unsafe { self.0.add(place).read() };
        assert_ne!(address, 0);
        unsafe { core::mem::transmute_copy(&address) }
    }
}

type CreateQueue = extern "C" fn(usize, usize, u64, *mut i32) -> usize;
type CreateBuffer = extern "C" fn(usize, u64, usize, *const c_void, *mut i32) -> usize;
type CreateSubBuffer = extern "C" fn(usize, u64, u32, *const [usize; 2], *mut i32) -> usize;
type CreateKernel = extern "C" fn(usize, *const c_char, *mut i32) -> usize;
type SetArg = extern "C" fn(usize, u32, usize, *const c_void) -> i32;
type Transfer =
    extern "C" fn(usize, usize, u32, usize, usize, *const u8, u32, *const usize, *mut usize) -> i32;
type Map = extern "C" fn(
    usize,
    usize,
    u32,
    u64,
    usize,
    usize,
    u32,
    *const usize,
    *mut usize,
    *mut i32,
) -> *mut u8;
type Unmap = extern "C" fn(usize, usize, *mut u8, u32, *const usize, *mut usize) -> i32;
type Launch = extern "C" fn(
    usize,
    usize,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const usize,
    *mut usize,
) -> i32;
type Info = extern "C" fn(usize, u32, usize, *mut c_void, *mut usize) -> i32;

fn load() -> (App, std::path::PathBuf) {
    let path = std::env::temp_dir().join(format!("gpureplay-notes-{}", std::process::id()));
    fs::write(&path, "").unwrap();
    unsafe { std::env::set_var("GPUREPLAY_NOTES", &path) };
    let mut table = [0usize; ENTRIES];
    for (place, address) in [
        (CREATE_QUEUE, create_queue as *const () as usize),
        (CREATE_BUFFER, create_buffer as *const () as usize),
        (CREATE_KERNEL, create_kernel as *const () as usize),
        (SET_ARG, set_arg as *const () as usize),
        (PROGRAM_INFO, program_info as *const () as usize),
        (BUILD_INFO, build_info as *const () as usize),
        (KERNEL_INFO, kernel_info as *const () as usize),
        (PROFILING_INFO, profiling_info as *const () as usize),
        (FINISH, finish as *const () as usize),
        (READ_BUFFER, read_buffer as *const () as usize),
        (WRITE_BUFFER, write_buffer as *const () as usize),
        (MAP_BUFFER, map_buffer as *const () as usize),
        (UNMAP, unmap as *const () as usize),
        (LAUNCH, launch as *const () as usize),
        (CREATE_SUB_BUFFER, create_sub_buffer as *const () as usize),
        (RELEASE_MEMORY, release_memory as *const () as usize),
        (MEMORY_INFO, memory_info as *const () as usize),
        (WAIT_FOR_EVENTS, wait_for_events as *const () as usize),
        (EVENT_INFO, event_info as *const () as usize),
        (RETAIN_EVENT, retain_event as *const () as usize),
        (RELEASE_EVENT, release_event as *const () as usize),
        (SET_EVENT_CALLBACK, set_event_callback as *const () as usize),
        (ARG_INFO, arg_info as *const () as usize),
        (CREATE_IMAGE, create_image as *const () as usize),
        (IMAGE_INFO, image_info as *const () as usize),
        (CREATE_SAMPLER, create_sampler as *const () as usize),
        (SAMPLER_INFO, sampler_info as *const () as usize),
        (COPY_BUFFER, copy_buffer as *const () as usize),
        (COPY_RECTANGLE, copy_rectangle as *const () as usize),
        (COPY_IMAGE, copy_images as *const () as usize),
        (COPY_IMAGE_TO_BUFFER, copy_images as *const () as usize),
        (COPY_BUFFER_TO_IMAGE, copy_images as *const () as usize),
        (FILL_BUFFER, fill_buffer as *const () as usize),
        (FILL_IMAGE, fill_image as *const () as usize),
    ] {
        table[place] = address;
    }
    let (mut count, mut ours) = (0, core::ptr::null());
    let target = table.as_ptr().cast();
    unsafe {
        assert_eq!(
            clInitLayer(10, target, &mut count, &mut ours),
            -30,
            "a loader of 1999"
        );
        assert_eq!(
            clInitLayer(ENTRIES as u32, target, &mut count, &mut ours),
            0
        );
    }
    assert_eq!(count as usize, ENTRIES);
    (App(ours.cast()), path)
}

#[test]
fn notes_say_what_the_app_does_and_the_app_sees_its_runtime() {
    let mut version = [0u8; 4];
    let mut needed = 0;
    let status = unsafe { clGetLayerInfo(0x4240, 4, version.as_mut_ptr().cast(), &mut needed) };
    assert_eq!((status, u32::from_ne_bytes(version), needed), (0, 100, 4));
    let mut name = [0u8; 16];
    unsafe { clGetLayerInfo(0x4241, 16, name.as_mut_ptr().cast(), &mut needed) };
    assert_eq!(CStr::from_bytes_until_nul(&name).unwrap(), c"gpureplay");

    let (app, path) = load();
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
        write(queue, part, 0, 4, 8, bytes.as_ptr(), 0, none, no_event),
        0
    );
    assert_eq!(
        write(queue, part, 0, 0, 65, bytes.as_ptr(), 0, none, no_event),
        -30
    );
    let before = FINISHED.load(Ordering::Relaxed);
    let mut event = 0;
    let sizes = [24usize, 2];
    let go = app.get::<Launch>(LAUNCH);
    assert_eq!(
        go(
            queue,
            kernel,
            2,
            none,
            sizes.as_ptr(),
            none,
            0,
            none,
            &mut event
        ),
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

    let read = app.get::<Transfer>(READ_BUFFER);
    let mut out = [0u8; 16];
    assert_eq!(
        read(queue, buffer, 1, 0, 16, out.as_mut_ptr(), 0, none, no_event),
        0
    );
    assert_eq!(out, [7; 16]);
    // Mapped for reading and writing: changed, then not.
    for change in [true, false] {
        let memory =
            app.get::<Map>(MAP_BUFFER)(queue, buffer, 1, 3, 0, 64, 0, none, no_event, &mut status);
        if change {
            unsafe { memory.write(99) };
        }
        assert_eq!(
            app.get::<Unmap>(UNMAP)(queue, buffer, memory, 0, none, no_event),
            0
        );
    }
    // A queue that the runtime takes as it is: nobody waits that would not without the layer.
    let plain = app.get::<CreateQueue>(CREATE_QUEUE)(1, 2, 0, &mut status);
    let finished = FINISHED.load(Ordering::Relaxed);
    let local = sizes.as_ptr();
    assert_eq!(
        go(plain, kernel, 1, none, local, local, 0, none, no_event),
        0
    );
    let mut late = [0u8; 16];
    let mut asked = 0;
    for event in [no_event, &raw mut asked] {
        let to = late.as_mut_ptr();
        assert_eq!(read(plain, buffer, 0, 0, 16, to, 0, none, event), 0);
    }
    let wait = app.get::<extern "C" fn(u32, *const usize) -> i32>(WAIT_FOR_EVENTS);
    assert_eq!(wait(1, &asked), 0);
    // Whoever has a callback may free the memory in it.
    EVENT_STATUS.store(3, Ordering::Relaxed);
    read(
        plain,
        buffer,
        0,
        0,
        16,
        late.as_mut_ptr(),
        0,
        none,
        no_event,
    );
    type Callback = extern "C" fn(usize, i32, *const c_void, *mut c_void) -> i32;
    app.get::<Callback>(SET_EVENT_CALLBACK)(asked, 0, none.cast(), core::ptr::null_mut());
    assert_eq!(wait(1, &asked), 0);
    // Nobody looks at what is unmapped before the app can know that it was mapped.
    EVENT_STATUS.store(3, Ordering::Relaxed);
    for flags in [1, 3] {
        let map = app.get::<Map>(MAP_BUFFER);
        let memory = map(
            plain,
            buffer,
            0,
            flags,
            0,
            64,
            0,
            none,
            no_event,
            &mut status,
        );
        let unmap = app.get::<Unmap>(UNMAP);
        assert_eq!(unmap(plain, buffer, memory, 0, none, no_event), 0);
    }
    assert_eq!(wait(1, &asked), 0);
    assert_eq!(FINISHED.load(Ordering::Relaxed), finished);
    // One for the launch, one that the app asked for at its read: the layer keeps none.
    assert_eq!(EVENTS.load(Ordering::Relaxed), 2);
    // After its last release a handle is a number.
    assert_eq!(
        app.get::<extern "C" fn(usize) -> i32>(RELEASE_MEMORY)(part),
        0
    );
    assert_eq!(set(kernel, 0, 8, (&raw const part).cast()), 0);
    go(plain, kernel, 1, none, local, local, 0, none, no_event);
    assert_eq!(app.get::<extern "C" fn(usize) -> i32>(FINISH)(plain), 0);
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

type Copy = extern "C" fn(Wide, Wide, Wide, Wide, Wide, Wide, u32, *const usize, *mut usize) -> i32;
type CopyRectangle = extern "C" fn(
    Wide,
    Wide,
    Wide,
    *const [usize; 3],
    *const [usize; 3],
    *const [usize; 3],
    Wide,
    Wide,
    Wide,
    Wide,
    u32,
    *const usize,
    *mut usize,
) -> i32;
type Fill = extern "C" fn(
    Wide,
    Wide,
    *const c_void,
    Wide,
    Wide,
    Wide,
    u32,
    *const usize,
    *mut usize,
) -> i32;
type FillImage = extern "C" fn(
    Wide,
    Wide,
    *const c_void,
    *const [usize; 3],
    *const [usize; 3],
    u32,
    *const usize,
    *mut usize,
) -> i32;
type CreateImage =
    extern "C" fn(usize, u64, *const c_void, *const c_void, *const c_void, *mut i32) -> usize;

/// Copies and fills of all kinds, and a launch with a sampler.
fn copies(app: &App, queue: usize, buffer: usize) {
    let (none, no_event) = (core::ptr::null(), core::ptr::null_mut());
    let nothing: *const c_void = core::ptr::null();
    let mut status = 0;
    let create = app.get::<CreateImage>(CREATE_IMAGE);
    // The last word of a description names the object of which an image is a view.
    let mut description = [0usize; 9];
    let of = |description: &[usize; 9], status: &mut i32| {
        create(1, 0, nothing, description.as_ptr().cast(), nothing, status)
    };
    let image = of(&description, &mut status);
    description[8] = buffer;
    let view = of(&description, &mut status);
    assert_eq!(create(1, 0, nothing, nothing, nothing, &mut status) % 16, 0);

    let copy = app.get::<Copy>(COPY_BUFFER);
    assert_eq!(copy(queue, buffer, view, 8, 16, 24, 0, none, no_event), 0);
    assert_eq!(copy(queue, buffer, view, 0, 0, 65, 0, none, no_event), -30);
    let (origin, region) = ([4, 1, 0], [8, 2, 1]);
    let rectangle = app.get::<CopyRectangle>(COPY_RECTANGLE);
    for row in [8, 16] {
        let from = [0; 3];
        rectangle(
            queue, buffer, view, &from, &origin, &region, 8, 0, row, 0, 0, none, no_event,
        );
    }
    let at = |numbers: &[usize; 3]| numbers.as_ptr().expose_provenance();
    let (origin, region) = (at(&origin), at(&region));
    let images = app.get::<Copy>(COPY_IMAGE);
    images(
        queue, image, image, origin, origin, region, 0, none, no_event,
    );
    let images = app.get::<Copy>(COPY_IMAGE_TO_BUFFER);
    images(queue, image, buffer, origin, region, 32, 0, none, no_event);
    let images = app.get::<Copy>(COPY_BUFFER_TO_IMAGE);
    images(queue, buffer, image, 32, origin, region, 0, none, no_event);
    let fill = app.get::<Fill>(FILL_BUFFER);
    fill(queue, buffer, nothing, 4, 4, 12, 0, none, no_event);
    let fill = app.get::<FillImage>(FILL_IMAGE);
    fill(queue, image, nothing, &[0; 3], &[1; 3], 0, none, no_event);
    // An object that the layer does not know.
    copy(queue, buffer, 1, 0, 0, 8, 0, none, no_event);

    type CreateSampler = extern "C" fn(usize, u32, u32, u32, *mut i32) -> usize;
    let sampler = app.get::<CreateSampler>(CREATE_SAMPLER)(1, 0, 0, 0, &mut status);
    let kernel = app.get::<CreateKernel>(CREATE_KERNEL)(3, c"look".as_ptr(), &mut status);
    SAMPLING.store(kernel, Ordering::Relaxed);
    let set = app.get::<SetArg>(SET_ARG);
    assert_eq!(set(kernel, 0, 8, (&raw const sampler).cast()), 0);
    let size = [1usize];
    let go = app.get::<Launch>(LAUNCH);
    go(
        queue,
        kernel,
        1,
        none,
        size.as_ptr(),
        none,
        0,
        none,
        no_event,
    );
}

fn copies_are_noted(next: &mut impl FnMut() -> Note) {
    let at = |object, offset| Place { object, offset };
    let view = ObjectKind::Part(at(0, 0));
    for expected in [ObjectKind::Image, view, ObjectKind::Image] {
        assert!(matches!(next(), Note::Object(o) if (o.kind, o.size) == (expected, 0)));
    }
    let (image, view) = (2, 3);
    for (call, from, to, sizes, dense) in [
        ("Buffer", at(0, 8), at(view, 16), (24, 24), true),
        ("BufferRect", at(0, 0), at(view, 12), (16, 16), true),
        ("BufferRect", at(0, 0), at(view, 20), (16, 24), false),
        ("Image", at(image, 0), at(image, 0), (0, 0), false),
        ("ImageToBuffer", at(image, 0), at(0, 32), (0, 64), false),
        ("BufferToImage", at(0, 32), at(image, 0), (64, 0), false),
    ] {
        let expected = Copied {
            from,
            to,
            size: sizes.0,
            to_size: sizes.1,
            dense,
            queue: Some(1),
            call: format!("clEnqueueCopy{call}"),
        };
        assert_eq!(next(), Note::Copy(expected));
    }
    for (call, at, size) in [("Buffer", at(0, 4), 12), ("Image", at(image, 0), 0)] {
        let expected = Filled {
            at,
            size,
            queue: Some(1),
            call: format!("clEnqueueFill{call}"),
        };
        assert_eq!(next(), Note::Fill(expected));
    }
    let call = "clEnqueueCopyBuffer".to_owned();
    assert_eq!(next(), Note::Unseen { call });
    // What the sampler is, in place of its handle.
    let is: Vec<u8> = (2u32..5).flat_map(u32::to_ne_bytes).collect();
    let value = Value::Scalar(is);
    assert!(matches!(next(), Note::Launch(l) if l.arguments[0].value == value));
}
