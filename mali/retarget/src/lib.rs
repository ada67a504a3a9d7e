// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a recording one of another GPU.
//!
//! A recording fits one GPU: its identity, settings, storage for the threads of its cores. [`retarget`] changes these
//! only where it can prove that jobs do not depend on the rest: the other GPU has every instruction, limit and
//! format, no job looks at cores or warps that differ in number, and the result keeps every rule.
//!
//! No real GPU takes part: the proof and [`compare`] are about the model.
#![forbid(unsafe_code)]

mod lock_step;
mod proofs;
mod rules;
mod storage;
mod survey;

pub use lock_step::{CompareError, Compared, Effort, compare};
pub use rules::{Refusal, TargetRule};
pub use storage::Grown;

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_core::Limits;
use gpureplay_format::encode::Draft;
use gpureplay_format::layout::{ActionEntry, IdentityCheck, Platform, Region};
use gpureplay_format::{Access, Action, ActionFault, Recording, RegionKind};
use mali_drive::{Verified, verify, writable};
use mali_facts::{Profile, RendererState};
use mali_jobs::patch::{Patch, Word, places};
use mali_jobs::walk::{DeepViolation, check, check_for, profile};
use zerocopy::little_endian::{U16, U32, U64};

use proofs::Pair;
use survey::{Job, survey};

/// What is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Version 6 may become 7 and vice versa. No silicon has shown that this works.
    pub mix_versions: bool,
    /// Use only as many cores as have recorded storage. Otherwise storage grows.
    pub limit_cores: bool,
}

/// Driver's setting after a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Offset.
    pub register: u16,
    /// Recorded value.
    pub recorded: u32,
    /// `None`: the other GPU's drivers do not write it.
    pub value: Option<u32>,
}

/// Recording of another GPU.
#[derive(Clone, Debug)]
pub struct Retargeted {
    /// Recording.
    pub bytes: Vec<u8>,
    /// Recorded GPU.
    pub source: &'static Profile,
    /// New GPU.
    pub target: &'static Profile,
    /// Bits of SHADER_PRESENT.
    pub unused_cores: u32,
    /// Storage that was too small.
    pub grown: Vec<Grown>,
    /// Those that differ.
    pub settings: Vec<Setting>,
    /// Address, recorded bytes, new bytes.
    pub descriptors: Vec<(u64, Vec<u8>, Vec<u8>)>,
    /// How many were looked at.
    pub jobs: usize,
    storage: Vec<(u64, u64)>,
}

/// Counts jobs, if all could run unchanged.
///
/// # Errors
/// The first broken rule.
pub fn fits(
    verified: &Verified<'_>,
    target: &'static Profile,
    options: &Options,
) -> Result<usize, Refusal> {
    let unused = verified.recording().header().unused_cores.get();
    let (_, jobs) = proved(verified, target.without_cores(unused), target, options)?;
    check_for(verified, target)
        .map_err(|error| Refusal::new(TargetRule::Deep, error.to_string()))?;
    Ok(jobs.len())
}

fn unsound(error: DeepViolation) -> Refusal {
    Refusal::new(TargetRule::Sound, error.to_string())
}

fn proved(
    verified: &Verified<'_>,
    used_of_target: Profile,
    target: &'static Profile,
    options: &Options,
) -> Result<(Pair, Vec<Job>), Refusal> {
    let source = profile(verified).map_err(unsound)?;
    let unused = verified.recording().header().unused_cores.get();
    let pair = Pair {
        source,
        target,
        used_of_source: source.without_cores(unused),
        used_of_target,
        mixed: options.mix_versions,
    };
    check(verified).map_err(unsound)?;
    pair.version()?;
    pair.address_bits(verified.recording())?;
    let jobs = survey(verified, source.architecture.has_clauses())?;
    pair.jobs(&jobs)?;
    Ok((pair, jobs))
}

fn used_cores(verified: &Verified<'_>, target: &Profile, options: &Options) -> Profile {
    let unused = verified.recording().header().unused_cores.get();
    match profile(verified) {
        Ok(source) if options.limit_cores => {
            let range = source.without_cores(unused).core_id_range();
            target.without_cores(u32::MAX.checked_shl(range).unwrap_or(0))
        }
        _ => target.clone(),
    }
}

/// Makes a recording one of another GPU.
///
/// # Errors
/// The first broken rule.
pub fn retarget(
    verified: &Verified<'_>,
    target: &'static Profile,
    options: &Options,
) -> Result<Retargeted, Refusal> {
    let used_of_target = used_cores(verified, target, options);
    let (pair, jobs) = proved(verified, used_of_target, target, options)?;
    let recording = verified.recording();
    let (grown, pointers) = storage::plan(recording, &jobs, &pair.used_of_target)?;
    let unused_cores = (target.shader_present & !pair.used_of_target.shader_present) as u32;
    let mut words: BTreeSet<Word> = pointers
        .iter()
        .map(|(at, old, new)| (*at, old.to_le_bytes().into(), new.to_le_bytes().into()))
        .collect();
    if pair.source.architecture != target.architecture {
        words.extend(jobs.iter().filter_map(register_allocation));
    }
    let settings = settings(recording, target);
    let broken = |text: String| Refusal::new(TargetRule::Deep, text);
    let mut draft = Draft::new(recording);
    draft.platform = Platform {
        gpu_id: target.gpu_id.0,
        unused_cores,
        ..recording.header().platform()
    };
    draft.identity = identity(recording, target);
    draft.regions.extend(grown.iter().map(region));
    let values = settings.iter().map(|(at, one)| (*at, one.value)).collect();
    let places = places(verified, &words).map_err(|full| unsound(full.into()))?;
    rewrite(&mut draft, recording, &values, &places)
        .map_err(|fault| broken(format!("a malformed action: {fault:?}")))?;
    let bytes = draft.encode().map_err(|error| broken(error.to_string()))?;
    sound(&bytes, target)?;
    let mut storage = storage::ranges(&jobs, &pair.used_of_source);
    storage.extend(grown.iter().map(|one| {
        let bytes = u64::from(one.pages) * u64::from(gpureplay_format::PAGE_SIZE);
        (one.new, one.new.saturating_add(bytes))
    }));
    // What did not grow stays and holds enough.
    let kept = storage::ranges(&jobs, &pair.used_of_target).into_iter();
    storage.extend(kept.filter(|range| grown.iter().all(|one| one.old != range.0)));
    let settings = settings.into_iter().map(|(_, one)| one);
    Ok(Retargeted {
        bytes,
        source: pair.source,
        target,
        unused_cores,
        grown,
        settings: settings
            .filter(|one| one.value != Some(one.recorded))
            .collect(),
        descriptors: words.into_iter().collect(),
        jobs: jobs.len(),
        storage,
    })
}

/// `None` leaves a setting out; some actions are followed by uploads.
fn rewrite(
    draft: &mut Draft<'_>,
    recording: &Recording<'_>,
    settings: &BTreeMap<u32, Option<u32>>,
    patches: &BTreeMap<u32, Vec<Patch>>,
) -> Result<(), ActionFault> {
    for segment in recording.segments() {
        draft.segment(segment);
        for step in recording.steps(segment) {
            let step = step?;
            match settings.get(&step.number) {
                None => draft.push(*step.entry),
                Some(Some(value)) => draft.push(ActionEntry {
                    c: U32::new(*value),
                    ..*step.entry
                }),
                Some(None) => {}
            }
            let patches = patches.get(&step.number).map_or(&[][..], Vec::as_slice);
            let uploads = draft.store(patches);
            draft.insert(&uploads, step.after);
        }
    }
    Ok(())
}

fn sound(bytes: &[u8], target: &Profile) -> Result<(), Refusal> {
    let broken = |text: String| Refusal::new(TargetRule::Deep, text);
    let recording = Recording::parse(bytes).map_err(|error| broken(format!("{error:?}")))?;
    let verified = verify(&recording, &Limits::DEFAULT).map_err(|violation| {
        let rule = violation.rule;
        broken(format!("rule {}: {}", rule.name(), rule.meaning().trim()))
    })?;
    check_for(&verified, target).map_err(|error| broken(error.to_string()))?;
    Ok(())
}

fn region(grown: &Grown) -> Region {
    Region {
        va: U64::new(grown.new),
        pages: U32::new(grown.pages),
        access: Access::READ_WRITE.0,
        kind: RegionKind::Scratch.code(),
        zero: U16::ZERO,
    }
}

fn identity(recording: &Recording<'_>, target: &Profile) -> Vec<IdentityCheck> {
    let values: BTreeMap<u32, u32> = target.identity().collect();
    let checks = recording.identity().iter();
    checks
        .map(|check| {
            let value = values.get(&check.register.get()).copied().unwrap_or(0);
            IdentityCheck {
                value: U32::new(value & check.mask.get()),
                ..*check
            }
        })
        .collect()
}

fn settings(recording: &Recording<'_>, target: &Profile) -> Vec<(u32, Setting)> {
    let mut found = Vec::new();
    for segment in recording.segments() {
        let numbers = segment.first_action.get()..;
        for (number, action) in numbers.zip(recording.segment_actions(segment)) {
            let Ok(Action::Write { register, value }) = action else {
                continue;
            };
            let allowed = |bit: &u32| writable(target.gpu_id.0, register.into(), 1 << bit);
            let bits = (0..32)
                .filter(allowed)
                .fold(0, |bits, bit| bits | 1u32 << bit);
            let setting = Setting {
                register,
                recorded: value,
                value: match value & bits {
                    same if same == value => Some(value),
                    // Drivers with nothing to set do not write the register.
                    0 => None,
                    rest => Some(rest),
                },
            };
            found.push((number, setting));
        }
    }
    found
}

/// Version 6 has no such setting.
fn register_allocation(job: &Job) -> Option<Word> {
    let compute = job.compute.as_ref()?;
    let name = "Shader register allocation";
    let field = RendererState::LAYOUT.find(name)?;
    let old = *compute.state.words.get(field.word)?;
    let mask = ((1u32 << field.width) - 1) << field.bit;
    // 0: all 64 registers, as in version 6.
    let new = old & !mask;
    let at = compute.state_at.wrapping_add(field.word as u64 * 4);
    (old != new).then(|| (at, old.to_le_bytes().into(), new.to_le_bytes().into()))
}
