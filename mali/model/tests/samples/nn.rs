// SPDX-License-Identifier: MIT OR Apache-2.0
//! References for `nn.cl` and `sync.cl`.

use crate::Case;
use crate::bench::{Bench, Within, close, same};

pub(crate) const CASES: &[Case] = &[
    ("conv3x3", conv3x3),
    ("gemm4", gemm4),
    ("maxpool", maxpool),
    ("softmax", softmax),
    ("act", act),
    ("qgemm", qgemm),
    ("qgemm4", qgemm4),
    ("reduce", reduce),
    ("gemm_tiled", gemm_tiled),
    ("atom_g", atom_g),
    ("atom_noret", atom_noret),
    ("atom_l", atom_l),
    ("hist", hist),
    ("atom_f", atom_f),
];

fn conv3x3(b: &mut Bench) -> Result<(), String> {
    let (n, w) = (16usize, b.floats(16 * 9, -1.0, 1.0));
    let image = b.floats(n * n * n, -1.0, 1.0);
    b.put(0, &image);
    b.put(1, &w);
    b.run()?;
    let mut want = Vec::new();
    for y in 0..8usize {
        for x in 0..16usize {
            let mut sum = 0.0;
            for c in 0..n {
                for j in 0..3 {
                    for i in 0..3 {
                        let (xx, yy) = ((x + i).wrapping_sub(1), (y + j).wrapping_sub(1));
                        if xx < n && yy < n {
                            sum += f64::from(image[(c * n + yy) * n + xx])
                                * f64::from(w[(c * 3 + j) * 3 + i]);
                        }
                    }
                }
            }
            want.push(sum.max(0.0));
        }
    }
    close(&b.get(2, 128), want, Within::Relative(1e-5))
}

fn gemm4(b: &mut Bench) -> Result<(), String> {
    // With 16 columns threads would overwrite each other.
    b.set_uniform(7, 64);
    let (a, m) = (
        b.floats(16 * 64 + 32, -1.0, 1.0),
        b.floats(16 * 64, -1.0, 1.0),
    );
    b.put(0, &a);
    b.put(1, &m);
    b.run()?;
    let element = |y: usize, x: usize| {
        (0..16)
            .map(|k| f64::from(a[k * 64 + y]) * f64::from(m[k * 64 + x]))
            .sum()
    };
    let want = (0..32 * 64).map(|i| element(i / 64, i % 64));
    close(&b.get(2, 32 * 64), want, Within::Relative(1e-5))
}

fn maxpool(b: &mut Bench) -> Result<(), String> {
    b.set_uniform(4, 32);
    let image = b.floats(20 * 32, -5.0, 5.0);
    b.put(0, &image);
    b.run()?;
    let largest = |y: usize, x: usize| {
        (0..9)
            .map(|i| f64::from(image[(y * 2 + i / 3) * 32 + x * 2 + i % 3]))
            .fold(f64::MIN, f64::max)
    };
    let want = (0..128).map(|i| largest(i / 16, i % 16));
    close(&b.get(1, 128), want, Within::Ulps(0.0))
}

fn softmax(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(64 * 16, -8.0, 8.0);
    b.put(0, &x);
    b.run()?;
    let want = x.chunks(16).flat_map(|row| {
        let largest = row.iter().copied().fold(f32::MIN, f32::max);
        let powers: Vec<f64> = row.iter().map(|&x| f64::from(x - largest).exp()).collect();
        let sum: f64 = powers.iter().sum();
        powers.into_iter().map(move |power| power / sum)
    });
    close(&b.get(1, 64 * 16), want, Within::Relative(1e-6))
}

fn act(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(256, -8.0, 8.0);
    b.put(0, &x);
    b.run()?;
    let want = x.iter().map(|&x| {
        let x = f64::from(x);
        1.0 / (1.0 + (-x).exp()) + x.tanh() + x.clamp(0.0, 6.0) + if x > 0.0 { x } else { 0.1 * x }
    });
    close(&b.get(1, 256), want, Within::Relative(2e-6))
}

fn bytes(b: &mut Bench, count: usize) -> Vec<u8> {
    b.words(count).iter().map(|&x| x as u8).collect()
}

fn qgemm(b: &mut Bench) -> Result<(), String> {
    let (x, y) = (bytes(b, 8 * 16), bytes(b, 16 * 64));
    b.put(0, &x);
    b.put(1, &y);
    b.run()?;
    for row in 0..8 {
        let sum = |column: usize| {
            (0..16)
                .map(|k| i32::from(x[row * 16 + k]) * i32::from(y[k * 64 + column] as i8))
                .sum::<i32>()
        };
        let want = (0..16).map(sum);
        same(&b.at(b.argument(2) + row as u64 * 256, 16), want)?;
    }
    Ok(())
}

fn qgemm4(b: &mut Bench) -> Result<(), String> {
    let (x, y) = (bytes(b, 64), bytes(b, 16 * 64 * 4 + 256));
    b.put(0, &x);
    b.put(1, &y);
    b.run()?;
    let want = (0..64).map(|column| {
        (0..64)
            .map(|i| i32::from(x[i]) * i32::from(y[(i / 4 * 64 + column) * 4 + i % 4]))
            .sum::<i32>()
    });
    same(&b.get(2, 64), want)
}

fn reduce(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(64, -5.0, 5.0);
    b.put(0, &x);
    b.run()?;
    let want = x
        .chunks(16)
        .map(|group| group.iter().map(|&x| f64::from(x)).sum());
    close(&b.get(1, 4), want, Within::Relative(1e-5))
}

fn gemm_tiled(b: &mut Bench) -> Result<(), String> {
    let (x, y) = (b.floats(8 * 16, -1.0, 1.0), b.floats(256, -1.0, 1.0));
    b.put(0, &x);
    b.put(1, &y);
    b.run()?;
    let element = |r: usize, c: usize| {
        (0..16)
            .map(|k| f64::from(x[r * 16 + k]) * f64::from(y[k * 16 + c]))
            .sum()
    };
    let want = (0..128).map(|i| element(i / 16, i % 16));
    close(&b.get(2, 128), want, Within::Relative(1e-5))
}

fn atom_g(b: &mut Bench) -> Result<(), String> {
    let first: Vec<i32> = [5, 100, 7, 40, 20, 0x7f7, 0x1000, 0x5555, -9, 3, 1000, 17].into();
    b.put(0, &first);
    b.run()?;
    let got: Vec<i32> = b.get(0, 12);
    let sum: i32 = (0..64).sum();
    let and = (0..64).fold(first[5], |x, i| x & i);
    let or = (0..64).fold(first[6], |x, i| x | i);
    let xor = (0..64).fold(first[7], |x, i| x ^ i);
    same(
        &got[..8],
        [
            first[0] + 64,
            first[1] + sum,
            first[2] - 192,
            0,
            63,
            and,
            or,
            xor,
        ],
    )?;
    if !(0..64).contains(&got[8]) {
        return Err(format!("exchange left {}", got[8]));
    }
    // Thread i turns i into i + 1: at least one step from 3 on.
    if !(4..65).contains(&got[9]) {
        return Err(format!("compare and exchange left {}", got[9]));
    }
    same(&got[10..], [first[10] - 64, 63])
}

fn atom_noret(b: &mut Bench) -> Result<(), String> {
    b.put(0, &[-3, 10, 0x40]);
    b.run()?;
    same(&b.get(0, 3), [61, 10 + (0..64).sum::<i32>(), 0x41])
}

fn atom_l(b: &mut Bench) -> Result<(), String> {
    b.run()?;
    for group in b.get::<i32>(0, 16).chunks(4) {
        same(&[group[0], group[3]], [24, 36])?;
        if !(0..29).contains(&group[1]) {
            return Err(format!("exchange left {}", group[1]));
        }
    }
    Ok(())
}

fn hist(b: &mut Bench) -> Result<(), String> {
    let x = bytes(b, 1024);
    b.put(0, &x);
    let first: Vec<i32> = (0..256).map(|i| i * 3).collect();
    b.put(1, &first);
    b.run()?;
    let want = (0..=255u8).map(|v| i32::from(v) * 3 + x.iter().filter(|&&y| y == v).count() as i32);
    same(&b.get(1, 256), want)
}

fn atom_f(b: &mut Bench) -> Result<(), String> {
    b.put(0, &[0.25f32]);
    b.run()?;
    same(&b.get(0, 1), [32.25f32])
}
