// SPDX-License-Identifier: MIT OR Apache-2.0
//! References for `img.cl`, GLES compute shaders and printf.

use crate::Case;
use crate::bench::{Bench, Within, close, same};

pub(crate) const CASES: &[Case] = &[
    ("img_copy", img_copy),
    ("img_lin", img_lin),
    ("img_nos", img_nos),
    ("img_dim", img_dim),
    ("img3d", |b| slice(b, 0x8000 * 2 + 0x400)),
    ("img_arr", |b| slice(b, 0x8000 * 2 + 0x400)),
    ("gles_image_0", gles_image),
    ("gles_imgatomic_0", gles_atomic),
    ("gles_shared_0", gles_shared),
    ("gles_ssbo_0", gles_ssbo),
    ("gles_indirect", gles_indirect),
    ("pf", printf),
];

fn texels(b: &Bench, index: u64) -> u64 {
    let surface = b.machine.pointer(b.machine.draw(24) + index * 32 + 16);
    b.machine.pointer(surface)
}

fn image(b: &Bench, index: u64) -> u64 {
    b.machine.pointer(b.machine.draw(32) + index * 32) & 0x00ff_ffff_ffff_ffc0
}

fn put(b: &Bench, address: u64, values: &[f32]) {
    b.machine.write(
        address,
        &values
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect::<Vec<_>>(),
    );
}

fn picture(b: &mut Bench) -> Vec<f32> {
    let values = b.floats(64 * 32 * 4, -2.0, 2.0);
    put(b, texels(b, 0), &values);
    values
}

fn img_copy(b: &mut Bench) -> Result<(), String> {
    let source = picture(b);
    b.run()?;
    for y in 0..8 {
        let row = y * 256;
        let want = source[row..row + 64].iter().map(|x| x + 1.0);
        same(&b.at(image(b, 0) + row as u64 * 4, 64), want)?;
    }
    Ok(())
}

fn img_lin(b: &mut Bench) -> Result<(), String> {
    let source = picture(b);
    b.run()?;
    let got: Vec<f32> = b.get(0, 16 * 8 * 4);
    let at = |x: i64, y: i64, c: usize| {
        f64::from(source[((y.rem_euclid(32) * 64 + x.rem_euclid(64)) * 4) as usize + c])
    };
    let mut want = Vec::new();
    for y in 0..8 {
        for x in 0..16 {
            let u = f64::from(x) / 16.0 * 64.0 - 0.5;
            let v = f64::from(f32::from(y as u8) / 7.0) * 32.0 - 0.5;
            let (i, j) = (u.floor() as i64, v.floor() as i64);
            let (fu, fv) = (u - u.floor(), v - v.floor());
            for c in 0..4 {
                let top = at(i, j, c) * (1.0 - fu) + at(i + 1, j, c) * fu;
                let bottom = at(i, j + 1, c) * (1.0 - fu) + at(i + 1, j + 1, c) * fu;
                want.push(top * (1.0 - fv) + bottom * fv);
            }
        }
    }
    // Hardware weighs texels with eight bits.
    close(&got, want, Within::Relative(2.0 * 4.0 / 256.0))
}

fn img_nos(b: &mut Bench) -> Result<(), String> {
    let source = picture(b);
    b.run()?;
    let want = (0..8).flat_map(|y| source[y * 256..y * 256 + 64].to_vec());
    same(&b.get(0, 16 * 8 * 4), want)
}

fn img_dim(b: &mut Bench) -> Result<(), String> {
    b.run()?;
    let want = [64, 32].into_iter().cycle().take(128);
    same(&b.get(0, 128), want)
}

/// `offset` leads to row 1 of a slice or layer.
fn slice(b: &mut Bench, offset: u64) -> Result<(), String> {
    let source = b.floats(256, -2.0, 2.0);
    put(b, texels(b, 0) + offset, &source);
    b.run()?;
    same(&b.get(0, 256), source)
}

fn gles_image(b: &mut Bench) -> Result<(), String> {
    // The texture: 64 by 64 texels in tiles of 16 by 16.
    let source = b.floats(64 * 64 * 4, 0.0, 0.4);
    put(b, texels(b, 0), &source);
    b.run()?;
    let tiled = |x: usize, y: usize, row: usize| {
        let bit = |v: usize, i: usize| v >> i & 1;
        let index = (0..4).fold(0, |index, i| {
            index | (bit(x, i) ^ bit(y, i)) << (2 * i) | bit(y, i) << (2 * i + 1)
        });
        (y / 16) * row + (x / 16) * 256 + index
    };
    let at = |x: usize, y: usize, c: usize| f64::from(source[tiled(x % 64, y % 64, 1024) * 4 + c]);
    for y in 0..16 {
        for x in 0..32 {
            // Magnification is linear, at texels' corners.
            let corner = |c| {
                (at(x, y, c) + at(x + 63, y, c) + at(x, y + 63, c) + at(x + 63, y + 63, c)) / 4.0
            };
            let want = |c| (at(x, y, c) * 2.0 + corner(c)).clamp(0.0, 1.0) * 255.0;
            let want = (0..4).map(want);
            let got: Vec<u8> = b.at(image(b, 1) + tiled(x, y, 1024) as u64 * 4, 4);
            for (got, want) in got.into_iter().zip(want) {
                if (f64::from(got) - want).abs() > 0.51 {
                    return Err(format!("({x}, {y}) is {got}, want {want}"));
                }
            }
        }
    }
    Ok(())
}

fn gles_atomic(b: &mut Bench) -> Result<(), String> {
    b.put(0, &[3u32; 64]);
    b.run()?;
    let got: Vec<u32> = b.get(0, 36);
    // Each of 32 numbers comes twice.
    if got[0] != 31 {
        Err(format!("maximum is {}", got[0]))
    } else {
        Ok(())
    }
}

fn gles_shared(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(256, -1.0, 1.0);
    let (source, target) = arguments(b);
    put(b, source, &x);
    b.machine.write(target, &[0; 128]);
    b.run()?;
    let sums: Vec<f64> = x
        .chunks(64)
        .map(|group| group.iter().map(|&x| f64::from(x)).sum())
        .collect();
    same(&b.at::<u32>(target, 1), [8])?;
    let mut got: Vec<f32> = b.at(target + 4, 8);
    let mut want: Vec<f64> = sums.iter().chain(&sums).copied().collect();
    got.sort_by(f32::total_cmp);
    want.sort_by(f64::total_cmp);
    close(&got, want, Within::Relative(1e-5))
}

/// Push uniforms name the second buffer first.
fn arguments(b: &Bench) -> (u64, u64) {
    let (one, two) = (b.argument(0), b.argument(1));
    (one.max(two), one.min(two))
}

fn gles_ssbo(b: &mut Bench) -> Result<(), String> {
    let x = b.floats(4096, -1.0, 1.0);
    let (source, target) = arguments(b);
    put(b, source, &x);
    b.machine.write(target, &[0xff; 4096]);
    b.run()?;
    // uniform float s is 0; k[i] = (4 i, 4 i + 1, ...).
    let want = (0..256).map(|i| f64::from(4 * (i & 3) + 1));
    close(&b.at(target, 256), want, Within::Ulps(0.0))
}

fn gles_indirect(b: &mut Bench) -> Result<(), String> {
    // The first job writes the counts into the second, which runs `ssbo.comp`.
    let counts = b.machine.pointer(b.machine.draw(28) + 8);
    let push_uniforms = b.machine.pointer(b.machine.draw(6) + 28 * 4);
    let (source, target) = (
        b.machine.pointer(push_uniforms + 4),
        b.machine.pointer(push_uniforms + 16),
    );
    let (columns, lines) = (1 + b.random() % 4, 1 + b.random() % 5);
    let bytes = [columns, lines, 1].map(u32::to_le_bytes).concat();
    b.machine.write(counts, &bytes);
    let x = b.floats(4096, -1.0, 1.0);
    put(b, source, &x);
    b.machine.write(target, &[0; 4096]);
    b.run()?;
    // Groups have 16 by 2 threads.
    let written = columns * 16 * lines * 2;
    let want = |i: u32| {
        if i < written {
            f64::from(4 * (i & 3) + 1)
        } else {
            0.0
        }
    };
    let want = (0..700).map(want);
    close(&b.at(target, 700), want, Within::Ulps(0.0))
}

fn printf(b: &mut Bench) -> Result<(), String> {
    let x: Vec<i32> = (0..64).map(|i| i * 7 - 100).collect();
    let (log, source) = (b.argument(0), b.argument(1));
    b.machine.write(
        source,
        &x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>(),
    );
    b.run()?;
    let used = b.at::<u32>(log, 1)[0] as usize;
    let words: Vec<u32> = b.at(log, used / 4);
    for (i, x) in x.iter().enumerate() {
        let value = (*x as f32).to_bits();
        if !words.windows(2).any(|pair| pair == [i as u32, value]) {
            return Err(format!("no record of id {i} with {x} among {used} bytes"));
        }
    }
    Ok(())
}
