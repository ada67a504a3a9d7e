// SPDX-License-Identifier: MIT OR Apache-2.0
//! Short trials.

use std::collections::BTreeMap;

use gpureplay_trials::soundness::{Counts, Verdict};
use gpureplay_trials::{Parts, corpus, faults, fingerprints, shipped, soundness};
use mali_drive::middleware::FaultKind;

#[test]
fn faults_are_survived() {
    let digits = shipped::named("digits-g52").unwrap();
    let summary = faults::campaign(&digits.bytes, (FaultKind::ALL, 19), |_| ()).unwrap();
    let injected: u64 = summary.rows.iter().map(|row| row.injected).sum();
    let errors: u64 = summary.rows.iter().map(|row| row.errors).sum();
    println!("{summary:?}");
    assert!(injected >= 60 && errors >= 30, "{summary:?}");
    assert!(
        summary.rows.iter().all(|row| row.injected > 0),
        "{summary:?}"
    );
}

#[test]
fn what_verifies_stays_inside() {
    let mut counts = Counts::default();
    for shipped in shipped::all().unwrap() {
        let parts = Parts::of(&shipped.bytes).unwrap();
        assert_eq!(parts.file(), shipped.bytes, "{}", shipped.name);
        // Else its changes would end at the same limit.
        let unchanged = soundness::check(&shipped.bytes);
        assert_eq!(unchanged, Ok(Verdict::Ran), "{}", shipped.name);
        let seen = &mut BTreeMap::new();
        let rounds = if shipped.is_long() { 8 } else { 80 };
        soundness::rounds(&parts, 0..rounds, &mut counts, seen).unwrap();
    }
    assert!(counts.ran + counts.failed > 20, "{counts:?}");
}

#[test]
fn streams_stay_inside_and_leave_the_same_each_time() {
    let digits = shipped::named("digits-g610").unwrap();
    assert_eq!(soundness::check(&digits.bytes), Ok(Verdict::Ran));
    let found = fingerprints::of(&digits).unwrap();
    assert_eq!(found, fingerprints::of(&digits).unwrap());
    // Identity registers, set-up's launches, and two runs' launches.
    assert_eq!(found.accesses, 4 + 8 + 2 * 11);
    let parts = Parts::of(&digits.bytes).unwrap();
    let mut counts = Counts::default();
    soundness::rounds(&parts, 0..200, &mut counts, &mut BTreeMap::new()).unwrap();
    assert!(counts.ran > 10 && counts.refused > 10, "{counts:?}");
}

#[test]
fn kept_seeds_stay_inside() {
    let corpus = corpus::read().unwrap();
    let mut counts = Counts::default();
    for shipped in shipped::all().unwrap() {
        let kept = corpus.get(&shipped.name).filter(|_| !shipped.is_long());
        let Some(kept) = kept else {
            continue;
        };
        let parts = Parts::of(&shipped.bytes).unwrap();
        let seen = &mut BTreeMap::new();
        soundness::rounds(&parts, kept.values().copied(), &mut counts, seen).unwrap();
    }
    assert!(counts.tried > 40, "{counts:?}");
}

#[test]
fn every_mutant_is_refused_by_its_rule() {
    let recordings = shipped::all().unwrap();
    for shipped in &recordings {
        let untouched = gpureplay_trials::mutants::Mutant {
            name: "untouched",
            rule: "",
            file: shipped.bytes.clone(),
            signature: None,
            gpu: None,
        };
        assert_eq!(gpureplay_trials::mutants::refused_by(&untouched), None);
    }
    let tally = gpureplay_trials::mutants::tally(&recordings, None);
    println!("{} kinds, {:?}", tally.kinds, tally.rules);
    assert!(tally.survivors.is_empty(), "{:#?}", tally.survivors);
    assert!(tally.kinds >= 100);
    // Rules beyond these recordings, or for other crates' tests.
    let states = gpureplay_library::host_rules::HostRule::ALL
        .iter()
        .map(|rule| rule.name())
        .filter(|name| name.starts_with("state-"));
    let missing: Vec<_> = gpureplay_core::Rule::ALL
        .iter()
        .map(|rule| rule.name())
        .chain(
            mali_jobs::walk::DeepRule::ALL
                .iter()
                .map(|rule| rule.name()),
        )
        .chain(states)
        .filter(|name| !tally.rules.contains_key(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
