// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bad signatures, and one that meets another GPU.

use std::collections::BTreeMap;

use gpureplay_sign::{SecretKey, Signature, SignatureError, sign};

use super::Mutant;
use crate::parts::Parts;

const MINIMUM: u64 = 7;

fn key(seed: u8) -> Option<SecretKey> {
    SecretKey::from_seed([seed; 32]).ok()
}

pub(super) fn refused_by(file: &[u8], signature: &[u8]) -> Option<&'static str> {
    let trusted = key(1)?.public();
    let verified = Signature::parse(signature)
        .and_then(|signature| signature.verify(file, &trusted, MINIMUM).map(drop));
    Some(match verified.err()? {
        SignatureError::Key => "signature-key",
        SignatureError::Rollback { .. } => "signature-rollback",
        SignatureError::Forged => "signature-forged",
        SignatureError::RecordingLength(_) => "signature-length",
        SignatureError::NotASignature | SignatureError::Version(_) => "signature-magic",
        SignatureError::Shape | SignatureError::Name(_) | SignatureError::WeakKey => {
            "signature-shape"
        }
    })
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let file = parts.file();
    let mut mutants = Vec::new();
    let mut wrong_gpu = Mutant::new("run on another GPU", "identity", file.clone());
    // A Mali-G76.
    wrong_gpu.gpu = Some(0x7211_0000);
    mutants.push(wrong_gpu);
    let signed = |seed: u8, counter: u64| {
        let files = BTreeMap::from([("manifest.toml".to_owned(), b"version = 1".to_vec())]);
        sign(&key(seed)?, counter, &file, &files).ok()
    };
    let (Some(right), Some(other), Some(old)) = (signed(1, 7), signed(2, 7), signed(1, 6)) else {
        return mutants;
    };
    debug_assert_eq!(refused_by(&file, &right), None);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = right.clone();
        change(&mut changed);
        changed
    };
    let last = right.len() - 1;
    let mut changed = file.clone();
    changed[100] ^= 1;
    let longer = [&file[..], &[0]].concat();
    macro_rules! signed {
        ($($name:literal, $rule:literal => $file:expr, $signature:expr;)*) => {
            $(let mut mutant = Mutant::new($name, $rule, $file.clone());
            mutant.signature = Some($signature);
            mutants.push(mutant);)*
        };
    }
    signed! {
        "flipped bit of the signature", "signature-forged" => file, with(&|s| s[last] ^= 1);
        "flipped bit of a signed hash", "signature-forged" => file, with(&|s| s[64] ^= 1);
        "raised counter", "signature-forged" => file, with(&|s| s[16] += 1);
        "changed recording", "signature-forged" => changed, right.clone();
        "longer recording", "signature-length" => longer, right.clone();
        "signature with another key", "signature-key" => file, other;
        "older recording", "signature-rollback" => file, old;
        "truncated signature", "signature-shape" => file, with(&|s| s.truncate(last));
        "no signature", "signature-magic" => file, Vec::new();
        "signed name that leaves the directory", "signature-shape" => file, with(&|s| s[112] = b'/');
    }
    mutants
}
