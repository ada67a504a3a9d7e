// SPDX-License-Identifier: MIT OR Apache-2.0
//! Equivalent forms: single jobs, joined layers, code elsewhere.

use mali_jobs::link::{MOST_JOBS, lengths, split, whole};
use mali_jobs::moved::move_code;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::manifest::{self, Job, Manifest};
use crate::recording::Recording;
use crate::text;

impl Recording {
    /// Puts each job in its own chain, to stop, measure or change single jobs. Numbers of jobs, tensors and layers
    /// stay; the manifest's jobs name the new chains. A session never joins its layers. Returns the same recording
    /// if already so.
    ///
    /// # Errors
    /// Its chains break a rule, or its manifest names a missing job.
    pub fn apart(&self) -> Result<Self> {
        let wrong = |error: mali_jobs::link::LinkError| Error::Chains {
            path: self.files().path.clone(),
            text: error.to_string(),
        };
        let unnamed = |reason: String| Error::Manifest {
            path: self.files().directory.join(manifest::FILE_NAME),
            reason,
        };
        let named = self.manifest().map_or(&[][..], |manifest| &manifest.jobs);
        let Ok(chains) = self.verified().chains() else {
            return Ok(self.clone());
        };
        let Some(bytes) = split(chains).map_err(wrong)? else {
            let lengths = vec![
                1;
                named
                    .iter()
                    .map(|job| job.submission + 1)
                    .max()
                    .unwrap_or(0)
            ];
            by_job(named, &lengths).map_err(unnamed)?;
            return match self.layers().len() {
                0 | 1 => Ok(self.clone()),
                _ => self.in_form(self.files().bytes.clone(), |_| {}),
            };
        };
        let lengths = lengths(chains).map_err(wrong)?;
        let jobs = by_job(named, &lengths).map_err(unnamed)?;
        self.in_form(bytes, |manifest| manifest.jobs = jobs)
    }

    /// The recording as read, for every form.
    pub fn recorded(&self) -> &Self {
        self.0.origin.as_ref().unwrap_or(self)
    }

    /// The recording with as few chains as possible; `None` if already so or impossible.
    pub(crate) fn joined(&self) -> Option<&Self> {
        let made = self.0.joined.get_or_init(|| {
            if self.0.is_form {
                return None;
            }
            // Running single layers needs no joined form.
            let bytes = whole(self.verified().chains().ok()?, MOST_JOBS).ok()??;
            // Stored in this one: an origin would keep both for ever.
            let files = self.files_of(bytes, |manifest| manifest.jobs.clear());
            Self::of_form(files, None, true).ok()
        });
        made.as_ref()
    }

    pub(crate) fn placed_for(self, device: &Device) -> Result<Self> {
        let moves = device.code_moves(self.verified().recording());
        let moves = moves.map_err(|misfit| Error::Misfit {
            path: self.files().path.clone(),
            misfit,
        })?;
        let Ok(chains) = self.verified().chains() else {
            return Ok(self);
        };
        if moves.is_empty() {
            return Ok(self);
        }
        let bytes = move_code(chains, &moves).map_err(|error| Error::Chains {
            path: self.files().path.clone(),
            text: error.to_string(),
        })?;
        Self::beside(self.files_of(bytes, |_| {}), &self)
    }

    fn in_form(&self, bytes: Vec<u8>, describe: impl FnOnce(&mut Manifest)) -> Result<Self> {
        // Keeps a private copy of the files alive.
        Self::of_form(self.files_of(bytes, describe), Some(self.clone()), true)
    }

    fn files_of(&self, bytes: Vec<u8>, describe: impl FnOnce(&mut Manifest)) -> Files {
        let files = self.files();
        let mut manifest = files.manifest.clone();
        if let Some(manifest) = &mut manifest {
            describe(manifest);
            manifest.variants.clear();
            manifest.provenance.remove("sha256");
        }
        Files {
            path: files.path.clone(),
            directory: files.directory.clone(),
            bytes,
            manifest,
            copy: None,
            held: None,
        }
    }
}

/// `lengths` of the chains by old numbers. The error names the entry of a missing job.
fn by_job(named: &[Job], lengths: &[u32]) -> std::result::Result<Vec<Job>, String> {
    let starts: Vec<usize> = lengths
        .iter()
        .scan(0usize, |next, length| {
            let start = *next;
            *next = next.saturating_add(*length as usize);
            Some(start)
        })
        .collect();
    let mut out = Vec::new();
    for (number, job) in (1..).zip(named) {
        let place = starts.get(job.submission).zip(lengths.get(job.submission));
        let Some((start, length)) = place else {
            return Err(format!(
                "[[job]] {number} names submission {}, but the recording submits {}, counted from 0",
                job.submission,
                text::count(lengths.len() as u64, "chain")
            ));
        };
        let length = *length as usize;
        let jobs = match job.job {
            Some(at) if at >= length => {
                return Err(format!(
                    "[[job]] {number} names job {at} of submission {}, which has {}, counted from 0",
                    job.submission,
                    text::count(length as u64, "job")
                ));
            }
            Some(at) => at..at + 1,
            None => 0..length,
        };
        out.extend(jobs.map(|at| Job {
            submission: start.saturating_add(at),
            job: None,
            ..job.clone()
        }));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_was_joined_does_not_stay_for_ever() {
        let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/digits-g52");
        let recording = Recording::open(digits).unwrap();
        let joined = recording.joined().unwrap();
        assert_eq!((joined.layers().len(), recording.layers().len()), (1, 7));
        assert!(joined.joined().is_none());
        let apart = recording.apart().unwrap();
        assert!(apart.joined().is_none() && apart.apart().unwrap().joined().is_none());
        drop(apart);
        let shared = std::sync::Arc::downgrade(&recording.0);
        drop(recording);
        assert!(shared.upgrade().is_none());
    }

    #[test]
    fn jobs_are_named_by_their_new_chains() {
        let named = |submission, job, kernel: &str| Job {
            submission,
            job,
            kernel: kernel.into(),
            ..Job::default()
        };
        let before = [named(0, Some(1), "b"), named(1, None, "c")];
        let after = by_job(&before, &[2, 2, 1]).unwrap();
        let found: Vec<_> = after
            .iter()
            .map(|job| (job.submission, job.job, &*job.kernel))
            .collect();
        assert_eq!(found, [(1, None, "b"), (2, None, "c"), (3, None, "c")]);
        let error = |job| by_job(&[before[0].clone(), job], &[2, 2, 1]).unwrap_err();
        let no_job = error(named(2, Some(1), "x"));
        assert_eq!(
            no_job,
            "[[job]] 2 names job 1 of submission 2, which has 1 job, counted from 0"
        );
        let no_chain = error(named(3, None, "x"));
        assert!(no_chain.contains("submission 3, but the recording submits 3 chains"));
    }
}
