// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels, their arguments, and launches.

use core::ffi::{c_char, c_void};
use core::slice;

use gpureplay_trace::note::{Launch, Note};

use super::{ABSENT, Command, command, functions, unseen};
use crate::abi::{Handle, SUCCESS, Status, signature};
use crate::set::Set;
use crate::state::{self, Kernel};
use crate::table::next;
use crate::{arguments, sink};

functions! {
    clCreateKernel => create_kernel: signature::CreateKernel,
    clCreateKernelsInProgram => create_kernels: signature::CreateKernels,
    clCloneKernel => clone_kernel: signature::CloneKernel,
    clSetKernelArg => set_kernel_arg: signature::SetKernelArg,
    clSetKernelArgSVMPointer => set_kernel_arg_svm: signature::SetKernelArgSvm,
    clEnqueueNDRangeKernel => enqueue_nd_range: signature::Launch,
    clEnqueueTask => enqueue_task: signature::Task,
}

fn forget(kernel: Handle) {
    state::with(|state| state.kernels.insert(kernel, Kernel::default()));
}

unsafe extern "C" fn create_kernel(
    program: Handle,
    name: *const c_char,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateKernel: signature::CreateKernel, or Handle::NULL);
    // SAFETY: the app's own arguments, passed on.
    let kernel = unsafe { next(program, name, status) };
    forget(kernel);
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
    // SAFETY: the app's own arguments, passed on, but for a place for the number, which the app need not give.
    let status = unsafe { next(program, room, kernels, &raw mut made) };
    if !count.is_null() {
        // SAFETY: the app's place for the number.
        unsafe { count.write(made) };
    }
    if status == SUCCESS && !kernels.is_null() {
        // SAFETY: the runtime wrote as many handles as there are kernels, at most as many as there is room for.
        let made = unsafe { slice::from_raw_parts(kernels, made.min(room) as usize) };
        made.iter().copied().for_each(forget);
    }
    status
}

unsafe extern "C" fn clone_kernel(kernel: Handle, status: *mut Status) -> Handle {
    let next = next!(clCloneKernel: signature::CloneKernel, or Handle::NULL);
    // SAFETY: the app's own arguments, passed on.
    let copy = unsafe { next(kernel, status) };
    state::with(|state| {
        let known = state.kernels.get(&kernel).cloned().unwrap_or_default();
        state.kernels.insert(copy, known);
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
    // SAFETY: the app's own arguments, passed on.
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
    unseen("clSetKernelArgSVMPointer");
    set(kernel, index, Set::default());
    // SAFETY: the app's own arguments, passed on.
    unsafe { next(kernel, index, pointer) }
}

fn set(kernel: Handle, index: u32, value: Set) {
    state::with(|state| {
        let kernel = state.kernels.entry(kernel).or_default();
        kernel.values.insert(index, value);
    });
}

/// Launches a kernel behind a note.
fn launch(
    (queue, kernel): (Handle, Handle),
    (global, local): ([u64; 3], Option<[u64; 3]>),
    event: *mut Handle,
    enqueue: impl FnOnce() -> Status,
) -> Status {
    let (name, arguments) = arguments::current(kernel);
    let (id, number) = state::with(|state| {
        let id = state.next_launch;
        state.next_launch = id.wrapping_add(1);
        (id, state.queue(queue))
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
    }
    status
}

/// Up to three sizes, 1 where there is none; `None` if the app gives no address.
///
/// # Safety
/// `sizes` is null or the address of `dimensions` numbers.
unsafe fn sizes(sizes: *const usize, dimensions: u32) -> Option<[u64; 3]> {
    if sizes.is_null() {
        return None;
    }
    let mut out = [1; 3];
    for (index, size) in out.iter_mut().enumerate().take(dimensions as usize) {
        // SAFETY: `index` is below `dimensions`.
        *size = unsafe { sizes.add(index).read() } as u64;
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
        // SAFETY: the app's own arguments, passed on.
        unsafe {
            next(
                queue, kernel, dimensions, offset, global, local, count, list, event,
            )
        }
    };
    // SAFETY: OpenCL demands that both are null or hold a number for each of one to three dimensions.
    let (work, group) = unsafe { (sizes(global, dimensions), sizes(local, dimensions)) };
    match work {
        Some(work) if (1..=3).contains(&dimensions) => {
            launch((queue, kernel), (work, group), event, enqueue)
        }
        // The runtime will refuse it, or do nothing.
        _ => enqueue(),
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
    // SAFETY: the app's own arguments, passed on.
    let enqueue = || unsafe { next(queue, kernel, count, list, event) };
    launch((queue, kernel), ([1; 3], Some([1; 3])), event, enqueue)
}
