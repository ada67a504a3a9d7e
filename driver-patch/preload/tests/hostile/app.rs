// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the app asks and sees.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use mali_facts::JobType;
use mali_uapi::panfrost::request::{self as uapi, Request};
use zerocopy::IntoBytes;

use crate::random;

const PAGE: usize = 4096;

static JOBS: AtomicU32 = AtomicU32::new(0);

pub(crate) type Seen = Vec<String>;

pub(crate) fn ioctl(fd: c_int, request: u32, argument: u64) -> (c_int, c_int) {
    let argument = ptr::with_exposed_provenance_mut::<c_void>(argument as usize);
    // SAFETY: what lies there is the app's affair, and the driver's to check.
    let result = unsafe { libc::ioctl(fd, request.into(), argument) };
    let error = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
    if Request(request).number() == uapi::number::SUBMIT && result == 0 {
        JOBS.fetch_add(1, Relaxed);
    }
    (result, if result < 0 { error } else { 0 })
}

fn ask<T: IntoBytes>(fd: c_int, request: Request, argument: &mut T) -> (c_int, c_int) {
    ioctl(fd, request.0, address(argument))
}

macro_rules! asked {
    ($seen:ident, $fd:ident, $handle:ident; $($what:literal => $request:ident, $kind:ident $fields:tt;)*) => {$(
        let answer = ask($fd, uapi::$request, &mut uapi::$kind $fields);
        $seen.push(format!("{} {}: {answer:?}", $what, $handle));
    )*};
}

fn address<T>(place: &mut T) -> u64 {
    ptr::from_mut(place).expose_provenance() as u64
}

fn open_node() -> c_int {
    // SAFETY: the path is a C string.
    let fd = unsafe { libc::open(c"/dev/dri/renderD128".as_ptr(), libc::O_RDWR) };
    assert!(fd >= 0, "no node");
    fd
}

/// The page behind it cannot be reached.
pub(crate) fn half_page() -> *mut u8 {
    // SAFETY: new memory, whose second half is taken away again.
    unsafe {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(ptr::null_mut(), 2 * PAGE, rights, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        libc::munmap(start.byte_add(PAGE), PAGE);
        start.cast()
    }
}

struct Memory {
    handle: u32,
    va: u64,
    words: *mut u64,
}

impl Memory {
    fn new(fd: c_int, through: c_int) -> Self {
        let mut made = uapi::CreateBo {
            size: PAGE as u32,
            ..Default::default()
        };
        assert_eq!(ask(fd, uapi::CREATE_BO, &mut made).0, 0);
        let mut place = uapi::MmapBo {
            handle: made.handle,
            ..Default::default()
        };
        assert_eq!(ask(fd, uapi::MMAP_BO, &mut place).0, 0);
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let (flags, offset) = (libc::MAP_SHARED, place.offset as i64);
        // SAFETY: a new mapping.
        let words = unsafe { libc::mmap64(ptr::null_mut(), PAGE, rights, flags, through, offset) };
        assert_ne!(words, libc::MAP_FAILED);
        Self {
            handle: made.handle,
            va: made.va,
            words: words.cast(),
        }
    }

    /// Writes a value to its end.
    fn job(&self, value: u64) -> uapi::Submit {
        let kind = (JobType::WriteValue as u64) << 1 | 1;
        let words = [
            (0, 0),
            (1, 0),
            (2, kind | 1 << 16),
            (3, 0),
            (4, self.va + 4088),
            (5, 7),
            (6, value),
        ];
        for (word, value) in words {
            // SAFETY: inside the mapping.
            unsafe { self.words.add(word).write_volatile(value) };
        }
        uapi::Submit {
            head: self.va,
            handle_count: 1,
            ..Default::default()
        }
    }

    fn end(&self) -> u64 {
        // SAFETY: inside the mapping.
        unsafe { self.words.add(511).read_volatile() }
    }

    fn run(&self, fd: c_int, value: u64) -> (c_int, c_int, u64) {
        let mut job = self.job(value);
        let mut handle = self.handle;
        job.handles = address(&mut handle);
        let (result, error) = ask(fd, uapi::SUBMIT, &mut job);
        (result, error, self.end())
    }
}

fn bad_arguments(fd: c_int, memory: &Memory, seen: &mut Seen) {
    let half = half_page();
    // SAFETY: the first page is there.
    let last = unsafe { half.add(PAGE - 4) }.expose_provenance() as u64;
    for request in [
        uapi::SUBMIT,
        uapi::GEM_CLOSE,
        uapi::MADVISE,
        uapi::PRIME_FD_TO_HANDLE,
        uapi::PRIME_HANDLE_TO_FD,
        uapi::CREATE_BO,
        uapi::MMAP_BO,
        uapi::SYNCOBJ_DESTROY,
    ] {
        for place in [8, last, last + 4, u64::MAX - 3, 1 << 63] {
            let (result, error) = ioctl(fd, request.0, place);
            // The place depends on the run.
            let place = place.wrapping_sub(half.expose_provenance() as u64);
            let shown = if place < 2 * PAGE as u64 { place } else { 0 };
            seen.push(format!("{:#x} at {shown:#x}: {result} {error}", request.0));
        }
    }
    let lists = [
        (8, 1),
        (last, 1),
        (last, 2),
        (last, u32::MAX),
        (0, 1),
        (0, u32::MAX),
        (1 << 63, 3),
    ];
    for (list, count) in lists {
        let mut job = memory.job(1);
        (job.handles, job.handle_count) = (list, count);
        seen.push(format!(
            "{count} handles: {:?}",
            ask(fd, uapi::SUBMIT, &mut job)
        ));
        let mut handle = memory.handle;
        (job.handles, job.handle_count) = (address(&mut handle), 1);
        (job.in_syncs, job.in_sync_count) = (list, count);
        seen.push(format!(
            "{count} syncs: {:?}",
            ask(fd, uapi::SUBMIT, &mut job)
        ));
    }
}

fn bad_sizes(fd: c_int, memory: &Memory, seen: &mut Seen) {
    let mut room = [0u8; 1 << 14];
    let whole = memory.job(0x77);
    room[..size_of_val(&whole)].copy_from_slice(whole.as_bytes());
    let mut handle = memory.handle;
    let list = address(&mut handle).to_ne_bytes();
    room[24..32].copy_from_slice(&list);
    for size in [0, 7, 8, 24, 39, 40, 64, 0x3fff] {
        let request = uapi::SUBMIT.0 & !(0x3fff << 16) | size << 16;
        let result = ioctl(fd, request, address(&mut room));
        seen.push(format!("SUBMIT of {size} bytes: {result:?}"));
    }
    seen.push(format!("then {:#x}", memory.end()));
}

fn bad_names(fd: c_int, memory: &Memory, seen: &mut Seen) {
    for handle in [0, 77, u32::MAX] {
        asked! { seen, fd, handle;
            "close" => GEM_CLOSE, GemClose { handle, pad: 0 };
            "advise" => MADVISE, Madvise { handle, advice: 1, retained: 0 };
            "export" => PRIME_HANDLE_TO_FD, Prime { handle, flags: 0, fd: 0 };
            "destroy" => SYNCOBJ_DESTROY, Syncobj { handle, flags: 0 };
        }
    }
    for other in [-1, 1 << 15, 1 << 17, c_int::MAX] {
        let mut job = memory.job(2);
        seen.push(format!(
            "SUBMIT to {other}: {:?}",
            ask(other, uapi::SUBMIT, &mut job)
        ));
    }
    // Calls that fail leave the file as it is.
    // SAFETY: numbers of files.
    let calls = unsafe {
        [
            libc::dup2(-1, fd),
            libc::dup2(1 << 17, fd),
            libc::dup3(fd, fd, 0),
            libc::dup3(0, fd, 1 << 30),
            libc::close_range(9, 3, 0),
            libc::close_range(3, 1 << 30, 1 << 30),
            libc::close(-1),
        ]
    };
    seen.push(format!("{calls:?}, then {:?}", memory.run(fd, 3)));
}

/// One of the handles is the recorder's own sync object.
fn strange_syncs(fd: c_int, memory: &Memory, seen: &mut Seen) {
    memory.run(fd, 4);
    for handle in 1..64 {
        let mut sync = uapi::Syncobj {
            handle,
            ..Default::default()
        };
        ask(fd, uapi::SYNCOBJ_DESTROY, &mut sync);
    }
    seen.push(format!("without sync objects {:?}", memory.run(fd, 5)));
}

/// This thread signals it after the submission.
fn late_fence(fd: c_int, memory: &Memory, seen: &mut Seen) {
    const SIGNALED: u32 = 1;
    let mut sync = uapi::Syncobj {
        flags: SIGNALED,
        ..Default::default()
    };
    seen.push(format!("{:?}", ask(fd, uapi::SYNCOBJ_CREATE, &mut sync)));
    let (mut handle, mut late) = (memory.handle, sync.handle);
    let mut job = memory.job(13);
    (job.handles, job.in_syncs) = (address(&mut handle), address(&mut late));
    job.in_sync_count = 1;
    seen.push(format!("{:?}", ask(fd, uapi::SUBMIT, &mut job)));
    let mut list = uapi::SyncobjArray {
        handles: address(&mut late),
        count: 1,
        ..Default::default()
    };
    seen.push(format!("{:?}", ask(fd, uapi::SYNCOBJ_SIGNAL, &mut list)));
    seen.push(format!("then {:#x}", memory.end()));
}

fn forks(seen: &mut Seen) {
    let stop = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let fd = open_node();
                let memory = Memory::new(fd, fd);
                while !stop.load(Relaxed) {
                    memory.run(fd, 6);
                }
            });
        }
        let mut ended = Vec::new();
        for turn in 0..20 {
            // SAFETY: the child makes calls and ends.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: ends this process if it hangs.
                unsafe { libc::alarm(5) };
                let fd = open_node();
                let good = Memory::new(fd, fd).run(fd, turn) == (0, 0, turn);
                // SAFETY: ends the process.
                unsafe { libc::_exit(c_int::from(!good)) };
            }
            let mut status = -1;
            // SAFETY: waits for the child.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
            ended.push(status);
        }
        stop.store(true, Relaxed);
        ended
    });
    seen.push(format!("children: {ended:?}"));
}

fn copies(fd: c_int, seen: &mut Seen) {
    // SAFETY: a copy of a number.
    let copy = unsafe { libc::dup(fd) };
    let memory = Memory::new(fd, copy);
    seen.push(format!("through a copy: {:?}", memory.run(fd, 8)));
    seen.push(format!("again: {:?}", memory.run(copy, 9)));
    // SAFETY: the app's own numbers.
    unsafe { libc::close(fd) };
    seen.push(format!("first closed: {:?}", memory.run(copy, 10)));
    seen.push(format!("on the closed one: {:?}", memory.run(fd, 11)));
    // SAFETY: as above.
    unsafe { libc::close(copy) };
    seen.push(format!("both closed: {:?}", memory.run(copy, 12)));
}

pub(crate) fn play(part: &str) -> (Seen, u32) {
    let fd = open_node();
    let seed = |text: &str| text.parse().expect("a seed");
    if let Some(text) = part.strip_prefix("streams ") {
        let mut seen = Seen::new();
        random::App::new(fd, seed(text), &mut seen).streams();
        return (seen, JOBS.load(Relaxed));
    }
    let memory = Memory::new(fd, fd);
    let mut seen = vec![format!("{:?}", memory.run(fd, 1))];
    if let Some(text) = part.strip_prefix("chains ") {
        random::App::new(fd, seed(text), &mut seen).chains();
        // The app may have given its objects up.
        let fd = open_node();
        seen.push(format!(
            "in the end {:?}",
            Memory::new(fd, fd).run(fd, 0xabc)
        ));
        return (seen, JOBS.load(Relaxed));
    }
    match part {
        "arguments" => bad_arguments(fd, &memory, &mut seen),
        "sizes" => bad_sizes(fd, &memory, &mut seen),
        "names" => bad_names(fd, &memory, &mut seen),
        "syncs" => strange_syncs(fd, &memory, &mut seen),
        "late" => late_fence(fd, &memory, &mut seen),
        "forks" => forks(&mut seen),
        "copies" => copies(fd, &mut seen),
        _ => panic!("no part {part}"),
    }
    if part != "copies" {
        seen.push(format!("in the end {:?}", memory.run(fd, 0xabc)));
    }
    (seen, JOBS.load(Relaxed))
}
