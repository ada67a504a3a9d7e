// SPDX-License-Identifier: MIT OR Apache-2.0
//! A detached signature of a recording and its files.

use crate::bytes::{array, u32_at, u64_at};
use crate::error::SignatureError;
use crate::names::{MAX_FILES, MAX_NAME, safe};

pub(crate) const MAGIC: [u8; 8] = *b"GPURESIG";
pub(crate) const MAJOR: u16 = 1;
pub(crate) const HEADER: usize = 64;
pub(crate) const ENTRY: usize = 48;
/// The final Ed25519 signature.
pub(crate) const SEAL: usize = 64;

/// In bytes: most files, longest names.
pub const MAX_SIGNATURE: u64 = (HEADER + SEAL + MAX_FILES as usize * (ENTRY + MAX_NAME)) as u64;

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// RFC 8032. Checking shows whether it may be used.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Canonical, on the curve, of large order.
    pub fn is_sound(&self) -> bool {
        ed25519_compact::PublicKey::new(self.0).validate().is_ok()
    }
}

/// Well-formed; untrusted before [`Signature::verify`].
#[derive(Clone, Copy, Debug)]
pub struct Signature<'a> {
    bytes: &'a [u8],
    seal: [u8; SEAL],
    files: u32,
}

/// A signed file beside the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignedFile<'a> {
    /// Relative to the recording's directory.
    pub name: &'a str,
    /// In bytes.
    pub length: u64,
    /// Of the contents.
    pub sha256: [u8; 32],
}

/// Files of a signature by ascending name.
#[derive(Clone, Copy, Debug)]
pub struct SignedFiles<'a> {
    table: &'a [u8],
    names: &'a [u8],
}

impl<'a> Iterator for SignedFiles<'a> {
    type Item = SignedFile<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (entry, table) = self.table.split_at_checked(ENTRY)?;
        let length = usize::try_from(u32_at(entry, 40)).ok()?;
        let (name, names) = self.names.split_at_checked(length)?;
        (self.table, self.names) = (table, names);
        Some(SignedFile {
            name: safe(name)?,
            length: u64_at(entry, 32),
            sha256: array(entry, 0)?,
        })
    }
}

/// Signed by a key's owner.
#[derive(Clone, Copy, Debug)]
pub struct Trusted<'a> {
    /// Its bytes.
    pub recording: &'a [u8],
    /// Remember the largest one that ran, to refuse older recordings.
    pub counter: u64,
    /// Its files.
    pub files: SignedFiles<'a>,
}

impl<'a> Signature<'a> {
    /// Form only, in linear time.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, SignatureError> {
        if array(bytes, 0) != Some(MAGIC) {
            return Err(SignatureError::NotASignature);
        }
        let version = u32_at(bytes, 8);
        if version as u16 != MAJOR {
            return Err(SignatureError::Version(version as u16));
        }
        let files = u32_at(bytes, 12);
        let end = bytes.len().checked_sub(SEAL);
        let end = end.filter(|&end| end >= HEADER && version >> 16 == 0 && files <= MAX_FILES);
        let (Some(statement), Some(seal)) = (
            end.and_then(|end| bytes.get(..end)),
            end.and_then(|end| array(bytes, end)),
        ) else {
            return Err(SignatureError::Shape);
        };
        let signature = Self {
            bytes: statement,
            seal,
            files,
        };
        let Some(mut list) = signature.list() else {
            return Err(SignatureError::Shape);
        };
        let mut before = "";
        for index in 0..files {
            if list.table.get(44..48) != Some(&[0; 4]) {
                return Err(SignatureError::Shape);
            }
            match list.next() {
                Some(file) if file.name > before => before = file.name,
                _ => return Err(SignatureError::Name(index)),
            }
        }
        if !list.names.is_empty() {
            return Err(SignatureError::Shape);
        }
        Ok(signature)
    }

    fn list(&self) -> Option<SignedFiles<'a>> {
        let rest = self.bytes.get(HEADER..)?;
        let (table, names) = rest.split_at_checked(self.files as usize * ENTRY)?;
        Some(SignedFiles { table, names })
    }

    /// Claimed counter.
    pub fn counter(&self) -> u64 {
        u64_at(self.bytes, 16)
    }

    /// Claimed length of the recording, in bytes.
    pub fn recording_length(&self) -> u64 {
        u64_at(self.bytes, 24)
    }

    /// Claimed key.
    pub fn signer(&self) -> PublicKey {
        PublicKey(array(self.bytes, 32).unwrap_or_default())
    }

    /// Claimed files.
    pub fn files(&self) -> SignedFiles<'a> {
        let none = SignedFiles {
            table: &[],
            names: &[],
        };
        self.list().unwrap_or(none)
    }

    /// Requires `key`'s signature and a counter of at least `minimum`.
    ///
    /// Compare each file with its [`SignedFile`] before use.
    ///
    /// # Errors
    /// Why not to trust it.
    pub fn verify(
        &self,
        recording: &'a [u8],
        key: &PublicKey,
        minimum: u64,
    ) -> Result<Trusted<'a>, SignatureError> {
        if self.signer() != *key {
            return Err(SignatureError::Key);
        }
        if self.recording_length() != recording.len() as u64 {
            return Err(SignatureError::RecordingLength(self.recording_length()));
        }
        let seal = ed25519_compact::Signature::new(self.seal);
        let key = ed25519_compact::PublicKey::new(key.0);
        let mut state = key.verify_incremental(&seal).map_err(|error| match error {
            ed25519_compact::Error::WeakPublicKey | ed25519_compact::Error::InvalidPublicKey => {
                SignatureError::WeakKey
            }
            _ => SignatureError::Forged,
        })?;
        state.absorb(self.bytes);
        state.absorb(recording);
        state.verify().map_err(|_| SignatureError::Forged)?;
        // Only now is it the signer's.
        let counter = self.counter();
        if counter < minimum {
            return Err(SignatureError::Rollback { counter, minimum });
        }
        Ok(Trusted {
            recording,
            counter,
            files: self.files(),
        })
    }
}
