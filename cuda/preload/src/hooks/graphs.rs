// SPDX-License-Identifier: MIT OR Apache-2.0
//! Graphs are instantiated, changed, launched, destroyed.

use std::ffi::{c_char, c_void};

use gpureplay_cuda_launch::abi::{
    Handle, KernelNode, NodeParameters, OldKernelNode, Status, attribute,
};

use super::of_thread;
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

fn changed(executable: Handle, what: &'static str, call: impl FnOnce() -> Status) -> Status {
    let status = call();
    if status == Status::SUCCESS {
        graphs::changed(executable, what);
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

hooks! {
    cuGraphAddNode(node: *mut Handle, g: Handle, after: *const Handle, count: usize, parameters: *mut NodeParameters) {
        added(node, parameters, |parameters| driver::cuGraphAddNode(node, g, after, count, parameters))
    }
    cuGraphAddNode_v2(node: *mut Handle, g: Handle, after: *const Handle, data: *const c_void, count: usize, parameters: *mut NodeParameters) {
        added(node, parameters, |parameters| driver::cuGraphAddNode_v2(node, g, after, data, count, parameters))
    }
    cuGraphAddKernelNode(node: *mut Handle, g: Handle, after: *const Handle, count: usize, parameters: *const OldKernelNode) {
        let other = (!parameters.is_null()).then(|| replace::in_old_node(&*parameters)).flatten();
        let parameters = other.as_ref().map_or(parameters, std::ptr::from_ref);
        driver::cuGraphAddKernelNode(node, g, after, count, parameters)
    }
    cuGraphAddKernelNode_v2(node: *mut Handle, g: Handle, after: *const Handle, count: usize, parameters: *const KernelNode) {
        let other = (!parameters.is_null()).then(|| replace::in_node(&*parameters)).flatten();
        let parameters = other.as_ref().map_or(parameters, std::ptr::from_ref);
        driver::cuGraphAddKernelNode_v2(node, g, after, count, parameters)
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
        let other = (!parameters.is_null()).then(|| replace::in_node(&*parameters)).flatten();
        let parameters = other.as_ref().map_or(parameters, std::ptr::from_ref);
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
}
