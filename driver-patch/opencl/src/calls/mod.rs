// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the layer answers: each calls the one below, and says what it saw.

mod launch;
mod map;
mod memory;
mod queue;
mod rectangle;
mod transfer;

use gpureplay_trace::note::{Note, Place};

use crate::abi::{Handle, INVALID_OPERATION, SUCCESS, Status, signature};
use crate::sink;
use crate::state::{self, Times, Turn};
use crate::table::{Function, NEXT, OURS, next};

/// Puts the layer's functions into the app's table, where the runtime has one to call.
pub(crate) fn install() {
    let functions = [
        memory::FUNCTIONS,
        launch::FUNCTIONS,
        map::FUNCTIONS,
        queue::FUNCTIONS,
        rectangle::FUNCTIONS,
        transfer::FUNCTIONS,
    ];
    for (function, address) in functions.into_iter().flatten() {
        let index = *function as usize;
        if NEXT.get(index) != 0 {
            OURS.set(index, address.addr());
        }
    }
}

/// The address of a function, for the table.
#[derive(Clone, Copy)]
struct Address(*const ());

// SAFETY: the address of a function: never written through, the same for all threads.
unsafe impl Sync for Address {}

impl Address {
    fn addr(&self) -> usize {
        self.0.expose_provenance()
    }
}

/// Pairs of a function's place and the layer's own.
type Functions = &'static [(Function, Address)];

/// Lists a module's functions.
macro_rules! functions {
    ($($name:ident => $own:ident: $type:ty),+ $(,)?) => {
        pub(super) static FUNCTIONS: $crate::calls::Functions = &[$((
            $crate::table::Function::$name,
            $crate::calls::Address({
                let own: $type = $own;
                own as *const ()
            }),
        )),+];
    };
}
use functions;

/// Waits for a queue; whether that succeeded.
fn finish(queue: Handle) -> bool {
    // SAFETY: the queue is the app's own.
    next!(clFinish: signature::Object).is_some_and(|finish| unsafe { finish(queue) } == SUCCESS)
}

/// Enqueues a command with the queue idle before and after it, unless that could wait for the app itself. `before` and `after` say what
/// they know, `after` only of a command that succeeded; it is told whether the command has completed.
fn command(
    queue: Handle,
    event: *mut Handle,
    before: impl FnOnce(&Turn),
    enqueue: impl FnOnce() -> Status,
    after: impl FnOnce(bool),
) -> Status {
    let turn = Turn::take();
    if turn.alone {
        finish(queue);
    }
    before(&turn);
    let queued = state::now();
    let status = enqueue();
    if status != SUCCESS {
        return status;
    }
    let complete = turn.alone && finish(queue);
    let times = Times {
        queued,
        end: state::now(),
    };
    if complete && !event.is_null() {
        // SAFETY: the app gave the place for the event, and the runtime has filled it.
        let event = unsafe { event.read() };
        state::with(|state| {
            if state.timed_queues.contains(&queue) {
                state.times.insert(event, times);
            }
        });
    }
    after(complete);
    status
}

/// Where a byte of the app's memory object is; `None` for an object whose creation the layer did not see.
fn place(object: Handle, offset: usize) -> Option<Place> {
    let object = state::with(|state| state.objects.get(&object).copied())?;
    Some(Place {
        object,
        offset: offset as u64,
    })
}

/// Says that something happened that notes do not describe.
fn unseen(call: &str) {
    sink::put(&Note::Unseen {
        call: call.to_owned(),
    });
}

/// What a function returns that the runtime does not have. Only functions that it has are installed.
const ABSENT: Status = INVALID_OPERATION;
