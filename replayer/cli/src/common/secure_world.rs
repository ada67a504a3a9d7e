// SPDX-License-Identifier: MIT OR Apache-2.0
//! The secure world, for `gpureplay doctor`.

use std::time::Duration;

use gpureplay_linux::machine::Finding;
use gpureplay_linux::optee::{Client, Error};

pub(crate) const SUBJECT: &str = "OP-TEE";

const WAIT: Duration = Duration::from_secs(20);

/// Only asks whether the application answers: the GPU keeps its owner.
pub(crate) fn finding() -> Finding {
    let (good, found, cure) = match Client::open_within(WAIT) {
        Ok(_) => (
            true,
            "its trusted application answers: --device optee".to_owned(),
            None,
        ),
        Err(error) => {
            let cure = match error {
                Error::NoDriver { .. } => {
                    "boot with a secure world and load the kernel's module optee (docs/optee.md); needed for --device optee only"
                }
                Error::Permission { .. } => "run as root; needed for --device optee only",
                _ => {
                    "docs/optee.md says what the secure world must hold; needed for --device optee only"
                }
            };
            (false, error.to_string(), Some(cure.to_owned()))
        }
    };
    Finding {
        subject: SUBJECT,
        good,
        found,
        cure,
    }
}
