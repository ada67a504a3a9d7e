// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels by handle.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, CString, c_char};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, RwLock};

use gpureplay_cuda_launch::abi::{Driver, Handle, Status};

use crate::guard;
use crate::images;
use crate::real::driver;
use crate::settings::settings;
use crate::state::{self, Image};

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) seen: AtomicU64,
    pub(crate) recorded: AtomicU64,
    pub(crate) tried: AtomicU64,
    /// A launch took too long; others would, too.
    pub(crate) hopeless: AtomicBool,
}

/// A `CUfunction`, or a `CUkernel` for one.
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    pub(crate) is_kernel: bool,
    pub(crate) owner: Handle,
    pub(crate) image: Option<Arc<Image>>,
    pub(crate) wanted: bool,
    pub(crate) counts: Arc<Counts>,
    attributes: Mutex<BTreeMap<i32, i32>>,
    pub(crate) replacement: OnceLock<Option<Handle>>,
}

/// Handles that no filter matches, by [`slot`]: their launches take no lock.
static UNWANTED: [AtomicU64; 1 << UNWANTED_BITS] =
    [const { AtomicU64::new(0) }; 1 << UNWANTED_BITS];
const UNWANTED_BITS: u32 = 10;

/// The upper bits after a product with 2^64 / golden ratio.
fn slot(handle: Handle) -> &'static AtomicU64 {
    let mixed = handle.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - UNWANTED_BITS);
    &UNWANTED[mixed as usize]
}

/// May miss some that share a slot.
pub(crate) fn is_unwanted(handle: Handle) -> bool {
    handle != 0 && slot(handle).load(Ordering::Relaxed) == handle
}

/// The handle may now be another function's.
fn note(handle: Handle, wanted: bool) {
    let slot = slot(handle);
    if !wanted {
        slot.store(handle, Ordering::Relaxed);
    } else {
        let _ = slot.compare_exchange(handle, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

static FUNCTIONS: LazyLock<RwLock<HashMap<Handle, Arc<Function>>>> = LazyLock::new(RwLock::default);
static COUNTS: LazyLock<Mutex<HashMap<Arc<str>, Arc<Counts>>>> = LazyLock::new(Mutex::default);

/// Offset and size.
pub(crate) type Layout = Vec<[usize; 2]>;

impl Function {
    fn new(name: Arc<str>, is_kernel: bool, owner: Handle, image: Option<Arc<Image>>) -> Self {
        let mut counts = guard::lock(&COUNTS);
        let counts = Arc::clone(counts.entry(Arc::clone(&name)).or_default());
        Self {
            wanted: settings().wants(&name),
            name,
            is_kernel,
            owner,
            image,
            counts,
            attributes: Mutex::default(),
            replacement: OnceLock::new(),
        }
    }

    pub(crate) fn attributes(&self) -> Vec<[i32; 2]> {
        let attributes = guard::lock(&self.attributes);
        let attributes = attributes.iter();
        attributes
            .map(|(number, value)| [*number, *value])
            .collect()
    }

    pub(crate) fn give_attributes(&self, other: Handle) {
        let Ok(driver) = driver() else { return };
        for [number, value] in self.attributes() {
            // SAFETY: a function that we found. One that it cannot have shows when it is launched.
            let _ = unsafe { driver.cuFuncSetAttribute(other, number, value) };
        }
    }

    pub(crate) fn layout(&self, handle: Handle) -> Result<Layout, Status> {
        let driver = driver()?;
        if self.is_kernel {
            kernel_layout(driver, handle)
        } else {
            function_layout(driver, handle)
        }
    }
}

/// Other parameters are an error.
pub(crate) fn fitting(
    module: Handle,
    name: &str,
    layout: &Layout,
) -> Result<Option<Handle>, String> {
    let failed = |status: Status| status.to_string();
    let driver = driver().map_err(failed)?;
    let name = CString::new(name).map_err(|_| "its name has a zero byte")?;
    let mut other = 0;
    // SAFETY: a pointer to a local, a module that we loaded, a C string.
    let status = unsafe { driver.cuModuleGetFunction(&raw mut other, module, name.as_ptr()) };
    if status != Status::SUCCESS {
        return Ok(None);
    }
    let theirs = function_layout(driver, other).map_err(failed)?;
    if theirs == *layout {
        return Ok(Some(other));
    }
    Err(format!(
        "its parameters (offset, size) are {layout:?}, those of the other image {theirs:?}"
    ))
}

fn kernel_layout(driver: &Driver, kernel: Handle) -> Result<Layout, Status> {
    collect(|index, offset, size| {
        // SAFETY: pointers to locals of `collect`; the program just launched the kernel.
        unsafe { driver.cuKernelGetParamInfo(kernel, index, offset, size) }
    })
}

fn function_layout(driver: &Driver, function: Handle) -> Result<Layout, Status> {
    collect(|index, offset, size| {
        // SAFETY: pointers to locals of `collect`; the function is alive.
        unsafe { driver.cuFuncGetParamInfo(function, index, offset, size) }
    })
}

fn collect(mut get: impl FnMut(usize, *mut usize, *mut usize) -> Status) -> Result<Layout, Status> {
    let mut layout = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        match get(layout.len(), &raw mut offset, &raw mut size) {
            Status::SUCCESS => layout.push([offset, size]),
            // So the driver says that there are no more.
            Status::INVALID_VALUE => return Ok(layout),
            status => return Err(status),
        }
    }
}

/// # Safety
/// The name is a C string.
pub(crate) unsafe fn found_function(function: Handle, module: Handle, name: *const c_char) {
    let image = state::images().modules.get(&module).cloned();
    // SAFETY: our caller's promise.
    insert(
        function,
        Function::new(unsafe { text(name) }, false, module, image),
    );
}

/// # Safety
/// The name is a C string.
pub(crate) unsafe fn found_kernel(kernel: Handle, library: Handle, name: *const c_char) {
    let image = state::images().libraries.get(&library).cloned();
    // SAFETY: our caller's promise.
    insert(
        kernel,
        Function::new(unsafe { text(name) }, true, library, image),
    );
}

pub(crate) fn found_function_of_kernel(function: Handle, kernel: Handle) {
    let Ok(known) = get(kernel) else { return };
    let mut module = 0;
    if let Ok(driver) = driver() {
        // SAFETY: a pointer to a local; the driver just handed the function out.
        let _ = unsafe { driver.cuFuncGetModule(&raw mut module, function) };
    }
    insert(
        function,
        Function::new(Arc::clone(&known.name), false, module, known.image.clone()),
    );
}

unsafe fn text(name: *const c_char) -> Arc<str> {
    // SAFETY: our caller's promise.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into()
}

fn insert(handle: Handle, function: Function) {
    let mut functions = guard::write(&FUNCTIONS);
    // The driver has one handle per function, whose attributes stay.
    let same = functions.get(&handle).is_some_and(|known| {
        known.name == function.name
            && known.owner == function.owner
            && match (&known.image, &function.image) {
                (Some(known), Some(new)) => Arc::ptr_eq(known, new),
                (None, None) => true,
                _ => false,
            }
    });
    if !same {
        note(handle, function.wanted);
        functions.insert(handle, Arc::new(function));
    }
}

pub(crate) fn get(handle: Handle) -> Result<Arc<Function>, Status> {
    if let Some(function) = known(handle, Arc::clone) {
        return Ok(function);
    }
    let driver = driver()?;
    let mut name: *const c_char = std::ptr::null();
    let mut owner = 0;
    // SAFETY: pointers to locals; the driver says whether the handle is of that kind; its names live as long as the
    // handle.
    let function = unsafe {
        if driver.cuFuncGetName(&raw mut name, handle) == Status::SUCCESS && !name.is_null() {
            driver.cuFuncGetModule(&raw mut owner, handle).check()?;
            let image = images::of_module(owner);
            Function::new(text(name), false, owner, image)
        } else {
            driver.cuKernelGetName(&raw mut name, handle).check()?;
            if name.is_null() {
                return Err(Status::INVALID_HANDLE);
            }
            driver.cuKernelGetLibrary(&raw mut owner, handle).check()?;
            let image = state::images().libraries.get(&owner).cloned();
            Function::new(text(name), true, owner, image)
        }
    };
    insert(handle, function);
    known(handle, Arc::clone).ok_or(Status::INVALID_HANDLE)
}

pub(crate) fn known<R>(handle: Handle, read: impl FnOnce(&Arc<Function>) -> R) -> Option<R> {
    guard::read(&FUNCTIONS).get(&handle).map(read)
}

pub(crate) fn attribute(handle: Handle, attribute: i32, value: i32) {
    if let Ok(function) = get(handle) {
        let mut attributes = guard::lock(&function.attributes);
        attributes.insert(attribute, value);
    }
}

impl Counts {
    pub(crate) fn launched(&self) -> u64 {
        self.seen.fetch_add(1, Ordering::Relaxed)
    }
}

/// Handles of an unloaded module may be reused.
pub(crate) fn forget_owner(owner: Handle) {
    guard::write(&FUNCTIONS).retain(|handle, function| {
        let stays = function.owner != owner;
        if !stays {
            note(*handle, true);
        }
        stays
    });
}

#[cfg(test)]
mod tests {
    use super::{is_unwanted, note};

    #[test]
    fn unwanted_handles_are_known_until_they_are_forgotten() {
        let handles: Vec<u64> = (1..200)
            .map(|number| 0x5600_0000_0000 + number * 0x40)
            .collect();
        assert!(!is_unwanted(0) && !is_unwanted(handles[0]));
        for handle in &handles {
            note(*handle, false);
            assert!(is_unwanted(*handle));
        }
        for handle in &handles {
            note(*handle, true);
            assert!(!is_unwanted(*handle));
        }
    }
}
