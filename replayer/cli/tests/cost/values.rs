// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expensive random tensor files.

use std::path::Path;

use crate::case::{Case, Random, damage};

/// Pixels; three channels.
pub(crate) const SIDE: u32 = 8;

pub(crate) fn png(random: &mut Random) -> Case {
    let (width, height) = (random.up_to(9) as u32, random.up_to(9) as u32);
    let colours = [
        (png::ColorType::Grayscale, 1),
        (png::ColorType::Rgb, 3),
        (png::ColorType::Rgba, 4),
    ];
    let (colour, channels) = *random.choose(&colours);
    let wide = random.once_in(4);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(colour);
    encoder.set_depth(if wide {
        png::BitDepth::Sixteen
    } else {
        png::BitDepth::Eight
    });
    encoder.set_compression(png::Compression::High);
    let size = width as usize * height as usize * channels * if wide { 2 } else { 1 };
    let mut writer = encoder.write_header().unwrap();
    writer
        .write_image_data(&vec![random.next() as u8; size])
        .unwrap();
    writer.finish().unwrap();
    if random.once_in(2) {
        let extents = [1, 8, 8192, 4096, 4097, 16384, 16385, u32::MAX];
        let (width, height) = (*random.choose(&extents), *random.choose(&extents));
        bytes[16..20].copy_from_slice(&width.to_be_bytes());
        bytes[20..24].copy_from_slice(&height.to_be_bytes());
        repair_png(&mut bytes);
    }
    if random.once_in(4) {
        // They change no sample.
        let kind = random.choose(&[b"eXIf", b"iCCP", b"tEXt", b"zTXt", b"abCd"]);
        let chunk = |length: usize| {
            let head = [&(length as u32).to_be_bytes()[..], &kind[..]].concat();
            [head, vec![0; length + 4]].concat()
        };
        let chunks = chunk(random.up_to(20) as usize).repeat(random.up_to(3) as usize);
        bytes.splice(33..33, chunks);
        repair_png(&mut bytes);
    }
    if random.once_in(2) {
        damage(&mut bytes, random);
        if random.once_in(2) {
            repair_png(&mut bytes);
        }
    }
    Case::of("x.png", bytes)
}

fn repair_png(bytes: &mut [u8]) {
    let mut at = 8;
    while let Some(length) = bytes.get(at..at + 4) {
        let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let end = at.saturating_add(8).saturating_add(length);
        let Some(covered) = bytes.get(at + 4..end) else {
            return;
        };
        let sum = crc32(covered).to_be_bytes();
        match bytes.get_mut(end..end + 4) {
            Some(place) => place.copy_from_slice(&sum),
            None => return,
        }
        at = end + 4;
    }
}

/// ISO 3309.
fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            let low = sum & 1;
            sum = sum >> 1 ^ if low == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    !sum
}

pub(crate) fn jpegs() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../library/tests/pictures");
    let names = ["colour.jpg", "digit-3.jpg", "grey.jpg"];
    names
        .map(|name| std::fs::read(folder.join(name)).unwrap())
        .into()
}

pub(crate) fn jpeg(random: &mut Random, seeds: &[Vec<u8>]) -> Case {
    let mut bytes = random.choose(seeds).clone();
    let segments = segments(&bytes);
    let frame = segments
        .iter()
        .find(|(kind, ..)| (0xc0..=0xc2).contains(kind));
    if let Some(&(_, at, _)) = frame
        && random.once_in(2)
    {
        let extents = [1u16, 8, 64, 4096, 4097, 8192, 16384, 16385, u16::MAX];
        for place in [at + 5, at + 7] {
            let extent = random.choose(&extents).to_be_bytes();
            bytes[place..place + 2].copy_from_slice(&extent);
        }
        // Baseline, extended or progressive, whatever the scans are.
        bytes[at + 1] = 0xc0 + random.below(3) as u8;
    }
    let scan = segments.iter().find(|(kind, ..)| *kind == 0xda);
    if let Some(&(_, at, _)) = scan
        && random.once_in(2)
    {
        // Any number over all pixels is allowed.
        let end = bytes.len().saturating_sub(2);
        let part = bytes[at..(at + 8 + random.up_to(12) as usize).min(end)].to_vec();
        let times = random.up_to(12) as usize;
        bytes.splice(at..at, part.repeat(times));
    }
    if random.once_in(2) {
        damage(&mut bytes, random);
    }
    if random.once_in(2) {
        bytes.extend([0xff, 0xd9]);
    }
    Case::of("x.jpg", bytes)
}

/// Kind, offset, length, up to the first scan.
fn segments(bytes: &[u8]) -> Vec<(u8, usize, usize)> {
    let mut found = Vec::new();
    let mut at = 2;
    while let Some(&[0xff, kind, high, low]) = bytes.get(at..at + 4) {
        let length = usize::from(u16::from_be_bytes([high, low]));
        found.push((kind, at, length));
        if kind == 0xda {
            break;
        }
        at += 2 + length;
    }
    found
}

pub(crate) fn npy(random: &mut Random) -> Case {
    let types = ["<f4", "<f8", "|u1", "<i8", "|b1", ">f4", "<U9"];
    let shapes = [
        "(1, 8, 8, 3)",
        "(8, 8, 3)",
        "(3, 1, 8, 8, 3)",
        "(4294967296, 8, 8, 3)",
        "()",
        "(0, 8, 8, 3)",
    ];
    let mut shape = (*random.choose(&shapes)).to_owned();
    if random.once_in(4) {
        shape = format!("({})", "1, ".repeat(random.up_to(12) as usize));
    }
    let order = if random.once_in(2) { "True" } else { "False" };
    let descr = random.choose(&types);
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    text.push_str(&" ".repeat(random.up_to(16) as usize));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len().min(0xffff) as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    let values = random.up_to(12) as usize;
    bytes.extend(random.bytes(values));
    if random.once_in(4) {
        bytes.resize(bytes.len() - values + 768, 0);
    }
    if random.once_in(2) {
        damage(&mut bytes, random);
    }
    Case::of("x.npy", bytes)
}

pub(crate) fn safetensors(random: &mut Random) -> Case {
    let mut header =
        String::from("{\"x\":{\"dtype\":\"F32\",\"shape\":[1,8,8,3],\"data_offsets\":[0,768]}");
    let mut end = 768u64;
    for index in 0..random.up_to(12) {
        let name = "n".repeat(random.up_to(8) as usize);
        match random.below(4) {
            0 => {
                let depth = random.up_to(14) as usize;
                let (open, close) = ("[".repeat(depth), "]".repeat(depth));
                header.push_str(&format!(",\"{index}{name}\":{open}{close}"));
            }
            1 => {
                let shape = vec!["4294967296"; random.up_to(6) as usize].join(",");
                header.push_str(&format!(
                    ",\"{index}{name}\":{{\"dtype\":\"F64\",\"shape\":[{shape}],\"data_offsets\":[{end},{end}]}}"
                ));
            }
            _ => {
                let bytes = random.below(64);
                header.push_str(&format!(
                    ",\"{index}{name}\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[{end},{}]}}",
                    end + bytes
                ));
                end += bytes;
            }
        }
    }
    header.push('}');
    Case::of("x.safetensors", archive(header, end, random))
}

pub(crate) fn states(states: &[(String, u32)], random: &mut Random) -> Vec<u8> {
    let mut end = 0u64;
    let mut entries = Vec::new();
    for (name, bytes) in states {
        let bytes = u64::from(*bytes) + u64::from(random.once_in(1000));
        entries.push(format!(
            "\"{name}\":{{\"dtype\":\"U8\",\"shape\":[{bytes}],\"data_offsets\":[{end},{}]}}",
            end + bytes
        ));
        end += bytes;
    }
    archive(format!("{{{}}}", entries.join(",")), end, random)
}

fn archive(header: String, data: u64, random: &mut Random) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.into_bytes());
    bytes.resize(bytes.len() + data as usize, 1);
    if random.once_in(3) {
        damage(&mut bytes, random);
    }
    bytes
}
