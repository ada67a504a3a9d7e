// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walk over one chain or stream.

use std::collections::HashSet;

use gpureplay_format::layout::Region;
use gpureplay_format::{Access as RegionAccess, Recording, RegionKind, TensorKind};
use mali_drive::LAUNCHED_AT;
use mali_facts::walk::{MemoryUse, Problem, Purpose, Visitor};
use mali_facts::{Access, ChainEnd, JobType, Memory, Profile, follow};

use crate::walk::image::Image;
use crate::walk::program::Submission;
use crate::walk::report::{Job, Use};
use crate::walk::rules::{DeepRule, DeepViolation};

/// Bytes, of push uniforms or a uniform buffer, searched for addresses.
const MAX_UNIFORMS: u64 = 1 << 20;

/// Steps for each thing in the report: it takes memory.
pub(crate) const KEPT: u64 = 64;

pub(crate) fn walk(
    recording: &Recording<'_>,
    profile: &Profile,
    submission: &Submission<'_>,
    steps: &mut u64,
) -> Result<Vec<Job>, DeepViolation> {
    let (head, image, rearmed) = (submission.head, submission.memory, submission.rearmed);
    let mut walk = Walk {
        recording,
        image,
        action: submission.action,
        jobs: Vec::new(),
        error: None,
        steps,
    };
    if submission.words.is_empty() {
        let headers = walk.follow(head)?;
        if let Some(&missing) = rearmed.iter().find(|header| !headers.contains(header)) {
            return Err(walk.broken(
                DeepRule::ChainComplete,
                missing,
                "a job that was made ready is not in the chain",
            ));
        }
    }
    submission.walk(profile, &mut walk);
    match walk.error {
        Some(error) => Err(error),
        None => Ok(walk.jobs),
    }
}

struct Walk<'w> {
    recording: &'w Recording<'w>,
    image: &'w Image,
    action: u32,
    jobs: Vec<Job>,
    error: Option<DeepViolation>,
    steps: &'w mut u64,
}

impl Walk<'_> {
    fn broken(&self, rule: DeepRule, address: u64, text: &str) -> DeepViolation {
        DeepViolation {
            rule,
            action: self.action,
            address,
            text: text.into(),
        }
    }

    fn note(&mut self, rule: DeepRule, address: u64, text: &str) {
        if self.error.is_none() {
            self.error = Some(self.broken(rule, address, text));
        }
    }

    fn spend(&mut self, steps: u64, address: u64) -> bool {
        match self.steps.checked_sub(steps) {
            Some(left) => {
                *self.steps = left;
                true
            }
            None => {
                self.note(
                    DeepRule::MemoryLimit,
                    address,
                    "more descriptors and uniforms than this check looks at",
                );
                false
            }
        }
    }

    fn follow(&self, head: u64) -> Result<HashSet<u64>, DeepViolation> {
        let descriptors = Some(RegionKind::Descriptors.code());
        let memory = |va: u64, to: &mut [u8]| {
            let region = self.region(va, to.len() as u64);
            region.map(|region| region.kind) == descriptors && self.image.read(va, to)
        };
        let chain = follow(&memory, head);
        let broken = |rule, at, text: &str| Err(self.broken(rule, at, text));
        match chain.end {
            ChainEnd::Complete => Ok(chain.jobs(&memory).map(|job| job.address).collect()),
            ChainEnd::Misaligned(at) | ChainEnd::Unknown(at) => {
                broken(DeepRule::ChainHeader, at, "a job header")
            }
            ChainEnd::Loop(at) => broken(DeepRule::ChainLoop, at, &chain.end.to_string()),
            ChainEnd::TooLong(at) => broken(DeepRule::MemoryLimit, at, &chain.end.to_string()),
        }
    }

    fn region(&self, address: u64, length: u64) -> Option<&Region> {
        self.recording.region_of(address, length)
    }

    fn under_tensor(&self, address: u64, length: u64) -> bool {
        let end = address.saturating_add(length);
        let tensors = self.recording.tensors().iter();
        let filled = tensors.filter(|tensor| tensor.kind != TensorKind::Output.code());
        filled
            .flat_map(|tensor| self.recording.pieces(tensor).unwrap_or(&[]))
            .any(|piece| {
                let axes = self.recording.axes(piece).unwrap_or(&[]);
                let span: u64 = axes
                    .iter()
                    .map(|axis| {
                        u64::from(axis.extent.get() - 1) * u64::from(axis.byte_stride.get())
                    })
                    .sum();
                // An element has at least a byte: enough to see an overlap.
                piece.va.get() < end && address <= piece.va.get().saturating_add(span)
            })
    }

    fn descriptor(&mut self, memory: &MemoryUse, length: u64) {
        let pieces = self.recording.piece_entries().len() as u64;
        if !self.spend(1 + pieces, memory.address) {
            return;
        }
        let region = self.region(memory.address, length);
        let kind = region.and_then(|region| RegionKind::from_code(region.kind.into()));
        match kind {
            Some(RegionKind::Descriptors) => {}
            Some(RegionKind::Data) if self.under_tensor(memory.address, length) => self.note(
                DeepRule::DescriptorTensor,
                memory.address,
                "a descriptor under a tensor",
            ),
            Some(RegionKind::Data) => {}
            _ => self.note(DeepRule::DescriptorRegion, memory.address, "a descriptor"),
        }
        if let Some(job) = self.jobs.last_mut() {
            job.descriptors += 1;
        }
    }

    /// Compilers place addresses at multiples of 4.
    fn pointers(&mut self, address: u64, length: u64) -> Vec<u64> {
        let length = length.min(MAX_UNIFORMS);
        if !self.spend(length / 4, address) {
            return Vec::new();
        }
        let mut bytes = vec![0; length as usize];
        if !self.image.read(address, &mut bytes) {
            return Vec::new();
        }
        let words = bytes.as_chunks::<4>().0;
        let word = |at: &[u8; 4]| u64::from(u32::from_le_bytes(*at));
        let values = words.windows(2).filter_map(|pair| match pair {
            [low, high] => Some(word(low) | word(high) << 32),
            _ => None,
        });
        values
            .filter(|&value| value != 0 && self.region(value, 1).is_some())
            .collect()
    }
}

impl Visitor for Walk<'_> {
    fn wants_more(&self) -> bool {
        self.error.is_none()
    }

    fn job(&mut self, address: u64, job_type: Option<JobType>) {
        if self.error.is_some() {
            return;
        }
        let kind = job_type.map_or("unknown", JobType::name);
        if !job_type.is_some_and(JobType::is_replayed) {
            self.note(DeepRule::JobType, address, kind);
        }
        if !self.spend(KEPT, address) {
            return;
        }
        self.jobs.push(Job {
            address,
            kind,
            descriptors: 0,
            uses: Vec::new(),
            pointers: Vec::new(),
        });
    }

    fn memory(&mut self, memory: &MemoryUse) {
        if self.error.is_some() {
            return;
        }
        let (address, length) = (memory.address, memory.length.unwrap_or(1));
        let in_registers =
            address >= LAUNCHED_AT && self.jobs.last().map(|job| job.address) == Some(address);
        if memory.purpose == Purpose::Descriptor && in_registers {
            return;
        }
        if memory.purpose == Purpose::Descriptor {
            return self.descriptor(memory, length);
        }
        let region = self.region(address, length);
        let code = region.is_some_and(|region| region.kind == RegionKind::Code.code());
        let writable =
            region.is_some_and(|region| RegionAccess(region.access).contains(RegionAccess::WRITE));
        let writes = matches!(
            memory.purpose,
            Purpose::Status | Purpose::Value | Purpose::ThreadStorage | Purpose::WorkgroupStorage
        );
        let rule = match memory.purpose {
            Purpose::Shader => (!code).then_some(DeepRule::ShaderRegion),
            _ => (region.is_none() || (writes && !writable)).then_some(DeepRule::BufferRegion),
        };
        if let Some(rule) = rule {
            self.note(rule, address, memory.purpose.name());
        }
        let mut pointers = Vec::new();
        if matches!(
            memory.purpose,
            Purpose::PushUniforms | Purpose::UniformBuffer
        ) {
            pointers = self.pointers(address, length);
            pointers.sort_unstable();
            pointers.dedup();
        }
        if !self.spend((1 + pointers.len() as u64) * KEPT, address) {
            return;
        }
        let access = if writes || memory.access == Access::Execute {
            memory.access
        } else {
            Access::Read
        };
        if let Some(job) = self.jobs.last_mut() {
            job.uses.push(Use {
                purpose: memory.purpose,
                address,
                length: memory.length,
                access,
            });
            job.pointers.extend(pointers);
            job.pointers.sort_unstable();
            job.pointers.dedup();
        }
    }

    fn problem(&mut self, address: u64, problem: &Problem) {
        if self.error.is_none() {
            self.note(DeepRule::DescriptorForm, address, &problem.to_string());
        }
    }
}
