// SPDX-License-Identifier: MIT OR Apache-2.0
//! A region's graph: nodes run and are kept one by one.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use gpureplay_cuda_launch::abi::{Driver, Handle, Status};

use super::{launch, refuse, rows, set};
use crate::graphs::{self, Plan, Step, UNKNOWN};
use crate::real::driver;
use crate::{gate, guard};

pub(crate) fn graph(
    known: Option<&Arc<Mutex<Plan>>>,
    stream: Handle,
    call: impl FnOnce() -> Status,
) -> Status {
    let plan = known.map(|plan| guard::lock(plan));
    let reason = plan.as_deref().map_or(Some(UNKNOWN), Plan::refusal);
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
        Step::Set(node) => match graphs::set_of(driver, node) {
            // SAFETY: the memory is the program's.
            Ok(memset) => set(memset, stream, || unsafe { driver.memset(&memset, stream) }),
            Err(failed) => failed,
        },
        Step::Copy(node) => match graphs::copy_of(driver, node) {
            // SAFETY: the copy is the program's.
            Ok(copy) => rows(&copy, stream, false, || unsafe {
                driver.cuMemcpy3DAsync_v2(&raw const copy, stream)
            }),
            Err(failed) => failed,
        },
        Step::Host(_) => {
            refuse(|| "a graph calls a function of the host".into());
            graphs::host(driver, step, stream)
        }
    }
}
