// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packs, signatures and keys: refused or read; packing again gives the same bytes.
#![no_main]

use gpureplay_sign::{Pack, PublicKey, SecretKey, Signature, pack};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(found) = Pack::parse(bytes) {
        let files = found.files().map(|file| (file.name.to_owned(), file.bytes.to_vec()));
        assert_eq!(pack(&files.collect()).as_deref(), Ok(bytes));
    }
    if let Ok(signature) = Signature::parse(bytes) {
        let covered = signature.files().count();
        assert!(covered <= gpureplay_sign::MAX_FILES as usize);
        // Random bytes hold no valid signature.
        let key = signature.signer();
        if signature.recording_length() == 0 && key.is_sound() {
            let _ = signature.verify(&[], &key, 0);
        }
    }
    if let Ok(text) = core::str::from_utf8(bytes) {
        let _ = PublicKey::from_text(text);
        if let Ok(key) = SecretKey::from_pem(text) {
            assert!(SecretKey::from_pem(&key.to_pem()).is_ok());
        }
    }
});
