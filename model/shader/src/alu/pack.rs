// SPDX-License-Identifier: MIT OR Apache-2.0
//! Vectors from parts of registers; atomic arithmetic.

/// `MKVEC.v2i16`: chosen halves.
#[inline(always)]
pub const fn mkvec_halves(a: u32, b: u32, high_a: bool, high_b: bool) -> u32 {
    let low = (a >> (16 * high_a as u32)) & 0xffff;
    let high = (b >> (16 * high_b as u32)) & 0xffff;
    low | high << 16
}

/// `MKVEC.v4i8`: byte 0 or (`upper`) byte 2.
#[inline(always)]
pub const fn mkvec_bytes(sources: [u32; 4], upper: [bool; 4]) -> u32 {
    let mut out = 0;
    let mut i = 0;
    while i < 4 {
        let byte = (sources[i] >> (16 * upper[i] as u32)) & 0xff;
        out |= byte << (8 * i);
        i += 1;
    }
    out
}

/// An atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atomic {
    /// Addition, also of 64-bit memory and an extended argument.
    Add,
    /// Signed minimum.
    SMin,
    /// Signed maximum.
    SMax,
    /// Unsigned minimum.
    UMin,
    /// Unsigned maximum.
    UMax,
    /// And.
    And,
    /// Or.
    Or,
    /// Exclusive or.
    Xor,
    /// Exchange.
    Exchange,
}

/// New content of 32 bits.
#[inline(always)]
pub const fn atomic32(old: u32, argument: u32, op: Atomic) -> u32 {
    match op {
        Atomic::Add => old.wrapping_add(argument),
        Atomic::SMin if (argument as i32) < (old as i32) => argument,
        Atomic::SMax if (argument as i32) > (old as i32) => argument,
        Atomic::UMin if argument < old => argument,
        Atomic::UMax if argument > old => argument,
        Atomic::SMin | Atomic::SMax | Atomic::UMin | Atomic::UMax => old,
        Atomic::And => old & argument,
        Atomic::Or => old | argument,
        Atomic::Xor => old ^ argument,
        Atomic::Exchange => argument,
    }
}

/// New content of 64 bits.
#[inline(always)]
pub const fn atomic64(old: u64, argument: u64, op: Atomic) -> u64 {
    match op {
        Atomic::Add => old.wrapping_add(argument),
        Atomic::SMin if (argument as i64) < (old as i64) => argument,
        Atomic::SMax if (argument as i64) > (old as i64) => argument,
        Atomic::UMin if argument < old => argument,
        Atomic::UMax if argument > old => argument,
        Atomic::SMin | Atomic::SMax | Atomic::UMin | Atomic::UMax => old,
        Atomic::And => old & argument,
        Atomic::Or => old | argument,
        Atomic::Xor => old ^ argument,
        Atomic::Exchange => argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors() {
        assert_eq!(
            mkvec_halves(0x1111_2222, 0x3333_4444, false, true),
            0x3333_2222
        );
        let s = [0x0011_0022, 0x0033_0044, 0x0055_0066, 0x0077_0088];
        assert_eq!(mkvec_bytes(s, [false, true, false, true]), 0x7766_3322);
    }

    #[test]
    fn atomics() {
        let minus = u32::MAX;
        assert_eq!(atomic32(minus, 2, Atomic::Add), 1);
        assert_eq!(atomic32(1, minus, Atomic::SMin), minus);
        assert_eq!(atomic32(1, minus, Atomic::UMin), 1);
        assert_eq!(atomic32(1, minus, Atomic::SMax), 1);
        assert_eq!(atomic32(1, minus, Atomic::UMax), minus);
        assert_eq!(atomic32(6, 3, Atomic::And), 2);
        assert_eq!(atomic32(6, 3, Atomic::Or), 7);
        assert_eq!(atomic32(6, 3, Atomic::Xor), 5);
        assert_eq!(atomic32(6, 3, Atomic::Exchange), 3);
        assert_eq!(atomic64(1 << 40, u64::MAX, Atomic::SMax), 1 << 40);
        assert_eq!(atomic64(1 << 40, 1 << 40, Atomic::Add), 1 << 41);
    }
}
