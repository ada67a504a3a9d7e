// SPDX-License-Identifier: MIT OR Apache-2.0
//! Variables with known addresses, which any kernel may get.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::{Arc, Mutex, MutexGuard};

use gpureplay_cuda_launch::abi::Handle;

use crate::guard;
use crate::images::{self, Owner};
use crate::memory::Kind;
use crate::settings::{Mode, settings};
use crate::state::{self, Image, memory, track};

#[derive(Clone)]
pub(crate) struct Asked {
    owner: Handle,
    pub(crate) image: Arc<Image>,
    pub(crate) name: String,
}

static ASKED: Mutex<BTreeMap<u64, Asked>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<u64, Asked>> {
    guard::lock(&ASKED)
}

/// # Safety
/// The name is a C string.
pub(crate) unsafe fn asked(
    kind: Owner,
    owner: Handle,
    name: *const c_char,
    address: u64,
    size: usize,
) {
    if !matches!(settings().mode, Mode::Record(_)) || name.is_null() {
        return;
    }
    let image = match kind {
        Owner::Module => images::of_module(owner),
        Owner::Library => state::images().libraries.get(&owner).cloned(),
    };
    let Some(image) = image else { return };
    // SAFETY: our caller's promise.
    let name = unsafe { CStr::from_ptr(name) };
    let name = name.to_string_lossy().into_owned();
    all().insert(address, Asked { owner, image, name });
    track(address, size, Kind::Variable);
}

pub(crate) fn known() -> BTreeMap<u64, Asked> {
    all().clone()
}

pub(crate) fn forget_owner(owner: Handle) {
    let mut all = all();
    let mut memory = memory();
    all.retain(|address, asked| {
        let stays = asked.owner != owner;
        if !stays {
            memory.remove(*address);
        }
        stays
    });
}
