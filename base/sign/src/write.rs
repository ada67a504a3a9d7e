// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes signatures and packs.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use ed25519_compact::{KeyPair, Seed};
use gpureplay_format::checksum::checksum;
use sha2::{Digest, Sha256};

use crate::names::{MAX_FILES, is_safe};
use crate::pack::table_checksum;
use crate::signature::PublicKey;
use crate::{RECORDING, SIGNATURE};

/// Why neither could be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// Bad ([`is_safe`]), or the recording's or its signature's.
    Name(String),
    /// More than [`MAX_FILES`] files.
    TooManyFiles,
    /// A pack without a recording.
    NoRecording,
    /// 32 zero bytes are no key.
    WeakKey,
    /// No key of the expected kind.
    NotAKey,
}

/// Ed25519 secret key: the seed of RFC 8032.
#[derive(Clone)]
pub struct SecretKey(KeyPair);

impl SecretKey {
    /// The seed must come from a good random source.
    ///
    /// # Errors
    /// All zeros.
    pub fn from_seed(seed: [u8; 32]) -> Result<Self, WriteError> {
        let pair = KeyPair::try_from_seed(Seed::new(seed));
        pair.map(Self).map_err(|_| WriteError::WeakKey)
    }

    /// Its seed.
    pub fn seed(&self) -> [u8; 32] {
        *self.0.sk.seed()
    }

    /// OpenSSL's PEM (PKCS#8).
    ///
    /// # Errors
    /// No such key.
    pub fn from_pem(text: &str) -> Result<Self, WriteError> {
        let pair = KeyPair::from_pem(text);
        pair.map(Self).map_err(|_| WriteError::NotAKey)
    }

    /// PEM for OpenSSL; keep it secret.
    pub fn to_pem(&self) -> String {
        self.0.sk.to_pem()
    }

    /// Key for checking signatures.
    pub fn public(&self) -> PublicKey {
        PublicKey::new(*self.0.pk)
    }
}

impl PublicKey {
    /// OpenSSL's PEM (SubjectPublicKeyInfo), or 64 hexadecimal digits.
    ///
    /// # Errors
    /// No such key, or one of small order.
    pub fn from_text(text: &str) -> Result<Self, WriteError> {
        let bytes = match ed25519_compact::PublicKey::from_pem(text) {
            Ok(key) => *key,
            Err(_) => from_hexadecimal(text.trim()).ok_or(WriteError::NotAKey)?,
        };
        let key = Self::new(bytes);
        key.is_sound().then_some(key).ok_or(WriteError::WeakKey)
    }

    /// PEM for OpenSSL.
    pub fn to_pem(&self) -> String {
        ed25519_compact::PublicKey::new(*self.bytes()).to_pem()
    }
}

fn from_hexadecimal(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        for &digit in pair {
            *byte = *byte << 4 | char::from(digit).to_digit(16)? as u8;
        }
    }
    Some(bytes)
}

impl core::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SecretKey")
    }
}

/// SHA-256 of a file.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Deterministic; file contents by name.
///
/// # Errors
/// Bad names, or too many.
pub fn sign(
    key: &SecretKey,
    counter: u64,
    recording: &[u8],
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<Vec<u8>, WriteError> {
    check_names(files.keys().map(String::as_str))?;
    let mut statement = Vec::new();
    statement.extend(crate::signature::MAGIC);
    statement.extend(u32::from(crate::signature::MAJOR).to_le_bytes());
    statement.extend((files.len() as u32).to_le_bytes());
    statement.extend(counter.to_le_bytes());
    statement.extend((recording.len() as u64).to_le_bytes());
    statement.extend(key.public().bytes());
    for (name, contents) in files {
        statement.extend(digest(contents));
        statement.extend((contents.len() as u64).to_le_bytes());
        statement.extend((name.len() as u32).to_le_bytes());
        statement.extend([0; 4]);
    }
    for name in files.keys() {
        statement.extend(name.bytes());
    }
    let length = statement.len();
    statement.extend(recording);
    let seal = key.0.sk.sign(&statement, None);
    statement.truncate(length);
    statement.extend(*seal);
    Ok(statement)
}

fn check_names<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), WriteError> {
    for (index, name) in (0..).zip(names) {
        if !is_safe(name) || name == RECORDING || name == SIGNATURE {
            return Err(WriteError::Name(name.into()));
        }
        if index >= MAX_FILES - 2 {
            return Err(WriteError::TooManyFiles);
        }
    }
    Ok(())
}

/// Contents by name: the recording, perhaps its signature.
///
/// # Errors
/// Bad names, too many, or no recording.
pub fn pack(files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>, WriteError> {
    let recording = files.get(RECORDING).ok_or(WriteError::NoRecording)?;
    let beside = files.iter().filter(|(name, _)| *name != RECORDING);
    let others = beside.clone().map(|(name, _)| name.as_str());
    check_names(others.filter(|name| *name != SIGNATURE))?;
    let all: Vec<(&str, &Vec<u8>)> = core::iter::once((RECORDING, recording))
        .chain(beside.map(|(name, contents)| (name.as_str(), contents)))
        .collect();
    let names: Vec<u8> = all.iter().flat_map(|(name, _)| name.bytes()).collect();
    let mut rest = Vec::new();
    let mut contents = Vec::new();
    let start =
        crate::pack::HEADER + all.len() * crate::pack::ENTRY + names.len().next_multiple_of(8);
    for (name, bytes) in &all {
        let offset = contents.len();
        contents.extend_from_slice(bytes);
        contents.resize(contents.len().next_multiple_of(8), 0);
        let sum = checksum(contents.get(offset..).unwrap_or(&[]));
        rest.extend(((start + offset) as u64).to_le_bytes());
        rest.extend((bytes.len() as u64).to_le_bytes());
        rest.extend(sum.to_le_bytes());
        rest.extend((name.len() as u32).to_le_bytes());
        rest.extend([0; 4]);
    }
    rest.extend_from_slice(&names);
    rest.resize(rest.len().next_multiple_of(8), 0);
    let mut header = Vec::new();
    header.extend(crate::pack::MAGIC);
    header.extend(u32::from(crate::pack::MAJOR).to_le_bytes());
    header.extend((all.len() as u32).to_le_bytes());
    header.extend(((start + contents.len()) as u64).to_le_bytes());
    header.extend([0; 8]);
    header.extend((names.len() as u32).to_le_bytes());
    header.resize(crate::pack::HEADER, 0);
    let mut fixed = [0; crate::pack::HEADER];
    fixed.copy_from_slice(&header);
    header.splice(24..32, table_checksum(&fixed, &rest).to_le_bytes());
    header.extend(rest);
    header.extend(contents);
    Ok(header)
}
