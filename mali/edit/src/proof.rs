// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proves that work-group sizes change nothing.
//!
//! Its threads must know only their numbers in the whole dispatch, never wait for each other, share no storage,
//! look at no other lane, and not race. The first four follow from the code. Races follow from one run on the model
//! if no address and no branch depends on memory: every run reaches the same memory.

use std::sync::Arc;

use gpureplay_analysis::{Collector, Map, What};
use gpureplay_jobs::Compute;

use crate::error::Result;
use crate::flow::Flow;
use crate::scene::Scene;

/// The thread's place in its work group, and the group's number: 55 to 59.
const LOCAL_IDS: u64 = 0x1f << 55;

/// What is known about other sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Same results.
    Proven,
    /// Results may differ, for these reasons.
    Unproven(Vec<String>),
}

impl Proof {
    /// Whether it is proven.
    pub fn is_proven(&self) -> bool {
        *self == Self::Proven
    }
}

impl std::fmt::Display for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Proven => f.write_str("proven"),
            Self::Unproven(reasons) => write!(f, "unproven, because {}", reasons.join("; ")),
        }
    }
}

fn of_flow(flow: &Flow, place: impl Fn(u32) -> String) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut against = |holds: bool, reason: &str| {
        if holds {
            reasons.push(reason.to_owned());
        }
    };
    against(
        flow.initial & LOCAL_IDS != 0,
        "it reads the thread's place in its work group, or the number of the work group",
    );
    against(flow.barrier, "it has a barrier");
    against(
        flow.group_storage,
        "it has storage that a work group shares",
    );
    against(
        flow.sees_warp,
        "it looks at other lanes, or asks for the number of a lane, warp or core",
    );
    against(flow.clock, "it reads a clock");
    against(
        flow.atomics,
        "it has atomic operations, whose order may matter",
    );
    against(
        flow.textures,
        "it uses textures or images, whose addresses are not followed",
    );
    against(flow.dynamic, "a branch goes where the code does not say");
    let mut from_memory = |found: Option<u32>, what: &str| {
        if let Some(offset) = found {
            reasons.push(format!(
                "{what} in {} depends on what is in memory, so one run does not say where others reach",
                place(offset)
            ));
        }
    };
    from_memory(flow.address_from_memory, "an address");
    from_memory(flow.branch_from_memory, "a branch");
    reasons
}

pub(crate) fn flow(compute: &Compute) -> std::result::Result<Flow, &String> {
    compute.code.as_ref().map(|code| {
        let mut flow = Flow::of(&code.shader);
        flow.barrier |= compute.job.state.contains_barrier() != 0;
        flow.group_storage |= compute.group_storage() != 0;
        flow
    })
}

pub(crate) fn clause(offset: u32) -> String {
    format!("clause_{}", offset / 16)
}

pub(crate) fn prove(
    scene: &Scene,
    flow: std::result::Result<Flow, &String>,
    place: impl Fn(u32) -> String,
) -> Result<Proof> {
    let mut reasons = match flow {
        Ok(flow) => of_flow(&flow, place),
        Err(error) => vec![format!("its code cannot be read: {error}")],
    };
    if reasons.is_empty() {
        reasons.extend(races(scene)?);
    }
    Ok(match reasons.is_empty() {
        true => Proof::Proven,
        false => Proof::Unproven(reasons),
    })
}

fn races(scene: &Scene) -> Result<Vec<String>> {
    let what = What {
        races: true,
        ..What::default()
    };
    let collector = Arc::new(Collector::new(what, Map::default(), |_| true));
    scene.run_observed(collector.clone(), "as it is", None)?;
    let jobs = collector.take();
    let mut reasons: Vec<String> = jobs.iter().flat_map(|job| job.incomplete.clone()).collect();
    if let Some(race) = jobs.iter().flat_map(|job| &job.races).next() {
        let [first, second] = race.threads;
        reasons.push(format!(
            "threads {first} and {second} reach the byte at {:#x}, and one of them writes it",
            race.address
        ));
    }
    if jobs.is_empty() {
        reasons.push("the model did not say whether its threads race".into());
    }
    Ok(reasons)
}
