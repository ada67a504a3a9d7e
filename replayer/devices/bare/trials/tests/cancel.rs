// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cancelled run ends at once.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::mem::MaybeUninit;

use gpureplay_bare::Callbacks;
use gpureplay_bare::c::{
    Error, State, Tensor, gpureplay_close, gpureplay_find, gpureplay_open, gpureplay_run,
};
use gpureplay_format::{Access, Builder, RegionKind, SegmentKind};

const GPU: u32 = 0x7212_0000;
const JOB: u64 = 0x200_0000;
const TIMEOUT_US: u32 = 10_000_000;
const ARENA: usize = 64 << 12;

struct Stuck {
    registers: BTreeMap<u32, u32>,
    now_us: u64,
    resets: u32,
    started: u32,
    cancelled_at: Option<u64>,
}

fn stuck<'a>(context: *mut c_void) -> &'a mut Stuck {
    // SAFETY: the tests pass one that outlives the session, and nothing else uses it during a call.
    unsafe { &mut *context.cast() }
}

extern "C" fn read32(context: *mut c_void, register: u32) -> u32 {
    let registers = &stuck(context).registers;
    registers.get(&register).copied().unwrap_or(0)
}

extern "C" fn write32(context: *mut c_void, register: u32, value: u32) {
    let gpu = stuck(context);
    match register {
        // Reset (GPU_CMD) completes: bit 8 of GPU_INT_RAWSTAT.
        0x30 => {
            gpu.resets += 1;
            gpu.registers.insert(0x20, 1 << 8);
        }
        // JS_COMMAND_NEXT of slot 1.
        0x18e0 if value == 1 => gpu.started += 1,
        _ => {}
    }
}

extern "C" fn now_us(context: *mut c_void) -> u64 {
    let gpu = stuck(context);
    gpu.now_us += 1;
    gpu.now_us
}

extern "C" fn wait(context: *mut c_void, timeout_us: u32) {
    stuck(context).now_us += u64::from(timeout_us.min(1000));
}

extern "C" fn cancelled(context: *mut c_void) -> i32 {
    let gpu = stuck(context);
    i32::from(gpu.cancelled_at.is_some_and(|at| gpu.now_us >= at))
}

fn recording() -> Vec<u8> {
    let mut builder = Builder::new(GPU);
    builder.identity(0, 0xffff_0000, GPU);
    builder.region(JOB, 1, Access::READ_WRITE, RegionKind::Descriptors);
    let mut job = [0; 32];
    job[16] = 1 << 1 | 1;
    builder.segment("run", SegmentKind::Run);
    builder.upload(JOB, &job);
    builder.submit(1, JOB, TIMEOUT_US);
    builder.finish().unwrap()
}

#[repr(align(4096))]
struct Arena([u8; ARENA]);

#[test]
fn a_cancelled_run_ends_with_a_reset() {
    let mut arena = Box::new(Arena([0; ARENA]));
    // MMU features, slots, address spaces, present and powered cores.
    let cores = [0x100, 0x110, 0x120, 0x140, 0x150, 0x160];
    let present = [(0, GPU), (0x14, 0x2830), (0x18, 0xff), (0x1c, 7)];
    let mut gpu = Stuck {
        registers: present
            .into_iter()
            .chain(cores.map(|core| (core, 1)))
            .collect(),
        now_us: 0,
        resets: 0,
        started: 0,
        cancelled_at: None,
    };
    let context: *mut Stuck = &raw mut gpu;
    let start = arena.0.as_mut_ptr();
    let callbacks = Callbacks {
        context: context.cast(),
        read32,
        write32,
        now_us,
        wait_interrupt: Some(wait),
        arena: start,
        arena_bytes: ARENA,
        cancelled: Some(cancelled),
        ..Callbacks::arena(start as usize, ARENA)
    };
    let (recording, mut error) = (recording(), Error::default());
    let mut state = Box::new(MaybeUninit::<State>::uninit());
    let state = state.as_mut_ptr();
    let run = |cancelled_after: Option<u64>| {
        let gpu = stuck(context.cast());
        let (began, resets) = (gpu.now_us, gpu.resets);
        gpu.cancelled_at = cancelled_after.map(|after| began + after);
        let mut error = Error::default();
        // SAFETY: the session is open below; no tensors.
        let status = unsafe { gpureplay_run(state, std::ptr::null_mut::<Tensor>(), 0, &mut error) };
        assert_eq!(status, error.status);
        let gpu = stuck(context.cast());
        let late = gpu.started > 0;
        gpu.started = 0;
        (
            status,
            error.code,
            gpu.now_us - began,
            gpu.resets - resets,
            late,
        )
    };
    // SAFETY: everything outlives the session, which does not move.
    let opened = unsafe {
        gpureplay_open(
            state,
            &callbacks,
            recording.as_ptr(),
            recording.len(),
            &mut error,
        )
    };
    assert_eq!(opened, 0);
    for name in [c"none".as_ptr(), std::ptr::null()] {
        // SAFETY: the session is open; the name is a string or null.
        assert_eq!(unsafe { gpureplay_find(state, name) }, -1);
    }
    // Code 6: the job's time-out.
    let (status, code, time, resets, started) = run(None);
    assert_eq!((status, code, started), (3, 6, true));
    assert!(time > u64::from(TIMEOUT_US) && resets > 0, "{time} {resets}");
    let (status, _, time, resets, started) = run(Some(1_000_000));
    assert_eq!((status, started), (5, true));
    assert!((1_000_000..1_100_000).contains(&time), "{time}");
    assert!(resets >= 2, "before the run and after it: {resets}");
    let (status, _, time, _, started) = run(Some(0));
    assert_eq!((status, started), (5, false));
    assert!(time < 100_000, "{time}");
    assert_eq!((run(None).0, run(None).1), (3, 6));
    // SAFETY: it is open.
    assert_eq!(unsafe { gpureplay_close(state, &mut error) }, 0);
}
