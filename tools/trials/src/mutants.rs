// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong in one point: the broken rule must refuse.

macro_rules! rows {
    ($($name:literal, $rule:expr => $file:expr;)*) => { vec![$(Mutant::new($name, $rule, $file)),*] };
}

mod deep;
mod file;
mod places;
mod program;
mod state;
mod streams;
mod tables;
mod trust;
mod valhall;

use std::collections::BTreeMap;

use gpureplay_core::{ErrorKind, Options, Workspace};
use gpureplay_format::layout::FAMILY_STREAMS;
use gpureplay_format::{Fault, Recording};
use gpureplay_library::Verified;
use mali_drive::Session;

use crate::parts::Parts;
use crate::rig::{Rig, Values, model};
use crate::shipped::Shipped;

/// A recording, wrong in one point.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What is wrong.
    pub name: &'static str,
    /// The rule that must refuse it.
    pub rule: &'static str,
    /// The recording.
    pub file: Vec<u8>,
    /// For mutants of signatures.
    pub signature: Option<Vec<u8>>,
    /// Another product, on which opening must fail.
    pub gpu: Option<u32>,
}

impl Mutant {
    fn new(name: &'static str, rule: &'static str, file: Vec<u8>) -> Self {
        Self {
            name,
            rule,
            file,
            signature: None,
            gpu: None,
        }
    }
}

/// A recording's mutants.
pub fn of(shipped: &Shipped) -> Vec<Mutant> {
    let Some(parts) = Parts::of(&shipped.bytes) else {
        return Vec::new();
    };
    let mut mutants = file::mutants(&parts);
    if parts.platform.family == FAMILY_STREAMS {
        mutants.extend(streams::mutants(&parts));
        return mutants;
    }
    mutants.extend(tables::mutants(&parts));
    mutants.extend(program::mutants(&parts));
    mutants.extend(state::mutants(&parts));
    mutants.extend(deep::mutants(&parts));
    mutants.extend(trust::mutants(&parts));
    mutants
}

/// By which rule; `None` if it would run.
pub fn refused_by(mutant: &Mutant) -> Option<&'static str> {
    if let Some(signature) = &mutant.signature {
        return trust::refused_by(&mutant.file, signature);
    }
    let recording = match Recording::parse(&mutant.file) {
        Ok(recording) => recording,
        Err(error) => return Some(format_rule(error.fault)),
    };
    let verified = match Verified::check(&recording) {
        Ok(verified) => verified,
        Err(violation) => return Some(violation.rule.name()),
    };
    if let Err(violation) = verified.deep() {
        return Some(violation.rule.name());
    }
    if let Err(broken) = gpureplay_library::host_rules::check(verified.recording()) {
        return Some(broken.rule.name());
    }
    let (gpu, Verified::Chains(verified)) = (mutant.gpu?, verified) else {
        return None;
    };
    let mut rig = Rig::new(model(gpu)).ok()?;
    let mut workspace = Box::new(Workspace::new());
    let mut values = Values::new(&verified);
    let options = Options::default();
    let opened = Session::open(&mut rig, verified, &mut workspace, options, &mut values);
    match opened.err()?.kind {
        ErrorKind::Identity { .. } => Some("identity"),
        _ => None,
    }
}

pub(crate) const fn format_rule(fault: Fault) -> &'static str {
    match fault {
        Fault::NotARecording => "format-magic",
        Fault::Version(_) => "format-version",
        Fault::Length => "format-length",
        Fault::Table => "format-table",
        Fault::NotZero => "format-zero",
        Fault::Checksum => "format-checksum",
        Fault::EntrySize => "format-entry-size",
        Fault::Name => "format-name",
    }
}

/// Count of refused mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// By rule: tried, refused by it.
    pub rules: BTreeMap<&'static str, (u64, u64)>,
    /// Different ways to be wrong.
    pub kinds: usize,
    /// Passed, or refused by another rule.
    pub survivors: Vec<String>,
}

/// All, or those of one rule.
pub fn tally(recordings: &[Shipped], only: Option<&str>) -> Tally {
    let mut tally = Tally::default();
    let mut kinds = std::collections::BTreeSet::new();
    for shipped in recordings {
        let wanted = |mutant: &Mutant| only.is_none_or(|only| only == mutant.rule);
        for mutant in of(shipped).into_iter().filter(wanted) {
            kinds.insert(mutant.name);
            let found = refused_by(&mutant);
            let entry = tally.rules.entry(mutant.rule).or_default();
            entry.0 += 1;
            if found == Some(mutant.rule) {
                entry.1 += 1;
            } else {
                tally.survivors.push(format!(
                    "{}: {}: rule {} expected, {} found",
                    shipped.name,
                    mutant.name,
                    mutant.rule,
                    found.unwrap_or("none")
                ));
            }
        }
    }
    tally.kinds = kinds.len();
    tally
}
