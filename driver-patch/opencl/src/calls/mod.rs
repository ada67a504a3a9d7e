// SPDX-License-Identifier: MIT OR Apache-2.0
//! The functions that the layer answers: each calls the one below, and says what it saw.

mod copy;
mod launch;
mod map;
mod memory;
mod queue;
mod rectangle;
mod sampler;
mod transfer;
mod wait;

use gpureplay_trace::note::{Note, Place};

use crate::abi::{Handle, INVALID_OPERATION, SUCCESS, Status, signature};
use crate::state::{self, Times};
use crate::table::{Function, NEXT, OURS, next};
use crate::{pending, sink};

/// Puts the layer's functions into the app's table, where the runtime has one to call.
pub(crate) fn install() {
    let functions = [
        copy::FUNCTIONS,
        memory::FUNCTIONS,
        launch::FUNCTIONS,
        map::FUNCTIONS,
        queue::FUNCTIONS,
        rectangle::FUNCTIONS,
        sampler::FUNCTIONS,
        transfer::FUNCTIONS,
        wait::FUNCTIONS,
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

/// Says that a queue has nothing to do, and what transfers moved that were not complete before.
fn idle(queue: Handle) {
    pending::look();
    let queue = state::with(|state| state.queue(queue));
    sink::put(&Note::Idle { queue });
}

/// A command that the app gives to a queue.
#[derive(Clone, Copy)]
struct Command {
    queue: Handle,
    /// The app's place for its event; null if it wants none.
    event: *mut Handle,
    /// The call returns only when the command is complete, and with it all that the queue was given before.
    blocking: bool,
}

impl Command {
    fn new(queue: Handle, event: *mut Handle, blocking: bool) -> Self {
        Self {
            queue,
            event,
            blocking,
        }
    }
}

/// Enqueues a command. `after` says what is known of a command that succeeded; it is told whether the command has completed.
///
/// Nothing waits that would not wait without the layer, but for a queue that the app wants to time and the runtime cannot.
fn command(command: Command, enqueue: impl FnOnce() -> Status, after: impl FnOnce(bool)) -> Status {
    let Command { queue, event, .. } = command;
    let queued = state::now();
    let status = enqueue();
    if status != SUCCESS {
        return status;
    }
    // What waits for an event that the app sets later has no times, and must not be waited for here.
    let timed = state::with(|state| state.unset.is_empty() && state.timed_queues.contains(&queue));
    let complete = command.blocking || timed && finish(queue);
    if timed && complete && !event.is_null() {
        let end = state::now();
        // SAFETY: the app gave the place for the event, and the runtime has filled it.
        let event = unsafe { event.read() };
        state::with(|state| state.times.insert(event, Times { queued, end }));
    }
    after(complete);
    if complete {
        idle(queue);
    }
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
