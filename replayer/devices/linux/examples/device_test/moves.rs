// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the kernel move pages; locked memory proves it.

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use gpureplay_core::Gpu;
use gpureplay_format::{Access, PAGE_SIZE};
use gpureplay_linux::DevMem;
use memmap2::{MmapMut, MmapOptions};
use nix::libc;

/// 8 MiB: three huge pages wherever it starts.
const PAGES: u32 = 2048;
const VA: u64 = 0x1000_0000;
/// linux/mman.h, since Linux 6.1.
const COLLAPSE: libc::c_int = 25;

type Provoke = fn(&mut Locked, &mut DevMem) -> Result<(), Box<dyn Error>>;

/// Compaction depends on where pages are.
const ATTEMPTS: usize = 12;

pub(crate) fn test() -> Result<String, Box<dyn Error>> {
    let mut gpu = DevMem::open(None)?;
    gpu.map(VA, PAGES, Access::READ)
        .map_err(|error| format!("{error:?}"))?;
    let mut text = String::new();
    let ways: [(&str, Provoke); 3] = [
        ("huge pages", |_, _| collapse()),
        ("compaction", |_, _| compact()),
        ("fork", fork),
    ];
    for (name, provoke) in ways {
        let mut stayed = Vec::new();
        let (plain, pinned) = loop {
            // New each time: a huge page does not move again.
            let mut locked = Locked::new()?;
            provoke(&mut locked, &mut gpu)?;
            let moved = (locked.moved()?, gpu.moved_pages()?);
            stayed.push(locked);
            if moved != (0, 0) || stayed.len() == ATTEMPTS {
                break moved;
            }
        };
        text += &format!(
            "{name}: {plain} of {PAGES} locked pages moved, {pinned} of the GPU's, attempt {}; ",
            stayed.len()
        );
        if plain == 0 {
            return Err(format!("{text}nothing moves here: this proves nothing").into());
        }
        if pinned != 0 {
            return Err(text.into());
        }
    }
    gpu.reset().map_err(|error| format!("{error:?}"))?;
    gpu.release();
    Ok(format!("{text}pages stay"))
}

struct Locked {
    map: MmapMut,
    first: Vec<u64>,
}

impl Locked {
    fn new() -> Result<Self, Box<dyn Error>> {
        let length = PAGES as usize * PAGE_SIZE as usize;
        let mut map = MmapOptions::new().len(length).map_anon()?;
        map.advise(memmap2::Advice::NoHugePage)?;
        map.lock()?;
        map.fill(1);
        map.advise(memmap2::Advice::HugePage)?;
        let first = addresses(&map)?;
        Ok(Self { map, first })
    }

    fn moved(&self) -> Result<usize, Box<dyn Error>> {
        let now = addresses(&self.map)?;
        let moved = now
            .iter()
            .zip(&self.first)
            .filter(|(now, first)| now != first);
        Ok(moved.count())
    }
}

fn addresses(map: &MmapMut) -> Result<Vec<u64>, Box<dyn Error>> {
    let pagemap = File::open("/proc/self/pagemap")?;
    let mut bytes = vec![0; 8 * PAGES as usize];
    pagemap.read_exact_at(&mut bytes, map.as_ptr() as u64 / u64::from(PAGE_SIZE) * 8)?;
    let frames = bytes.as_chunks::<8>().0.iter();
    Ok(frames
        .map(|entry| u64::from_ne_bytes(*entry) & ((1 << 55) - 1))
        .collect())
}

fn collapse() -> Result<(), Box<dyn Error>> {
    for line in fs::read_to_string("/proc/self/maps")?.lines() {
        let range = line.split_whitespace().next().unwrap_or_default();
        let (from, to) = range.split_once('-').ok_or("no range")?;
        let (from, to) = (
            usize::from_str_radix(from, 16)?,
            usize::from_str_radix(to, 16)?,
        );
        // SAFETY: contents and addresses of the range stay; only physical pages change.
        let _ = unsafe { libc::madvise(from as *mut libc::c_void, to - from, COLLAPSE) };
    }
    Ok(())
}

fn compact() -> Result<(), Box<dyn Error>> {
    fs::write("/proc/sys/vm/compact_unevictable_allowed", "1")?;
    // Frees every other page: compaction needs holes.
    let mut holes = MmapOptions::new().len(256 << 20).map_anon()?;
    holes.advise(memmap2::Advice::NoHugePage)?;
    holes.fill(1);
    for page in (0..holes.len() / PAGE_SIZE as usize).step_by(2) {
        let at = page * PAGE_SIZE as usize;
        // SAFETY: the page is inside `holes`, whose contents nobody reads again.
        unsafe {
            holes.unchecked_advise_range(
                memmap2::UncheckedAdvice::DontNeed,
                at,
                PAGE_SIZE as usize,
            )?
        };
    }
    for _ in 0..3 {
        fs::write("/proc/sys/vm/compact_memory", "1")?;
    }
    Ok(())
}

fn fork(locked: &mut Locked, gpu: &mut DevMem) -> Result<(), Box<dyn Error>> {
    // SAFETY: the child only waits to be ended.
    let child = unsafe { libc::fork() };
    match child {
        -1 => return Err(std::io::Error::last_os_error().into()),
        0 => loop {
            // SAFETY: no argument.
            unsafe { libc::pause() };
        },
        _ => {}
    }
    locked.map.fill(2);
    for page in 0..PAGES {
        let at = VA + u64::from(page) * u64::from(PAGE_SIZE);
        gpu.write_memory(at, &[3])
            .map_err(|error| format!("{error:?}"))?;
    }
    let mut status = 0;
    // SAFETY: our own child, which nobody else waits for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &raw mut status, 0);
    }
    Ok(())
}
