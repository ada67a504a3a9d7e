// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cases: a command's files, and random changes.

use std::fs;
use std::io;
use std::path::Path;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// 0 if `limit` is.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// 1 to 2^`bits`, as often small as large.
    pub(crate) fn up_to(&mut self, bits: u64) -> u64 {
        let bits = self.below(bits + 1);
        1 + self.below(1 << bits)
    }

    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Case {
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// Bytes of GPU memory.
    pub(crate) declared: u64,
}

impl Case {
    pub(crate) fn new(files: Vec<(String, Vec<u8>)>) -> Self {
        let declared = files.iter().map(|(_, bytes)| declared(bytes)).max();
        Self {
            files,
            declared: declared.unwrap_or(0),
        }
    }

    pub(crate) fn of(name: &str, bytes: Vec<u8>) -> Self {
        Self::new(vec![(name.into(), bytes)])
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes.len() as u64).sum()
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<()> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        for (name, bytes) in &self.files {
            let path = folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(path, bytes)?;
        }
        Ok(())
    }
}

fn declared(file: &[u8]) -> u64 {
    use gpureplay_format::Recording;
    let file = match gpureplay_sign::Pack::parse(file) {
        Ok(pack) => pack.file("recording.gpr").unwrap_or(&[]),
        Err(_) => file,
    };
    let regions = Recording::parse(file).map(|recording| {
        let bytes = recording.regions().iter().map(|region| region.bytes());
        bytes.fold(0u64, u64::saturating_add)
    });
    regions.unwrap_or(0).min(4 << 30)
}

const TELLING: [u64; 14] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0xfff,
    0x1000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 48,
    u64::MAX,
];

pub(crate) fn damage(file: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.up_to(3) {
        let length = file.len() as u64;
        if length == 0 {
            return;
        }
        // Headers are near the start.
        let start = if random.once_in(2) {
            length.min(128)
        } else {
            length
        };
        let at = random.below(start) as usize;
        let stretch = |random: &mut Random| (at + random.up_to(11) as usize).min(file.len());
        match random.below(8) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.next() as u8,
            2 | 3 => {
                let value = *random.choose(&TELLING);
                let width = [1, 2, 4, 8][random.below(4) as usize];
                let mut bytes = value.to_le_bytes()[..width].to_vec();
                if random.once_in(2) {
                    bytes.reverse();
                }
                let end = (at + width).min(file.len());
                let count = end - at;
                file[at..end].copy_from_slice(&bytes[..count]);
            }
            4 => {
                let end = stretch(random);
                drop(file.drain(at..end));
            }
            5 | 6 => {
                // Repetition costs most.
                let end = stretch(random);
                let times = random.up_to(8) as usize;
                let copy = file[at..end].repeat(times.min((MOST / (end - at).max(1)).max(1)));
                file.splice(at..at, copy);
            }
            _ => {
                let (end, to) = (stretch(random), random.below(length) as usize);
                let copy = file[at..end].to_vec();
                let room = copy.len().min(file.len() - to);
                file[to..to + room].copy_from_slice(&copy[..room]);
            }
        }
        file.truncate(MOST);
    }
}

const MOST: usize = 1 << 20;
