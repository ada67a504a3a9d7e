// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels, their arguments, and launches.

use core::ffi::{c_char, c_void};
use core::slice;

use gpureplay_trace::note::{Launch, Note};

use super::{ABSENT, Command, command, functions, unseen};
use crate::abi::{Handle, KERNEL_REFERENCE_COUNT, SUCCESS, Status, ask, signature};
use crate::set::Set;
use crate::state::{self, Kernel};
use crate::table::next;
use crate::{arguments, reach, sink};

functions! {
    clCreateKernel => create_kernel: signature::CreateKernel,
    clCreateKernelsInProgram => create_kernels: signature::CreateKernels,
    clCloneKernel => clone_kernel: signature::CloneKernel,
    clReleaseKernel => release_kernel: signature::Object,
    clSetKernelArg => set_kernel_arg: signature::SetKernelArg,
    clSetKernelArgSVMPointer => set_kernel_arg_svm: signature::SetKernelArgSvm,
    clEnqueueNDRangeKernel => enqueue_nd_range: signature::Launch,
    clEnqueueTask => enqueue_task: signature::Task,
}

fn made(kernel: Handle) {
    if kernel != Handle::NULL {
        state::with(|state| state.kernels.insert(kernel, Kernel::default()));
    }
}

/// A released kernel is not asked for anything.
unsafe extern "C" fn release_kernel(kernel: Handle) -> Status {
    let next = next!(clReleaseKernel: signature::Object, or ABSENT);
    let info = next!(clGetKernelInfo: signature::Info);
    let known = state::with(|state| state.kernels.contains_key(&kernel));
    if known && ask(info, kernel, KERNEL_REFERENCE_COUNT).map(u32::from_ne_bytes) == Some(1) {
        state::with(|state| state.kernels.remove(&kernel));
    }
    // SAFETY: the app's own argument.
    unsafe { next(kernel) }
}

unsafe extern "C" fn create_kernel(
    program: Handle,
    name: *const c_char,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateKernel: signature::CreateKernel, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let kernel = unsafe { next(program, name, status) };
    made(kernel);
    kernel
}

unsafe extern "C" fn create_kernels(
    program: Handle,
    room: u32,
    kernels: *mut Handle,
    count: *mut u32,
) -> Status {
    let next = next!(clCreateKernelsInProgram: signature::CreateKernels, or ABSENT);
    let mut made = 0;
    // SAFETY: the app's own arguments, but for the number's place, which the app need not give.
    let status = unsafe { next(program, room, kernels, &raw mut made) };
    if status == SUCCESS && !count.is_null() {
        // SAFETY: the app's place, which the runtime would have filled.
        unsafe { count.write(made) };
    }
    if status == SUCCESS && !kernels.is_null() {
        // SAFETY: the runtime wrote a handle per kernel, as far as there is room.
        let made = unsafe { slice::from_raw_parts(kernels, made.min(room) as usize) };
        made.iter().copied().for_each(self::made);
    }
    status
}

unsafe extern "C" fn clone_kernel(kernel: Handle, status: *mut Status) -> Handle {
    let next = next!(clCloneKernel: signature::CloneKernel, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let copy = unsafe { next(kernel, status) };
    state::with(|state| {
        let known = state.kernels.get(&kernel).cloned().unwrap_or_default();
        if copy != Handle::NULL {
            state.kernels.insert(copy, known);
        }
    });
    copy
}

unsafe extern "C" fn set_kernel_arg(
    kernel: Handle,
    index: u32,
    size: usize,
    bytes: *const c_void,
) -> Status {
    let next = next!(clSetKernelArg: signature::SetKernelArg, or ABSENT);
    // SAFETY: the app's own arguments.
    let status = unsafe { next(kernel, index, size, bytes) };
    if status == SUCCESS {
        // SAFETY: the runtime has accepted `size` bytes at this address.
        let bytes =
            (!bytes.is_null()).then(|| unsafe { slice::from_raw_parts(bytes.cast::<u8>(), size) });
        set(kernel, index, arguments::set(size, bytes));
    }
    status
}

unsafe extern "C" fn set_kernel_arg_svm(
    kernel: Handle,
    index: u32,
    pointer: *const c_void,
) -> Status {
    let next = next!(clSetKernelArgSVMPointer: signature::SetKernelArgSvm, or ABSENT);
    // SAFETY: the app's own arguments.
    let status = unsafe { next(kernel, index, pointer) };
    if status == SUCCESS {
        unseen("clSetKernelArgSVMPointer");
        set(kernel, index, Set::default());
    }
    status
}

fn set(kernel: Handle, index: u32, value: Set) {
    state::with(|state| {
        if let Some(kernel) = state.kernels.get_mut(&kernel) {
            kernel.values.insert(index, value);
        }
    });
}

fn launch(
    (queue, kernel): (Handle, Handle),
    (global, local): ([u64; 3], Option<[u64; 3]>),
    event: *mut Handle,
    enqueue: impl FnOnce() -> Status,
) -> Status {
    let (name, arguments) = arguments::current(kernel);
    let (id, known, number) = state::with(|state| {
        let id = state.next_launch;
        state.next_launch = id.wrapping_add(1);
        (id, state.has_queue(queue), state.queue(queue))
    });
    sink::put(&Note::Launch(Launch {
        id,
        queue: number,
        kernel: name,
        global,
        local,
        arguments,
    }));
    let call = Command::new(queue, event, false);
    let status = command(call, enqueue, |_| ());
    if status != SUCCESS {
        sink::put(&Note::Refused { launch: id, status });
        if !known {
            state::with(|state| state.forget_queue(queue));
        }
    }
    status
}

/// One to three sizes, else 1; `None` if none are there.
fn sizes(sizes: *const usize, dimensions: u32) -> Option<[u64; 3]> {
    let count = dimensions as usize;
    let read = reach::numbers(sizes, count)?;
    let mut out = [1; 3];
    for (size, given) in out.iter_mut().zip(read).take(count) {
        *size = given as u64;
    }
    Some(out)
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn enqueue_nd_range(
    queue: Handle,
    kernel: Handle,
    dimensions: u32,
    offset: *const usize,
    global: *const usize,
    local: *const usize,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let next = next!(clEnqueueNDRangeKernel: signature::Launch, or ABSENT);
    let enqueue = || {
        // SAFETY: the app's own arguments.
        unsafe {
            next(
                queue, kernel, dimensions, offset, global, local, count, list, event,
            )
        }
    };
    // The runtime refuses other numbers of dimensions, and missing sizes.
    let given = |at| {
        (1..=3)
            .contains(&dimensions)
            .then(|| sizes(at, dimensions))
            .flatten()
    };
    match given(global) {
        Some(work) => launch((queue, kernel), (work, given(local)), event, enqueue),
        None => enqueue(),
    }
}

unsafe extern "C" fn enqueue_task(
    queue: Handle,
    kernel: Handle,
    count: u32,
    list: *const Handle,
    event: *mut Handle,
) -> Status {
    let next = next!(clEnqueueTask: signature::Task, or ABSENT);
    // SAFETY: the app's own arguments.
    let enqueue = || unsafe { next(queue, kernel, count, list, event) };
    launch((queue, kernel), ([1; 3], Some([1; 3])), event, enqueue)
}
