// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process's memory, images, and unrecordable objects.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

use gpureplay_cuda_launch::abi::{Handle, attribute};
use gpureplay_cuda_launch::recording::Hash;

use crate::guard;
use crate::memory::{Kind, Memory, Piece};
use crate::real::{current_context, current_device};
use crate::settings::{Mode, settings};

pub(crate) static CAPTURES: AtomicU64 = AtomicU64::new(0);

static MEMORY: Mutex<Memory> = Mutex::new(Memory::new());

pub(crate) fn memory() -> MutexGuard<'static, Memory> {
    guard::lock(&MEMORY)
}

/// By context and number.
static LIMITS: Mutex<BTreeMap<(Handle, i32), u64>> = Mutex::new(BTreeMap::new());

pub(crate) fn limited(limit: i32, value: usize) {
    let mut limits = guard::lock(&LIMITS);
    if let Ok(context) = current_context() {
        limits.insert((context, limit), value as u64);
    }
}

/// Limits that the program set, if kernels depend on them: number, value.
pub(crate) fn limits() -> Vec<[u64; 2]> {
    let limits = guard::lock(&LIMITS);
    let context = current_context().unwrap_or(0);
    let kept = attribute::limit::KEPT.into_iter().zip(0u64..);
    kept.filter_map(|(limit, number)| Some([number, *limits.get(&(context, limit))?]))
        .collect()
}

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

pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    hash: OnceLock<Hash>,
}

impl Image {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let hash = OnceLock::new();
        Self { bytes, hash }
    }

    pub(crate) fn hash(&self) -> Hash {
        *self.hash.get_or_init(|| Hash::of(&self.bytes))
    }
}

#[derive(Default)]
pub(crate) struct Images {
    pub(crate) modules: HashMap<Handle, Arc<Image>>,
    pub(crate) libraries: HashMap<Handle, Arc<Image>>,
}

pub(crate) fn images() -> MutexGuard<'static, Images> {
    static IMAGES: LazyLock<Mutex<Images>> = LazyLock::new(Mutex::default);
    guard::lock(&IMAGES)
}

/// `references` has modules whose texture or surface was asked for.
#[derive(Default)]
pub(crate) struct Unrecordable {
    pub(crate) textures: HashSet<u64>,
    pub(crate) surfaces: HashSet<u64>,
    pub(crate) multicasts: HashSet<u64>,
    pub(crate) imports: HashSet<u64>,
    pub(crate) references: HashMap<Handle, &'static str>,
}

pub(crate) fn unrecordable() -> MutexGuard<'static, Unrecordable> {
    static UNRECORDABLE: LazyLock<Mutex<Unrecordable>> = LazyLock::new(Mutex::default);
    guard::lock(&UNRECORDABLE)
}
