// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which launch each job chain belongs to.
//!
//! A launch's chains lie between its note and its queue's idle note, in queue order, and compute its work-items.
//! Chains of the runtime may lie between. If more than one way is left, nothing is named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use gpureplay_trace::note::{Launch, Note};

use super::matching::{self, ALL_PLACES, Matched, Wanted};
use crate::capture::Capture;

/// The launch of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Number in the app.
    pub launch: u32,
    /// Kernel name.
    pub kernel: String,
    /// Work-items per dimension.
    pub global: [u64; 3],
    /// Work-group size, if the app chose it.
    pub local: Option<[u64; 3]>,
}

/// What is known about a trace's chains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// `None` for chains of the runtime and unexplained ones.
    pub chains: Vec<Option<Dispatch>>,
    /// No chain, other sizes, or several places: what is wrong with each launch.
    pub unexplained: Vec<String>,
}

impl Launches {
    /// Number of named chains.
    pub fn named(&self) -> usize {
        self.chains.iter().flatten().count()
    }

    pub(super) fn places(&self) -> BTreeMap<u32, Range<usize>> {
        let mut out: BTreeMap<u32, Range<usize>> = BTreeMap::new();
        for (chain, dispatch) in self.chains.iter().enumerate() {
            if let Some(dispatch) = dispatch {
                let place = out.entry(dispatch.launch).or_insert(chain..chain);
                place.end = chain + 1;
            }
        }
        out
    }
}

struct Open<'a> {
    launch: &'a Launch,
    within: Range<usize>,
}

/// Assigns each chain to its launch.
pub fn launches(capture: &Capture) -> Launches {
    let mut out = Launches {
        chains: vec![None; capture.jobs.len()],
        unexplained: Vec::new(),
    };
    let refused = refused(capture);
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut running: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut places = ALL_PLACES;
    for noted in &capture.opencl {
        match &noted.note {
            Note::Launch(launch) if !refused.contains(&launch.id) => {
                running.entry(launch.queue).or_default().push(open.len());
                open.push(Open {
                    launch,
                    within: noted.jobs..capture.jobs.len(),
                });
            }
            Note::Idle { queue } => {
                for ended in running.remove(queue).into_iter().flatten() {
                    if let Some(open) = open.get_mut(ended) {
                        open.within.end = noted.jobs;
                    }
                }
                if running.is_empty() {
                    assign(capture, &open, &mut out, &mut places);
                    open.clear();
                }
            }
            _ => {}
        }
    }
    assign(capture, &open, &mut out, &mut places);
    out
}

pub(super) fn refused(capture: &Capture) -> BTreeSet<u32> {
    let refused = capture.opencl.iter().filter_map(|noted| match noted.note {
        Note::Refused { launch, .. } => Some(launch),
        _ => None,
    });
    refused.collect()
}

/// All queues are idle before and after.
fn assign(capture: &Capture, open: &[Open<'_>], out: &mut Launches, places: &mut usize) {
    let (Some(from), Some(to)) = (
        open.iter().map(|open| open.within.start).min(),
        open.iter().map(|open| open.within.end).max(),
    ) else {
        return;
    };
    let items: Vec<u64> = (from..to).map(|chain| items_of(capture, chain)).collect();
    let wanted = |open: &Open<'_>| {
        let mut sizes = open.launch.global.iter();
        Wanted {
            queue: open.launch.queue,
            items: sizes.try_fold(1u64, |product, size| product.checked_mul(*size)),
            within: open.within.start - from..open.within.end - from,
        }
    };
    let wanted: Vec<Wanted> = open.iter().map(wanted).collect();
    for (open, matched) in open.iter().zip(matching::find(&wanted, &items, places)) {
        let Launch {
            id, kernel, global, ..
        } = open.launch;
        let [x, y, z] = global;
        let name = format!("launch {id} ({kernel}, {x} x {y} x {z})");
        out.unexplained.push(match matched {
            Matched::Chains(chains) => {
                for chain in chains {
                    if let Some(place) = out.chains.get_mut(from + chain) {
                        *place = Some(Dispatch {
                            launch: *id,
                            kernel: kernel.clone(),
                            global: *global,
                            local: open.launch.local,
                        });
                    }
                }
                continue;
            }
            Matched::Nothing if open.within.is_empty() => format!("{name} has no job"),
            Matched::Nothing => format!(
                "{name}: no job of its queue computes as many work-items; its jobs have no name"
            ),
            Matched::Several => {
                format!("{name}: several jobs of this size could be its own, so they have no name")
            }
            Matched::TooMany => format!(
                "{name} is one of too many launches to be told apart; their jobs have no name"
            ),
        });
    }
}

fn items_of(capture: &Capture, chain: usize) -> u64 {
    let launches = capture.launches(chain);
    let items = launches.iter().map(|launch| launch.items());
    items.fold(0, |sum: u64, sizes| {
        let product = sizes
            .iter()
            .fold(1u64, |product, size| product.saturating_mul(*size));
        sum.saturating_add(product)
    })
}
