// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which launch each job chain belongs to.

use gpureplay_trace::note::{Launch, Note};

use crate::capture::Capture;
use crate::chain::work_items;
use crate::pages::Moment;

/// The launch that a chain belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Number of the launch in the app.
    pub launch: u32,
    /// Name of the kernel.
    pub kernel: String,
    /// Work-items along each dimension.
    pub global: [u64; 3],
    /// Work-items of a group, if the app chose them.
    pub local: Option<[u64; 3]>,
}

/// What is known about a trace's chains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// By submission; `None` for chains of the runtime itself and for those that notes do not explain.
    pub chains: Vec<Option<Dispatch>>,
    /// Launches without a chain, or with chains of other sizes: what is wrong with each.
    pub unexplained: Vec<String>,
}

impl Launches {
    /// Chains that have a name.
    pub fn named(&self) -> usize {
        self.chains.iter().flatten().count()
    }
}

/// Gives each chain to its launch: the chains between the notes of a launch, if they compute as many work-items as it has.
pub fn launches(capture: &Capture) -> Launches {
    let mut out = Launches {
        chains: vec![None; capture.jobs.len()],
        unexplained: Vec::new(),
    };
    let mut open: Option<(&Launch, usize)> = None;
    for noted in &capture.opencl {
        match &noted.note {
            Note::Launch(launch) => {
                if let Some((earlier, _)) = open.replace((launch, noted.jobs)) {
                    out.unexplained.push(unended(earlier));
                }
            }
            Note::Done { launch: id, status } => match open.take() {
                // A launch that the runtime refused has no chains.
                Some((launch, _)) if launch.id == *id && *status != 0 => {}
                Some((launch, first)) if launch.id == *id => {
                    match chains_of(capture, launch, first, noted.jobs) {
                        Ok(chains) => {
                            for chain in out.chains.iter_mut().take(noted.jobs).skip(chains) {
                                *chain = Some(Dispatch {
                                    launch: launch.id,
                                    kernel: launch.kernel.clone(),
                                    global: launch.global,
                                    local: launch.local,
                                });
                            }
                        }
                        Err(reason) => out.unexplained.push(reason),
                    }
                }
                Some((launch, _)) => out.unexplained.push(unended(launch)),
                None => {}
            },
            _ => {}
        }
    }
    if let Some((launch, _)) = open {
        out.unexplained.push(unended(launch));
    }
    out
}

fn unended(launch: &Launch) -> String {
    format!(
        "launch {} ({}) overlaps another one, so its jobs have no name",
        launch.id, launch.kernel
    )
}

/// The first of the chains that a launch submitted, all up to `end`; chains of the runtime may precede them.
fn chains_of(
    capture: &Capture,
    launch: &Launch,
    begin: usize,
    end: usize,
) -> Result<usize, String> {
    let name = || format!("launch {} ({})", launch.id, launch.kernel);
    if !launch.alone {
        return Err(format!(
            "{} was queued while the app waited for something itself, so its jobs have no name",
            name()
        ));
    }
    let wanted = launch
        .global
        .iter()
        .try_fold(1u64, |product, size| product.checked_mul(*size));
    let mut items = 0u64;
    for chain in (begin..end).rev() {
        items = items.saturating_add(items_of(capture, chain));
        if Some(items) == wanted {
            return Ok(chain);
        }
    }
    let [x, y, z] = launch.global;
    Err(match begin == end {
        true => format!("{} has no job", name()),
        false => format!(
            "{} has {x} x {y} x {z} work-items, its jobs compute {items}; they have no name",
            name()
        ),
    })
}

/// Work-items of all jobs of a chain.
fn items_of(capture: &Capture, chain: usize) -> u64 {
    let moment = Moment::before(chain);
    let headers = capture.jobs.get(chain).map_or(&[][..], |job| &job.headers);
    let items = headers
        .iter()
        .filter_map(|header| work_items(&capture.memory, moment, header));
    items.fold(0, |sum: u64, sizes| {
        let product = sizes
            .iter()
            .fold(1u64, |product, size| product.saturating_mul(*size));
        sum.saturating_add(product)
    })
}
