// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functions of whole rows, by vector units in use.
#![allow(unsafe_code)]

use super::row::{CHUNK, GROUP, Row};
#[cfg(target_arch = "x86_64")]
use super::wide;

#[inline(never)]
pub(crate) fn merge(row: &mut Row, new: &Row, active: &Row) {
    choose!(
        portable: merge_body(row, new, active),
        avx2: merge_avx2(row, new, active),
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn merge_avx2(row: &mut Row, new: &Row, active: &Row) {
    merge_body(row, new, active);
}

#[inline(always)]
fn merge_body(row: &mut Row, new: &Row, active: &Row) {
    for ((row, new), active) in row.0.iter_mut().zip(&new.0).zip(&active.0) {
        *row = *row & !active | new & active;
    }
}

#[inline(always)]
pub(crate) fn repeat(row: &mut Row) {
    choose!(portable: repeat_body(row), avx512: wide::repeat(row));
}

#[inline(always)]
fn repeat_body(row: &mut Row) {
    let chunks = row.0.as_chunks_mut::<CHUNK>().0;
    let first = chunks[0];
    chunks.fill(first);
}

/// Gives each group one of the first values.
#[inline(always)]
pub(crate) fn spread(row: &mut Row, values: &[u32; CHUNK]) {
    choose!(portable: spread_body(row, values), avx512: wide::spread(row, values));
}

#[inline(always)]
fn spread_body(row: &mut Row, values: &[u32; CHUNK]) {
    for (group, &value) in row.0.as_chunks_mut::<GROUP>().0.iter_mut().zip(values) {
        *group = [value; GROUP];
    }
}

#[inline(always)]
pub(crate) fn nonzero(row: &Row) -> u64 {
    choose!(portable: nonzero_body(row), avx512: wide::nonzero(row))
}

#[inline]
fn nonzero_body(row: &Row) -> u64 {
    let mut bits = 0;
    for (byte, lanes) in row.0.as_chunks::<8>().0.iter().enumerate() {
        let mut part = 0;
        for (i, &lane) in lanes.iter().enumerate() {
            part |= u64::from(lane != 0) << i;
        }
        bits |= part << (byte * 8);
    }
    bits
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::row::LANES;
    use super::*;

    #[test]
    fn wide_functions_agree_with_portable_ones() {
        if gpureplay_memory::Vectors::of_host() < gpureplay_memory::Vectors::Avx512 {
            return;
        }
        let row = |f: &dyn Fn(u32) -> u32| Row(std::array::from_fn(|lane| f(lane as u32)));
        for lane in 0..LANES as u32 {
            for other in [0, 1, 1 << 31] {
                for rest in [0, 7] {
                    let row = row(&|at| if at == lane { other } else { rest });
                    // SAFETY: the host has the feature.
                    assert_eq!(unsafe { wide::nonzero(&row) }, nonzero_body(&row));
                }
            }
        }
        let [mut wide_one, mut portable] = [(); 2].map(|()| row(&|lane| lane * 3));
        // SAFETY: as above.
        unsafe { wide::repeat(&mut wide_one) };
        repeat_body(&mut portable);
        assert_eq!(wide_one.0, portable.0);
        assert_eq!(portable.0, row(&|lane| lane % 16 * 3).0);
        let values = std::array::from_fn(|n| n as u32 + 5);
        // SAFETY: as above.
        unsafe { wide::spread(&mut wide_one, &values) };
        spread_body(&mut portable, &values);
        assert_eq!(wide_one.0, portable.0);
        assert_eq!(portable.0, row(&|lane| lane / 8 + 5).0);
    }
}
