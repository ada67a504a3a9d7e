// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that tell an app that commands are complete.

use core::ffi::c_void;

use super::{ABSENT, functions, idle};
use crate::abi::{Handle, SUCCESS, Status, signature};
use crate::pending;
use crate::state;
use crate::table::next;

functions! {
    clFinish => finish: signature::Object,
    clWaitForEvents => wait_for_events: signature::WaitForEvents,
    clGetEventInfo => event_info: signature::Info,
    clSetEventCallback => set_event_callback: signature::SetEventCallback,
    clCreateUserEvent => create_user_event: signature::CreateUserEvent,
    clSetUserEventStatus => set_user_event_status: signature::SetUserEventStatus,
}

unsafe extern "C" fn finish(queue: Handle) -> Status {
    let next = next!(clFinish: signature::Object, or ABSENT);
    // SAFETY: the app's own argument.
    let status = unsafe { next(queue) };
    if status == SUCCESS {
        idle(queue);
    }
    status
}

unsafe extern "C" fn wait_for_events(count: u32, list: *const Handle) -> Status {
    let next = next!(clWaitForEvents: signature::WaitForEvents, or ABSENT);
    // SAFETY: the app's own arguments.
    let status = unsafe { next(count, list) };
    pending::look();
    status
}

unsafe extern "C" fn event_info(
    event: Handle,
    what: u32,
    size: usize,
    value: *mut c_void,
    needed: *mut usize,
) -> Status {
    let next = next!(clGetEventInfo: signature::Info, or ABSENT);
    // SAFETY: the app's own arguments.
    let status = unsafe { next(event, what, size, value, needed) };
    pending::look();
    status
}

unsafe extern "C" fn set_event_callback(
    event: Handle,
    when: i32,
    function: *const c_void,
    data: *mut c_void,
) -> Status {
    let next = next!(clSetEventCallback: signature::SetEventCallback, or ABSENT);
    // The app may learn of ends unseen from now on.
    pending::forget();
    // SAFETY: the app's own arguments.
    unsafe { next(event, when, function, data) }
}

unsafe extern "C" fn create_user_event(context: Handle, status: *mut Status) -> Handle {
    let next = next!(clCreateUserEvent: signature::CreateUserEvent, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let event = unsafe { next(context, status) };
    if event != Handle::NULL {
        state::with(|state| state.unset.insert(event));
    }
    event
}

unsafe extern "C" fn set_user_event_status(event: Handle, to: i32) -> Status {
    let next = next!(clSetUserEventStatus: signature::SetUserEventStatus, or ABSENT);
    // SAFETY: the app's own arguments.
    let status = unsafe { next(event, to) };
    if status == SUCCESS {
        state::with(|state| state.unset.remove(&event));
    }
    status
}
