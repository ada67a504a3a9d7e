// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels of the same name and parameters out of other images, while the program runs.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gpureplay_cuda_abi::{Driver, Handle, KernelNode, OldKernelNode, Status};
use gpureplay_cuda_image::MAX_IMAGE;

use crate::functions::{self, Function, function_layout};
use crate::real::driver;
use crate::say::say;
use crate::settings::{Mode, settings};

/// Modules of the given images, loaded into the context of the first launch.
static MODULES: Mutex<Option<Vec<Handle>>> = Mutex::new(None);

/// The kernel to launch instead of this one, if an image has one that fits.
fn replacement(function: &Function, handle: Handle, images: &[PathBuf]) -> Option<Handle> {
    *function.replacement.get_or_init(|| {
        let driver = driver().ok()?;
        let name = CString::new(&*function.name).ok()?;
        for module in modules(driver, images) {
            let mut other = 0;
            // SAFETY: a pointer to a local, a module that we loaded, a C string.
            let status = unsafe { driver.cuModuleGetFunction(&raw mut other, module, name.as_ptr()) };
            if status != Status::SUCCESS {
                continue;
            }
            let (theirs, ours) = (function.layout(handle).ok()?, function_layout(driver, other).ok()?);
            if theirs == ours {
                say(&format!("{} is replaced", function.name));
                return Some(other);
            }
            say(&format!(
                "{} is not replaced: its parameters (offset, size) are {theirs:?}, those of the other image {ours:?}",
                function.name
            ));
        }
        None
    })
}

/// A node of the kernel that takes the place of a node's, if kernels are replaced and one does.
pub(crate) fn in_node(node: &KernelNode) -> Option<KernelNode> {
    let handle = if node.function == 0 {
        node.kernel
    } else {
        node.function
    };
    let function = instead(handle)?;
    Some(KernelNode {
        function,
        kernel: 0,
        ..*node
    })
}

/// The same for a node as programs of older drivers describe it.
pub(crate) fn in_old_node(node: &OldKernelNode) -> Option<OldKernelNode> {
    let function = instead(node.function)?;
    Some(OldKernelNode { function, ..*node })
}

/// The kernel of another image that is launched instead.
pub(crate) fn replaced(images: &[PathBuf], function: Handle) -> Option<Handle> {
    let known = functions::get(function).ok().filter(|known| known.wanted)?;
    replacement(&known, function, images)
}

/// The kernel of another image that takes the place of this one, if kernels are replaced.
fn instead(function: Handle) -> Option<Handle> {
    match &settings().mode {
        Mode::Replace(images) => replaced(images, function),
        _ => None,
    }
}

fn modules(driver: &Driver, images: &[PathBuf]) -> Vec<Handle> {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    modules
        .get_or_insert_with(|| {
            images
                .iter()
                .filter_map(|path| {
                    load(driver, path)
                        .inspect_err(|reason| say(&format!("{}: {reason}", path.display())))
                        .ok()
                })
                .collect()
        })
        .clone()
}

/// A file; no more of one that is too long for an image than says so.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut image = Vec::new();
    File::open(path)?
        .take(MAX_IMAGE as u64 + 1)
        .read_to_end(&mut image)?;
    Ok(image)
}

fn load(driver: &Driver, path: &Path) -> Result<Handle, String> {
    let mut image = read(path).map_err(|error| error.to_string())?;
    gpureplay_cuda_image::check(&image).map_err(|error| error.to_string())?;
    image.push(0);
    let mut module = 0;
    // SAFETY: the image is whole, as its parts were just read, and ends with a zero byte; no options.
    unsafe {
        driver.cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            0,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    }
    .check()
    .map_err(|status| status.to_string())?;
    Ok(module)
}
