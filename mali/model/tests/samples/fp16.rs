// SPDX-License-Identifier: MIT OR Apache-2.0
//! References for `fp16.cl`.

use crate::Case;
use crate::bench::{Bench, half_bits, half_value, same};

pub(crate) const CASES: &[Case] = &[
    ("h_add", h_add),
    ("h_add4", h_add4),
    ("h_math", h_math),
    ("h_conv", h_conv),
    ("h_conv2", h_conv2),
    ("h_cmp", h_cmp),
    ("h_gemm", h_gemm),
];

fn halves(b: &mut Bench, count: usize, low: f32, high: f32) -> Vec<u16> {
    b.floats(count, low, high)
        .into_iter()
        .map(|x| half_bits(x.into(), false))
        .collect()
}

fn h_add(b: &mut Bench) -> Result<(), String> {
    let [x, y, z] = [
        halves(b, 64, -9.0, 9.0),
        halves(b, 64, -9.0, 9.0),
        halves(b, 64, -9.0, 9.0),
    ];
    b.put(0, &x);
    b.put(1, &y);
    b.put(2, &z);
    b.run()?;
    for (i, got) in b.get::<u16>(2, 64).into_iter().enumerate() {
        let [x, y, z] = [x[i], y[i], z[i]].map(half_value);
        // OpenCL lets compilers fuse these.
        let fused = half_bits(x * y + z, false);
        let apart = half_bits(half_value(half_bits(x * y, false)) + z, false);
        if got != fused && got != apart {
            return Err(format!("[{i}] is {got:#x}, want {fused:#x} or {apart:#x}"));
        }
    }
    Ok(())
}

fn h_add4(b: &mut Bench) -> Result<(), String> {
    let [x, y, z] = [
        halves(b, 256, -99.0, 99.0),
        halves(b, 256, -9.0, 9.0),
        halves(b, 256, -1.0, 1.0),
    ];
    b.put(0, &x);
    b.put(1, &y);
    b.put(2, &z);
    b.run()?;
    let want = (0..256).map(|i| {
        half_bits(
            half_value(x[i]) * half_value(y[i]) + half_value(z[i]),
            false,
        )
    });
    same(&b.get(2, 256), want)
}

fn h_math(b: &mut Bench) -> Result<(), String> {
    let x = halves(b, 64, 0.1, 5.0);
    b.put(0, &x);
    b.run()?;
    for (i, got) in b.get::<u16>(1, 64).into_iter().enumerate() {
        let v = half_value(x[i]);
        let want = v.sqrt() + 1.0 / v + v + 1.0 / v.sqrt() + v.floor() + v + v.exp();
        if (half_value(got) - want).abs() > want * 4e-3 {
            return Err(format!("[{i}] is {}, want {want}", half_value(got)));
        }
    }
    Ok(())
}

fn h_conv(b: &mut Bench) -> Result<(), String> {
    let x = halves(b, 64, -60000.0, 60000.0);
    b.put(0, &x);
    b.run()?;
    let whole: Vec<_> = x.iter().map(|&x| half_value(x) as i32).collect();
    same(&b.get(1, 64), whole.iter().copied())?;
    let short = whole.iter().map(|&x| x.clamp(-32768, 32767) as i16);
    same(&b.get(2, 64), short)
}

fn h_conv2(b: &mut Bench) -> Result<(), String> {
    let x: Vec<i32> = b
        .words(64)
        .iter()
        .enumerate()
        .map(|(i, &x)| x as i32 >> (12 + i % 20))
        .collect();
    let u: Vec<u8> = b.words(256).iter().map(|&x| x as u8).collect();
    b.put(0, &x);
    b.put(2, &u);
    b.run()?;
    let want = x.iter().map(|&x| half_bits(x.into(), false));
    same(&b.get(1, 64), want)?;
    let want = u.iter().map(|&u| half_bits(f64::from(u) * 0.5, false));
    same(&b.get(3, 256), want)
}

fn h_cmp(b: &mut Bench) -> Result<(), String> {
    let mut x = halves(b, 130, -3.0, 5.0);
    for i in (0..120).step_by(10) {
        x[i + 2] = x[i];
    }
    b.put(0, &x);
    b.run()?;
    let want = (0..128).map(|i| {
        if half_value(x[i]) > 1.0 || x[i] == x[i + 2] {
            -1i16
        } else {
            0
        }
    });
    same(&b.get(1, 128), want)
}

fn h_gemm(b: &mut Bench) -> Result<(), String> {
    let (x, y) = (
        halves(b, 8 * 16, -1.0, 1.0),
        halves(b, 16 * 64 + 64, -1.0, 1.0),
    );
    b.put(0, &x);
    b.put(1, &y);
    b.run()?;
    let got: Vec<u16> = b.get(2, 8 * 64 + 64);
    let element = |row: usize, column: usize| {
        (0..16).fold(0u16, |sum, k| {
            half_bits(
                half_value(x[row * 16 + k]) * half_value(y[k * 64 + column]) + half_value(sum),
                false,
            )
        })
    };
    for (i, &got) in got.iter().enumerate() {
        // A row's columns 64 to 127 are the next row's first 64; either thread may be last.
        let (row, column) = (i / 64, i % 64);
        let own = (row < 8).then(|| element(row, column));
        let other = row.checked_sub(1).map(|row| element(row, column + 64));
        if Some(got) != own && Some(got) != other {
            return Err(format!(
                "[{row}][{column}] is {got:#x}, want {own:x?} or {other:x?}"
            ));
        }
    }
    Ok(())
}
