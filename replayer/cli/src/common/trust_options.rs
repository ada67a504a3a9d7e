// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--require-signature`: whose recordings are accepted.

use clap::Args;
use gpureplay_library::Trust;

use crate::Result;
use crate::common::arguments::whole_number;

/// Whose recordings are accepted.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TrustOptions {
    /// Refuse a recording that is not signed with this key: a PEM file, or 64 hexadecimal digits
    #[arg(long, value_name = "KEY")]
    require_signature: Option<String>,
    /// Refuse a signature with a smaller counter
    #[arg(
        long,
        alias = "minimum-counter",
        value_name = "N",
        default_value_t = 0,
        requires = "require_signature",
        value_parser = whole_number::<u64>
    )]
    min_counter: u64,
}

impl TrustOptions {
    pub(crate) fn read(&self) -> Result<Trust> {
        let Some(key) = &self.require_signature else {
            return Ok(Trust::default());
        };
        Ok(Trust {
            minimum_counter: self.min_counter,
            ..Trust::with_key(key)?
        })
    }
}
