// SPDX-License-Identifier: MIT OR Apache-2.0
//! What jobs ask of a GPU.

use std::sync::Arc;

use mali_drive::Verified;
use mali_facts::{
    Attribute, ComputeJob, JobType, LocalStorage, Memory, PixelFormat, RendererState, Texture,
    bytes, follow,
};
use mali_jobs::walk::{Code, Codes, DeepViolation, Submission, Undecoded, submissions};

use crate::rules::{Refusal, TargetRule};

pub(crate) struct Job {
    pub(crate) submission: u32,
    pub(crate) address: u64,
    pub(crate) slot: u8,
    pub(crate) kind: JobType,
    pub(crate) compute: Option<Compute>,
}

impl Job {
    pub(crate) fn place(&self) -> (u32, u64) {
        (self.submission, self.address)
    }
}

pub(crate) struct Compute {
    pub(crate) state_at: u64,
    pub(crate) state: RendererState,
    pub(crate) code: Option<Arc<Code>>,
    pub(crate) threads: u64,
    /// Descriptor's address and contents.
    pub(crate) storage: Option<(u64, LocalStorage)>,
    pub(crate) formats: Vec<PixelFormat>,
}

/// Lists jobs in order, without what Valhall's jobs name: it stays.
pub(crate) fn survey(verified: &Verified<'_>, named: bool) -> Result<Vec<Job>, Refusal> {
    let mut survey = Survey {
        named,
        ..Survey::default()
    };
    let walked = submissions(verified, |submission| {
        survey.submitted(submission);
        Ok::<(), DeepViolation>(())
    });
    walked.map_err(|error| Refusal::new(TargetRule::Sound, error.to_string()))?;
    match survey.refusal {
        Some(refusal) => Err(refusal),
        None => Ok(survey.jobs),
    }
}

#[derive(Default)]
struct Survey {
    named: bool,
    jobs: Vec<Job>,
    codes: Codes,
    refusal: Option<Refusal>,
}

impl Survey {
    fn submitted(&mut self, submission: &Submission<'_>) {
        if self.refusal.is_some() {
            return;
        }
        let number = submission.number;
        for found in follow(submission.memory, submission.head).jobs(submission.memory) {
            let kind = found.job_type().unwrap_or(JobType::NotStarted);
            let place = (number, found.address);
            let compute = match kind {
                JobType::Compute if self.named => {
                    match self.compute(submission.memory, &found, place) {
                        Ok(compute) => Some(compute),
                        Err(refusal) => {
                            self.refusal = Some(refusal);
                            return;
                        }
                    }
                }
                _ => None,
            };
            self.jobs.push(Job {
                submission: number,
                address: found.address,
                slot: submission.slot,
                kind,
                compute,
            });
        }
    }

    fn compute(
        &mut self,
        memory: &dyn Memory,
        job: &mali_facts::Job,
        place: (u32, u64),
    ) -> Result<Compute, Refusal> {
        let unknown =
            || Refusal::of_job(TargetRule::Sound, place, "a descriptor that cannot be read");
        let compute = ComputeJob::read(memory, job).ok_or_else(unknown)?;
        let (draw, state) = (&compute.draw, &compute.state);
        let (size, _) = compute.invocation.dimensions().ok_or_else(unknown)?;
        let mut formats = Vec::new();
        for index in 0..state.attribute_count() {
            let at = draw
                .attributes()
                .wrapping_add(index * Attribute::SIZE as u64);
            let attribute = Attribute::from_bytes(&bytes(memory, at).ok_or_else(unknown)?);
            formats.push(PixelFormat(attribute.format() as u32));
        }
        for index in 0..state.texture_count() {
            let at = draw.textures().wrapping_add(index * Texture::SIZE as u64);
            let texture = Texture::from_bytes(&bytes(memory, at).ok_or_else(unknown)?);
            formats.push(PixelFormat(texture.format() as u32));
        }
        let code = match compute.shader() {
            0 => None,
            at => Some(self.codes.at(memory, at).map_err(|error| {
                let text = match error {
                    Undecoded::Clause(error) => format!("shader {at:#x}: {error}"),
                    Undecoded::Word(_) | Undecoded::TooMuch => error.to_string(),
                };
                Refusal::of_job(TargetRule::Instructions, place, text)
            })?),
        };
        Ok(Compute {
            state_at: draw.state_at(),
            state: *state,
            code,
            threads: size.iter().map(|&side| u64::from(side)).product(),
            storage: draw.storage_at().zip(compute.storage),
            formats,
        })
    }
}
