// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks what a verified recording's chains point at.
//!
//! Applies uploads and fills to an image of GPU memory. At each submission, job headers and descriptors must lie
//! where the recording says. Results of jobs are ignored: descriptors that the GPU writes are seen as uploaded. Page
//! tables hold only the recording's pages, whatever a descriptor says.

mod chain;
mod codes;
mod found;
mod image;
mod program;
mod report;
mod rules;

pub use codes::{Access, Code, Codes, MAX_CODE, Undecoded, Words};
pub use found::{Descriptors, Found, Waits, walk_words};
pub use image::Image;
pub use program::{Event, Full, Submission, events, submissions};
pub use report::{Chain, Job, Report, Use};
pub use rules::{DeepRule, DeepViolation};

use crate::streams;
use gpureplay_core::family::Family;
use mali_drive::Verified;
use mali_facts::registers::GpuId;
use mali_facts::{Product, Profile};
use report::MAX_JOBS;

/// Jobs, counted at each submission, that are listed, changed or joined.
pub const MAX_LISTED_JOBS: usize = 1 << 16;

/// Steps of all walks: words of uniforms, pieces of tensors compared with descriptors, and [`chain::KEPT`] for each
/// thing in the report. Networks take a few million.
const MAX_STEPS: u64 = 1 << 26;

/// Walks every submitted chain.
///
/// # Errors
/// The first broken rule in program order.
pub fn check(verified: &Verified<'_>) -> Result<Report, DeepViolation> {
    check_for(verified, profile(verified)?)
}

/// The recording's GPU.
///
/// # Errors
/// Nothing is known about it: [`DeepRule::KnownGpu`].
pub fn profile(verified: &Verified<'_>) -> Result<&'static Profile, DeepViolation> {
    let id = GpuId(verified.recording().gpu_id());
    Profile::by_product(id.product()).ok_or_else(|| unknown(id))
}

/// As [`check`] for another GPU: more cores or threads need more storage, unused cores none.
///
/// # Errors
/// The first broken rule in program order.
pub fn check_for(verified: &Verified<'_>, profile: &Profile) -> Result<Report, DeepViolation> {
    let mut report = Report::default();
    walk(verified, profile, |action, jobs| {
        report.chains.push(Chain { action, jobs });
    })?;
    Ok(report)
}

/// Checks as [`check`], for command streams.
///
/// # Errors
/// The first broken rule in program order.
pub fn check_streams(verified: &streams::Verified<'_>) -> Result<Report, DeepViolation> {
    let mut report = Report::default();
    walk(verified, stream_profile(verified)?, |action, jobs| {
        report.chains.push(Chain { action, jobs });
    })?;
    Ok(report)
}

fn stream_profile(verified: &streams::Verified<'_>) -> Result<&'static Profile, DeepViolation> {
    let id = GpuId(verified.recording().gpu_id());
    match Product::by_id(id) {
        Some(Product::Streams(gpu)) => Ok(&gpu.profile),
        _ => Err(unknown(id)),
    }
}

fn unknown(id: GpuId) -> DeepViolation {
    DeepViolation {
        rule: DeepRule::KnownGpu,
        action: 0,
        address: id.0.into(),
        text: "no descriptors are known for this GPU".into(),
    }
}

/// As [`check`] without a report: holds one chain at a time.
///
/// # Errors
/// As for [`check`].
pub fn check_only(verified: &Verified<'_>) -> Result<(), DeepViolation> {
    walk(verified, profile(verified)?, |_, _| {})
}

fn walk<F: Family>(
    verified: &gpureplay_core::verify::Verified<'_, F>,
    profile: &Profile,
    mut keep: impl FnMut(u32, Vec<Job>),
) -> Result<(), DeepViolation> {
    let recording = verified.recording();
    let profile = profile.without_cores(recording.header().unused_cores.get());
    let (mut steps, mut all) = (MAX_STEPS, 0usize);
    submissions(verified, |submission| {
        let jobs = chain::walk(recording, &profile, submission, &mut steps)?;
        all = all.saturating_add(jobs.len());
        if all > MAX_JOBS {
            return Err(DeepViolation {
                rule: DeepRule::MemoryLimit,
                action: submission.action,
                address: submission.head,
                text: format!("more than {MAX_JOBS} jobs"),
            });
        }
        keep(submission.action, jobs);
        Ok(())
    })
}
