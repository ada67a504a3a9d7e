// SPDX-License-Identifier: MIT OR Apache-2.0
//! Result of linking, and its check.

use gpureplay_core::Limits;
use gpureplay_format::Recording;
use gpureplay_format::encode::Draft;
use mali_drive::{Verified, verify};
use mali_facts::JobHeader;
use mali_facts::job::WRITTEN_BACK;

use crate::link::error::LinkError;

/// New place of an old chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Submission, from 0, set-up included.
    pub submission: u32,
    /// First job, from 0.
    pub first: u32,
    /// How many jobs.
    pub jobs: u32,
}

/// Linked recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linked {
    /// Unchanged if there is nothing to link.
    pub bytes: Vec<u8>,
    /// By old submission.
    pub places: Vec<Place>,
    /// Submitted now.
    pub chains: u32,
}

pub(crate) fn written(bytes: &[u8]) -> Result<Recording<'_>, LinkError> {
    Recording::parse(bytes).map_err(|error| LinkError::Different(format!("{error:?}")))
}

pub(crate) fn sound<'a>(recording: &'a Recording<'a>) -> Result<Verified<'a>, LinkError> {
    let verified = verify(recording, &Limits::DEFAULT)
        .map_err(|violation| LinkError::Different(format!("rule {}", violation.rule.name())))?;
    crate::walk::check_only(&verified)?;
    Ok(verified)
}

/// Leaves out words that the GPU writes. The segment's next upload starts at `cursor`.
pub(crate) fn upload_headers(draft: &mut Draft<'_>, headers: &[(u64, JobHeader)], cursor: u64) {
    let words = headers.iter().map(|(address, header)| {
        let bytes = header.to_bytes().into_iter();
        let words: Vec<u8> = bytes.skip(WRITTEN_BACK as usize).collect();
        (address + WRITTEN_BACK, words)
    });
    let words: Vec<(u64, Vec<u8>)> = words.collect();
    let uploads = draft.store(&words);
    draft.insert(&uploads, cursor);
}
