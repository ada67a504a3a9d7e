// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layer's functions: each calls the one below and notes it.

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

#[derive(Clone, Copy)]
struct Address(*const ());

// SAFETY: the address of a function: never written through, the same for all threads.
unsafe impl Sync for Address {}

impl Address {
    fn addr(&self) -> usize {
        self.0.expose_provenance()
    }
}

type Functions = &'static [(Function, Address)];

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

fn finish(queue: Handle) -> bool {
    // SAFETY: the queue is the app's own.
    next!(clFinish: signature::Object).is_some_and(|finish| unsafe { finish(queue) } == SUCCESS)
}

fn idle(queue: Handle) {
    pending::look();
    let queue = state::with(|state| state.queue(queue));
    sink::put(&Note::Idle { queue });
}

#[derive(Clone, Copy)]
struct Command {
    queue: Handle,
    event: *mut Handle,
    /// Returns only when all that the queue was given is complete.
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

/// `after` says what is known of a successful command, and is told whether it has completed.
///
/// The layer waits only for a queue that the app wants to time and the runtime cannot.
fn command(command: Command, enqueue: impl FnOnce() -> Status, after: impl FnOnce(bool)) -> Status {
    let Command { queue, event, .. } = command;
    let queued = state::now();
    let status = enqueue();
    if status != SUCCESS {
        return status;
    }
    // Never wait for what waits for an event that the app sets later.
    let timed = state::with(|state| state.unset.is_empty() && state.timed_queues.contains(&queue));
    let complete = command.blocking || timed && finish(queue);
    if timed && complete && !event.is_null() {
        let end = state::now();
        // SAFETY: the app's place for the event, which the runtime has filled.
        let event = unsafe { event.read() };
        state::with(|state| state.times.insert(event, Times { queued, end }));
    }
    after(complete);
    if complete {
        idle(queue);
    }
    status
}

/// `None`: the layer did not see its creation.
fn place(object: Handle, offset: usize) -> Option<Place> {
    let object = state::with(|state| state.objects.get(&object).copied())?;
    Some(Place {
        object,
        offset: offset as u64,
    })
}

fn unseen(call: &str) {
    sink::put(&Note::Unseen {
        call: call.to_owned(),
    });
}

/// Never returned: functions that the runtime lacks are not installed.
const ABSENT: Status = INVALID_OPERATION;
