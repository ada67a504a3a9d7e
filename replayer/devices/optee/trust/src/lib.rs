// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks packs for the trusted application.
#![cfg_attr(target_os = "none", no_std)]

use gpureplay_sign::{Pack, PublicKey, SIGNATURE, Signature, SignatureError};

/// `gpureplay_trust` in `ta/gpureplay_trust.h`.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// And not too old.
    Signed = 0,
    /// No pack, or unsigned.
    Unsigned = 1,
    /// Signed with another key.
    Key = 2,
    /// Older than the counter allows.
    Rollback = 3,
    /// Misfit or malformed signature.
    Forged = 4,
}

/// The recording in a checked pack.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signed {
    /// Bytes from the pack's start.
    pub offset: usize,
    /// In bytes.
    pub length: usize,
    /// The signature's counter.
    pub counter: u64,
}

/// `key`: Ed25519, 32 bytes; `oldest`: smallest accepted counter.
///
/// # Errors
/// Why the pack is refused.
pub fn check(bytes: &[u8], key: [u8; 32], oldest: u64) -> Result<Signed, Trust> {
    let pack = Pack::parse(bytes).map_err(|_| Trust::Unsigned)?;
    let file = pack.file(SIGNATURE).ok_or(Trust::Unsigned)?;
    let verified = Signature::parse(file)
        .and_then(|signature| signature.verify(pack.recording(), &PublicKey::new(key), oldest));
    let signed = verified.map_err(|error| match error {
        SignatureError::NotASignature => Trust::Unsigned,
        SignatureError::Key => Trust::Key,
        SignatureError::Rollback { .. } => Trust::Rollback,
        _ => Trust::Forged,
    })?;
    // A part of the pack: the difference is an offset.
    let offset = (signed.recording.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize);
    Ok(Signed {
        offset,
        length: signed.recording.len(),
        counter: signed.counter,
    })
}

/// [`check`] for C.
///
/// # Safety
/// `pack` has `length` bytes, `key` 32, unchanged meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpureplay_trust_check(
    pack: *const u8,
    length: usize,
    key: &[u8; 32],
    oldest: u64,
    signed: &mut Signed,
) -> i32 {
    *signed = Signed::default();
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(pack, length) };
    match check(bytes, *key, oldest) {
        Ok(found) => {
            *signed = found;
            Trust::Signed as i32
        }
        Err(trust) => trust as i32,
    }
}

#[cfg(target_os = "none")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        fn gpureplay_trust_panic() -> !;
    }
    // SAFETY: the application defines it, and it does not return (TEE_Panic).
    unsafe { gpureplay_trust_panic() }
}
