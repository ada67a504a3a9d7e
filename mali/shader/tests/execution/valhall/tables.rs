// SPDX-License-Identifier: MIT OR Apache-2.0
//! Buffers, textures and images in resource tables.

use mali_facts::valhall::{Buffer, Plane, Resource, Sampler, Texture};
use mali_shader::Dispatch;

use super::left;
use crate::support::Flat;

fn list(space: &Flat, tables: &[Vec<[u32; 8]>]) -> Dispatch {
    let mut words = Vec::new();
    for table in tables {
        let at = space.put_words(table.as_flattened());
        let resource = Resource { words: [0; 4] }
            .with("Address", at)
            .with("Contains descriptors", 1)
            .with("Size", 32 * table.len() as u64);
        words.extend(resource.words);
    }
    Dispatch {
        resources: space.put_words(&words),
        resource_count: tables.len() as u32,
        ..Dispatch::default()
    }
}

#[test]
fn buffers_are_read_up_to_their_end() {
    let space = Flat::new(64);
    let data = space.put_words(&[11, 22, 33, 0x8444_5544]);
    let buffer = Buffer { words: [0; 8] }
        .with("Type", 9)
        .with("Size", 14)
        .with("Address", data);
    let texts = [
        "IADD_IMM.i32 r8, 0x0, #0x4",
        "IADD_IMM.i32 r9, 0x0, #0x1000001",
        "IADD_IMM.i32 r10, 0x0, #0xC",
        "IADD_IMM.i32 r11, 0x0, #0x1000007",
        "LD_BUFFER.i64.unsigned.slot0 @r0:r1, r8, r9",
        "LD_BUFFER.i32.unsigned.slot0 @r2, r10, r9",
        "LD_BUFFER.i32.unsigned.slot0.wait0 @r3, r8, r11",
        "STORE.i128.slot0.end @r0:r1:r2:r3, r6, offset:0",
    ];
    let more = list(&space, &[vec![], vec![[0; 8], buffer.words]]);
    // Two bytes are outside; the last handle has no table.
    let found = left(&space, &[0; 4], &[], &texts, more);
    assert_eq!(found, [22, 33, 0x5544, 0]);
}

/// 8 by 4 texels, RGBA8; handles `table << 24 | index` 3:0, 4:1.
fn picture(space: &Flat, texels: u64) -> Dispatch {
    let plane = Plane { words: [0; 8] }
        .with("Type", 10)
        .with("Plane type", 1)
        .with("Clump ordering", 2)
        .with("Pointer", texels)
        .with("Row stride", 32);
    let texture = Texture { words: [0; 8] }
        .with("Type", 2)
        .with("Dimension", 2)
        .with("Format", 187 << 12)
        .with("Width", 7)
        .with("Height", 3)
        .with("Swizzle", 0o3210)
        .with("Surfaces", space.put_words(&plane.words));
    let sampler = Sampler { words: [0; 8] }
        .with("Type", 1)
        .with("Wrap mode S", 9)
        .with("Wrap mode T", 9)
        .with("Wrap mode R", 9)
        .with("Minify nearest", 1)
        .with("Magnify nearest", 1)
        .with("Mipmap mode", 1);
    let tables = [
        vec![],
        vec![],
        vec![],
        vec![sampler.words],
        vec![[0; 8], texture.words],
        vec![texture.words],
    ];
    list(space, &tables)
}

#[test]
fn texels_are_fetched_sampled_and_stored() {
    let space = Flat::new(64);
    let texels: Vec<u32> = (0..32).map(|n| n * 0x0103_0507).collect();
    let at = space.put_words(&texels);
    // Narrow handles: texture 4:1, sampler 3:0.
    let texts = [
        "IADD_IMM.i32 r8, 0x0, #0x5",
        "IADD_IMM.i32 r9, 0x0, #0x2",
        "IADD_IMM.i32 r10, 0x0, #0x20011800",
        "IADD_IMM.i32 r11, 0x0, #0x0",
        "TEX_FETCH.slot0.reserved.32.2d.wait0 @r0:r1:r2:r3, @r8:r9, r10",
        "STORE.i128.slot0 @r0:r1:r2:r3, r6, offset:0",
        "U32_TO_F32 r8, r8",
        "U32_TO_F32 r9, r9",
        "TEX_SINGLE.slot0.reserved.32.g.2d.zero.wait0 @r0, @r8:r9, r10",
        "STORE.i32.slot0 @r0, r6, offset:16",
        // Line 3, column 1.
        "IADD_IMM.i32 r8, 0x0, #0x30001",
        "LEA_TEX_IMM.slot1.wait1 @r12:r13:r14, r8, 0x0, table:0x5, index:0x0",
        "IADD_IMM.i32 r0, 0x0, #0x3F800000",
        "IADD_IMM.i32 r1, 0x0, #0x0",
        "IADD_IMM.i32 r2, 0x0, #0x3ECCCCCD",
        "IADD_IMM.i32 r3, 0x0, #0x3F000000",
        "ST_CVT.slot2.v4.auto.end @r0:r1:r2:r3, r12, r14, offset:0x0",
    ];
    let words = left(&space, &[0; 5], &[], &texts, picture(&space, at));
    let [r, g, b, a] = texels[2 * 8 + 5]
        .to_le_bytes()
        .map(|byte| f32::from(byte) / 255.0);
    let numbers: Vec<f32> = words.iter().map(|word| f32::from_bits(*word)).collect();
    for (found, expected) in numbers.iter().zip([r, g, b, a, g]) {
        assert!((found - expected).abs() < 1e-6, "{numbers:?}");
    }
    // To nearest even.
    assert_eq!(
        space.words(at, 32)[3 * 8 + 1],
        u32::from_le_bytes([255, 0, 102, 128])
    );
    assert_eq!(space.words(at, 32)[3 * 8 + 2], texels[3 * 8 + 2]);
}
