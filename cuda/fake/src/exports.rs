// SPDX-License-Identifier: MIT OR Apache-2.0
//! The driver's functions.
#![allow(non_snake_case, reason = "the driver's own names")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use gpureplay_cuda_launch::abi::{
    AccessDescriptor, AllocationProperties, Copy3d, EdgeData, Handle, KernelNode,
    LaunchConfiguration, LaunchParameter, MAX_PARAMETER_BYTES, MemsetNode, NodeParameters, Status,
    attribute,
};

use crate::graphs::{Kernel, Node, graphs};
use crate::kernels::Sizes;
use crate::memory::memory;
use crate::modules::modules;
use crate::{fault, kernels, profiler};

/// Returned by every later call that waits.
static STICKY: AtomicI32 = AtomicI32::new(0);
static EVENTS: AtomicU64 = AtomicU64::new(0);
static LIMITS: Mutex<BTreeMap<i32, u64>> = Mutex::new(BTreeMap::new());

type Answer = Result<(), Status>;
type Parameters = *const *const c_void;

macro_rules! exports {
    ($($name:ident ( $($argument:ident : $kind:ty),* ) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            #[allow(unused_variables, clippy::too_many_arguments, reason = "as the driver has them")]
            pub(crate) unsafe extern "C" fn $name($($argument: $kind),*) -> Status {
                let answer = move || -> Answer {
                    fault::check(stringify!($name))?;
                    // SAFETY: the caller passes what cuda.h says.
                    #[allow(unused_unsafe)]
                    unsafe { $body }
                };
                answer().map_or_else(|status| status, |()| Status::SUCCESS)
            }
        )*
    };
}

unsafe fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: our caller's pointer.
    unsafe { *place = value };
    Ok(())
}

fn wait() -> Answer {
    while kernels::waiting() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    sticky()
}

fn sticky() -> Answer {
    Status(STICKY.load(Ordering::SeqCst)).check()
}

unsafe fn text<'a>(name: *const c_char) -> Result<&'a str, Status> {
    // SAFETY: our caller's C string.
    unsafe { CStr::from_ptr(name) }
        .to_str()
        .map_err(|_| Status::INVALID_VALUE)
}

unsafe fn copy(destination: u64, source: u64, size: usize) -> Answer {
    sticky()?;
    // SAFETY: our caller's memory; device memory is host memory here.
    unsafe { std::ptr::copy(source as *const u8, destination as *mut u8, size) };
    Ok(())
}

unsafe fn set(destination: u64, value: u8, count: usize) -> Answer {
    sticky()?;
    // SAFETY: our caller's memory.
    unsafe { std::ptr::write_bytes(destination as *mut u8, value, count) };
    Ok(())
}

unsafe fn launch(
    function: Handle,
    sizes: Sizes,
    shared: u32,
    parameters: Parameters,
    extra: Parameters,
) -> Answer {
    sticky()?;
    let mut modules = modules();
    let function = modules.function(function)?;
    let threads = sizes
        .block
        .iter()
        .try_fold(1u32, |product, size| product.checked_mul(*size));
    let dynamic = u32::try_from(function.dynamic_shared).unwrap_or(0);
    if threads.is_none_or(|threads| threads == 0 || threads > 1024)
        || sizes.grid.contains(&0)
        || shared > dynamic
    {
        return Err(Status::INVALID_VALUE);
    }
    profiler::ran(&function.name, sizes);
    let carveout = function.carveout;
    fault::trace(|| {
        let percent = if carveout < 0 {
            String::new()
        } else {
            format!(", {carveout} % shared")
        };
        let shared = match shared {
            0 => String::new(),
            bytes => format!(", {bytes} B shared"),
        };
        format!(
            "{:?} of module {}: {sizes}{shared}{percent}",
            function.name, function.module
        )
    });
    let mut packed = vec![0u8; MAX_PARAMETER_BYTES + 12];
    // SAFETY: our caller passes as many parameters as the kernel has, or a list of marks.
    unsafe {
        if !parameters.is_null() {
            for (index, parameter) in function.kernel.parameters.iter().enumerate() {
                let value = (*parameters.add(index)).cast::<u8>();
                std::ptr::copy_nonoverlapping(
                    value,
                    packed[parameter.offset..].as_mut_ptr(),
                    parameter.size,
                );
            }
        } else if !extra.is_null() {
            let (mut buffer, mut size, mut at) = (std::ptr::null::<u8>(), 0, extra);
            while *at as usize != LaunchParameter::End as usize {
                if *at as usize == LaunchParameter::BufferPointer as usize {
                    buffer = (*at.add(1)).cast();
                } else {
                    size = *(*at.add(1)).cast::<usize>();
                }
                at = at.add(2);
            }
            std::ptr::copy_nonoverlapping(buffer, packed.as_mut_ptr(), size.min(packed.len()));
        }
    }
    let (module, name) = (function.module, function.kernel.name.clone());
    let variable = |name: &str| match name.strip_prefix("limit ") {
        None if name == "carve-out" => u64::try_from(carveout).map_err(|_| Status::NOT_FOUND),
        Some(number) => {
            let limits = LIMITS
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let number = number.parse().map_err(|_| Status::INVALID_VALUE)?;
            Ok(limits.get(&number).copied().unwrap_or(0))
        }
        None => modules.variable(module, name).map(|(address, _)| address),
    };
    // SAFETY: the parameters are those of the kernel.
    let result = unsafe { kernels::run(&name, sizes, &packed, variable) };
    match result {
        // Shows at the next wait.
        Err(Status::LAUNCH_FAILED) => STICKY.store(Status::LAUNCH_FAILED.0, Ordering::SeqCst),
        other => other?,
    }
    Ok(())
}

unsafe fn handles(first: *const Handle, count: usize) -> Vec<Handle> {
    if first.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: our caller's list.
    unsafe { std::slice::from_raw_parts(first, count) }.to_vec()
}

/// As far as there is room; only the length if `to` is null.
unsafe fn list(items: &[Handle], to: *mut Handle, count: *mut usize) -> Answer {
    // SAFETY: our caller's places.
    unsafe {
        if !to.is_null() {
            let room = items.len().min(*count);
            std::ptr::copy_nonoverlapping(items.as_ptr(), to, room);
        }
        put(count, items.len())
    }
}

unsafe fn memset(set: &MemsetNode) -> Answer {
    for row in 0..set.height.max(1) {
        for column in 0..set.width {
            let element = set.element as usize;
            let at = set.destination + (row * set.pitch + column * element) as u64;
            // SAFETY: our caller's memory.
            unsafe { copy(at, (&raw const set.value) as u64, element) }?;
        }
    }
    Ok(())
}

unsafe fn launch_in(
    function: Handle,
    sizes: Sizes,
    shared: u32,
    parameters: Parameters,
    extra: Parameters,
    stream: Handle,
) -> Answer {
    if graphs().captures.contains_key(&stream) {
        let node = KernelNode {
            function,
            grid: sizes.grid,
            block: sizes.block,
            shared,
            parameters,
            ..KernelNode::empty()
        };
        // SAFETY: our caller passes as many parameters as the kernel has.
        let kernel = unsafe { Kernel::new(node) }?;
        return graphs().capture(stream, Node::Kernel(kernel));
    }
    // SAFETY: as our caller's.
    unsafe { launch(function, sizes, shared, parameters, extra) }
}

unsafe fn copy_in(destination: u64, source: u64, size: usize, stream: Handle) -> Answer {
    let mut graphs = graphs();
    if graphs.captures.contains_key(&stream) {
        let mut words: Copy3d = [0; 25];
        (words[17], words[6], words[22]) = (destination, source, size as u64);
        return graphs.capture(stream, Node::Copy(words));
    }
    // SAFETY: our caller's memory.
    unsafe { copy(destination, source, size) }
}

unsafe fn set_in(set: MemsetNode, stream: Handle) -> Answer {
    let mut graphs = graphs();
    if graphs.captures.contains_key(&stream) {
        return graphs.capture(stream, Node::Set(set));
    }
    // SAFETY: our caller's memory.
    unsafe { memset(&set) }
}

unsafe fn copy_rows(words: &Copy3d) -> Answer {
    const HOST: u64 = 1;
    let at = |first: usize, row: u64, layer: u64| {
        let place = if words[first + 4] == HOST { 5 } else { 6 };
        let lines = (words[first + 2] + layer) * words[first + 10] + words[first + 1] + row;
        words[first + place] + words[first] + lines * words[first + 9]
    };
    for layer in 0..words[24].max(1) {
        for row in 0..words[23].max(1) {
            let [from, to] = [at(0, row, layer), at(11, row, layer)];
            // SAFETY: our caller's memory.
            unsafe { copy(to, from, words[22] as usize) }?;
        }
    }
    Ok(())
}

fn flat(words: &[u64; 16]) -> Copy3d {
    let mut deep: Copy3d = [0; 25];
    for (from, to) in [(0, 0), (7, 11)] {
        deep[to..to + 2].copy_from_slice(&words[from..from + 2]);
        deep[to + 4..to + 7].copy_from_slice(&words[from + 2..from + 5]);
        deep[to + 9] = words[from + 6];
    }
    deep[22..24].copy_from_slice(&words[14..]);
    deep
}

unsafe fn rows_in(words: Copy3d, stream: Handle) -> Answer {
    let mut graphs = graphs();
    if graphs.captures.contains_key(&stream) {
        return graphs.capture(stream, Node::Copy(words));
    }
    // SAFETY: our caller's memory.
    unsafe { copy_rows(&words) }
}

unsafe fn run(node: Node) -> Answer {
    // SAFETY: what the program put into the node.
    unsafe {
        match node {
            Node::Kernel(mut kernel) => {
                let node = kernel.parameters();
                let sizes = Sizes {
                    grid: node.grid,
                    block: node.block,
                };
                launch(
                    node.function,
                    sizes,
                    node.shared,
                    node.parameters,
                    std::ptr::null(),
                )
            }
            Node::Copy(words) => copy_rows(&words),
            Node::Set(set) => memset(&set),
            Node::Empty | Node::Event => Ok(()),
            Node::Twice(body) => {
                let nodes = graphs().in_order(body)?;
                let twice = nodes.iter().chain(&nodes);
                twice.cloned().try_for_each(|node| run(node))
            }
        }
    }
}

exports! {
    cuInit(flags: u32) { Ok(()) }
    cuDriverGetVersion(version: *mut i32) { put(version, 13_000) }
    cuGetProcAddress_v2(name: *const c_char, pointer: *mut *mut c_void, version: i32, flags: u64, found: *mut i32) {
        let name = text(name)?;
        for suffix in ["_v2", ""] {
            let name = CString::new(format!("{name}{suffix}")).map_err(|_| Status::INVALID_VALUE)?;
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            let address = libc::dlsym(library, name.as_ptr());
            if !address.is_null() {
                return put(pointer, address);
            }
        }
        Err(Status::NOT_FOUND)
    }
    cuDeviceGet(device: *mut i32, ordinal: i32) {
        if ordinal == 0 { put(device, 0) } else { Err(Status::INVALID_DEVICE) }
    }
    cuDeviceGetCount(count: *mut i32) { put(count, 1) }
    cuDeviceGetName(name: *mut c_char, length: i32, device: i32) {
        let text = c"fake GPU, no kernels run";
        let bytes = text.to_bytes_with_nul();
        if usize::try_from(length).unwrap_or(0) < bytes.len() {
            return Err(Status::INVALID_VALUE);
        }
        std::ptr::copy_nonoverlapping(text.as_ptr(), name, bytes.len());
        Ok(())
    }
    cuDeviceGetAttribute(value: *mut i32, number: i32, device: i32) {
        put(value, match number {
            attribute::device::MAX_THREADS_PER_BLOCK | 2 | 3 => 1024,
            4 => 64,
            attribute::device::MAX_GRID_DIM_X => i32::MAX,
            6 | 7 => 65_535,
            attribute::device::L2_CACHE_SIZE => 1 << 20,
            attribute::device::CAPABILITY_MAJOR => 9,
            attribute::device::MAX_SHARED_MEMORY_OPTIN => 232_448,
            _ => 0,
        })
    }
    cuDevicePrimaryCtxRetain(context: *mut Handle, device: i32) { put(context, 1) }
    cuDevicePrimaryCtxRelease_v2(device: i32) { Ok(()) }
    cuCtxSetCurrent(context: Handle) { Ok(()) }
    cuCtxGetCurrent(context: *mut Handle) { put(context, 1) }
    cuCtxGetDevice(device: *mut i32) { put(device, 0) }
    cuCtxSynchronize() { wait() }

    cuMemAlloc_v2(address: *mut u64, size: usize) { put(address, memory().allocate(size)?) }
    cuMemAllocAsync(address: *mut u64, size: usize, stream: Handle) { put(address, memory().allocate(size)?) }
    cuMemAllocFromPoolAsync(address: *mut u64, size: usize, pool: Handle, stream: Handle) {
        // A pool's handle is its GPU's ordinal.
        let at = memory().allocate(size)?;
        memory().belongs(at, pool);
        put(address, at)
    }
    cuPointerGetAttribute(value: *mut i32, number: i32, address: u64) {
        if number != attribute::pointer::DEVICE_ORDINAL {
            return Err(Status::INVALID_VALUE);
        }
        put(value, memory().owner(address)?)
    }
    cuMulticastCreate(handle: *mut Handle, properties: *const c_void) {
        put(handle, memory().make(gpureplay_cuda_launch::abi::PAGE as usize)?)
    }
    cuMemImportFromShareableHandle(handle: *mut Handle, other: *mut c_void, kind: i32) {
        put(handle, memory().make(gpureplay_cuda_launch::abi::PAGE as usize)?)
    }
    cuModuleGetTexRef(reference: *mut Handle, module: Handle, name: *const c_char) { put(reference, 1) }
    cuExternalMemoryGetMappedBuffer(address: *mut u64, memory_: Handle, description: *const c_void) {
        put(address, memory().allocate(gpureplay_cuda_launch::abi::PAGE as usize)?)
    }
    cuMemAllocManaged(address: *mut u64, size: usize, flags: u32) { put(address, memory().allocate(size)?) }
    cuMemHostAlloc(address: *mut u64, size: usize, flags: u32) {
        fault::trace(|| "pinned memory is taken".into());
        put(address, memory().allocate(size)?)
    }
    cuMemFree_v2(address: u64) { memory().free(address) }
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        put(free, fault::free_memory())?;
        put(total, 16 << 30)
    }
    cuMemFreeAsync(address: u64, stream: Handle) { memory().free(address) }
    cuMemFreeHost(address: u64) {
        fault::trace(|| "pinned memory is given back".into());
        memory().free(address)
    }
    cuMemHostRegister_v2(address: u64, size: usize, flags: u32) { Ok(()) }
    cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) {
        let (start, bytes) = memory().range(address)?;
        put(base, start)?;
        put(size, bytes)
    }
    cuMemAddressReserve(address: *mut u64, size: usize, alignment: usize, wanted: u64, flags: u64) {
        put(address, memory().reserve(size, wanted, wanted != 0 && fault::collides())?)
    }
    cuMemAddressFree(address: u64, size: usize) { memory().unreserve(address, size) }
    cuMemCreate(handle: *mut Handle, size: usize, properties: *const AllocationProperties, flags: u64) {
        put(handle, memory().make(size)?)
    }
    cuMemRelease(handle: Handle) { memory().release(handle) }
    cuMemMap(address: u64, size: usize, offset: usize, handle: Handle, flags: u64) { memory().map(address, size, handle) }
    cuMemSetAccess(address: u64, size: usize, descriptors: *const AccessDescriptor, count: usize) {
        memory().access(address, size)
    }
    cuMemUnmap(address: u64, size: usize) { memory().unmap(address, size) }
    cuMemcpyHtoD_v2(destination: u64, source: u64, size: usize) { copy(destination, source, size) }
    cuMemcpyDtoH_v2(destination: u64, source: u64, size: usize) { copy(destination, source, size) }
    cuMemcpyDtoD_v2(destination: u64, source: u64, size: usize) { copy(destination, source, size) }
    cuMemsetD8_v2(destination: u64, value: u8, count: usize) { set(destination, value, count) }

    cuModuleLoadData(module: *mut Handle, image: *const u8) { put(module, modules().load(image)?) }
    cuModuleLoadDataEx(module: *mut Handle, image: *const u8, count: u32, options: *const i32, values: *const u64) {
        let handle = modules().load(image)?;
        for index in 0..count as usize {
            if *options.add(index) == attribute::jit::MAX_THREADS_PER_BLOCK {
                modules().bound(handle, u32::try_from(*values.add(index)).unwrap_or(u32::MAX))?;
            }
        }
        put(module, handle)
    }
    cuModuleUnload(module: Handle) { modules().unload(module) }
    cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char) {
        put(function, modules().find(module, text(name)?)?)
    }
    cuModuleGetGlobal_v2(address: *mut u64, size: *mut usize, module: Handle, name: *const c_char) {
        let (at, bytes) = modules().variable(module, text(name)?)?;
        if !size.is_null() {
            put(size, bytes)?;
        }
        put(address, at)
    }
    cuFuncGetName(name: *mut *const c_char, function: Handle) { put(name, modules().function(function)?.name.as_ptr()) }
    cuFuncGetModule(module: *mut Handle, function: Handle) { put(module, modules().function(function)?.module) }
    cuFuncGetParamInfo(function: Handle, index: usize, offset: *mut usize, size: *mut usize) {
        let mut modules = modules();
        let parameters = &modules.function(function)?.kernel.parameters;
        let parameter = parameters.get(index).ok_or(Status::INVALID_VALUE)?;
        put(offset, parameter.offset)?;
        put(size, parameter.size)
    }
    cuFuncGetAttribute(value: *mut i32, number: i32, function: Handle) {
        let mut modules = modules();
        let function = modules.function(function)?;
        let bounds = function.kernel.most_threads.map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z));
        put(value, match number {
            attribute::function::MAX_THREADS_PER_BLOCK => bounds.map_or(1024, |bounds| bounds.min(1024) as i32),
            attribute::function::MAX_DYNAMIC_SHARED_SIZE_BYTES => function.dynamic_shared,
            attribute::function::NUM_REGS => 32,
            _ => 0,
        })
    }
    cuFuncSetAttribute(function: Handle, number: i32, value: i32) {
        match number {
            attribute::function::MAX_DYNAMIC_SHARED_SIZE_BYTES => modules().function(function)?.dynamic_shared = value,
            attribute::function::PREFERRED_SHARED_MEMORY_CARVEOUT => {
                (-1..=100).contains(&value).then_some(()).ok_or(Status::INVALID_VALUE)?;
                modules().function(function)?.carveout = value;
            }
            _ => {}
        }
        Ok(())
    }
    cuLaunchKernel(f: Handle, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32, stream: Handle, parameters: Parameters, extra: Parameters) {
        launch_in(f, Sizes { grid: [gx, gy, gz], block: [bx, by, bz] }, shared, parameters, extra, stream)
    }
    cuLaunchKernelEx(configuration: *const LaunchConfiguration, f: Handle, parameters: Parameters, extra: Parameters) {
        let LaunchConfiguration { grid, block, shared, stream, .. } = *configuration;
        launch_in(f, Sizes { grid, block }, shared, parameters, extra, stream)
    }

    cuStreamBeginCapture_v2(stream: Handle, mode: i32) {
        graphs().begin(stream);
        Ok(())
    }
    cuStreamEndCapture(stream: Handle, graph: *mut Handle) {
        let captured = graphs().end(stream)?;
        put(graph, captured)
    }
    cuStreamIsCapturing(stream: Handle, state: *mut i32) { put(state, i32::from(graphs().captures.contains_key(&stream))) }
    cuStreamCreate(stream: *mut Handle, flags: u32) { put(stream, graphs().stream(flags)) }
    cuStreamGetFlags(stream: Handle, flags: *mut u32) { put(flags, graphs().streams.get(&stream).copied().unwrap_or(0)) }
    cuStreamSynchronize(stream: Handle) { sticky() }
    cuStreamQuery(stream: Handle) { sticky() }
    cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) {
        graphs().wait(stream, event);
        Ok(())
    }
    cuLaunchHostFunc(stream: Handle, function: extern "C" fn(usize), data: usize) {
        function(data);
        Ok(())
    }
    cuProfilerStart() { Ok(()) }
    cuProfilerStop() { Ok(()) }

    cuGraphCreate(graph: *mut Handle, flags: u32) { put(graph, graphs().create()) }
    cuGraphDestroy(graph: Handle) { graphs().destroy(graph) }
    cuGraphClone(clone: *mut Handle, graph: Handle) { put(clone, graphs().copy(graph)?) }
    cuGraphAddKernelNode_v2(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, parameters: *const KernelNode) {
        let kernel = Kernel::new(*parameters)?;
        put(node, graphs().add(graph, &handles(after, count), Node::Kernel(kernel))?)
    }
    cuGraphAddMemcpyNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, words: *const Copy3d, context: Handle) {
        put(node, graphs().add(graph, &handles(after, count), Node::Copy(*words))?)
    }
    cuGraphAddMemsetNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, set: *const MemsetNode, context: Handle) {
        put(node, graphs().add(graph, &handles(after, count), Node::Set(*set))?)
    }
    cuGraphAddEmptyNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize) {
        put(node, graphs().add(graph, &handles(after, count), Node::Empty)?)
    }
    cuGraphAddEventRecordNode(node: *mut Handle, graph: Handle, after: *const Handle, count: usize, event: Handle) {
        put(node, graphs().add(graph, &handles(after, count), Node::Event)?)
    }
    cuGraphAddNode_v2(node: *mut Handle, graph: Handle, after: *const Handle, data: *const EdgeData, count: usize, parameters: *mut NodeParameters) {
        let after = handles(after, count);
        let added = match (*parameters).kind {
            attribute::node::KERNEL => {
                let kernel = Kernel::new(*(&raw const (*parameters).words).cast::<KernelNode>())?;
                graphs().add(graph, &after, Node::Kernel(kernel))?
            }
            attribute::node::CONDITIONAL => {
                let body = graphs().create();
                // Lives for ever, as the node.
                (*parameters).words[2] = std::ptr::from_mut(Box::leak(Box::new(body))) as u64;
                graphs().add(graph, &after, Node::Twice(body))?
            }
            _ => return Err(Status::NOT_SUPPORTED),
        };
        put(node, added)
    }
    cuGraphGetNodes(graph: Handle, nodes: *mut Handle, count: *mut usize) { list(&graphs().graph(graph)?.nodes, nodes, count) }
    cuGraphGetEdges_v2(graph: Handle, from: *mut Handle, to: *mut Handle, data: *mut EdgeData, count: *mut usize) {
        let (before, after): (Vec<_>, Vec<_>) = graphs().graph(graph)?.edges.iter().copied().unzip();
        list(&before, from, count)?;
        list(&after, to, count)
    }
    cuGraphNodeGetType(node: Handle, kind: *mut i32) { put(kind, graphs().node(node)?.kind()) }
    cuGraphNodeFindInClone(copy: *mut Handle, node: Handle, clone: Handle) { put(copy, graphs().in_copy(node, clone)?) }
    cuGraphKernelNodeGetParams_v2(node: Handle, parameters: *mut KernelNode) {
        match graphs().node(node)? {
            Node::Kernel(kernel) => put(parameters, kernel.parameters()),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    cuGraphKernelNodeSetParams_v2(node: Handle, parameters: *const KernelNode) {
        let kernel = Kernel::new(*parameters)?;
        *graphs().node(node)? = Node::Kernel(kernel);
        Ok(())
    }
    cuGraphKernelNodeGetAttribute(node: Handle, number: i32, value: *mut [u64; 8]) { put(value, [0; 8]) }
    cuGraphMemcpyNodeGetParams(node: Handle, words: *mut Copy3d) {
        match graphs().node(node)? {
            Node::Copy(copy) => put(words, *copy),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    cuGraphMemsetNodeGetParams(node: Handle, set: *mut MemsetNode) {
        match graphs().node(node)? {
            Node::Set(known) => put(set, *known),
            _ => Err(Status::INVALID_VALUE),
        }
    }
    cuGraphInstantiateWithFlags(executable: *mut Handle, graph: Handle, flags: u64) { put(executable, graphs().copy(graph)?) }
    cuGraphExecDestroy(executable: Handle) { graphs().destroy(executable) }
    cuGraphExecKernelNodeSetParams_v2(executable: Handle, node: Handle, parameters: *const KernelNode) {
        let kernel = Kernel::new(*parameters)?;
        let own = graphs().in_copy(node, executable)?;
        *graphs().node(own)? = Node::Kernel(kernel);
        Ok(())
    }
    cuGraphExecUpdate_v2(executable: Handle, graph: Handle, result: *mut c_void) { graphs().update(executable, graph) }
    cuGraphNodeSetEnabled(executable: Handle, node: Handle, enabled: u32) { Ok(()) }
    cuGraphLaunch(executable: Handle, stream: Handle) {
        let nodes = graphs().in_order(executable)?;
        nodes.into_iter().try_for_each(|node| run(node))
    }
    cuMemcpy3DAsync_v2(words: *const Copy3d, stream: Handle) { rows_in(*words, stream) }
    cuMemcpy3D_v2(words: *const Copy3d) { copy_rows(&*words) }
    cuMemcpy2DAsync_v2(words: *const [u64; 16], stream: Handle) { rows_in(flat(&*words), stream) }
    cuMemcpy2D_v2(words: *const [u64; 16]) { copy_rows(&flat(&*words)) }
    cuMemcpyDtoHAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { copy_in(destination, source, size, stream) }
    cuMemcpyHtoDAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { copy_in(destination, source, size, stream) }
    cuMemcpyDtoDAsync_v2(destination: u64, source: u64, size: usize, stream: Handle) { copy_in(destination, source, size, stream) }
    cuMemsetD8Async(destination: u64, value: u8, count: usize, stream: Handle) {
        set_in(MemsetNode { destination, pitch: 0, value: u32::from(value), element: 1, width: count, height: 1 }, stream)
    }
    cuMemsetD32Async(destination: u64, value: u32, count: usize, stream: Handle) {
        set_in(MemsetNode { destination, pitch: 0, value, element: 4, width: count, height: 1 }, stream)
    }

    cuLinkCreate_v2(count: u32, options: *const i32, values: *const u64, link: *mut Handle) { put(link, modules().link()) }
    cuLinkAddData_v2(link: Handle, kind: i32, data: *const u8, size: usize, name: *const c_char, count: u32, options: *const i32, values: *const u64) {
        let bytes = std::slice::from_raw_parts(data, size);
        modules().linked(link)?.extend_from_slice(bytes);
        Ok(())
    }
    cuLinkComplete(link: Handle, image: *mut *const u8, size: *mut usize) {
        let mut modules = modules();
        let text = modules.linked(link)?;
        put(image, text.as_ptr())?;
        put(size, text.len())
    }
    cuLinkDestroy(link: Handle) { modules().unlink(link) }
    cuCtxSetLimit(limit: i32, value: usize) {
        LIMITS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(limit, value as u64);
        Ok(())
    }
    cuTexObjectCreate(object: *mut u64, resource: *const c_void, texture: *const c_void, view: *const c_void) {
        put(object, 0x1_0000_0001)
    }
    cuEventCreate(event: *mut Handle, flags: u32) { put(event, EVENTS.fetch_add(1, Ordering::SeqCst) + 1) }
    cuEventDestroy_v2(event: Handle) { Ok(()) }
    cuStreamDestroy_v2(stream: Handle) { Ok(()) }
    cuEventRecord(event: Handle, stream: Handle) {
        kernels::recorded(event);
        graphs().record(event, stream);
        Ok(())
    }
    cuEventQuery(event: Handle) { sticky() }
    cuEventSynchronize(event: Handle) { sticky() }
    cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) {
        sticky()?;
        put(milliseconds, kernels::took_between(start, end))
    }
}
