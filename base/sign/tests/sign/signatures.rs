// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accepts what is written, and nothing else.

use std::collections::BTreeMap;

use gpureplay_sign::{
    Pack, PackError, PublicKey, SecretKey, Signature, SignatureError, WriteError, digest, pack,
    sign,
};

const RECORDING: &[u8] = b"the bytes of a recording, whatever they are";

fn key() -> SecretKey {
    SecretKey::from_seed([7; 32]).unwrap()
}

fn files() -> BTreeMap<String, Vec<u8>> {
    [
        ("manifest.toml", "version = 1".as_bytes().to_vec()),
        ("inputs/a.npy", vec![1, 2, 3]),
        ("weights/w.npy", vec![]),
    ]
    .map(|(name, bytes)| (name.to_owned(), bytes))
    .into()
}

fn verify(bytes: &[u8], recording: &[u8]) -> Result<u64, SignatureError> {
    let signature = Signature::parse(bytes)?;
    let trusted = signature.verify(recording, &key().public(), 3)?;
    Ok(trusted.counter)
}

#[test]
fn a_signature_is_accepted_and_says_what_it_covers() {
    let bytes = sign(&key(), 5, RECORDING, &files()).unwrap();
    assert_eq!(verify(&bytes, RECORDING), Ok(5));
    let signature = Signature::parse(&bytes).unwrap();
    let covered: Vec<_> = signature.files().collect();
    assert_eq!(covered.len(), 3);
    for file in covered {
        let contents = &files()[file.name];
        assert_eq!(
            (file.length, file.sha256),
            (contents.len() as u64, digest(contents))
        );
    }
    assert_eq!(sign(&key(), 5, RECORDING, &files()).unwrap(), bytes);
}

#[test]
fn every_flipped_bit_is_refused() {
    let bytes = sign(&key(), 5, RECORDING, &files()).unwrap();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(
            verify(&changed, RECORDING).is_err(),
            "bit {bit} of the signature"
        );
    }
    for bit in 0..RECORDING.len() * 8 {
        let mut changed = RECORDING.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(
            verify(&bytes, &changed),
            Err(SignatureError::Forged),
            "bit {bit} of the recording"
        );
    }
}

#[test]
fn every_other_length_is_refused() {
    let bytes = sign(&key(), 5, RECORDING, &files()).unwrap();
    for length in 0..bytes.len() {
        assert!(
            verify(&bytes[..length], RECORDING).is_err(),
            "{length} bytes"
        );
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert_eq!(verify(&longer, RECORDING), Err(SignatureError::Shape));
    let shorter = &RECORDING[1..];
    assert_eq!(
        verify(&bytes, shorter),
        Err(SignatureError::RecordingLength(RECORDING.len() as u64))
    );
    // The recording in the place of all after the header.
    assert!(verify(&[&bytes[..64], RECORDING].concat(), RECORDING).is_err());
}

#[test]
fn another_key_and_an_older_counter_are_refused() {
    let other = SecretKey::from_seed([8; 32]).unwrap();
    let bytes = sign(&other, 5, RECORDING, &files()).unwrap();
    assert_eq!(verify(&bytes, RECORDING), Err(SignatureError::Key));
    // The trusted key's name over another key's signature.
    let mut renamed = bytes.clone();
    renamed[32..64].copy_from_slice(key().public().bytes());
    assert_eq!(verify(&renamed, RECORDING), Err(SignatureError::Forged));
    let old = sign(&key(), 2, RECORDING, &files()).unwrap();
    let rollback = SignatureError::Rollback {
        counter: 2,
        minimum: 3,
    };
    assert_eq!(verify(&old, RECORDING), Err(rollback));
    let least = sign(&key(), 3, RECORDING, &files()).unwrap();
    assert_eq!(verify(&least, RECORDING), Ok(3));
    // Small order accepts any signature.
    for weak in [[0; 32], {
        let mut identity = [0; 32];
        identity[0] = 1;
        identity
    }] {
        let key = PublicKey::new(weak);
        assert!(!key.is_sound());
        let mut forged = bytes.clone();
        forged[32..64].copy_from_slice(&weak);
        let signature = Signature::parse(&forged).unwrap();
        let refused = signature.verify(RECORDING, &key, 0).unwrap_err();
        assert_eq!(refused, SignatureError::WeakKey);
    }
}

/// Test 2 of RFC 8032, section 7.1: Ed25519, not only its own inverse.
#[test]
fn the_key_is_that_of_rfc_8032() {
    let hex = |text: &str| -> [u8; 32] {
        let byte = |at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap();
        std::array::from_fn(byte)
    };
    let seed = hex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
    let public = hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
    let key = SecretKey::from_seed(seed).unwrap();
    assert_eq!(key.public().bytes(), &public);
    assert_eq!(key.seed(), seed);
    assert_eq!(format!("{key:?}"), "SecretKey", "a secret is not printed");
    assert_eq!(
        SecretKey::from_seed([0; 32]).unwrap_err(),
        WriteError::WeakKey
    );
}

#[test]
fn names_that_leave_the_directory_are_not_signed() {
    for name in ["../x", "/x", "recording.gpr", "recording.sig", "a b"] {
        let files = [(name.to_owned(), vec![])].into();
        let expected = WriteError::Name(name.into());
        assert_eq!(sign(&key(), 1, RECORDING, &files), Err(expected));
    }
}

fn packed() -> Vec<u8> {
    let mut all = files();
    all.insert("recording.gpr".into(), RECORDING.to_vec());
    pack(&all).unwrap()
}

#[test]
fn a_pack_gives_back_its_files() {
    let bytes = packed();
    let pack = Pack::parse(&bytes).unwrap();
    assert_eq!(pack.recording(), RECORDING);
    assert_eq!(pack.files().count(), 4);
    for (name, contents) in files() {
        assert_eq!(pack.file(&name), Some(contents.as_slice()), "{name}");
    }
    assert_eq!(pack.file("other"), None);
    assert_eq!(
        (pack.recording().as_ptr() as usize - bytes.as_ptr() as usize) % 8,
        0
    );
}

#[test]
fn a_damaged_pack_is_refused() {
    let bytes = packed();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(Pack::parse(&changed).is_err(), "bit {bit}");
    }
    for length in 0..bytes.len() {
        assert!(Pack::parse(&bytes[..length]).is_err(), "{length} bytes");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(Pack::parse(&longer).unwrap_err(), PackError::Length);
}

#[test]
fn packs_need_a_recording_and_safe_names() {
    assert_eq!(pack(&files()), Err(WriteError::NoRecording));
    let mut all = files();
    all.insert("recording.gpr".into(), vec![]);
    all.insert("../evil".into(), vec![]);
    assert_eq!(pack(&all), Err(WriteError::Name("../evil".into())));
}

/// `openssl genpkey -algorithm ed25519`, `openssl pkey -pubout`.
#[test]
fn keys_are_files_of_openssl() {
    let secret = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIMXY1NUbUe/3dW2YUoKW5evsnCJPMfj60/q0RzGne3gg\n-----END PRIVATE KEY-----\n";
    let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAyrRjJfTnhMcW5igzYvPirFW5eUgMdKeClGzQhd4qw+Y=\n-----END PUBLIC KEY-----\n";
    let key = SecretKey::from_pem(secret).unwrap();
    assert_eq!(key.to_pem(), secret);
    assert_eq!(key.public().to_pem(), public);
    assert_eq!(PublicKey::from_text(public), Ok(key.public()));
    let digits: String = key
        .public()
        .bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        PublicKey::from_text(&format!("{digits}\n")),
        Ok(key.public())
    );
    assert_eq!(PublicKey::from_text(&digits[1..]), Err(WriteError::NotAKey));
    assert_eq!(PublicKey::from_text(secret), Err(WriteError::NotAKey));
    assert_eq!(
        PublicKey::from_text(&"00".repeat(32)),
        Err(WriteError::WeakKey)
    );
    assert_eq!(
        SecretKey::from_pem(public).unwrap_err(),
        WriteError::NotAKey
    );
}
