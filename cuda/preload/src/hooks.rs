// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's functions as this library exports them. Each passes on what the program asked for.
#![allow(
    non_snake_case,
    non_camel_case_types,
    reason = "the driver's own names"
)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Once};

use gpureplay_cuda_abi::{
    Handle, IpcHandle, KernelNode, LaunchAttribute, LaunchConfiguration, Status, attribute,
};

use crate::asked::Launch;
use crate::images::{Owner, linked, loaded, loaded_file, unlinked, unloaded};
use crate::launch::launch;
use crate::memory::{Kind, Piece};
use crate::report::{LAUNCHES, summary};
use crate::settings::{Mode, settings};
use crate::state::{CAPTURES, limited, memory, track, unrecordable};
use crate::{arena, cupti, durations, functions, gate, graphs, real};

macro_rules! hooks {
    ($($name:ident ( $($argument:ident : $kind:ty),* ) $body:block)*) => {
        #[derive(Clone, Copy)]
        enum Index { $($name),* }

        /// Names of the hooks, each a C string.
        const NAMES: &[&str] = &[$(concat!(stringify!($name), "\0")),*];

        static REAL: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

        static HOOKS: LazyLock<[usize; NAMES.len()]> =
            LazyLock::new(|| [$($name as *const () as usize),*]);

        /// The driver's own functions.
        mod driver {
            use super::*;
            $(
                #[allow(clippy::too_many_arguments, reason = "as the driver has them")]
                pub(super) unsafe fn $name($($argument: $kind),*) -> Status {
                    let address = real_address(Index::$name as usize);
                    if address == 0 {
                        return Status::NOT_FOUND;
                    }
                    // SAFETY: the address is that of the driver's function; the signature is that of cuda.h.
                    let function = unsafe {
                        std::mem::transmute::<usize, unsafe extern "C" fn($($kind),*) -> Status>(address)
                    };
                    // SAFETY: what the program passed.
                    unsafe { function($($argument),*) }
                }
            )*
        }

        $(
            #[doc = concat!("`", stringify!($name), "`, and what we do beside it.")]
            ///
            /// # Safety
            /// As for the driver's function.
            #[unsafe(no_mangle)]
            #[allow(clippy::too_many_arguments, reason = "as the driver has them")]
            pub(crate) unsafe extern "C" fn $name($($argument: $kind),*) -> Status {
                // SAFETY: the program calls as cuda.h says; what it passed is passed on, and read only where the driver
                // said that the call succeeded.
                unsafe { $body }
            }
        )*
    };
}

fn name_of(index: usize) -> &'static CStr {
    CStr::from_bytes_with_nul(NAMES[index].as_bytes()).unwrap_or(c"")
}

fn real_address(index: usize) -> usize {
    let known = REAL[index].load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let address = real::address(name_of(index));
    REAL[index].store(address, Ordering::Relaxed);
    address
}

/// Which hook has this name.
pub(crate) fn index_of(name: &CStr) -> Option<usize> {
    static INDEX: LazyLock<HashMap<&'static CStr, usize>> = LazyLock::new(|| {
        (0..NAMES.len())
            .map(|index| (name_of(index), index))
            .collect()
    });
    INDEX.get(name).copied()
}

/// The address of a hook.
pub(crate) fn address(index: usize) -> usize {
    HOOKS[index]
}

/// Puts a hook where `cuGetProcAddress` put the driver's function. Which version or stream semantics was asked for does not
/// matter: the pointer is one that the driver exports under a name, and the hook has that name.
unsafe fn substitute(pointer: *mut *mut c_void) {
    static BY_ADDRESS: LazyLock<HashMap<usize, usize>> = LazyLock::new(|| {
        let addresses = (0..NAMES.len()).map(|index| (real_address(index), address(index)));
        addresses.filter(|(real, _)| *real != 0).collect()
    });
    if !pointer.is_null() {
        // SAFETY: the driver wrote the pointer.
        let real = unsafe { *pointer } as usize;
        if let Some(hook) = BY_ADDRESS.get(&real) {
            // SAFETY: as above.
            unsafe { *pointer = *hook as *mut c_void };
        }
    }
}

extern "C" fn at_exit() {
    cupti::finish();
    durations::finish();
    summary();
}

fn begin() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Mode::Durations(durations) = &settings().mode
            && let Some(path) = &durations.cupti
        {
            cupti::start(path);
        }
        if !matches!(settings().mode, Mode::Off) {
            // SAFETY: a function that lives as long as the process.
            unsafe { libc::atexit(at_exit) };
        }
    });
}

type Parameters = *const *const c_void;

#[expect(clippy::too_many_arguments, reason = "those of a launch")]
fn plain(
    entry: &'static str,
    per_thread: bool,
    cooperative: bool,
    function: Handle,
    [grid, block]: [[u32; 3]; 2],
    shared: u32,
    stream: Handle,
    parameters: Parameters,
    extra: Parameters,
    call: impl FnOnce(Handle) -> Status,
) -> Status {
    let describe = || {
        let mut attributes = Vec::new();
        if cooperative {
            let mut value: LaunchAttribute = [0; 72];
            value[0] = attribute::launch::COOPERATIVE;
            value[8] = 1;
            attributes.push(value);
        }
        Launch {
            entry,
            function,
            grid,
            block,
            shared,
            stream,
            per_thread,
            parameters,
            extra,
            attributes,
        }
    };
    launch(describe, function, call)
}

unsafe fn extended(
    entry: &'static str,
    per_thread: bool,
    configuration: *const LaunchConfiguration,
    function: Handle,
    parameters: Parameters,
    extra: Parameters,
    call: impl FnOnce(Handle) -> Status,
) -> Status {
    if configuration.is_null() {
        return call(function);
    }
    let describe = || {
        // SAFETY: the program passes a configuration, with as many attributes as it says.
        let (configuration, attributes) = unsafe {
            let configuration = *configuration;
            let count = configuration.attribute_count as usize;
            let attributes = if configuration.attributes.is_null() || count == 0 {
                Vec::new()
            } else {
                std::slice::from_raw_parts(configuration.attributes, count).to_vec()
            };
            (configuration, attributes)
        };
        Launch {
            entry,
            function,
            grid: configuration.grid,
            block: configuration.block,
            shared: configuration.shared,
            stream: configuration.stream,
            per_thread,
            parameters,
            extra,
            attributes,
        }
    };
    launch(describe, function, call)
}

/// New memory, if the driver made it.
unsafe fn made(status: Status, address: *const u64, size: usize, kind: Kind) -> Status {
    if status == Status::SUCCESS && !address.is_null() {
        // SAFETY: the driver wrote the address.
        track(unsafe { *address }, size, kind);
    }
    status
}

/// New memory out of the arena, if that is wanted; otherwise the driver makes it.
unsafe fn allocated(address: *mut u64, size: usize, call: impl FnOnce() -> Status) -> Status {
    let wanted = matches!(&settings().mode, Mode::Record(record) if record.arena);
    // What is allocated during a capture belongs to a graph.
    if wanted && !address.is_null() && size > 0 && CAPTURES.load(Ordering::SeqCst) == 0 {
        match arena::allocate(size) {
            Ok(at) => {
                // SAFETY: the program's pointer, which is not null.
                unsafe { *address = at };
                track(at, size, Kind::Device);
                return Status::SUCCESS;
            }
            Err(Status::OUT_OF_MEMORY) => return Status::OUT_OF_MEMORY,
            Err(status) => crate::say::say(&format!(
                "{size} bytes are not from the arena: {status}; replays of kernels that use them may need several processes"
            )),
        }
    }
    let status = call();
    // SAFETY: the driver wrote the address if it made memory.
    unsafe { made(status, address, size, Kind::Device) }
}

/// Memory of the arena is freed once `wait` has waited for everything that uses it; otherwise the driver frees it.
fn given_back(
    address: u64,
    wait: impl FnOnce() -> Status,
    call: impl FnOnce() -> Status,
) -> Status {
    freed(address, || {
        if arena::range(address).is_none_or(|(start, _)| start != address) {
            return call();
        }
        // A wait would break a capture. Then the memory stays where it is, unused.
        if CAPTURES.load(Ordering::SeqCst) == 0 {
            let status = wait();
            if status != Status::SUCCESS {
                return status;
            }
            arena::free(address);
        }
        Status::SUCCESS
    })
}

fn wait_for_all() -> Status {
    real::synchronize().err().unwrap_or(Status::SUCCESS)
}

fn wait_for(stream: Handle) -> Status {
    match real::driver() {
        // SAFETY: the program's stream.
        Ok(driver) => unsafe { driver.cuStreamSynchronize(stream) },
        Err(status) => status,
    }
}

/// The default stream of a thread by a name that means it everywhere.
fn of_thread(stream: Handle) -> Handle {
    if stream == 0 {
        attribute::stream::PER_THREAD
    } else {
        stream
    }
}

/// Memory is freed: it stays while a snapshot is taken.
fn freed(address: u64, call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    let status = call();
    if status == Status::SUCCESS {
        memory().remove(address);
    }
    status
}

fn passed(call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    call()
}

fn refused(kernels: &str, call: impl FnOnce() -> Status) -> Status {
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    if matches!(settings().mode, Mode::Record(_)) {
        crate::report::refuse(kernels, "it is launched in a way that cannot be recorded");
    }
    passed(call)
}

/// A graph becomes executable.
unsafe fn instantiated(
    executable: *const Handle,
    graph: Handle,
    call: impl FnOnce() -> Status,
) -> Status {
    let status = call();
    if status == Status::SUCCESS && !executable.is_null() {
        // SAFETY: the driver wrote the handle.
        graphs::instantiated(unsafe { *executable }, graph);
    }
    status
}

/// A node of an executable graph is changed in a way that is not followed.
fn changed(executable: Handle, what: &'static str, call: impl FnOnce() -> Status) -> Status {
    let status = call();
    if status == Status::SUCCESS {
        graphs::changed(executable, what);
    }
    status
}

hooks! {
    cuInit(flags: u32) {
        let status = driver::cuInit(flags);
        if status == Status::SUCCESS {
            begin();
        }
        status
    }
    cuGetProcAddress(name: *const c_char, pointer: *mut *mut c_void, version: i32, flags: u64) {
        let status = driver::cuGetProcAddress(name, pointer, version, flags);
        if status == Status::SUCCESS {
            substitute(pointer);
        }
        status
    }
    cuGetProcAddress_v2(name: *const c_char, pointer: *mut *mut c_void, version: i32, flags: u64, found: *mut i32) {
        let status = driver::cuGetProcAddress_v2(name, pointer, version, flags, found);
        if status == Status::SUCCESS {
            substitute(pointer);
        }
        status
    }

    cuLaunchKernel(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters, extra: Parameters) {
        plain("cuLaunchKernel", false, false, f, [[gx, gy, gz], [bx, by, bz]], shared, stream, parameters, extra, |f| {
            driver::cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernel_ptsz(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters, extra: Parameters) {
        plain("cuLaunchKernel_ptsz", true, false, f, [[gx, gy, gz], [bx, by, bz]], shared, stream, parameters, extra, |f| {
            driver::cuLaunchKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra)
        })
    }
    cuLaunchKernelEx(configuration: *const LaunchConfiguration, f: Handle, parameters: Parameters, extra: Parameters) {
        extended("cuLaunchKernelEx", false, configuration, f, parameters, extra, |f| {
            driver::cuLaunchKernelEx(configuration, f, parameters, extra)
        })
    }
    cuLaunchKernelEx_ptsz(configuration: *const LaunchConfiguration, f: Handle, parameters: Parameters, extra: Parameters) {
        extended("cuLaunchKernelEx_ptsz", true, configuration, f, parameters, extra, |f| {
            driver::cuLaunchKernelEx_ptsz(configuration, f, parameters, extra)
        })
    }
    cuLaunchCooperativeKernel(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters) {
        plain("cuLaunchCooperativeKernel", false, true, f, [[gx, gy, gz], [bx, by, bz]], shared, stream, parameters, std::ptr::null(), |f| {
            driver::cuLaunchCooperativeKernel(f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuLaunchCooperativeKernel_ptsz(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters) {
        plain("cuLaunchCooperativeKernel_ptsz", true, true, f, [[gx, gy, gz], [bx, by, bz]], shared, stream, parameters, std::ptr::null(), |f| {
            driver::cuLaunchCooperativeKernel_ptsz(f, gx, gy, gz, bx, by, bz, shared, stream, parameters)
        })
    }
    cuLaunchCooperativeKernelMultiDevice(launches: *mut c_void, count: u32, flags: u32) {
        refused("a kernel on several GPUs", || driver::cuLaunchCooperativeKernelMultiDevice(launches, count, flags))
    }
    cuGraphLaunch(g: Handle, stream: Handle) { graphs::launch("cuGraphLaunch", g, stream, || driver::cuGraphLaunch(g, stream)) }
    cuGraphLaunch_ptsz(g: Handle, stream: Handle) {
        graphs::launch("cuGraphLaunch_ptsz", g, of_thread(stream), || driver::cuGraphLaunch_ptsz(g, stream))
    }
    cuGraphInstantiate(executable: *mut Handle, g: Handle, node: *mut Handle, log: *mut c_char, size: usize) {
        instantiated(executable, g, || driver::cuGraphInstantiate(executable, g, node, log, size))
    }
    cuGraphInstantiate_v2(executable: *mut Handle, g: Handle, node: *mut Handle, log: *mut c_char, size: usize) {
        instantiated(executable, g, || driver::cuGraphInstantiate_v2(executable, g, node, log, size))
    }
    cuGraphInstantiateWithFlags(executable: *mut Handle, g: Handle, flags: u64) {
        instantiated(executable, g, || driver::cuGraphInstantiateWithFlags(executable, g, flags))
    }
    cuGraphInstantiateWithParams(executable: *mut Handle, g: Handle, parameters: *mut c_void) {
        instantiated(executable, g, || driver::cuGraphInstantiateWithParams(executable, g, parameters))
    }
    cuGraphInstantiateWithParams_ptsz(executable: *mut Handle, g: Handle, parameters: *mut c_void) {
        instantiated(executable, g, || driver::cuGraphInstantiateWithParams_ptsz(executable, g, parameters))
    }
    cuGraphExecDestroy(executable: Handle) {
        let _pass = gate::pass();
        graphs::destroyed(executable);
        driver::cuGraphExecDestroy(executable)
    }
    cuGraphExecUpdate(executable: Handle, g: Handle, node: *mut Handle, result: *mut i32) {
        let executables = [executable];
        instantiated(executables.as_ptr(), g, || driver::cuGraphExecUpdate(executable, g, node, result))
    }
    cuGraphExecUpdate_v2(executable: Handle, g: Handle, result: *mut c_void) {
        let executables = [executable];
        instantiated(executables.as_ptr(), g, || driver::cuGraphExecUpdate_v2(executable, g, result))
    }
    cuGraphExecKernelNodeSetParams(executable: Handle, node: Handle, parameters: *const c_void) {
        changed(executable, "cuGraphExecKernelNodeSetParams", || driver::cuGraphExecKernelNodeSetParams(executable, node, parameters))
    }
    cuGraphExecKernelNodeSetParams_v2(executable: Handle, node: Handle, parameters: *const KernelNode) {
        let status = driver::cuGraphExecKernelNodeSetParams_v2(executable, node, parameters);
        if status == Status::SUCCESS {
            graphs::kernel_changed(executable, node, parameters);
        }
        status
    }
    cuGraphExecMemcpyNodeSetParams(executable: Handle, node: Handle, parameters: *const c_void, context: Handle) {
        changed(executable, "cuGraphExecMemcpyNodeSetParams", || driver::cuGraphExecMemcpyNodeSetParams(executable, node, parameters, context))
    }
    cuGraphExecMemsetNodeSetParams(executable: Handle, node: Handle, parameters: *const c_void, context: Handle) {
        changed(executable, "cuGraphExecMemsetNodeSetParams", || driver::cuGraphExecMemsetNodeSetParams(executable, node, parameters, context))
    }
    cuGraphExecHostNodeSetParams(executable: Handle, node: Handle, parameters: *const c_void) {
        changed(executable, "cuGraphExecHostNodeSetParams", || driver::cuGraphExecHostNodeSetParams(executable, node, parameters))
    }
    cuGraphExecChildGraphNodeSetParams(executable: Handle, node: Handle, child: Handle) {
        changed(executable, "cuGraphExecChildGraphNodeSetParams", || driver::cuGraphExecChildGraphNodeSetParams(executable, node, child))
    }
    cuGraphExecNodeSetParams(executable: Handle, node: Handle, parameters: *mut c_void) {
        changed(executable, "cuGraphExecNodeSetParams", || driver::cuGraphExecNodeSetParams(executable, node, parameters))
    }
    cuGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: u32) {
        changed(executable, "cuGraphNodeSetEnabled", || driver::cuGraphNodeSetEnabled(executable, node, enabled))
    }

    cuModuleLoad(module: *mut Handle, name: *const c_char) {
        let status = driver::cuModuleLoad(module, name);
        if status == Status::SUCCESS {
            loaded_file(Owner::Module, *module, name);
        }
        status
    }
    cuModuleLoadData(module: *mut Handle, image: *const c_void) {
        let status = driver::cuModuleLoadData(module, image);
        if status == Status::SUCCESS {
            loaded(Owner::Module, *module, image);
        }
        status
    }
    cuModuleLoadDataEx(module: *mut Handle, image: *const c_void, count: u32, options: *mut i32, values: *mut *mut c_void) {
        let status = driver::cuModuleLoadDataEx(module, image, count, options, values);
        if status == Status::SUCCESS {
            loaded(Owner::Module, *module, image);
        }
        status
    }
    cuModuleLoadFatBinary(module: *mut Handle, image: *const c_void) {
        let status = driver::cuModuleLoadFatBinary(module, image);
        if status == Status::SUCCESS {
            loaded(Owner::Module, *module, image);
        }
        status
    }
    cuModuleUnload(module: Handle) {
        let _pass = gate::pass();
        let status = driver::cuModuleUnload(module);
        if status == Status::SUCCESS {
            unloaded(Owner::Module, module);
            functions::forget_owner(module);
        }
        status
    }
    cuModuleGetFunction(f: *mut Handle, module: Handle, name: *const c_char) {
        let status = driver::cuModuleGetFunction(f, module, name);
        if status == Status::SUCCESS {
            functions::found_function(*f, module, name);
        }
        status
    }
    cuLibraryLoadData(library: *mut Handle, image: *const c_void, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void, count: u32) {
        let status = driver::cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count);
        if status == Status::SUCCESS {
            loaded(Owner::Library, *library, image);
        }
        status
    }
    cuLibraryLoadFromFile(library: *mut Handle, name: *const c_char, jit: *mut i32, jit_values: *mut *mut c_void, jit_count: u32, options: *mut i32, values: *mut *mut c_void, count: u32) {
        let status = driver::cuLibraryLoadFromFile(library, name, jit, jit_values, jit_count, options, values, count);
        if status == Status::SUCCESS {
            loaded_file(Owner::Library, *library, name);
        }
        status
    }
    cuLibraryUnload(library: Handle) {
        let _pass = gate::pass();
        let status = driver::cuLibraryUnload(library);
        if status == Status::SUCCESS {
            unloaded(Owner::Library, library);
            functions::forget_owner(library);
        }
        status
    }
    cuLibraryGetModule(module: *mut Handle, library: Handle) {
        let status = driver::cuLibraryGetModule(module, library);
        if status == Status::SUCCESS {
            let mut images = crate::state::images();
            if let Some(image) = images.libraries.get(&library).cloned() {
                images.modules.insert(*module, image);
            }
        }
        status
    }
    cuLibraryGetKernel(kernel: *mut Handle, library: Handle, name: *const c_char) {
        let status = driver::cuLibraryGetKernel(kernel, library, name);
        if status == Status::SUCCESS {
            functions::found_kernel(*kernel, library, name);
        }
        status
    }
    cuKernelGetFunction(f: *mut Handle, kernel: Handle) {
        let status = driver::cuKernelGetFunction(f, kernel);
        if status == Status::SUCCESS {
            functions::found_function_of_kernel(*f, kernel);
        }
        status
    }

    cuLinkComplete(link: Handle, cubin: *mut *mut c_void, size: *mut usize) {
        let status = driver::cuLinkComplete(link, cubin, size);
        if status == Status::SUCCESS && !cubin.is_null() && !size.is_null() {
            linked(link, *cubin as usize, *size);
        }
        status
    }
    cuLinkDestroy(link: Handle) {
        unlinked(link);
        driver::cuLinkDestroy(link)
    }

    cuCtxSetLimit(limit: i32, value: usize) {
        let status = driver::cuCtxSetLimit(limit, value);
        if status == Status::SUCCESS {
            limited(limit, value);
        }
        status
    }
    cuFuncSetAttribute(f: Handle, number: i32, value: i32) {
        let status = driver::cuFuncSetAttribute(f, number, value);
        if status == Status::SUCCESS {
            functions::attribute(f, number, value);
        }
        status
    }
    cuKernelSetAttribute(number: i32, value: i32, kernel: Handle, device: i32) {
        let status = driver::cuKernelSetAttribute(number, value, kernel, device);
        if status == Status::SUCCESS {
            functions::attribute(kernel, number, value);
        }
        status
    }

    cuMemAlloc_v2(address: *mut u64, size: usize) {
        allocated(address, size, || driver::cuMemAlloc_v2(address, size))
    }
    cuMemAllocPitch_v2(address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32) {
        if let Mode::Record(record) = &settings().mode && record.arena && !pitch.is_null() && width > 0 {
            // As the driver pads rows.
            let padded = width.next_multiple_of(512);
            let status = allocated(address, padded.saturating_mul(height), || Status::NOT_SUPPORTED);
            if status == Status::SUCCESS {
                *pitch = padded;
            }
            if status != Status::NOT_SUPPORTED {
                return status;
            }
        }
        let status = driver::cuMemAllocPitch_v2(address, pitch, width, height, element);
        let size = if status == Status::SUCCESS { (*pitch).saturating_mul(height) } else { 0 };
        made(status, address, size, Kind::Device)
    }
    cuMemFree_v2(address: u64) { given_back(address, wait_for_all, || driver::cuMemFree_v2(address)) }
    cuMemAllocAsync(address: *mut u64, size: usize, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocAsync(address, size, stream))
    }
    cuMemAllocAsync_ptsz(address: *mut u64, size: usize, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocAsync_ptsz(address, size, stream))
    }
    cuMemAllocFromPoolAsync(address: *mut u64, size: usize, pool: Handle, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocFromPoolAsync(address, size, pool, stream))
    }
    cuMemAllocFromPoolAsync_ptsz(address: *mut u64, size: usize, pool: Handle, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocFromPoolAsync_ptsz(address, size, pool, stream))
    }
    cuMemFreeAsync(address: u64, stream: Handle) {
        given_back(address, || wait_for(stream), || driver::cuMemFreeAsync(address, stream))
    }
    cuMemFreeAsync_ptsz(address: u64, stream: Handle) {
        given_back(address, || wait_for(of_thread(stream)), || driver::cuMemFreeAsync_ptsz(address, stream))
    }
    cuMemAllocManaged(address: *mut u64, size: usize, flags: u32) {
        made(driver::cuMemAllocManaged(address, size, flags), address, size, Kind::Managed)
    }
    cuMemHostAlloc(address: *mut u64, size: usize, flags: u32) {
        made(driver::cuMemHostAlloc(address, size, flags), address, size, Kind::Host)
    }
    cuMemAllocHost_v2(address: *mut u64, size: usize) {
        made(driver::cuMemAllocHost_v2(address, size), address, size, Kind::Host)
    }
    cuMemFreeHost(address: u64) { freed(address, || driver::cuMemFreeHost(address)) }
    cuMemHostRegister_v2(address: u64, size: usize, flags: u32) {
        made(driver::cuMemHostRegister_v2(address, size, flags), &raw const address, size, Kind::Host)
    }
    cuMemHostUnregister(address: u64) { freed(address, || driver::cuMemHostUnregister(address)) }
    cuMemMap(address: u64, size: usize, offset: usize, handle: Handle, flags: u64) {
        let status = driver::cuMemMap(address, size, offset, handle, flags);
        // A multicast object is no memory of one GPU.
        let kind = if unrecordable().multicasts.contains(&handle) { Kind::Imported } else { Kind::Mapped };
        made(status, &raw const address, size, kind)
    }
    cuMemUnmap(address: u64, size: usize) {
        let _pass = gate::pass();
        let status = driver::cuMemUnmap(address, size);
        if status == Status::SUCCESS {
            memory().remove_range(address, size as u64);
        }
        status
    }
    cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) {
        // The driver knows slabs of the arena, not what lies in them.
        if let Some((start, bytes)) = arena::range(address) {
            if !base.is_null() {
                *base = start;
            }
            if !size.is_null() {
                *size = bytes as usize;
            }
            return Status::SUCCESS;
        }
        driver::cuMemGetAddressRange_v2(base, size, address)
    }
    cuIpcOpenMemHandle_v2(address: *mut u64, handle: IpcHandle, flags: u32) {
        let status = driver::cuIpcOpenMemHandle_v2(address, handle, flags);
        if status == Status::SUCCESS {
            let (mut base, mut size) = (0, 0);
            if driver::cuMemGetAddressRange_v2(&raw mut base, &raw mut size, *address) == Status::SUCCESS {
                memory().insert(Piece { address: base, size: size as u64, kind: Kind::Imported, device: 0 });
            }
        }
        status
    }
    cuIpcCloseMemHandle(address: u64) { freed(address, || driver::cuIpcCloseMemHandle(address)) }

    cuTexObjectCreate(object: *mut u64, resource: *const c_void, texture: *const c_void, view: *const c_void) {
        let status = driver::cuTexObjectCreate(object, resource, texture, view);
        if status == Status::SUCCESS {
            unrecordable().textures.insert(*object);
        }
        status
    }
    cuTexObjectDestroy(object: u64) {
        let status = driver::cuTexObjectDestroy(object);
        if status == Status::SUCCESS {
            unrecordable().textures.remove(&object);
        }
        status
    }
    cuSurfObjectCreate(object: *mut u64, resource: *const c_void) {
        let status = driver::cuSurfObjectCreate(object, resource);
        if status == Status::SUCCESS {
            unrecordable().surfaces.insert(*object);
        }
        status
    }
    cuSurfObjectDestroy(object: u64) {
        let status = driver::cuSurfObjectDestroy(object);
        if status == Status::SUCCESS {
            unrecordable().surfaces.remove(&object);
        }
        status
    }
    cuMulticastCreate(handle: *mut Handle, properties: *const c_void) {
        let status = driver::cuMulticastCreate(handle, properties);
        if status == Status::SUCCESS {
            unrecordable().multicasts.insert(*handle);
        }
        status
    }

    cuStreamBeginCapture(stream: Handle) { capture(|| driver::cuStreamBeginCapture(stream)) }
    cuStreamBeginCapture_ptsz(stream: Handle) { capture(|| driver::cuStreamBeginCapture_ptsz(stream)) }
    cuStreamBeginCaptureToGraph(stream: Handle, g: Handle, nodes: *const Handle, data: *const c_void, count: usize, mode: i32) {
        capture(|| driver::cuStreamBeginCaptureToGraph(stream, g, nodes, data, count, mode))
    }
    cuStreamBeginCaptureToGraph_ptsz(stream: Handle, g: Handle, nodes: *const Handle, data: *const c_void, count: usize, mode: i32) {
        capture(|| driver::cuStreamBeginCaptureToGraph_ptsz(stream, g, nodes, data, count, mode))
    }
    cuStreamBeginCapture_v2(stream: Handle, mode: i32) { capture(|| driver::cuStreamBeginCapture_v2(stream, mode)) }
    cuStreamBeginCapture_v2_ptsz(stream: Handle, mode: i32) { capture(|| driver::cuStreamBeginCapture_v2_ptsz(stream, mode)) }
    cuStreamEndCapture(stream: Handle, g: *mut Handle) { captured(|| driver::cuStreamEndCapture(stream, g)) }
    cuStreamEndCapture_ptsz(stream: Handle, g: *mut Handle) { captured(|| driver::cuStreamEndCapture_ptsz(stream, g)) }

    cuMemcpy(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpy(destination, source, size)) }
    cuMemcpyHtoD_v2(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpyHtoD_v2(destination, source, size)) }
    cuMemcpyDtoH_v2(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpyDtoH_v2(destination, source, size)) }
    cuMemcpyDtoD_v2(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpyDtoD_v2(destination, source, size)) }
    cuMemcpyPeer(destination: u64, to: Handle, source: u64, from: Handle, size: usize) { passed(|| driver::cuMemcpyPeer(destination, to, source, from, size)) }
    cuMemcpy2D_v2(copy: *const c_void) { passed(|| driver::cuMemcpy2D_v2(copy)) }
    cuMemcpy2DUnaligned_v2(copy: *const c_void) { passed(|| driver::cuMemcpy2DUnaligned_v2(copy)) }
    cuMemcpy3D_v2(copy: *const c_void) { passed(|| driver::cuMemcpy3D_v2(copy)) }
    cuMemsetD8_v2(destination: u64, value: u8, count: usize) { passed(|| driver::cuMemsetD8_v2(destination, value, count)) }
    cuMemsetD2D8_v2(destination: u64, pitch: usize, value: u8, width: usize, height: usize) { passed(|| driver::cuMemsetD2D8_v2(destination, pitch, value, width, height)) }
    cuMemsetD16_v2(destination: u64, value: u16, count: usize) { passed(|| driver::cuMemsetD16_v2(destination, value, count)) }
    cuMemsetD2D16_v2(destination: u64, pitch: usize, value: u16, width: usize, height: usize) { passed(|| driver::cuMemsetD2D16_v2(destination, pitch, value, width, height)) }
    cuMemsetD32_v2(destination: u64, value: u32, count: usize) { passed(|| driver::cuMemsetD32_v2(destination, value, count)) }
    cuMemsetD2D32_v2(destination: u64, pitch: usize, value: u32, width: usize, height: usize) { passed(|| driver::cuMemsetD2D32_v2(destination, pitch, value, width, height)) }
    cuMemcpy_ptds(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpy_ptds(destination, source, size)) }
    cuMemcpyHtoD_v2_ptds(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpyHtoD_v2_ptds(destination, source, size)) }
    cuMemcpyDtoH_v2_ptds(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpyDtoH_v2_ptds(destination, source, size)) }
    cuMemcpyDtoD_v2_ptds(destination: u64, source: u64, size: usize) { passed(|| driver::cuMemcpyDtoD_v2_ptds(destination, source, size)) }
    cuMemcpyPeer_ptds(destination: u64, to: Handle, source: u64, from: Handle, size: usize) { passed(|| driver::cuMemcpyPeer_ptds(destination, to, source, from, size)) }
    cuMemcpy2D_v2_ptds(copy: *const c_void) { passed(|| driver::cuMemcpy2D_v2_ptds(copy)) }
    cuMemcpy2DUnaligned_v2_ptds(copy: *const c_void) { passed(|| driver::cuMemcpy2DUnaligned_v2_ptds(copy)) }
    cuMemcpy3D_v2_ptds(copy: *const c_void) { passed(|| driver::cuMemcpy3D_v2_ptds(copy)) }
    cuMemsetD8_v2_ptds(destination: u64, value: u8, count: usize) { passed(|| driver::cuMemsetD8_v2_ptds(destination, value, count)) }
    cuMemsetD2D8_v2_ptds(destination: u64, pitch: usize, value: u8, width: usize, height: usize) { passed(|| driver::cuMemsetD2D8_v2_ptds(destination, pitch, value, width, height)) }
    cuMemsetD16_v2_ptds(destination: u64, value: u16, count: usize) { passed(|| driver::cuMemsetD16_v2_ptds(destination, value, count)) }
    cuMemsetD2D16_v2_ptds(destination: u64, pitch: usize, value: u16, width: usize, height: usize) { passed(|| driver::cuMemsetD2D16_v2_ptds(destination, pitch, value, width, height)) }
    cuMemsetD32_v2_ptds(destination: u64, value: u32, count: usize) { passed(|| driver::cuMemsetD32_v2_ptds(destination, value, count)) }
    cuMemsetD2D32_v2_ptds(destination: u64, pitch: usize, value: u32, width: usize, height: usize) { passed(|| driver::cuMemsetD2D32_v2_ptds(destination, pitch, value, width, height)) }
    cuMemcpyAsync(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyAsync(destination, source, size, stream)) }
    cuMemcpyHtoDAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyHtoDAsync_v2(destination, source, size, stream)) }
    cuMemcpyDtoHAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyDtoHAsync_v2(destination, source, size, stream)) }
    cuMemcpyDtoDAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyDtoDAsync_v2(destination, source, size, stream)) }
    cuMemcpyPeerAsync(destination: u64, to: Handle, source: u64, from: Handle, size: usize, stream: Handle) { passed(|| driver::cuMemcpyPeerAsync(destination, to, source, from, size, stream)) }
    cuMemcpy2DAsync_v2(copy: *const c_void, stream: Handle) { passed(|| driver::cuMemcpy2DAsync_v2(copy, stream)) }
    cuMemcpy3DAsync_v2(copy: *const c_void, stream: Handle) { passed(|| driver::cuMemcpy3DAsync_v2(copy, stream)) }
    cuMemsetD8Async(destination: u64, value: u8, count: usize, stream: Handle) { passed(|| driver::cuMemsetD8Async(destination, value, count, stream)) }
    cuMemsetD2D8Async(destination: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) { passed(|| driver::cuMemsetD2D8Async(destination, pitch, value, width, height, stream)) }
    cuMemsetD16Async(destination: u64, value: u16, count: usize, stream: Handle) { passed(|| driver::cuMemsetD16Async(destination, value, count, stream)) }
    cuMemsetD2D16Async(destination: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) { passed(|| driver::cuMemsetD2D16Async(destination, pitch, value, width, height, stream)) }
    cuMemsetD32Async(destination: u64, value: u32, count: usize, stream: Handle) { passed(|| driver::cuMemsetD32Async(destination, value, count, stream)) }
    cuMemsetD2D32Async(destination: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) { passed(|| driver::cuMemsetD2D32Async(destination, pitch, value, width, height, stream)) }
    cuMemcpyAsync_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyAsync_ptsz(destination, source, size, stream)) }
    cuMemcpyHtoDAsync_v2_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyHtoDAsync_v2_ptsz(destination, source, size, stream)) }
    cuMemcpyDtoHAsync_v2_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyDtoHAsync_v2_ptsz(destination, source, size, stream)) }
    cuMemcpyDtoDAsync_v2_ptsz(destination: u64, source: u64, size: usize, stream: Handle) { passed(|| driver::cuMemcpyDtoDAsync_v2_ptsz(destination, source, size, stream)) }
    cuMemcpyPeerAsync_ptsz(destination: u64, to: Handle, source: u64, from: Handle, size: usize, stream: Handle) { passed(|| driver::cuMemcpyPeerAsync_ptsz(destination, to, source, from, size, stream)) }
    cuMemcpy2DAsync_v2_ptsz(copy: *const c_void, stream: Handle) { passed(|| driver::cuMemcpy2DAsync_v2_ptsz(copy, stream)) }
    cuMemcpy3DAsync_v2_ptsz(copy: *const c_void, stream: Handle) { passed(|| driver::cuMemcpy3DAsync_v2_ptsz(copy, stream)) }
    cuMemsetD8Async_ptsz(destination: u64, value: u8, count: usize, stream: Handle) { passed(|| driver::cuMemsetD8Async_ptsz(destination, value, count, stream)) }
    cuMemsetD2D8Async_ptsz(destination: u64, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) { passed(|| driver::cuMemsetD2D8Async_ptsz(destination, pitch, value, width, height, stream)) }
    cuMemsetD16Async_ptsz(destination: u64, value: u16, count: usize, stream: Handle) { passed(|| driver::cuMemsetD16Async_ptsz(destination, value, count, stream)) }
    cuMemsetD2D16Async_ptsz(destination: u64, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) { passed(|| driver::cuMemsetD2D16Async_ptsz(destination, pitch, value, width, height, stream)) }
    cuMemsetD32Async_ptsz(destination: u64, value: u32, count: usize, stream: Handle) { passed(|| driver::cuMemsetD32Async_ptsz(destination, value, count, stream)) }
    cuMemsetD2D32Async_ptsz(destination: u64, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) { passed(|| driver::cuMemsetD2D32Async_ptsz(destination, pitch, value, width, height, stream)) }
}

fn capture(call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    let status = call();
    if status == Status::SUCCESS {
        CAPTURES.fetch_add(1, Ordering::SeqCst);
    }
    status
}

/// A capture ends whether or not it gives a graph.
fn captured(call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    let status = call();
    let one_less = |captures: u64| captures.checked_sub(1);
    let _ = CAPTURES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
    status
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gpureplay_cuda_abi::INTERPOSED;

    use super::{NAMES, address, index_of};

    #[test]
    fn hooks_are_those_of_the_table() {
        let hooks: BTreeSet<&str> = NAMES
            .iter()
            .map(|name| name.trim_end_matches('\0'))
            .collect();
        assert_eq!(hooks.len(), NAMES.len());
        let table: BTreeSet<&str> = INTERPOSED
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        assert_eq!(hooks, table);
    }

    #[test]
    fn every_hook_has_an_address_of_its_own() {
        let addresses: BTreeSet<usize> = (0..NAMES.len()).map(address).collect();
        assert_eq!(addresses.len(), NAMES.len());
        assert_eq!(
            index_of(c"cuLaunchKernel").map(|index| NAMES[index]),
            Some("cuLaunchKernel\0")
        );
        assert_eq!(index_of(c"cuLaunchKerne"), None);
    }
}
