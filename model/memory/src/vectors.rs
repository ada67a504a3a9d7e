// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which vector units of the host the model uses: the best there are, or fewer, to measure and to test what other hosts run.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The variable of the environment that says how much to use at most: `portable`, `avx2` or `avx512`.
const VARIABLE: &str = "GPUREPLAY_VECTORS";

/// Vector units, the better the greater. Results do not depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Vectors {
    /// What every processor of the architecture has.
    Portable = 1,
    /// AVX2, FMA and F16C, with the instructions on bits that came with them (x86-64-v3).
    Avx2 = 2,
    /// AVX-512 with F, VL, BW and DQ, and all of the above (x86-64-v4).
    Avx512 = 3,
}

/// What is in use, or 0 before anybody asked. Never more than the host has.
static IN_USE: AtomicU8 = AtomicU8::new(0);

impl Vectors {
    /// All, in ascending order.
    pub const ALL: [Vectors; 3] = [Vectors::Portable, Vectors::Avx2, Vectors::Avx512];

    /// The best that the host has.
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

    /// What this process uses: the best that the host has, unless the variable `GPUREPLAY_VECTORS` of the environment or
    /// [`Vectors::limit`] allows less.
    #[inline(always)]
    pub fn in_use() -> Vectors {
        match IN_USE.load(Relaxed) {
            3 => Vectors::Avx512,
            2 => Vectors::Avx2,
            1 => Vectors::Portable,
            _ => Vectors::choose(),
        }
    }

    /// Lets this process use no more than `most` from now on, and returns what that is on this host. Shaders that were
    /// translated before keep what they were translated for.
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

    /// The name in the environment.
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
