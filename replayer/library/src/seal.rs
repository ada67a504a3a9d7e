// SPDX-License-Identifier: MIT OR Apache-2.0
//! The signature of a recording for which no key is demanded: whose it claims to be, and whether it fits.

use std::fmt;

use gpureplay_sign::PublicKey;

/// What the signature of a recording says when no key is demanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seal {
    /// It fits. Whether its signer is to be trusted only a key can tell.
    Fits(PublicKey),
    /// It does not fit, and why.
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
