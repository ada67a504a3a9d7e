// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job to change, of Bifrost or Valhall.

use gpureplay_jobs::{Compute, Job, Valhall};
use mali_facts::valhall::ComputePayload;
use mali_facts::{JobType, Profile, job};
use mali_jobs::streams;

use crate::error::{EditError, Result};
use crate::flow::Flow;
use crate::launch::{Launch, text};
use crate::proof::{self, Proof};
use crate::scene::Scene;

#[derive(Clone, Copy)]
pub(crate) enum Target<'r> {
    Bifrost(&'r Compute),
    Valhall(&'r Valhall),
}

impl<'r> Target<'r> {
    pub(crate) fn of(job: &'r Job) -> Result<Self> {
        let bifrost = job.compute.as_ref().map(Self::Bifrost);
        let found = bifrost.or_else(|| job.valhall.as_ref().map(Self::Valhall));
        found.ok_or_else(|| EditError::NotCompute {
            job: job.index,
            kind: job.kind.map_or("unknown", JobType::name).into(),
        })
    }

    pub(crate) fn bifrost(self) -> Option<&'r Compute> {
        match self {
            Self::Bifrost(compute) => Some(compute),
            Self::Valhall(_) => None,
        }
    }

    pub(crate) fn launch(self) -> Launch {
        match self {
            Self::Bifrost(compute) => Launch::of(compute),
            Self::Valhall(valhall) => Launch {
                local: valhall.launch.size,
                groups: valhall.launch.count,
            },
        }
    }

    pub(crate) fn prove(self, scene: &Scene) -> Result<Proof> {
        match self {
            Self::Bifrost(compute) => proof::prove(scene, proof::flow(compute), proof::clause),
            Self::Valhall(valhall) => {
                let flow = valhall.code.as_ref().map(|words| {
                    let mut flow = Flow::of_words(words);
                    flow.group_storage |= valhall.launch.storage_bytes[1] != 0;
                    flow
                });
                proof::prove(scene, flow, |offset| format!("word {}", offset / 8))
            }
        }
    }

    pub(crate) fn check(self, launch: &Launch, profile: &Profile) -> Result<()> {
        match self {
            Self::Bifrost(compute) => launch.check(compute, profile),
            Self::Valhall(_) => {
                launch.check_threads(profile)?;
                // A size has ten bits and is stored less one.
                let most = profile.max_barrier_size.min(1 << 10);
                let threads: u64 = launch.local.iter().map(|&size| u64::from(size)).product();
                match threads <= most.into() {
                    true => Ok(()),
                    false => Err(EditError::Size(format!(
                        "work groups of {} have {threads} threads, and at most {most} can wait at a barrier",
                        text(launch.local)
                    ))),
                }
            }
        }
    }

    pub(crate) fn stream(self, launch: &Launch, words: &[u8], at: u64) -> Result<(Vec<u8>, u64)> {
        let payload = self.payload(launch)?;
        let resized = streams::resized(words, at, payload.words[0], launch.groups);
        resized.ok_or_else(|| EditError::Size("the stream has no such job".into()))
    }

    /// Offset from the job's header, and bytes.
    pub(crate) fn words(self, launch: &Launch) -> Result<Vec<(u64, Vec<u8>)>> {
        match self {
            Self::Bifrost(compute) => launch.words(compute),
            Self::Valhall(_) => Ok(vec![(
                job::PAYLOAD,
                self.payload(launch)?.to_bytes().to_vec(),
            )]),
        }
    }

    fn payload(self, launch: &Launch) -> Result<ComputePayload> {
        let Self::Valhall(valhall) = self else {
            return Err(EditError::Size("the job has no payload".into()));
        };
        let mut payload = valhall.payload;
        for (axis, name) in ["X", "Y", "Z"].into_iter().enumerate() {
            let size = u64::from(launch.local[axis]).saturating_sub(1);
            let count = launch.groups[axis].into();
            payload = payload
                .with(&format!("Work group size {name}"), size)
                .with(&format!("Work group count {name}"), count);
        }
        Ok(payload)
    }

    pub(crate) fn code(self) -> std::result::Result<&'r [u8], &'r str> {
        match self {
            Self::Bifrost(compute) => compute.code.as_ref().map(|code| &code.bytes[..]),
            Self::Valhall(valhall) => valhall.code.as_ref().map(|words| &words.bytes[..]),
        }
        .map_err(String::as_str)
    }
}
