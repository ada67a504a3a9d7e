// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of the process: memory, images, things that cannot be recorded.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use gpureplay_cuda_abi::Handle;

use crate::memory::{Kind, Memory, Piece};
use crate::real::current_device;
use crate::settings::{Mode, settings};

/// Streams that are being captured.
pub(crate) static CAPTURES: AtomicU64 = AtomicU64::new(0);

static MEMORY: Mutex<Memory> = Mutex::new(Memory::new());

/// The program's memory.
pub(crate) fn memory() -> MutexGuard<'static, Memory> {
    MEMORY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// New memory on the current device.
pub(crate) fn track(address: u64, size: usize, kind: Kind) {
    if matches!(settings().mode, Mode::Record(_)) {
        let device = current_device().unwrap_or(0);
        memory().insert(Piece {
            address,
            size: size as u64,
            kind,
            device,
        });
    }
}

/// A copy of an image that the program loaded.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
}

/// Modules and libraries, by handle.
#[derive(Default)]
pub(crate) struct Images {
    pub(crate) modules: HashMap<Handle, Arc<Image>>,
    pub(crate) libraries: HashMap<Handle, Arc<Image>>,
}

/// The program's images.
pub(crate) fn images() -> MutexGuard<'static, Images> {
    static IMAGES: LazyLock<Mutex<Images>> = LazyLock::new(Mutex::default);
    IMAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Handles of textures and surfaces, which parameters may hold; memory handles of multicast objects.
#[derive(Default)]
pub(crate) struct Unrecordable {
    pub(crate) textures: HashSet<u64>,
    pub(crate) surfaces: HashSet<u64>,
    pub(crate) multicasts: HashSet<u64>,
}

/// What cannot be recorded.
pub(crate) fn unrecordable() -> MutexGuard<'static, Unrecordable> {
    static UNRECORDABLE: LazyLock<Mutex<Unrecordable>> = LazyLock::new(Mutex::default);
    UNRECORDABLE.lock().unwrap_or_else(PoisonError::into_inner)
}
