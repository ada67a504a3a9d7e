// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues, timed by the layer where the runtime cannot.

use core::cell::RefCell;
use core::ffi::c_void;
use core::mem::size_of;

use super::{ABSENT, functions};
use crate::abi::{
    EVENT_REFERENCE_COUNT, Handle, INVALID_QUEUE_PROPERTIES, INVALID_VALUE, PROFILING_COMPLETE,
    PROFILING_END, PROFILING_QUEUED, PROFILING_START, PROFILING_SUBMIT, QUEUE_PROFILING,
    QUEUE_PROPERTIES, SUCCESS, Status, ask, signature,
};
use crate::pending;
use crate::state::{self, Times};
use crate::table::next;

functions! {
    clCreateCommandQueue => create_queue: signature::CreateQueue,
    clCreateCommandQueueWithProperties => create_queue_with_properties: signature::CreateQueueWithProperties,
    clGetCommandQueueInfo => queue_info: signature::Info,
    clGetEventProfilingInfo => profiling_info: signature::Info,
    clReleaseEvent => release_event: signature::Object,
}

/// `wanted` and `untimed` are asked only after the runtime has looked at the app's arguments.
fn create(
    status: *mut Status,
    make: impl FnOnce(*mut Status) -> Handle,
    wanted: impl FnOnce() -> u64,
    untimed: impl FnOnce(*mut Status) -> Handle,
) -> Handle {
    let mut own = SUCCESS;
    let mut queue = make(&raw mut own);
    let timed = own == INVALID_QUEUE_PROPERTIES && wanted() & QUEUE_PROFILING != 0;
    if timed {
        queue = untimed(&raw mut own);
    }
    state::with(|state| {
        if own == SUCCESS {
            state.add_queue(queue);
        }
        if timed && own == SUCCESS {
            state.timed_queues.insert(queue);
        } else {
            state.timed_queues.remove(&queue);
        }
    });
    if !status.is_null() {
        // SAFETY: the app's place for the status.
        unsafe { status.write(own) };
    }
    queue
}

unsafe extern "C" fn create_queue(
    context: Handle,
    device: Handle,
    properties: u64,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateCommandQueue: signature::CreateQueue, or Handle::NULL);
    // SAFETY: the app's own arguments, but for the properties and the place for the status.
    let make = |properties, own| unsafe { next(context, device, properties, own) };
    create(
        status,
        |own| make(properties, own),
        || properties,
        |own| make(properties & !QUEUE_PROFILING, own),
    )
}

/// OpenCL defines three.
const MAX_PROPERTIES: usize = 16;

unsafe extern "C" fn create_queue_with_properties(
    context: Handle,
    device: Handle,
    list: *const u64,
    status: *mut Status,
) -> Handle {
    type Next = signature::CreateQueueWithProperties;
    let next = next!(clCreateCommandQueueWithProperties: Next, or Handle::NULL);
    let is_properties = |pair: &&[u64; 2]| pair[0] == u64::from(QUEUE_PROPERTIES);
    let pairs = RefCell::new(Vec::new());
    create(
        status,
        // SAFETY: the app's own arguments, but for the place for the status.
        |own| unsafe { next(context, device, list, own) },
        || {
            // SAFETY: the runtime has looked at the list.
            pairs.replace(unsafe { properties(list) });
            let pairs = pairs.borrow();
            pairs.iter().find(is_properties).map_or(0, |pair| pair[1])
        },
        |own| {
            let pairs = pairs.borrow();
            let changed = pairs.iter().map(|pair| match is_properties(&pair) {
                true => [pair[0], pair[1] & !QUEUE_PROFILING],
                false => *pair,
            });
            let list: Vec<u64> = changed.flatten().chain([0]).collect();
            // SAFETY: as above, with a list that ends with 0.
            unsafe { next(context, device, list.as_ptr(), own) }
        },
    )
}

/// # Safety
/// The list is null or ends with a 0 as name.
unsafe fn properties(list: *const u64) -> Vec<[u64; 2]> {
    let mut pairs = Vec::new();
    let mut at = list;
    // SAFETY: the caller's promise.
    unsafe {
        while !at.is_null() && at.read() != 0 && pairs.len() < MAX_PROPERTIES {
            pairs.push([at.read(), at.add(1).read()]);
            at = at.add(2);
        }
    }
    pairs
}

unsafe extern "C" fn queue_info(
    queue: Handle,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Status {
    let next = next!(clGetCommandQueueInfo: signature::Info, or ABSENT);
    // SAFETY: the app's own arguments.
    let status = unsafe { next(queue, what, size, value, needed) };
    let timed = state::with(|state| state.timed_queues.contains(&queue));
    if status == SUCCESS && what == QUEUE_PROPERTIES && timed && !value.is_null() {
        let value = value.cast::<u64>();
        // SAFETY: the runtime has written its properties there.
        unsafe { value.write_unaligned(value.read_unaligned() | QUEUE_PROFILING) };
    }
    status
}

unsafe extern "C" fn profiling_info(
    event: Handle,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Status {
    let next = next!(clGetEventProfilingInfo: signature::Info, or ABSENT);
    let known = state::with(|state| state.times.get(&event).copied());
    let Some(Times { queued, end }) = known else {
        // SAFETY: the app's own arguments.
        let status = unsafe { next(event, what, size, value, needed) };
        // Only a complete command has times.
        pending::look();
        return status;
    };
    let answer = match what {
        PROFILING_QUEUED | PROFILING_SUBMIT | PROFILING_START => queued,
        PROFILING_END | PROFILING_COMPLETE => end,
        _ => return INVALID_VALUE,
    };
    if !value.is_null() {
        if size < size_of::<u64>() {
            return INVALID_VALUE;
        }
        // SAFETY: the app has room for eight bytes there.
        unsafe { value.cast::<u64>().write_unaligned(answer) };
    }
    if !needed.is_null() {
        // SAFETY: the app's place for the size.
        unsafe { needed.write(size_of::<u64>()) };
    }
    SUCCESS
}

unsafe extern "C" fn release_event(event: Handle) -> Status {
    let next = next!(clReleaseEvent: signature::Object, or ABSENT);
    let known = state::with(|state| state.times.contains_key(&event));
    let info = next!(clGetEventInfo: signature::Info);
    if known
        && let Some(references) = ask(info, event, EVENT_REFERENCE_COUNT)
        && u32::from_ne_bytes(references) <= 1
    {
        state::with(|state| state.times.remove(&event));
    }
    // SAFETY: the app's own argument.
    unsafe { next(event) }
}
