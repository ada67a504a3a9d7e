// SPDX-License-Identifier: MIT OR Apache-2.0
//! A graph of the program's own in a region: its nodes run one after another, and are kept as if the program had asked for each.

use std::ops::Deref;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use gpureplay_cuda_launch::abi::{Copy3d, Driver, Handle, MemsetNode, Status};

use super::{either, launch, refuse, set};
use crate::gate;
use crate::graphs::{self, Plan, Step};
use crate::real::driver;
use crate::state::CAPTURES;

/// Words of a copy: kinds of memory, addresses on host and device, and sizes.
mod word {
    pub(super) const FROM: [usize; 3] = [4, 5, 6];
    pub(super) const TO: [usize; 3] = [15, 16, 17];
    /// Offsets into what is copied from and to, beyond the first row.
    pub(super) const OFFSETS: [usize; 4] = [1, 2, 12, 13];
    pub(super) const FROM_X: usize = 0;
    pub(super) const TO_X: usize = 11;
    pub(super) const WIDTH: usize = 22;
    pub(super) const ROWS: [usize; 2] = [23, 24];
}

/// `CU_MEMORYTYPE_HOST`, `CU_MEMORYTYPE_ARRAY`.
const HOST: u64 = 1;
const ARRAY: u64 = 3;

/// Addresses and size of a copy of one row.
fn one_row(copy: &Copy3d) -> Option<(u64, u64, usize)> {
    let is_plain =
        word::OFFSETS.iter().all(|at| copy[*at] == 0) && word::ROWS.iter().all(|at| copy[*at] <= 1);
    let end = |[kind, host, device]: [usize; 3], x: usize| {
        // The kind has 32 bits.
        let address = match copy[kind] & 0xffff_ffff {
            HOST => copy[host],
            ARRAY => return None,
            _ => copy[device],
        };
        address.checked_add(copy[x])
    };
    let size = usize::try_from(copy[word::WIDTH]).ok()?;
    let from = end(word::FROM, word::FROM_X)?;
    is_plain.then_some((end(word::TO, word::TO_X)?, from, size))
}

/// Launches a graph while whole regions are recorded.
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

/// Does what a node does.
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
            match (read, one_row(&copy)) {
                (Status::SUCCESS, Some((to, from, size))) => {
                    either(to, from, size, stream, false, call)
                }
                (Status::SUCCESS, None) => {
                    refuse(|| "a graph copies several rows".into());
                    call()
                }
                (failed, _) => failed,
            }
        }
        Step::Host(_) => {
            refuse(|| "a graph calls a function of the host".into());
            graphs::host(driver, step, stream)
        }
    }
}
