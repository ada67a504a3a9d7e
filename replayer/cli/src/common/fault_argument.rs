// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--inject`: a deliberate fault.

use std::str::FromStr;

use gpureplay_library::device::{Device, Fault};
use mali_drive::middleware::FaultKind;

use crate::Result;
use crate::common::failure::Failure;

/// `KIND@CALL` or `SEED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inject(pub(crate) Fault);

impl FromStr for Inject {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Ok(seed) = text.parse() {
            return Ok(Self(Fault::Seed(seed)));
        }
        let found = text.split_once('@').and_then(|(name, at)| {
            let kind = FaultKind::ALL.iter().find(|kind| kind.name() == name)?;
            Some(Self(Fault::At(*kind, at.parse().ok()?)))
        });
        found.ok_or_else(|| {
            let names: Vec<&str> = FaultKind::ALL.iter().map(|kind| kind.name()).collect();
            format!(
                "expected KIND@CALL or a seed; kinds are {}",
                names.join(", ")
            )
        })
    }
}

impl Inject {
    pub(crate) fn must_have_happened(self, device: Option<&mut Device>) -> Result<()> {
        match device.and_then(|device| device.fault()) {
            Some((calls, false)) => Err(self.never(calls)),
            _ => Ok(()),
        }
    }

    pub(crate) fn never(self, calls: u64) -> Failure {
        let fault = match self.0 {
            Fault::At(kind, at) => format!("{}@{at}", kind.name()),
            Fault::Seed(seed) => seed.to_string(),
        };
        Failure::Usage(format!(
            "--inject {fault}: the fault never happened; the replay made {calls} calls, and not each of them can be disturbed in each way"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_named_by_kind_and_call_or_by_a_seed() {
        assert_eq!("7".parse(), Ok(Inject(Fault::Seed(7))));
        assert_eq!(
            "job-fault@12".parse(),
            Ok(Inject(Fault::At(FaultKind::FailedJob, 12)))
        );
        for wrong in ["", "job-fault", "job-fault@", "nothing@3", "-1"] {
            assert!(wrong.parse::<Inject>().is_err(), "{wrong}");
        }
    }
}
