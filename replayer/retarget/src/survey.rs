// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the jobs of a recording ask of a GPU: shaders, sizes, formats, storage.

use std::collections::HashMap;
use std::rc::Rc;

use gpureplay_core::mali::Verified;
use gpureplay_inspect::{DeepViolation, Event, MAX_CODE, Submission, events};
use mali_descriptors::{
    Attribute, Draw, Invocation, JobType, LocalStorage, Memory, PixelFormat, RendererState,
    Texture, clause_address, descriptor_address, follow, job,
};
use mali_isa::{DecodeError, Shader, WORD_BYTES};

use crate::rules::{Refusal, TargetRule};

/// A job at the moment of its submission.
pub(crate) struct Job {
    /// Number of the submission, from 0.
    pub(crate) submission: u32,
    /// Address of its header.
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

/// What a compute job names.
pub(crate) struct Compute {
    /// Address of the renderer state.
    pub(crate) state_at: u64,
    pub(crate) state: RendererState,
    pub(crate) code: Rc<Code>,
    /// Threads of a work group.
    pub(crate) threads: u64,
    /// Address of the local storage descriptor, and what it says.
    pub(crate) storage: Option<(u64, LocalStorage)>,
    /// Pixel formats of textures and images.
    pub(crate) formats: Vec<PixelFormat>,
}

/// A shader in GPU memory.
pub(crate) struct Code {
    pub(crate) address: u64,
    pub(crate) shader: Shader,
}

/// All jobs, in the order of their submission.
pub(crate) fn survey(verified: &Verified<'_>) -> Result<Vec<Job>, Refusal> {
    let mut survey = Survey::default();
    let walked = events(verified, |event| {
        match event {
            Event::Changed { va, length, .. } => survey.changed(*va, *length),
            Event::Submitted(submission) => survey.submitted(submission),
        }
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
    jobs: Vec<Job>,
    /// Shaders by address, as long as memory that was uploaded since is not theirs.
    known: HashMap<u64, Rc<Code>>,
    /// Bytes of code that were looked at.
    decoded: u64,
    refusal: Option<Refusal>,
}

impl Survey {
    fn changed(&mut self, va: u64, length: u64) {
        let end = va.saturating_add(length);
        self.known.retain(|_, code| {
            let last = code.address.saturating_add(code.shader.size());
            last <= va || end <= code.address
        });
    }

    fn submitted(&mut self, submission: &Submission<'_>) {
        if self.refusal.is_some() {
            return;
        }
        let number = submission.number;
        for found in follow(submission.memory, submission.head).jobs(submission.memory) {
            // The walk before this one has seen that there are no others.
            let kind = found.job_type().unwrap_or(JobType::NotStarted);
            let place = (number, found.address);
            let compute = match kind {
                JobType::Compute => match self.compute(submission.memory, place) {
                    Ok(compute) => Some(compute),
                    Err(refusal) => {
                        self.refusal = Some(refusal);
                        return;
                    }
                },
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

    fn compute(&mut self, memory: &dyn Memory, place: (u32, u64)) -> Result<Compute, Refusal> {
        let unknown =
            || Refusal::of_job(TargetRule::Sound, place, "a descriptor that cannot be read");
        let at = |offset: u64| place.1.wrapping_add(offset);
        let invocation = read(memory, at(job::INVOCATION)).ok_or_else(unknown)?;
        let (size, _) = Invocation::from_bytes(&invocation)
            .dimensions()
            .ok_or_else(unknown)?;
        let draw = Draw::from_bytes(&read(memory, at(job::COMPUTE_DRAW)).ok_or_else(unknown)?);
        let state_at = descriptor_address(draw.state());
        let state = RendererState::from_bytes(&read(memory, state_at).ok_or_else(unknown)?);
        let storage = match descriptor_address(draw.thread_storage()) {
            0 => None,
            at => {
                let bytes = read(memory, at).ok_or_else(unknown)?;
                Some((at, LocalStorage::from_bytes(&bytes)))
            }
        };
        let mut formats = Vec::new();
        for index in 0..state.attribute_count() {
            let at = draw
                .attributes()
                .wrapping_add(index * Attribute::SIZE as u64);
            let attribute = Attribute::from_bytes(&read(memory, at).ok_or_else(unknown)?);
            formats.push(PixelFormat(attribute.format() as u32));
        }
        for index in 0..state.texture_count() {
            let at = draw.textures().wrapping_add(index * Texture::SIZE as u64);
            let texture = Texture::from_bytes(&read(memory, at).ok_or_else(unknown)?);
            formats.push(PixelFormat(texture.format() as u32));
        }
        Ok(Compute {
            state_at,
            state,
            code: self.code(memory, clause_address(state.shader()), place)?,
            threads: size.iter().map(|&side| u64::from(side)).product(),
            storage,
            formats,
        })
    }

    fn code(
        &mut self,
        memory: &dyn Memory,
        address: u64,
        place: (u32, u64),
    ) -> Result<Rc<Code>, Refusal> {
        if let Some(known) = self.known.get(&address) {
            return Ok(Rc::clone(known));
        }
        let word = |offset: u32| {
            self.decoded += WORD_BYTES as u64;
            if self.decoded > MAX_CODE {
                // Behind the end of all code that is looked at.
                return Err(DecodeError::Truncated {
                    offset: offset as usize,
                });
            }
            let truncated = DecodeError::Truncated {
                offset: offset as usize,
            };
            read::<WORD_BYTES>(memory, address.wrapping_add(offset.into())).ok_or(truncated)
        };
        // A job without a shader runs nothing.
        let shader = match address {
            0 => Shader::default(),
            _ => Shader::decode_with(word).map_err(|error| {
                let text = match self.decoded > MAX_CODE {
                    true => format!("the shaders have more than {MAX_CODE} bytes, which is as many as are looked at"),
                    false => format!("shader {address:#x}: {error}"),
                };
                Refusal::of_job(TargetRule::Instructions, place, text)
            })?,
        };
        let code = Rc::new(Code { address, shader });
        self.known.insert(address, Rc::clone(&code));
        Ok(code)
    }
}

fn read<const N: usize>(memory: &dyn Memory, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    memory.read(at, &mut bytes).then_some(bytes)
}
