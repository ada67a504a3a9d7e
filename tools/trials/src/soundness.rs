// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random changes: accepted recordings stay in their pages, end in time, and leave a clean GPU.

use std::collections::BTreeMap;

use gpureplay_core::{
    DeviceError, ErrorKind, Family, Gpu, Limits, Options, Session, Verified, Violation, Workspace,
};
use gpureplay_format::Recording;
use gpureplay_format::layout::FAMILY_STREAMS;
use mali_facts::registers::gpu::{L2_READY_LO, SHADER_READY_LO};
use mali_facts::registers::job::JOB_INT_RAWSTAT;
use mali_facts::registers::mmu::MMU_INT_RAWSTAT;
use serde::{Deserialize, Serialize};

use crate::mutants::format_rule;
use crate::parts::Parts;
use crate::rig::{Rig, Values, model};

/// For recordings of strangers.
pub const LIMITS: Limits = Limits {
    pages: 1 << 15,
    wait_us: 60_000_000,
    total_us: 3_600_000_000,
    moved_bytes: 1 << 24,
};
/// Microseconds beyond a recording's waits.
pub const OVERHEAD_US: u64 = 2_000_000;

/// Bytes that decide the changes; zeros follow them.
pub struct Source<'a>(pub &'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn below(&mut self, bound: usize) -> usize {
        let word = (0..4).fold(0usize, |word, _| word << 8 | usize::from(self.byte()));
        word % bound.max(1)
    }
}

const TELLING: [u64; 10] = [
    0,
    1,
    0x40,
    0xfff,
    0x1000,
    0xffff_ffff,
    1 << 48,
    1 << 63,
    u64::MAX,
    0x1_0000_0000,
];

/// As `source` says.
pub fn mutate(parts: &mut Parts, source: &mut Source<'_>) {
    for _ in 0..=source.below(4) {
        let which = source.below(parts.sections.len());
        let section = &mut parts.sections[which];
        let length = section.len();
        if length < 8 {
            continue;
        }
        let at = source.below(length);
        match source.byte() % 8 {
            0 => section[at] ^= 1 << (source.byte() % 8),
            1 => section[at] = source.byte(),
            2 => {
                let (at, width) = (at & !3, [2, 4, 8][source.below(3)]);
                let value = TELLING[source.below(TELLING.len())].to_le_bytes();
                let end = (at + width).min(length);
                section[at..end].copy_from_slice(&value[..end - at]);
            }
            3 => {
                let at = (at & !3).min(length - 4);
                let old = u32::from_le_bytes([0, 1, 2, 3].map(|i| section[at + i]));
                let step = [1, 4, 16, 64, 0x1000][source.below(5)];
                let new = if source.byte() & 1 == 0 {
                    old.wrapping_add(step)
                } else {
                    old.wrapping_sub(step)
                };
                section[at..at + 4].copy_from_slice(&new.to_le_bytes());
            }
            4 | 5 => {
                let (to, from) = (at & !7, source.below(length) & !7);
                let end = (from + 8).min(length);
                let value = section[from..end].to_vec();
                for (index, byte) in (0..).zip(value) {
                    if let Some(place) = section.get_mut(to + index) {
                        *place = byte;
                    }
                }
            }
            6 if length >= 32 => {
                let (first, second) = (at / 16, source.below(length / 16));
                for index in 0..16 {
                    if first * 16 + index < length {
                        section.swap(first * 16 + index, second * 16 + index);
                    }
                }
            }
            _ => {
                let end = (at + source.below(64)).min(length);
                section[at..end].fill(source.byte());
            }
        }
    }
}

/// Result of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The parser's rule.
    Unparsed(&'static str),
    /// The broken rule.
    Refused(&'static str),
    /// To its end.
    Ran,
    /// An error of the job, the GPU or the caller.
    Failed(&'static str),
}

impl Verdict {
    /// The outcome's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unparsed(name) | Self::Refused(name) | Self::Failed(name) => name,
            Self::Ran => "ran",
        }
    }
}

const fn error_name(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Device(_) => "error-device",
        ErrorKind::Identity { .. } => "error-identity",
        ErrorKind::AddressRange(_) => "error-address-range",
        ErrorKind::NoSuchSlot(_) => "error-slot",
        ErrorKind::NoPower { .. } => "error-no-power",
        ErrorKind::JobTimeout { .. } => "error-job-timeout",
        ErrorKind::JobFault { .. } => "error-job-fault",
        ErrorKind::JobNotDone { .. } => "error-job-not-done",
        ErrorKind::MmuFault { .. } => "error-mmu-fault",
        ErrorKind::GpuFault { .. } => "error-gpu-fault",
        ErrorKind::Unbound { .. } => "error-unbound",
        ErrorKind::TensorSize { .. } => "error-tensor-size",
        ErrorKind::NoSuchSegment(_) => "error-segment",
        ErrorKind::Internal => "error-internal",
    }
}

/// Runs on the model.
///
/// # Errors
/// A broken promise.
pub fn check(file: &[u8]) -> Result<Verdict, String> {
    let recording = match Recording::parse(file) {
        Ok(recording) => recording,
        Err(error) => return Ok(Verdict::Unparsed(format_rule(error.fault))),
    };
    // The walk may refuse, but must not panic.
    match recording.header().family.get() {
        FAMILY_STREAMS => ended(
            file,
            mali_jobs::streams::verify(&recording, &LIMITS),
            |verified| drop(mali_jobs::walk::check_streams(verified)),
        ),
        _ => ended(file, mali_drive::verify(&recording, &LIMITS), |verified| {
            drop(mali_jobs::walk::check(verified));
        }),
    }
}

fn ended<F: Family>(
    file: &[u8],
    verified: Result<Verified<'_, F>, Violation>,
    walk: impl Fn(&Verified<'_, F>),
) -> Result<Verdict, String> {
    let verified = match verified {
        Ok(verified) => verified,
        Err(violation) => return Ok(Verdict::Refused(violation.rule.name())),
    };
    walk(&verified);
    let recording = verified.recording();
    let mut rig = Rig::new(model(recording.gpu_id())).map_err(|error| error.to_string())?;
    let mut workspace = Box::new(Workspace::new());
    let mut values = Values::new(&verified);
    let options = Options {
        ignore_identity: true,
    };
    let states = states(recording, file);
    let runs = if states.is_empty() { 1 } else { 2 };
    let bound = waits_us(recording) * (1 + runs) + OVERHEAD_US;
    let mut strange = None;
    let result = Session::open(&mut rig, verified, &mut workspace, options, &mut values).and_then(
        |mut session| {
            for _ in 0..runs {
                session.run(&mut values)?;
                for state in &states {
                    let left = values.outputs.get(*state as usize);
                    let mut there = vec![0; left.map_or(0, Vec::len)];
                    session.read_tensor(*state, &mut there)?;
                    if left != Some(&there) {
                        strange = Some(*state);
                    }
                }
            }
            session.finish()
        },
    );
    if let Some(state) = strange {
        return Err(format!("state {state} is not what the run gave"));
    }
    let surprising = matches!(
        result.map_err(|error| error.kind),
        Err(ErrorKind::Device(DeviceError::NotMapped(_)) | ErrorKind::Internal)
    );
    if surprising {
        return Err(format!("what was verified met {result:?}"));
    }
    is_clean(&mut rig)?;
    let time = rig.now_us();
    if time > bound {
        return Err(format!("took {time} µs, its bound is {bound} µs"));
    }
    Ok(match result {
        Ok(()) => Verdict::Ran,
        Err(error) => Verdict::Failed(error_name(&error.kind)),
    })
}

/// Those that must be in memory for the next run; none where a recording breaks the host's rules.
fn states(recording: &Recording<'_>, file: &[u8]) -> Vec<u32> {
    let kind = gpureplay_format::TensorKind::State.code();
    let tensors = (0..).zip(recording.tensors());
    let states: Vec<u32> = tensors
        .filter(|(_, entry)| entry.kind == kind)
        .map(|(index, _)| index)
        .collect();
    match states.is_empty() || gpureplay_library::Recording::from_bytes(file.to_vec()).is_err() {
        true => Vec::new(),
        false => states,
    }
}

/// Nothing touched outside, all pages back, GPU reset.
///
/// # Errors
/// What does not hold.
pub fn is_clean(rig: &mut Rig) -> Result<(), String> {
    let (strays, spoilt, pages) = (rig.strays(), rig.spoilt(), rig.pages());
    if (strays, spoilt, pages) != (0, 0, 0) {
        return Err(format!(
            "{strays} accesses outside, {spoilt} bytes of others changed, {pages} pages lost"
        ));
    }
    for register in [
        SHADER_READY_LO,
        L2_READY_LO,
        JOB_INT_RAWSTAT,
        MMU_INT_RAWSTAT,
    ] {
        let value = rig.read32(register);
        if value != 0 {
            return Err(format!(
                "register {register:#x} is {value:#x} after the reset"
            ));
        }
    }
    Ok(())
}

/// Sum of waits.
pub fn waits_us(recording: &Recording<'_>) -> u64 {
    use gpureplay_format::Action::{Launch, Submit};
    let segments = recording.segments().iter();
    let actions = segments.flat_map(|segment| recording.segment_actions(segment).flatten());
    actions
        .map(|action| match action {
            Submit { timeout_us, .. } | Launch { timeout_us, .. } => timeout_us.into(),
            _ => 0u64,
        })
        .sum()
}

/// Counts of many rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Recordings made.
    pub tried: u64,
    /// Not recordings.
    pub unparsed: u64,
    /// By a rule.
    pub refused: u64,
    /// To the end.
    pub ran: u64,
    /// With a typed error.
    pub failed: u64,
}

/// First seed by recording and outcome.
pub type Corpus = BTreeMap<String, BTreeMap<String, u64>>;

/// A seed's recording.
pub fn changed(original: &Parts, seed: u64) -> Parts {
    let mut bytes = [0; 256];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for byte in &mut bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = (state >> 24) as u8;
    }
    let mut parts = original.clone();
    mutate(&mut parts, &mut Source(&bytes));
    parts
}

/// Keeps seeds with new outcomes.
///
/// # Errors
/// The first seed with a broken promise.
pub fn rounds(
    original: &Parts,
    seeds: impl IntoIterator<Item = u64>,
    counts: &mut Counts,
    corpus: &mut BTreeMap<String, u64>,
) -> Result<(), String> {
    for seed in seeds {
        let file = changed(original, seed).file();
        let verdict = check(&file).map_err(|error| format!("seed {seed}: {error}"))?;
        counts.tried += 1;
        *match verdict {
            Verdict::Unparsed(_) => &mut counts.unparsed,
            Verdict::Refused(_) => &mut counts.refused,
            Verdict::Ran => &mut counts.ran,
            Verdict::Failed(_) => &mut counts.failed,
        } += 1;
        corpus.entry(verdict.name().to_owned()).or_insert(seed);
    }
    Ok(())
}
