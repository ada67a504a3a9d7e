// SPDX-License-Identifier: MIT OR Apache-2.0
//! Graphs are instantiated, changed, launched, destroyed.

use std::ffi::{c_char, c_void};

use gpureplay_cuda_launch::abi::{
    Handle, KernelNode, NodeParameters, OldKernelNode, Status, attribute,
};

use crate::{gate, graphs, replace};

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

unsafe fn added(
    node: *const Handle,
    parameters: *mut NodeParameters,
    call: impl FnOnce(*mut NodeParameters) -> Status,
) -> Status {
    if parameters.is_null() {
        return call(parameters);
    }
    // SAFETY: the program passes parameters, whose kind says what they are.
    let kind = unsafe { (*parameters).kind };
    if kind == attribute::node::KERNEL {
        // SAFETY: a kernel's words are those of a kernel's node, and have room for them.
        let other = unsafe {
            let kernel = (&raw mut (*parameters).words).cast::<KernelNode>();
            replace::in_node(&*kernel).map(|kernel| {
                let mut other = *parameters;
                (&raw mut other.words).cast::<KernelNode>().write(kernel);
                other
            })
        };
        return match other {
            Some(mut other) => call(&raw mut other),
            None => call(parameters),
        };
    }
    let status = call(parameters);
    if kind == attribute::node::CONDITIONAL && status == Status::SUCCESS && !node.is_null() {
        // SAFETY: the driver wrote the node, and where the handles of its graphs are.
        let (node, bodies) = unsafe {
            let (count, first) = (*parameters).decided();
            let bodies = match first {
                0 => Vec::new(),
                first => std::slice::from_raw_parts(first as *const Handle, count).to_vec(),
            };
            (*node, bodies)
        };
        graphs::decides(node, bodies);
    }
    status
}

/// # Safety
/// Null, or a node's parameters.
unsafe fn replaced<T>(
    parameters: *const T,
    other: &mut Option<T>,
    replace: impl FnOnce(&T) -> Option<T>,
) -> *const T {
    // SAFETY: our caller's promise.
    *other = unsafe { parameters.as_ref() }.and_then(replace);
    other.as_ref().map_or(parameters, std::ptr::from_ref)
}

hooks! {
    cuGraphAddNode: (node: *mut Handle, g: Handle, after: *const Handle, count: usize, parameters: *mut NodeParameters) |real| {
        added(node, parameters, |parameters| (real.function)(node, g, after, count, parameters))
    }
    cuGraphAddNode_v2: (node: *mut Handle, g: Handle, after: *const Handle, data: *const c_void, count: usize, parameters: *mut NodeParameters) |real| {
        added(node, parameters, |parameters| (real.function)(node, g, after, data, count, parameters))
    }
    cuGraphAddKernelNode: (node: *mut Handle, g: Handle, after: *const Handle, count: usize, parameters: *const OldKernelNode) |real| {
        (real.function)(node, g, after, count, replaced(parameters, &mut None, replace::in_old_node))
    }
    cuGraphAddKernelNode_v2: (node: *mut Handle, g: Handle, after: *const Handle, count: usize, parameters: *const KernelNode) |real| {
        (real.function)(node, g, after, count, replaced(parameters, &mut None, replace::in_node))
    }
    cuGraphLaunch | cuGraphLaunch_ptsz: (g: Handle, stream: Handle) |real| { graphs::launch(real.name, g, real.stream(stream), real.call) }
    cuGraphInstantiate | cuGraphInstantiate_v2: (executable: *mut Handle, g: Handle, node: *mut Handle, log: *mut c_char, size: usize) |real| {
        instantiated(executable, g, real.call)
    }
    cuGraphInstantiateWithFlags: (executable: *mut Handle, g: Handle, flags: u64) |real| { instantiated(executable, g, real.call) }
    cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz: (executable: *mut Handle, g: Handle, parameters: *mut c_void) |real| {
        instantiated(executable, g, real.call)
    }
    cuGraphExecDestroy: (executable: Handle) |real| {
        let _pass = gate::pass();
        graphs::destroyed(executable);
        real.call()
    }
    cuGraphExecUpdate: (executable: Handle, g: Handle, node: *mut Handle, result: *mut i32) |real| { instantiated(&raw const executable, g, real.call) }
    cuGraphExecUpdate_v2: (executable: Handle, g: Handle, result: *mut c_void) |real| { instantiated(&raw const executable, g, real.call) }
    cuGraphExecKernelNodeSetParams_v2: (executable: Handle, node: Handle, parameters: *const KernelNode) |real| {
        let mut other = None;
        let parameters = replaced(parameters, &mut other, replace::in_node);
        let status = (real.function)(executable, node, parameters);
        if status == Status::SUCCESS {
            graphs::kernel_changed(executable, node, parameters);
        }
        status
    }
    cuGraphExecMemcpyNodeSetParams | cuGraphExecMemsetNodeSetParams: (executable: Handle, node: Handle, parameters: *const c_void, context: Handle) |real| {
        real.then(|| graphs::changed(executable, real.name))
    }
    cuGraphExecKernelNodeSetParams | cuGraphExecHostNodeSetParams: (executable: Handle, node: Handle, parameters: *const c_void) |real| {
        real.then(|| graphs::changed(executable, real.name))
    }
    cuGraphExecChildGraphNodeSetParams: (executable: Handle, node: Handle, child: Handle) |real| { real.then(|| graphs::changed(executable, real.name)) }
    cuGraphExecNodeSetParams: (executable: Handle, node: Handle, parameters: *mut c_void) |real| { real.then(|| graphs::changed(executable, real.name)) }
    cuGraphNodeSetEnabled: (executable: Handle, node: Handle, enabled: u32) |real| { real.then(|| graphs::changed(executable, real.name)) }
}
