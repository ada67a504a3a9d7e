// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the jobs of a new recording read: one replay on the model, with an observer.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_compile::{Capture, Found, Reads, Role};
use gpureplay_core::{Limits, Options, Session, Workspace, verify};
use gpureplay_format::{Recording, SegmentKind};
use gpureplay_library::device::Choice;
use gpureplay_library::{Bindings, Device, ModelOptions, explain};
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
    let recording = Recording::parse(bytes).map_err(|error| explain::parse_error(&error))?;
    let verified =
        verify(recording, &Limits::DEFAULT).map_err(|error| explain::violation(&error))?;
    let mut bindings = Bindings::new(&recording, Path::new("the new recording"));
    for tensor in tensors
        .iter()
        .filter(|tensor| matches!(tensor.role, Role::Input | Role::Weight))
    {
        let bound = bindings.bind(&tensor.name, tensor.tensor.clone(), &tensor.name);
        bound.map_err(|error| error.to_string())?;
    }
    let pages = Arc::new(Pages::default());
    let mut device = Device::open_observed(
        &Choice::Model(None),
        recording.gpu_id(),
        ModelOptions::default(),
        Some(pages.clone()),
    )
    .map_err(|error| error.to_string())?;
    let failed = |error| explain::replay_error(&recording, &error);
    let mut workspace = Box::new(Workspace::new());
    let options = Options::default();
    let mut session = Session::open(
        device.gpu(),
        verified,
        &mut workspace,
        options,
        &mut bindings,
    )
    .map_err(failed)?;
    for (index, segment) in (0u32..).zip(recording.segments()) {
        if segment.kind == SegmentKind::Run.code() {
            session.run_segment(index, &mut bindings).map_err(failed)?;
        }
    }
    session.finish().map_err(failed)?;
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
