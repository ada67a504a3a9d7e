// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a plan as a recording.

use std::collections::BTreeMap;

use gpureplay_core::Limits;
use gpureplay_format::layout::{FAMILY_STREAMS, Platform};
use gpureplay_format::{Builder, Recording, SegmentKind, Tensor, TensorId};
use gpureplay_tensors::simplify;
use gpureplay_trace::PAGE_SIZE;
use mali_drive::verify;
use mali_facts::registers::gpu;
use mali_facts::registers::job_slot::JobConfigFlags;
use mali_jobs::streams;

use crate::capture::Capture;
use crate::crossing::{Part, Reads, bindings};
use crate::error::CompileError;
use crate::pages::Moment;
use crate::plan::{Chunk, Plan, tensor_kind, weight_chunks};
use crate::ranges::Ranges;
use crate::tag::{Found, Role};

const PAGE: u64 = PAGE_SIZE as u64;

/// How the program is cut into separately runnable segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// One segment.
    Network,
    /// A segment ends with each job that completes an intermediate tensor or an output, and takes its name.
    Layers,
    /// Segments of this many jobs, at least 1.
    Jobs(usize),
}

/// Compilation options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Segment size.
    pub granularity: Granularity,
    /// Time limit of each job.
    pub timeout_us: u32,
    /// Weights are not stored, but given when the recording is opened.
    pub external_weights: bool,
    /// Most jobs of a linked chain; `None` keeps the driver's chains.
    pub link: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            granularity: Granularity::Network,
            timeout_us: 10_000_000,
            external_weights: false,
            link: Some(mali_jobs::link::MOST_JOBS),
        }
    }
}

/// Encodes the plan and verifies it by the replayer's rules. `reads`: what jobs read, if known.
pub fn emit(
    capture: &Capture,
    plan: &Plan,
    tensors: &[Found],
    options: &Options,
    (parts, reads): (&[Part], Option<&Reads>),
) -> Result<Vec<u8>, CompileError> {
    let mut builder = Builder::new(capture.gpu_id());
    if capture.has_streams() {
        builder.platform(Platform {
            family: FAMILY_STREAMS,
            ..Platform::of(capture.gpu_id())
        });
    }
    builder.coherent(capture.origin.coherent);
    for (register, mask, value) in identity(capture) {
        builder.identity(register, mask, value);
    }
    for region in &plan.regions {
        builder.region(region.va, region.pages, region.access, region.kind);
    }
    let ids: Vec<TensorId> = tensors
        .iter()
        .map(|t| builder.tensor(tensor(t, options)))
        .collect();
    let mut emitter = Emitter {
        capture,
        plan,
        tensors,
        ids,
        timeout_us: timeout(options.timeout_us, capture.jobs.len()),
        external: external(tensors, options),
        builder,
    };
    emitter.set_up();
    emitter.run(
        parts,
        &bindings(capture, plan.first_run, parts, tensors, reads),
    );
    let bytes = emitter.builder.finish()?;
    let recording = Recording::parse(&bytes).map_err(CompileError::Unreadable)?;
    let limits = &Limits::DEFAULT;
    let verified = match capture.has_streams() {
        true => streams::verify(&recording, limits).map(drop),
        false => verify(&recording, limits).map(drop),
    };
    verified.map_err(CompileError::Unverified)?;
    Ok(bytes)
}

/// The separately runnable parts.
pub fn parts(capture: &Capture, first: usize, tensors: &[Found], options: &Options) -> Vec<Part> {
    let count = capture.jobs.len();
    let ends: Vec<(String, usize)> = match options.granularity {
        Granularity::Network => vec![("run".to_string(), count)],
        Granularity::Jobs(jobs) => (first..count)
            .step_by(jobs.max(1))
            .enumerate()
            .map(|(number, start)| (format!("part{number}"), (start + jobs.max(1)).min(count)))
            .collect(),
        Granularity::Layers => {
            let mut ends: Vec<(String, usize)> = Vec::new();
            let mut results: Vec<&Found> = tensors.iter().filter(|t| t.is_result()).collect();
            // The network's own output names a layer last.
            results.sort_by_key(|t| (t.job.max(first), t.role == Role::Output));
            for tensor in results {
                let end = tensor.job.max(first) + 1;
                if ends.last().is_none_or(|(_, last)| *last < end) {
                    ends.push((tensor.name.clone(), end));
                }
            }
            match ends.last_mut() {
                Some((_, last)) => *last = count,
                None => ends.push(("run".to_string(), count)),
            }
            ends
        }
    };
    let mut start = first;
    let part = |(name, end)| Part {
        name,
        start: std::mem::replace(&mut start, end),
        end,
    };
    ends.into_iter().map(part).collect()
}

fn timeout(wanted_us: u32, jobs: usize) -> u32 {
    let share = Limits::DEFAULT.total_us / (jobs as u64).max(1);
    wanted_us.min(u32::try_from(share).unwrap_or(u32::MAX))
}

/// What both GPUs must have in common: register, mask, value.
fn identity(capture: &Capture) -> Vec<(u32, u32, u32)> {
    // The product; revision and status do not change what a job does.
    let mut wanted = vec![(gpu::GPU_ID, 0xffff_0000)];
    let slots = capture.jobs.iter().fold(0, |slots, job| {
        slots | 1u32.checked_shl(job.slot.into()).unwrap_or(0)
    });
    wanted.push((gpu::JS_PRESENT, slots));
    let storage = (0..capture.jobs.len()).any(|job| {
        let launches = capture.launches(job);
        launches.iter().any(|launch| launch.storage != [0, 0])
    });
    if storage {
        // Thread storage was allocated for this many cores and threads.
        for register in [
            gpu::THREAD_MAX_THREADS,
            gpu::SHADER_PRESENT_LO,
            gpu::SHADER_PRESENT_HI,
            gpu::THREAD_TLS_ALLOC,
        ] {
            wanted.push((register, u32::MAX));
        }
    }
    wanted
        .into_iter()
        .filter_map(|(register, mask)| {
            Some((register, mask, capture.identity.get(&register)? & mask))
        })
        .collect()
}

fn tensor(found: &Found, options: &Options) -> Tensor {
    let mut pieces = found.layout.pieces.clone();
    for piece in &mut pieces {
        piece.axes = simplify(&piece.axes);
    }
    Tensor {
        name: found.name.clone(),
        kind: tensor_kind(found.role),
        element: found.layout.dtype,
        shape: found.shape.clone(),
        pieces,
        external: options.external_weights && found.role == Role::Weight,
    }
}

fn external<'a>(tensors: &'a [Found], options: &Options) -> BTreeMap<u64, Chunk<'a>> {
    let weights = tensors
        .iter()
        .filter(|t| options.external_weights && t.role == Role::Weight);
    weights
        .flat_map(weight_chunks)
        .map(|chunk| (chunk.va, chunk))
        .collect()
}

struct Emitter<'a> {
    capture: &'a Capture,
    plan: &'a Plan,
    tensors: &'a [Found],
    ids: Vec<TensorId>,
    timeout_us: u32,
    external: BTreeMap<u64, Chunk<'a>>,
    builder: Builder,
}

impl Emitter<'_> {
    fn set_up(&mut self) {
        self.builder.segment("setup", SegmentKind::Setup);
        for (register, value) in &self.capture.settings {
            if let Ok(register) = u16::try_from(*register) {
                self.builder.write(register, *value);
            }
        }
        self.upload(&self.plan.load, Moment::before(0));
        for (moment, ranges) in &self.plan.early {
            self.upload(ranges, *moment);
        }
        // After what was loaded at their places, before the jobs that use them.
        let first = self.plan.first_run;
        self.bind(|t| t.role == Role::Weight && (t.job == 0 || t.job > first));
        let weights = self.by_job(|t| (t.role == Role::Weight).then_some(t.job));
        for job in 0..=first {
            if job > 0 {
                self.upload(&self.plan.before_job[job], Moment::before(job));
                for id in weights.get(&job).into_iter().flatten() {
                    self.builder.bind_input(*id);
                }
            }
            if job < first {
                self.submit(job);
            }
        }
    }

    fn run(&mut self, parts: &[Part], bindings: &[(usize, usize)]) {
        let first = self.plan.first_run;
        let results = self.by_job(|t| t.is_result().then_some(t.job.max(first)));
        let mut bindings = bindings.iter().peekable();
        for part in parts {
            self.builder.segment(&part.name, SegmentKind::Run);
            if part.start == first {
                self.restore();
                for tensor in &self.plan.rebind {
                    self.builder.bind_input(self.ids[*tensor]);
                }
                self.bind(|t| t.role == Role::State);
            }
            for job in part.start..part.end {
                if job > first {
                    self.upload(&self.plan.before_job[job], Moment::before(job));
                }
                while bindings.next_if(|(at, _)| *at < job).is_some() {}
                while let Some((_, tensor)) = bindings.next_if(|(at, _)| *at == job) {
                    self.builder.bind_input(self.ids[*tensor]);
                }
                self.submit(job);
                for id in results.get(&job).into_iter().flatten() {
                    self.builder.bind_output(*id);
                }
            }
        }
        for (t, id) in self.tensors.iter().zip(&self.ids) {
            if t.role == Role::State {
                self.builder.bind_output(*id);
            }
        }
    }

    fn by_job(&self, job: impl Fn(&Found) -> Option<usize>) -> BTreeMap<usize, Vec<TensorId>> {
        let mut out: BTreeMap<usize, Vec<TensorId>> = BTreeMap::new();
        for (t, id) in self.tensors.iter().zip(&self.ids) {
            if let Some(job) = job(t) {
                out.entry(job).or_default().push(*id);
            }
        }
        out
    }

    fn bind(&mut self, which: impl Fn(&Found) -> bool) {
        for (t, id) in self.tensors.iter().zip(&self.ids) {
            if which(t) {
                self.builder.bind_input(*id);
            }
        }
    }

    fn submit(&mut self, job: usize) {
        let job = &self.capture.jobs[job];
        if let Some(stream) = &job.stream {
            let halves = |word: &u64| [*word as u32, (*word >> 32) as u32];
            let words: Vec<u32> = stream.words.iter().flat_map(halves).collect();
            // A recording has one queue, in the trace's order.
            self.builder.launch(0, &words, self.timeout_us);
            return;
        }
        for header in job.headers.iter() {
            self.builder.rearm(header.address);
        }
        // Drivers alternate the flag from chain to chain, to stop one of two in flight; a replay has one.
        let config = job.config & !JobConfigFlags::CHAIN_FLAG.bits();
        self.builder
            .submit_with(job.slot, config as u16, job.chain, self.timeout_us);
    }

    fn bytes(&self, moment: Moment, start: u64, end: u64) -> Vec<u8> {
        let offset = (start % PAGE) as usize;
        let length = (end - start) as usize;
        let mut bytes = self.capture.memory.page(moment, start - offset as u64)
            [offset..offset + length]
            .to_vec();
        let mut hide = |s: u64, e: u64| bytes[(s - start) as usize..(e - start) as usize].fill(0);
        for (s, e) in self.plan.masked.within(start, end) {
            hide(s, e);
        }
        // A weight's memory may hold something else at other times.
        for chunk in self.external.range(start - offset as u64..end) {
            let chunk = chunk.1;
            if chunk.end() > start && chunk.is_at(self.capture, moment) {
                hide(chunk.va.max(start), chunk.end().min(end));
            }
        }
        bytes
    }

    /// Hidden parts are zero: inputs and weights are loaded there.
    fn upload(&mut self, ranges: &Ranges, moment: Moment) {
        for (start, end) in ranges.iter() {
            for (start, end) in pages(start, end) {
                let bytes = self.bytes(moment, start, end);
                self.builder.upload(start, &bytes);
            }
        }
    }

    fn restore(&mut self) {
        let moment = Moment::before(self.plan.first_run);
        let mut stretch: Option<Stretch> = None;
        for (start, end) in self.plan.restore.iter().flat_map(|(s, e)| pages(s, e)) {
            let bytes = self.bytes(moment, start, end);
            let new_region = self
                .plan
                .regions
                .binary_search_by_key(&start, |r| r.va)
                .is_ok();
            let Some(byte) = uniform(&bytes) else {
                self.fill(stretch.take());
                self.builder.upload(start, &bytes);
                continue;
            };
            match &mut stretch {
                Some(s)
                    if s.end == start
                        && s.byte == byte
                        && !new_region
                        && end - s.start < 1 << 31 =>
                {
                    s.end = end;
                }
                _ => {
                    self.fill(stretch.take());
                    stretch = Some(Stretch { start, end, byte });
                }
            }
        }
        self.fill(stretch);
    }

    fn fill(&mut self, stretch: Option<Stretch>) {
        if let Some(Stretch { start, end, byte }) = stretch {
            self.builder.fill(start, (end - start) as u32, byte);
        }
    }
}

struct Stretch {
    start: u64,
    end: u64,
    byte: u8,
}

fn uniform(bytes: &[u8]) -> Option<u8> {
    let (first, rest) = bytes.split_first()?;
    rest.iter().all(|b| b == first).then_some(*first)
}

fn pages(start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let from = at;
        at = (at - at % PAGE + PAGE).min(end);
        Some((from, at))
    })
}

#[cfg(test)]
mod tests {
    use super::timeout;

    #[test]
    fn many_jobs_share_the_time_that_all_may_take() {
        assert_eq!(timeout(10_000_000, 300), 10_000_000);
        assert_eq!(timeout(10_000_000, 720), 5_000_000);
        assert_eq!(timeout(10_000_000, 0), 10_000_000);
    }
}
