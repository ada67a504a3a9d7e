// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the shaders of a recording: GPU memory is filled as a replay would fill it, and each chain is walked where it
//! is submitted.

use std::collections::{BTreeMap, HashMap};

use gpureplay_core::Verified;
use gpureplay_format::lz4::History;
use gpureplay_format::{Action, Payload, Recording};
use mali_descriptors::walk::{MemoryUse, Purpose, Visitor, walk_chain};
use mali_descriptors::{JobType, Memory};
use mali_isa::{DecodeError, Identity, Shader, WORD_BYTES};
use mali_model::Profile;

const PAGE: u64 = 4096;
/// Pages that are kept, 1 GiB; what a recording uploads beyond that is not known.
const MAX_PAGES: usize = 1 << 18;

/// GPU memory as uploads leave it. What jobs write is not known.
#[derive(Default)]
struct Pages(HashMap<u64, Box<[u8; PAGE as usize]>>);

impl Pages {
    fn write(&mut self, va: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = va.wrapping_add(done as u64);
            if self.0.len() >= MAX_PAGES && !self.0.contains_key(&(at / PAGE)) {
                return;
            }
            let page = self
                .0
                .entry(at / PAGE)
                .or_insert_with(|| Box::new([0; PAGE as usize]));
            let room = &mut page[(at % PAGE) as usize..];
            let count = room.len().min(bytes.len() - done);
            room[..count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
    }
}

impl Memory for Pages {
    fn read(&self, va: u64, to: &mut [u8]) -> bool {
        let mut done = 0;
        while done < to.len() {
            let at = va.wrapping_add(done as u64);
            let from = (at % PAGE) as usize;
            let count = (PAGE as usize - from).min(to.len() - done);
            let Some(page) = self.0.get(&(at / PAGE)) else {
                return false;
            };
            to[done..done + count].copy_from_slice(&page[from..from + count]);
            done += count;
        }
        true
    }
}

/// A shader that some job of a recording runs.
pub(crate) struct Found {
    /// Address of its first clause.
    pub(crate) address: u64,
    /// Jobs that run it, counted from 0 in the order of the recording.
    pub(crate) jobs: Vec<usize>,
    /// The clauses and what they are known by, or why they cannot be decoded.
    pub(crate) code: Result<(Shader, Identity), String>,
    /// The bytes from the first clause to the end of the last.
    pub(crate) bytes: Vec<u8>,
}

/// Collects the jobs of a chain and their shaders.
#[derive(Default)]
struct Collector {
    /// Compute jobs or not, in order, with the address of the shader.
    jobs: Vec<Option<u64>>,
}

impl Visitor for Collector {
    fn job(&mut self, _: u64, _: Option<JobType>) {
        self.jobs.push(None);
    }

    fn memory(&mut self, memory: &MemoryUse) {
        if let (Purpose::Shader, Some(job)) = (memory.purpose, self.jobs.last_mut()) {
            *job = Some(memory.address);
        }
    }
}

/// The shaders of a recording in the order of their first job, and how many jobs there are. Where the code at an address
/// changes between jobs, each version is listed.
pub(crate) fn find(verified: &Verified<'_>, profile: &'static Profile) -> (Vec<Found>, usize) {
    let recording = verified.recording();
    let mut pages = Pages::default();
    let mut history = History::new();
    let mut found: Vec<Found> = Vec::new();
    let mut known: BTreeMap<(u64, Option<u64>), usize> = BTreeMap::new();
    let mut jobs = 0;
    for action in actions(recording) {
        match action {
            Step::Segment => history.clear(),
            Step::Action(Action::Upload {
                va,
                length,
                payload,
            }) => match payload {
                Payload::Raw(bytes) => pages.write(va, bytes),
                Payload::Lz4(block) => {
                    if let Some(bytes) = history.decode(block, length as usize) {
                        pages.write(va, bytes);
                    }
                }
            },
            Step::Action(Action::Fill { va, length, byte }) => {
                let block = [byte; PAGE as usize];
                let length = u64::from(length);
                for at in (0..length).step_by(PAGE as usize) {
                    let count = (length - at).min(PAGE) as usize;
                    pages.write(va.wrapping_add(at), &block[..count]);
                }
            }
            Step::Action(Action::Submit { chain, .. }) => {
                let mut collector = Collector::default();
                walk_chain(&pages, profile, chain, &mut collector);
                for shader in collector.jobs {
                    if let Some(address) = shader {
                        let version = version(&pages, address);
                        let key = (address, version.code.as_ref().ok().map(|(_, id)| id.hash));
                        let index = *known.entry(key).or_insert(found.len());
                        if index == found.len() {
                            found.push(version);
                        }
                        found[index].jobs.push(jobs);
                    }
                    jobs += 1;
                }
            }
            Step::Action(_) => {}
        }
    }
    (found, jobs)
}

/// What a replay does, in order.
enum Step<'a> {
    /// A segment begins.
    Segment,
    /// An action of it.
    Action(Action<'a>),
}

fn actions<'a>(recording: &Recording<'a>) -> impl Iterator<Item = Step<'a>> {
    let recording = *recording;
    recording.segments().iter().flat_map(move |segment| {
        let actions = recording.segment_actions(segment);
        std::iter::once(Step::Segment).chain(actions.filter_map(|a| a.ok().map(Step::Action)))
    })
}

/// The shader at an address as memory is now.
fn version(pages: &Pages, address: u64) -> Found {
    let word = |offset: u32| {
        let mut word = [0; WORD_BYTES];
        let known = pages.read(address.wrapping_add(offset.into()), &mut word);
        known.then_some(word).ok_or(DecodeError::Truncated {
            offset: offset as usize,
        })
    };
    let code = Shader::identify(word).map_err(|error| error.to_string());
    let mut bytes = vec![0; code.as_ref().map_or(0, |(_, id)| id.bytes as usize)];
    pages.read(address, &mut bytes);
    Found {
        address,
        jobs: Vec::new(),
        code,
        bytes,
    }
}
