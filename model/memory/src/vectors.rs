// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vector units in use.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// At most `portable`, `avx2` or `avx512`.
const VARIABLE: &str = "GPUREPLAY_VECTORS";

/// Vector units, ascending; results do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Vectors {
    /// What every processor has.
    Portable = 1,
    /// AVX2, FMA, F16C, bit instructions (x86-64-v3).
    Avx2 = 2,
    /// AVX-512 F, VL, BW, DQ, and the above (x86-64-v4).
    Avx512 = 3,
}

/// 0: not asked yet. Never more than the host has.
static IN_USE: AtomicU8 = AtomicU8::new(0);

impl Vectors {
    /// All, ascending.
    pub const ALL: [Vectors; 3] = [Vectors::Portable, Vectors::Avx2, Vectors::Avx512];

    /// The host's best.
    pub fn of_host() -> Vectors {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            match (avx2, avx512) {
                (true, true) => Vectors::Avx512,
                (true, false) => Vectors::Avx2,
                _ => Vectors::Portable,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Vectors::Portable
    }

    /// The best that `GPUREPLAY_VECTORS` or [`Vectors::limit`] allows.
    #[inline(always)]
    pub fn in_use() -> Vectors {
        match IN_USE.load(Relaxed) {
            3 => Vectors::Avx512,
            2 => Vectors::Avx2,
            1 => Vectors::Portable,
            _ => Vectors::choose(),
        }
    }

    /// Limits this process; returns the result. Translated shaders stay.
    pub fn limit(most: Vectors) -> Vectors {
        let used = most.min(Vectors::of_host());
        IN_USE.store(used as u8, Relaxed);
        used
    }

    #[cold]
    fn choose() -> Vectors {
        let text = std::env::var(VARIABLE).unwrap_or_default();
        let most = match Vectors::ALL.into_iter().find(|one| one.name() == text) {
            Some(most) => most,
            None => {
                if !text.is_empty() {
                    eprintln!(
                        "{VARIABLE} is {text:?}, which is none of portable, avx2 and avx512: the best of the host is used"
                    );
                }
                Vectors::Avx512
            }
        };
        Vectors::limit(most)
    }

    /// Its name in the environment.
    pub fn name(self) -> &'static str {
        match self {
            Vectors::Portable => "portable",
            Vectors::Avx2 => "avx2",
            Vectors::Avx512 => "avx512",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_more_than_the_host_has() {
        let host = Vectors::of_host();
        for most in Vectors::ALL {
            assert_eq!(Vectors::limit(most), most.min(host));
        }
        assert!(Vectors::in_use() <= host);
    }
}
