// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transfers that outlast their call: looked at once the app can know that they are complete.

use core::ffi::c_void;
use core::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpureplay_trace::note::Note;

use crate::abi::{EVENT_STATUS, Handle, SUCCESS, ask, signature};
use crate::table::next;
use crate::{reach, sink, state};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Content(u32),
    /// What an object held when mapped; with a number for a read.
    Before(Handle, Option<u32>),
}

struct Pending {
    /// Layer's own reference.
    event: Handle,
    address: usize,
    size: usize,
    used: Use,
}

/// What more commands move stays unknown.
const MAX_PENDING: usize = 4096;

static LIST: Mutex<Vec<Pending>> = Mutex::new(Vec::new());

fn list() -> MutexGuard<'static, Vec<Pending>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a command that fills memory. `kept`: the reference is the layer's own already.
///
/// # Safety
/// The memory is valid until the app can know that the event is complete, and longer than any call by which it
/// learns that.
pub(crate) unsafe fn add(
    event: Handle,
    kept: bool,
    (address, size): (*const c_void, usize),
    used: Use,
) {
    if !kept {
        let Some(retain) = next!(clRetainEvent: signature::Object) else {
            return;
        };
        // SAFETY: the runtime has just made this event for the app.
        if unsafe { retain(event) } != SUCCESS {
            return;
        }
    }
    if list().len() >= MAX_PENDING {
        look();
    }
    let mut list = list();
    if list.len() >= MAX_PENDING {
        drop(list);
        return release(event);
    }
    list.push(Pending {
        event,
        address: address.expose_provenance(),
        size,
        used,
    });
}

pub(crate) fn look() {
    let mut ended = Vec::new();
    // Locked: another thread's app must not go on before its memory has been looked at.
    list().retain(|pending| {
        let status = status(pending.event);
        if status == Some(0) {
            tell(pending);
        }
        let stays = matches!(status, Some(1..));
        if !stays {
            ended.push(pending.event);
        }
        stays
    });
    // Not locked: with the last reference the runtime may call the app back, and that the layer.
    ended.into_iter().for_each(release);
}

pub(crate) fn forget() {
    let all = std::mem::take(&mut *list());
    all.into_iter().for_each(|pending| release(pending.event));
}

/// True if the map is not complete.
pub(crate) fn give_up(object: Handle, address: usize) -> bool {
    let mut ended = Vec::new();
    list().retain(|pending| {
        let mapped = matches!(pending.used, Use::Before(of, _) if of == object);
        let stays = !mapped || pending.address != address;
        if !stays {
            ended.push(pending.event);
        }
        stays
    });
    let found = !ended.is_empty();
    ended.into_iter().for_each(release);
    found
}

fn status(event: Handle) -> Option<i32> {
    ask(next!(clGetEventInfo: signature::Info), event, EVENT_STATUS).map(i32::from_ne_bytes)
}

fn release(event: Handle) {
    if let Some(release) = next!(clReleaseEvent: signature::Object) {
        // SAFETY: the layer's own reference, not used after this.
        unsafe { release(event) };
    }
}

fn tell(pending: &Pending) {
    let memory = ptr::with_exposed_provenance::<u8>(pending.address);
    // SAFETY: as promised to `add`: no call has returned by which the app learns that the memory is its own again.
    // Memory released without an unmap is gone.
    let Some(hash) = (unsafe { reach::hash(memory.cast(), pending.size) }) else {
        return;
    };
    let content = match pending.used {
        Use::Content(id) => Some(id),
        Use::Before(object, id) => {
            state::with(|state| {
                if let Some(mapped) = state.mapped.get_mut(&(object, pending.address)) {
                    mapped.before = Some(hash);
                }
            });
            id
        }
    };
    if let Some(id) = content {
        sink::put(&Note::Content { id, hash });
    }
}
