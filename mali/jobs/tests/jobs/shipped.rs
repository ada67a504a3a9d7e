// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shipped recordings keep the rules.

use std::path::Path;

use gpureplay_core::Limits;
use gpureplay_format::{Opcode, Recording};
use mali_drive::verify;
use mali_facts::walk::Purpose;
use mali_jobs::streams;
use mali_jobs::walk::{check, check_streams};

#[test]
fn shipped_recordings_keep_the_rules() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings");
    let mut seen = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path().join("recording.gpr");
        let bytes = std::fs::read(&path).unwrap();
        let recording = Recording::parse(&bytes).unwrap();
        let (limits, in_streams) = (&Limits::DEFAULT, recording.header().family.get() != 0);
        let report = match in_streams {
            true => check_streams(&streams::verify(&recording, limits).unwrap()),
            false => check(&verify(&recording, limits).unwrap()),
        };
        let report = report.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let work = [Opcode::Submit, Opcode::Launch][usize::from(in_streams)];
        let segments = recording.segments().iter();
        let submits: u32 = segments.map(|s| recording.count(s, work)).sum();
        assert_eq!(report.chains.len(), submits as usize);
        for job in report.jobs().filter(|job| job.kind == "COMPUTE") {
            let purposes: Vec<_> = job.uses.iter().map(|it| it.purpose).collect();
            assert!(
                purposes.contains(&Purpose::Shader),
                "{}: {job:?}",
                path.display()
            );
            assert!(!job.pointers.is_empty(), "{}: {job:?}", path.display());
        }
        seen += 1;
    }
    assert!(seen >= 4);
}
