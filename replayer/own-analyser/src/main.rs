// SPDX-License-Identifier: MIT OR Apache-2.0
//! An analyser of one's own: how far apart neighbouring threads' addresses are, for each job.
//!
//! `cargo run --release --manifest-path replayer/own-analyser/Cargo.toml recordings/lenet-g52`
//!
//! The model asks an [`Observer`] before each compute job who looks into it; each host thread then gets a [`Part`],
//! which is told of every access. Parts come in any order, so what they find is added up.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_library::device::probe::{Access, Analyser, Launch, Part, Wanted};
use gpureplay_library::device::{Choice, Device, Dispatch, JobReport, Observer};
use gpureplay_library::{ModelOptions, Recording, Session};

/// Counts by distance in bytes.
type Strides = BTreeMap<i64, u64>;

#[derive(Default)]
struct Watch {
    running: Arc<Mutex<Strides>>,
    jobs: Mutex<Vec<Strides>>,
}

impl Observer for Watch {
    fn analyser(&self, _: u64, _: &Dispatch) -> Option<Box<dyn Analyser>> {
        Some(Box::new(StrideAnalyser(self.running.clone())))
    }

    fn job(&self, _: &JobReport) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push(std::mem::take(&mut *running));
    }
}

struct StrideAnalyser(Arc<Mutex<Strides>>);

impl Analyser for StrideAnalyser {
    fn wanted(&self) -> Wanted {
        Wanted {
            accesses: true,
            ..Wanted::default()
        }
    }

    fn part(&self, _: &Launch<'_>) -> Box<dyn Part> {
        Box::new(StridePart {
            own: Strides::new(),
            all: self.0.clone(),
        })
    }
}

struct StridePart {
    own: Strides,
    all: Arc<Mutex<Strides>>,
}

impl Part for StridePart {
    fn access(&mut self, access: &Access<'_>) {
        let lanes: Vec<usize> = access.visit.lanes.iter().collect();
        for pair in lanes.windows(2) {
            if pair[0] / access.visit.lanes.warp as usize
                == pair[1] / access.visit.lanes.warp as usize
            {
                let [first, second] = [pair[0], pair[1]].map(|lane| access.address(lane));
                *self
                    .own
                    .entry(second.wrapping_sub(first) as i64)
                    .or_default() += 1;
            }
        }
    }

    fn finish(self: Box<Self>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for (stride, count) in self.own {
            *all.entry(stride).or_default() += count;
        }
    }
}

fn analyse(path: &str) -> Result<Vec<Strides>, Box<dyn std::error::Error>> {
    let recording = Recording::open(path)?;
    let watch = Arc::new(Watch::default());
    let gpu = recording.verified().recording().gpu_id();
    let observer: Arc<dyn Observer> = watch.clone();
    let options = ModelOptions::default();
    let device = Device::open_observed(&Choice::Model(None), gpu, options, Some(observer))?;
    let mut session = Session::on(recording.clone(), device);
    session.bind_case()?;
    session.run()?;
    session.close()?;
    let mut jobs = watch.jobs.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *jobs))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which recording?")?;
    let jobs = analyse(&path)?;
    for (index, strides) in jobs.iter().enumerate() {
        let all: u64 = strides.values().sum();
        let most = strides.iter().max_by_key(|(_, count)| **count);
        if let Some((stride, count)) = most {
            let share = 100.0 * *count as f64 / all as f64;
            println!(
                "job {index}: neighbours in a warp are {stride} bytes apart in {share:.0} % of {all} cases"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_saxpy_are_one_number_apart() {
        let recording = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/saxpy-g52");
        let [strides] = &analyse(recording).expect("it runs")[..] else {
            panic!("saxpy has one job");
        };
        // 1000 threads in warps of 8, seven pairs of neighbours in each; two loads and a store of 4 bytes.
        assert_eq!(strides, &Strides::from([(4, 125 * 7 * 3)]));
    }
}
