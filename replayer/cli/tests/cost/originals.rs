// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expensive random originals, and raw traces of an adding app.

use gpureplay_tensors::{ElementType, Tensor, encode_npy};

use crate::case::{Case, Random, damage};
use crate::driver::{Driver, vector_add, vector_add_code};

const FILES: [&str; 4] = ["gr_io_history", "gr_pgt", "gr_mem_contents", "gr_sync_as"];

/// A real recording to change, if it is there.
pub(crate) fn silicon() -> Option<Case> {
    let folder = gpureplay_kit::shared("gpureplay-recordings/mnist")?;
    let read = |name: &str| {
        Some((
            format!("orig/{name}"),
            std::fs::read(folder.join(name)).ok()?,
        ))
    };
    FILES
        .map(read)
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .map(Case::new)
}

pub(crate) fn original(random: &mut Random) -> Case {
    let files = [
        history(random),
        tables(random),
        contents(random),
        ranges(random),
    ];
    let named = FILES.iter().zip(files);
    let mut files: Vec<_> = named
        .map(|(name, bytes)| (format!("orig/{name}"), bytes))
        .collect();
    if random.once_in(2) {
        let which = random.below(4) as usize;
        damage(&mut files[which].1, random);
    }
    Case::new(files)
}

fn history(random: &mut Random) -> Vec<u8> {
    let mut text = String::from("0,R,0x0,0x60000000\n");
    let registers = [
        0x18e0, 0x18c0, 0x18c4, 0x1004, 0x100c, 0x20, 0x28, 0x2400, 0x2404, 0x30,
    ];
    for _ in 0..random.up_to(12) {
        let register = *random.choose(&registers);
        let (direction, value) = (["R", "W"][random.below(2) as usize], random.below(16));
        text.push_str(&format!(
            "{},{direction},{register:#x},{value:#x}\n",
            random.up_to(20)
        ));
    }
    text.into_bytes()
}

fn table_address(level: u64, index: u64) -> u64 {
    (1 + level * 16 + index) << 12
}

fn tables(random: &mut Random) -> Vec<u8> {
    let used = 1 + random.below(3);
    let mut body = Vec::new();
    for level in 0..4 {
        for index in 0..used {
            body.extend((table_address(level, index) | level).to_le_bytes());
            let entries = random.up_to(9);
            for entry in 0..512 {
                let below = table_address(level + 1, random.below(used));
                let value = match (entry < entries, level) {
                    (false, _) => 2,
                    (true, 0) => below | 3,
                    (true, 3) => (entry + 64) << 12 | 3 | 1 << 6,
                    (true, _) if random.once_in(4) => 1 | 1 << 6,
                    (true, _) => below | 3,
                };
                body.extend(u64::to_le_bytes(value));
            }
        }
    }
    body.extend(0xff_ffff_ffffu64.to_le_bytes());
    let size = body.len() as u64 + 32;
    let head = [size, table_address(0, 0), 0x4c4c_4c4c, 1];
    let mut bytes: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend(body);
    bytes
}

fn contents(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for index in 0..random.up_to(8) {
        let (start, pages) = (index << 32 | 0x1000, random.up_to(18));
        for word in [start, start + (pages << 12), random.up_to(18)] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(0x606eu32.to_le_bytes());
        let dumped = random.once_in(4);
        bytes.push(dumped.into());
        if dumped {
            for page in 0..pages.min(4) {
                bytes.extend((start + (page << 12)).to_le_bytes());
                bytes.extend(((index + 64) << 12).to_le_bytes());
                bytes.extend([index as u8; 4096]);
            }
        }
    }
    bytes
}

fn ranges(random: &mut Random) -> Vec<u8> {
    let count = random.up_to(10) as u32;
    let mut bytes = count.to_le_bytes().to_vec();
    for _ in 0..count {
        let (start, size) = (random.below(1 << 40), random.up_to(36));
        for word in [start, start + size, size] {
            bytes.extend(word.to_le_bytes());
        }
    }
    bytes
}

pub(crate) fn trace() -> Case {
    const CODE: u64 = 0x200_0000;
    const POOL: u64 = 0x210_0000;
    const OPERANDS: [u64; 3] = [0x300_0000, 0x310_0000, 0x320_0000];
    let [a, b, out] = OPERANDS;
    let buffers = [
        (CODE, 1, true),
        (POOL, 1, false),
        (a, 1, false),
        (b, 1, false),
        (out, 1, false),
    ];
    let mut app = Driver::probe(&buffers);
    app.store(CODE, &vector_add_code());
    let value = |seed: u32| {
        let bytes: Vec<u8> = (0..1024)
            .flat_map(|i| ((i * 3 + seed) as f32).to_le_bytes())
            .collect();
        Tensor::new(ElementType::F32, &[1024], bytes).unwrap()
    };
    let (first, second) = (value(1), value(5000));
    app.store(a, first.bytes());
    app.store(b, second.bytes());
    app.run(POOL, &vector_add(POOL, CODE, a, b, out));
    let sum = Tensor::new(ElementType::F32, &[1024], app.load(out, 4096)).unwrap();
    Case::new(vec![
        ("trace".into(), app.finish()),
        ("a.npy".into(), encode_npy(&first)),
        ("b.npy".into(), encode_npy(&second)),
        ("out.npy".into(), encode_npy(&sum)),
    ])
}
