// SPDX-License-Identifier: MIT OR Apache-2.0
//! References for `basic.cl`.

use crate::Case;
use crate::bench::{Bench, same};

pub(crate) const CASES: &[Case] = &[
    ("vecadd", vecadd),
    ("saxpy4", saxpy4),
    ("copy_char", copy_char),
    ("copy_short", copy_short),
    ("long_ops", long_ops),
    ("idiv", idiv),
    ("ibits", ibits),
    ("ids", ids),
    ("div_loop", div_loop),
    ("sw", sw),
    ("scratch", scratch),
    ("early", early),
];

fn vecadd(b: &mut Bench) -> Result<(), String> {
    let (x, y) = (b.floats(64, -1e3, 1e3), b.floats(64, -1.0, 1.0));
    b.put(0, &x);
    b.put(1, &y);
    b.run()?;
    let want = x.iter().zip(&y).map(|(x, y)| x + y);
    same(&b.get(2, 64), want.clone())?;
    b.alias(2, 0);
    b.run()?;
    same(&b.get(0, 64), want)
}

fn saxpy4(b: &mut Bench) -> Result<(), String> {
    let (x, y) = (b.floats(256, -9.0, 9.0), b.floats(256, -9.0, 9.0));
    b.put(0, &x);
    b.put(1, &y);
    b.run()?;
    let want = x.iter().zip(&y).map(|(x, y)| x * 0.5 + y);
    same(&b.get(1, 256), want)
}

fn copy_char(b: &mut Bench) -> Result<(), String> {
    let x: Vec<u8> = b.words(64).iter().map(|&x| x as u8).collect();
    b.put(0, &x);
    b.fill(1, &[]);
    b.run()?;
    let mut want: Vec<_> = x.iter().map(|x| x.wrapping_add(3)).collect();
    want.push(0xa5);
    same(&b.get(1, 65), want)
}

fn copy_short(b: &mut Bench) -> Result<(), String> {
    let x: Vec<i16> = b.words(64).iter().map(|&x| x as i16).collect();
    b.put(0, &x);
    b.run()?;
    let want = x.iter().map(|x| x.wrapping_mul(5).wrapping_sub(1));
    same(&b.get(1, 64), want)
}

fn long_ops(b: &mut Bench) -> Result<(), String> {
    let x: Vec<i64> = (0..64)
        .map(|i| (i64::from(b.random()) << 32 | i64::from(b.random())) >> (i % 40))
        .collect();
    b.put(0, &x);
    b.run()?;
    let want = x
        .iter()
        .map(|x| (x.wrapping_mul(16).wrapping_add(x >> 3)) ^ (x / 17));
    same(&b.get(1, 64), want)
}

fn idiv(b: &mut Bench) -> Result<(), String> {
    let x: Vec<i32> = b
        .words(64)
        .iter()
        .enumerate()
        .map(|(i, &x)| x as i32 >> (i % 31))
        .collect();
    b.put(0, &x);
    b.run()?;
    let want = x.iter().map(|&x| {
        let high = ((i64::from(x) * 16) >> 32) as i32;
        let sum = (x / 16)
            .wrapping_add(x % 16)
            .wrapping_add((x as u32 / 7) as i32);
        sum.wrapping_add(high)
            .wrapping_add((x as u32).rotate_left(5) as i32)
    });
    same(&b.get(1, 64), want)
}

fn ibits(b: &mut Bench) -> Result<(), String> {
    // mad24 is for 24 bits only.
    let x: Vec<u32> = b
        .words(64)
        .iter()
        .enumerate()
        .map(|(i, &x)| (x as i32 >> (9 + i % 20)) as u32)
        .collect();
    b.put(0, &x);
    b.run()?;
    let want = x.iter().enumerate().map(|(i, &x)| {
        let s = x as i32;
        let i = i as u32;
        let terms = [
            x.count_ones(),
            x.leading_zeros(),
            s.saturating_add(17) as u32,
            x.saturating_sub(99),
            ((u64::from(x) + 5) >> 1) as u32,
            ((i64::from(s) - 7 + 1) >> 1) as u32,
            s.unsigned_abs(),
            x >> (i & 31),
            x << (i & 7),
            (s >> (i & 15)) as u32,
            x.min(100),
            s.max(-5) as u32,
            (s.wrapping_mul(3) + 4) as u32,
            (x & 0xffff) << 16 | 3,
        ];
        terms.into_iter().fold(0u32, u32::wrapping_add)
    });
    same(&b.get(1, 64), want)
}

fn ids(b: &mut Bench) -> Result<(), String> {
    b.run()?;
    let (size, group) = ([8, 4, 2], [4, 2, 1]);
    let got: Vec<i32> = b.get(0, 1024);
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let local = x % group[0] + y % group[1] * 7 + z % group[2] * 13;
                let number = x / group[0] * 3 + y / group[1] * 5 + z / group[2] * 11;
                let want = x + y * 100 + z * 10000 + local * 1000 + number * 77 + 2 + 2 + 3;
                same(&got[x + 64 * y + 256 * z..][..1], [want as i32])?;
            }
        }
    }
    Ok(())
}

fn div_loop(b: &mut Bench) -> Result<(), String> {
    let a: Vec<i32> = b
        .words(64)
        .iter()
        .map(|&x| (x >> 8) as i32 % 97 - 20)
        .collect();
    b.put(0, &a);
    b.run()?;
    let want = a.iter().map(|&limit| {
        let mut s = 0i32;
        for j in 0..limit & 31 {
            if j & 1 != 0 {
                s += a[j as usize];
            } else if s > 50 {
                s -= j;
                continue;
            } else {
                s ^= j;
            }
            if s > 1000 {
                break;
            }
        }
        s
    });
    same(&b.get(1, 64), want)
}

fn sw(b: &mut Bench) -> Result<(), String> {
    // Case 5 reads other threads' writes: only the first thread takes it.
    let pick = |i: usize, x: u32| if i > 0 && x & 7 == 5 { x ^ 1 } else { x };
    let mut a: Vec<i32> = b
        .words(80)
        .iter()
        .enumerate()
        .map(|(i, &x)| pick(i, x) as i32)
        .collect();
    a[0] = a[0] & !7 | 5;
    b.put(0, &a);
    b.run()?;
    let want = (0..64).map(|i| match a[i] & 7 {
        0 => a[i + 1],
        1 => a[i + 2].wrapping_mul(3),
        2 => i as i32,
        5 => 7,
        _ => -1,
    });
    same(&b.get(1, 64), want)
}

fn scratch(b: &mut Bench) -> Result<(), String> {
    let a: Vec<i32> = b.words(128).iter().map(|&x| x as i32 >> 4).collect();
    b.put(0, &a);
    b.run()?;
    let table: Vec<_> = a
        .iter()
        .enumerate()
        .map(|(j, x)| x.wrapping_mul(j as i32))
        .collect();
    let want = a[..64].iter().map(|&start| {
        (0..16).fold(0i32, |s, j| {
            s.wrapping_add(table[(start.wrapping_add(j * 7) & 127) as usize])
        })
    });
    same(&b.get(1, 64), want)
}

fn early(b: &mut Bench) -> Result<(), String> {
    let a: Vec<i32> = b.words(64).iter().map(|&x| x as i32 % 5).collect();
    b.put(0, &a);
    b.put(1, &[77; 64]);
    b.run()?;
    let want = a
        .iter()
        .enumerate()
        .map(|(i, &x)| if i >= 16 || x == 0 { 77 } else { 100 / x });
    same(&b.get(1, 64), want)
}
