// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the jobs of a new recording read: one replay on the model, with an observer.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_compile::{Capture, Found, Reads, Role};
use gpureplay_library::device::Choice;
use gpureplay_library::{Device, Error, ModelOptions, Recording, Session};
use gpureplay_trace::PAGE_SIZE;
use mali_model::{Access, JobReport, Observer};

/// Pages that jobs read, by job in the order in which they end.
#[derive(Default)]
struct Pages {
    running: Mutex<BTreeSet<u64>>,
    ended: Mutex<Vec<BTreeSet<u64>>>,
}

impl Observer for Pages {
    fn job(&self, _: &JobReport) {
        let pages = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *running)
        };
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        ended.push(pages);
    }

    fn wants_pages(&self) -> bool {
        true
    }

    fn page(&self, va: u64, access: Access) {
        if access == Access::Read {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.insert(va - va % PAGE_SIZE as u64);
        }
    }
}

/// Replays a recording with the values of its tensors.
///
/// # Errors
/// Why the model does not replay it, in words.
pub(crate) fn observe(capture: &Capture, bytes: &[u8], tensors: &[Found]) -> Result<Reads, String> {
    let text = |error: Error| error.to_string();
    let recording = Recording::from_bytes(bytes.to_vec()).map_err(text)?;
    let pages = Arc::new(Pages::default());
    let device = Device::open_observed(
        &Choice::Model(None),
        recording.verified().recording().gpu_id(),
        ModelOptions::default(),
        Some(pages.clone()),
    );
    let mut session = Session::on(recording, device.map_err(text)?);
    for tensor in tensors
        .iter()
        .filter(|tensor| matches!(tensor.role, Role::Input | Role::Weight))
    {
        let bound = session.bind(&tensor.name, tensor.tensor.clone());
        bound.map_err(text)?;
    }
    session.run().map_err(text)?;
    session.close().map_err(text)?;
    let mut ended = pages.ended.lock().unwrap_or_else(PoisonError::into_inner);
    let mut jobs = ended.drain(..);
    let reads: Reads = capture
        .jobs
        .iter()
        .map(|chain| jobs.by_ref().take(chain.headers.len()).flatten().collect())
        .collect();
    if reads.iter().any(BTreeSet::is_empty) || jobs.next().is_some() {
        return Err("the model ran other jobs than were recorded".into());
    }
    Ok(reads)
}
