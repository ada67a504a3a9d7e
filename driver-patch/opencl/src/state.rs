// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the layer knows of the app's objects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use gpureplay_trace::note::{Note, Object, ObjectKind};

use crate::abi::Handle;
use crate::set::Set;
use crate::sink;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapped {
    pub(crate) offset: usize,
    pub(crate) size: usize,
    /// `cl_map_flags`
    pub(crate) flags: u64,
    /// Hash of the contents when mapped; `None` if they do not count.
    pub(crate) before: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) type_name: String,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Kernel {
    pub(crate) values: BTreeMap<u32, Set>,
    pub(crate) description: Option<(String, Vec<Described>)>,
}

/// Host nanoseconds since the layer was loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) queued: u64,
    pub(crate) end: u64,
}

/// All by handle, whose last creation counts: a release frees it for others.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) objects: HashMap<Handle, u32>,
    next_object: u32,
    pub(crate) next_launch: u32,
    pub(crate) kernels: HashMap<Handle, Kernel>,
    pub(crate) samplers: HashMap<Handle, Vec<u8>>,
    /// By object and the app's pointer.
    pub(crate) mapped: HashMap<(Handle, usize), Mapped>,
    queues: HashMap<Handle, u32>,
    next_queue: u32,
    next_content: u32,
    /// The app profiles them and the runtime does not.
    pub(crate) timed_queues: HashSet<Handle>,
    pub(crate) times: HashMap<Handle, Times>,
    /// The app sets them: what waits for them ends when the app goes on.
    pub(crate) unset: HashSet<Handle>,
}

impl State {
    pub(crate) fn add_object(&mut self, handle: Handle, kind: ObjectKind, size: u64) -> u32 {
        let id = self.next_object;
        self.next_object = self.next_object.wrapping_add(1);
        self.objects.insert(handle, id);
        sink::put(&Note::Object(Object { id, kind, size }));
        id
    }

    pub(crate) fn add_queue(&mut self, handle: Handle) -> u32 {
        let id = self.next_queue;
        self.next_queue = self.next_queue.wrapping_add(1);
        self.queues.insert(handle, id);
        id
    }

    pub(crate) fn queue(&mut self, handle: Handle) -> u32 {
        match self.queues.get(&handle) {
            Some(id) => *id,
            None => self.add_queue(handle),
        }
    }

    pub(crate) fn has_queue(&self, handle: Handle) -> bool {
        self.queues.contains_key(&handle)
    }

    pub(crate) fn forget_queue(&mut self, handle: Handle) {
        self.queues.remove(&handle);
    }

    pub(crate) fn add_content(&mut self) -> u32 {
        let id = self.next_content;
        self.next_content = self.next_content.wrapping_add(1);
        id
    }
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Must not call the runtime: it may call back.
pub(crate) fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
    work(state.get_or_insert_with(State::default))
}

pub(crate) fn now() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}
