// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's signature.

use std::fmt;

use gpureplay_sign::PublicKey;

/// A signature's claim when no key is demanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seal {
    /// Only a key tells whether to trust the signer.
    Fits(PublicKey),
    /// Why it does not fit.
    Broken(String),
}

impl fmt::Display for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fits(signer) => {
                f.write_str("signed by ")?;
                let mut digits = signer.bytes().iter().take(4);
                digits.try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str("…, not checked (--require-signature KEY)")
            }
            Self::Broken(reason) => write!(f, "signature broken: {reason}"),
        }
    }
}
