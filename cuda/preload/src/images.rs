// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images, copied when programs load them.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex};

use gpureplay_cuda_launch::abi::{Handle, Status};
use gpureplay_cuda_launch::image::{Extent, ImageError, MAX_IMAGE, PREFIX, extent};

use crate::guard;
use crate::say::say;
use crate::settings::{Mode, settings};
use crate::state::{Image, images};

const MAX_WRAPPERS: usize = 4;

/// # Safety
/// The driver has accepted the image.
unsafe fn copy(mut address: *const u8) -> Result<Vec<u8>, ImageError> {
    // SAFETY: what an accepted image's headers say is mapped, is mapped.
    let bytes =
        |address: *const u8, size: usize| unsafe { std::slice::from_raw_parts(address, size) };
    for _ in 0..MAX_WRAPPERS {
        // Texts may be shorter than headers.
        let short = (0..4).find(|at| {
            // SAFETY: no byte before it is zero, so the text reaches to here.
            unsafe { *address.add(*at) == 0 }
        });
        let prefix = if short.is_some() {
            [0; PREFIX].as_slice()
        } else {
            bytes(address, 4)
        };
        let known = extent(&[prefix, &[0; PREFIX]].concat())?;
        let known = if known == Extent::Text {
            known
        } else {
            extent(bytes(address, PREFIX))?
        };
        match known {
            Extent::Elsewhere(other) => address = other as *const u8,
            Extent::Bytes(size) => return Ok(bytes(address, size).to_vec()),
            Extent::Sections {
                offset,
                size,
                least,
            } => {
                let end = Extent::of_sections(least, bytes(address.wrapping_add(offset), size))?;
                return Ok(bytes(address, end).to_vec());
            }
            Extent::Text => {
                // SAFETY: a text ends with a zero byte.
                let text = unsafe { CStr::from_ptr(address.cast()) };
                let text = text.to_bytes_with_nul();
                if text.len() > MAX_IMAGE {
                    return Err(ImageError::TooLarge {
                        size: text.len() as u64,
                    });
                }
                return Ok(text.to_vec());
            }
        }
    }
    Err(ImageError::Unknown)
}

static LINKED: Mutex<BTreeMap<Handle, (usize, usize)>> = Mutex::new(BTreeMap::new());

/// Valid until the link is destroyed.
pub(crate) fn linked(link: Handle, address: usize, size: usize) {
    if wanted() && size <= MAX_IMAGE {
        let mut linked = guard::lock(&LINKED);
        linked.insert(link, (address, size));
    }
}

pub(crate) fn unlinked(link: Handle) {
    let mut linked = guard::lock(&LINKED);
    linked.remove(&link);
}

fn linked_size(address: *const c_void) -> Option<usize> {
    let linked = guard::lock(&LINKED);
    let found = linked.values().find(|(at, _)| *at == address as usize);
    found.map(|(_, size)| *size)
}

fn wanted() -> bool {
    match &settings().mode {
        Mode::Record(_) => true,
        Mode::Replace(replace) => replace.tuned.is_some(),
        _ => false,
    }
}

fn keep(kind: Owner, handle: Handle, bytes: Result<Vec<u8>, String>) {
    match bytes {
        Ok(bytes) => {
            let image = Arc::new(Image::new(bytes));
            let mut images = images();
            match kind {
                Owner::Module => images.modules.insert(handle, image),
                Owner::Library => images.libraries.insert(handle, image),
            };
        }
        Err(reason) => say(&format!("an image is not kept: {reason}")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Module,
    Library,
}

/// # Safety
/// The driver has accepted the image.
pub(crate) unsafe fn loaded(kind: Owner, handle: Handle, address: *const c_void) {
    if wanted() {
        let bytes = match linked_size(address) {
            Some(size) => {
                // SAFETY: the linker wrote so many bytes, and the link is not destroyed.
                let bytes = unsafe { std::slice::from_raw_parts(address.cast::<u8>(), size) };
                Ok(bytes.to_vec())
            }
            // SAFETY: our caller's promise.
            None => unsafe { copy(address.cast()) },
        };
        keep(kind, handle, bytes.map_err(|error| error.to_string()));
    }
}

/// # Safety
/// The name is a C string.
pub(crate) unsafe fn loaded_file(kind: Owner, handle: Handle, name: *const c_char) {
    if wanted() {
        // SAFETY: our caller's promise.
        let name = unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned();
        let bytes = std::fs::read(Path::new(&name)).map_err(|error| format!("{name}: {error}"));
        keep(kind, handle, bytes);
    }
}

pub(crate) fn unloaded(kind: Owner, handle: Handle) {
    let mut images = images();
    match kind {
        Owner::Module => images.modules.remove(&handle),
        Owner::Library => images.libraries.remove(&handle),
    };
}

/// A library's module in a context has the library's image.
pub(crate) fn of_module(module: Handle) -> Option<Arc<Image>> {
    let mut images = images();
    if let Some(image) = images.modules.get(&module) {
        return Some(Arc::clone(image));
    }
    let driver = crate::real::driver().ok()?;
    let library = images.libraries.iter().find(|(library, _)| {
        let mut own = 0;
        // SAFETY: a pointer to a local, a library that is loaded.
        let status = unsafe { driver.cuLibraryGetModule(&raw mut own, **library) };
        status == Status::SUCCESS && own == module
    });
    let image = library.map(|(_, image)| Arc::clone(image))?;
    images.modules.insert(module, Arc::clone(&image));
    Some(image)
}
