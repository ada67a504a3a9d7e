// SPDX-License-Identifier: MIT OR Apache-2.0
//! nvcc's images, damaged at random.
//!
//! All ten million: `cargo test --release -p gpureplay-cuda-launch --test image -- --ignored`.

use fastrand::Rng;
use gpureplay_cuda_launch::image::{Extent, PREFIX, extent, parts, select};

const GOLDEN: [&[u8]; 6] = [
    include_bytes!("golden/sm_75.cubin"),
    include_bytes!("golden/sm_90.cubin"),
    include_bytes!("golden/none.fatbin"),
    include_bytes!("golden/size.fatbin"),
    include_bytes!("golden/speed.fatbin"),
    include_bytes!("golden/required.ptx"),
];
/// Sums and products go wrong here.
const EDGES: [u64; 8] = [
    0,
    1,
    0x7F,
    0xFFFF,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
    1 << 63,
    u64::MAX,
];

fn damaged(random: &mut Rng, image: &mut Vec<u8>) {
    for _ in 0..random.usize(1..=8) {
        let end = image.len();
        if end == 0 {
            return;
        }
        let at = match random.u8(..4) {
            0 => random.usize(..end.min(256)),
            1 => end - 1 - random.usize(..end.min(2048)),
            _ => random.usize(..end),
        };
        match random.u8(..5) {
            0 => image[at] ^= 1 << random.u8(..8),
            1 => image[at] = random.u8(..),
            2 => {
                let number = EDGES[random.usize(..EDGES.len())].wrapping_add(random.u64(..3));
                let bytes = number.to_le_bytes();
                let length = [1, 2, 4, 8][random.usize(..4)].min(end - at);
                image[at..at + length].copy_from_slice(&bytes[..length]);
            }
            3 => {
                let from = random.usize(..end);
                let length = random.usize(..=64).min(end - from.max(at));
                image.copy_within(from..from + length, at);
            }
            _ => image.truncate(at),
        }
    }
}

fn count_kernels(image: &[u8]) -> usize {
    if let Some(prefix) = image.get(..PREFIX)
        && let Ok(Extent::Sections {
            offset,
            size,
            least,
        }) = extent(prefix)
        && let Some(headers) = image.get(offset..offset.saturating_add(size))
    {
        let _ = Extent::of_sections(least, headers);
    }
    let mut found = 0;
    for part in parts(image).into_iter().flatten() {
        for kernel in part.contents().into_iter().flat_map(|it| it.kernels) {
            found += 1;
            let _ = select(image, &kernel.name, 90);
        }
    }
    found
}

/// Some must hold kernels and some not, or the damage is useless.
fn read_damaged(count: u32) {
    let mut random = Rng::with_seed(16);
    let mut image = Vec::new();
    let (mut some, mut none) = (0, 0);
    for number in 0..count {
        let golden = GOLDEN[number as usize % GOLDEN.len()];
        image.clear();
        image.extend_from_slice(golden);
        damaged(&mut random, &mut image);
        match count_kernels(&image) {
            0 => none += 1,
            _ => some += 1,
        }
    }
    println!("{count} damaged images: kernels in {some}, none in {none}");
    assert!(some > count / 20 && none > count / 20);
}

#[test]
fn damaged_images_are_read_or_refused() {
    read_damaged(3_000);
}

#[test]
#[ignore = "long: minutes in a release build"]
fn ten_million_damaged_images_are_read_or_refused() {
    read_damaged(10_000_000);
}
