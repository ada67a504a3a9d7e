// SPDX-License-Identifier: MIT OR Apache-2.0
//! A region's graph: nodes run and are kept one by one.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use gpureplay_cuda_launch::abi::{Copy3d, Driver, Handle, MemsetNode, Status};

use super::{launch, refuse, rows, set};
use crate::gate;
use crate::graphs::{self, Plan, Step};
use crate::real::driver;
use crate::state::CAPTURES;

pub(crate) fn graph(
    known: Option<&Arc<Mutex<Plan>>>,
    stream: Handle,
    call: impl FnOnce() -> Status,
) -> Status {
    let plan = known.map(|plan| graphs::lock(plan));
    let reason = match plan.as_deref().map(|plan| &plan.steps) {
        None => Some("it was instantiated in a way that is not known"),
        Some(Err(reason)) => Some(reason.as_str()),
        Some(Ok(_)) if CAPTURES.load(Ordering::SeqCst) > 0 => Some("a stream is being captured"),
        Some(Ok(_)) => None,
    };
    let steps = plan
        .as_ref()
        .and_then(|plan| plan.deref().steps.as_ref().ok());
    let (Some(steps), None, Ok(driver)) = (steps, reason, driver()) else {
        refuse(|| format!("a graph is launched: {}", reason.unwrap_or("no driver")));
        let _pass = gate::enter();
        return call();
    };
    let mut done = steps.iter().map(|step| node(driver, *step, stream));
    done.find(|status| *status != Status::SUCCESS)
        .unwrap_or(Status::SUCCESS)
}

fn node(driver: &Driver, step: Step, stream: Handle) -> Status {
    match step {
        Step::Kernel(node) => match graphs::node_launch(driver, "cuGraphLaunch", node, stream) {
            Ok(asked) => launch(&asked, || graphs::node_call(driver, &asked, asked.function)),
            Err(status) => status,
        },
        Step::Set(node) => {
            let mut memset = MemsetNode::default();
            // SAFETY: a node of our copy of the graph, a pointer to a local.
            let read = unsafe { driver.cuGraphMemsetNodeGetParams(node, &raw mut memset) };
            match read {
                // SAFETY: the memory is the program's.
                Status::SUCCESS => set(memset, stream, || unsafe {
                    graphs::memset(driver, &memset, stream)
                }),
                failed => failed,
            }
        }
        Step::Copy(node) => {
            let mut copy: Copy3d = [0; 25];
            // SAFETY: as above.
            let read = unsafe { driver.cuGraphMemcpyNodeGetParams(node, &raw mut copy) };
            // SAFETY: the copy is the program's.
            let call = || unsafe { driver.cuMemcpy3DAsync_v2(&raw const copy, stream) };
            match read {
                Status::SUCCESS => rows(&copy, stream, false, call),
                failed => failed,
            }
        }
        Step::Host(_) => {
            refuse(|| "a graph calls a function of the host".into());
            graphs::host(driver, step, stream)
        }
    }
}
