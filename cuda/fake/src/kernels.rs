// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels as host functions, by name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use gpureplay_cuda_launch::abi::Status;

#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        write!(f, "grid {gx}x{gy}x{gz}, block {bx}x{by}x{bz}")
    }
}

impl Sizes {
    fn threads(self) -> u64 {
        u64::from(self.grid[0]) * u64::from(self.block[0])
    }
}

fn word(parameters: &[u8], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&parameters[offset..offset + 8]);
    u64::from_le_bytes(word)
}

fn half(parameters: &[u8], offset: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&parameters[offset..offset + 4]);
    u32::from_le_bytes(word)
}

static TOOK_NANOSECONDS: AtomicU64 = AtomicU64::new(1000);

/// Milliseconds of the last kernel.
pub(crate) fn took() -> f32 {
    TOOK_NANOSECONDS.load(Ordering::SeqCst) as f32 / 1e6
}

static RAN: AtomicU64 = AtomicU64::new(0);

/// Per event: the last kernel's nanoseconds, and kernels run.
static BEFORE: Mutex<BTreeMap<u64, [u64; 2]>> = Mutex::new(BTreeMap::new());

/// Nanoseconds of a pair of events.
const EVENT: u64 = 250;

pub(crate) fn recorded(event: u64) {
    let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let now = [&TOOK_NANOSECONDS, &RAN].map(|number| number.load(Ordering::SeqCst));
    before.insert(event, now);
}

/// Milliseconds of the last kernel, if one ran, and of events.
pub(crate) fn took_between(start: u64, end: u64) -> f32 {
    let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
    let nanoseconds = match (before.get(&start), before.get(&end)) {
        (Some([_, first]), Some([_, last])) if first == last => 0,
        (_, Some([took, _])) => *took,
        (_, None) => TOOK_NANOSECONDS.load(Ordering::SeqCst),
    };
    (nanoseconds + EVENT) as f32 / 1e6
}

/// Launches of a resting `scale`; first results of a repeating one.
static RESTED: AtomicU64 = AtomicU64::new(0);
static FIRST: Mutex<Vec<f32>> = Mutex::new(Vec::new());

static WAITING: AtomicU64 = AtomicU64::new(0);

pub(crate) fn waiting() -> bool {
    WAITING.load(Ordering::SeqCst) > 0
}

/// # Safety
/// The parameters are those of the kernel of that name.
pub(crate) unsafe fn run(
    name: &str,
    sizes: Sizes,
    parameters: &[u8],
    variable: impl Fn(&str) -> Result<u64, Status>,
) -> Result<(), Status> {
    let mut nanoseconds = 1000;
    // SAFETY: our caller's promise: the pointers in the parameters are to memory of the sizes that the kernels use.
    unsafe {
        match name {
            // scale(float *p, float factor, unsigned n) counts threads in `hits`. An image's variable says what it
            // does less: idles, halves, triples, repeats, rests.
            "scale" => {
                let (p, factor, n) = (
                    word(parameters, 0) as *mut f32,
                    f32::from_bits(half(parameters, 8)),
                    half(parameters, 12),
                );
                let does = |habit: &str| variable(habit).is_ok();
                let threads = match sizes.threads().min(u64::from(n)) {
                    _ if does("idles") => 0,
                    _ if does("rests") && RESTED.fetch_add(1, Ordering::SeqCst) > 30 => 0,
                    threads if does("halves") => threads / 2,
                    threads => threads,
                };
                let factor = if does("triples") { 3.0 } else { 1.0 } * factor;
                let p = std::slice::from_raw_parts_mut(p, threads as usize);
                let scaled: Vec<f32> = p.iter().map(|number| number * factor).collect();
                p.copy_from_slice(&scaled);
                if does("repeats") {
                    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
                    if first.is_empty() {
                        *first = scaled;
                    }
                    p.copy_from_slice(&first[..p.len()]);
                }
                *(variable("hits")? as *mut u32) += threads as u32;
            }
            // No shared memory here.
            "gpureplay_scratch" => {}
            // gpureplay_read(u64 *from, u64 bytes): no caches here.
            "gpureplay_read" => {}
            "gpureplay_copy" => {
                let [from, to, bytes] = [0, 8, 16].map(|offset| word(parameters, offset));
                std::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes as usize);
            }
            // gpureplay_shares(u32 *memory, u64 bytes, u64 key, u64 *sums): two per 64 kB.
            "gpureplay_shares" => {
                let [memory, bytes, key, sums] =
                    [0, 8, 16, 24].map(|offset| word(parameters, offset));
                let memory = std::slice::from_raw_parts(memory as *const u8, bytes as usize);
                let mix = |x: u64, [first, second, third]: [u32; 3]| {
                    let x = (x ^ (x >> first)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    let x = (x ^ (x >> second)).wrapping_mul(0x94d0_49bb_1331_11eb);
                    x ^ (x >> third)
                };
                for (number, bytes) in (0u64..).zip(memory.chunks(4)) {
                    let mut word = [0; 4];
                    word[..bytes.len()].copy_from_slice(bytes);
                    let word = u64::from(u32::from_le_bytes(word));
                    let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let factor = mix(place.wrapping_add(key), [30, 27, 31]);
                    let other = mix(factor, [63, 32, 29]);
                    let sums = (sums as *mut [u64; 2]).add(number as usize / 16384);
                    (*sums)[0] = (*sums)[0].wrapping_add(factor.wrapping_mul(word));
                    (*sums)[1] = (*sums)[1].wrapping_add(other.wrapping_mul(word));
                }
            }
            // gpureplay_sum(u64 *memory, u64 words, u64 first, u64 *sum): words, mixed with their numbers.
            "gpureplay_sum" => {
                let [memory, words, first, sum] =
                    [0, 8, 16, 24].map(|offset| word(parameters, offset));
                let memory = std::slice::from_raw_parts(memory as *const u64, words as usize);
                for (word, number) in memory.iter().zip(first..) {
                    let mut mixed = word ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                    let sum = sum as *mut u64;
                    *sum = (*sum).wrapping_add(mixed ^ (mixed >> 31));
                }
            }
            // chase(node *head) of { node *next; float *data; u64 count }: data grows by 1.
            "chase" => {
                let mut node = word(parameters, 0) as *const u64;
                while !node.is_null() {
                    let (data, count) = (*node.add(1) as *mut f32, *node.add(2));
                    for index in 0..count as usize {
                        *data.add(index) += 1.0;
                    }
                    node = *node as *const u64;
                }
            }
            "bump" => *(*(variable("target")? as *const u64) as *mut u32) += 1,
            "idle" => {}
            // textured(u64 *handles): its text reads a texture.
            "textured" => {}
            // noise(u64 *p): p[0] differs in each run.
            "noise" => {
                let p = word(parameters, 0) as *mut u64;
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                // Nanoseconds alone change the upper half every four seconds.
                let scattered = |now: std::time::Duration| {
                    (now.as_nanos() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
                };
                *p = now.map_or(1, scattered);
                *p.add(1) = 42;
            }
            "constant" => {
                let (p, n) = (word(parameters, 0) as *mut f32, half(parameters, 8));
                for index in 0..sizes.threads().min(u64::from(n)) as usize {
                    *p.add(index) = (index + 1) as f32;
                }
            }
            "accumulate" => {
                let p = word(parameters, 0) as *mut f32;
                for index in 0..16 {
                    *p.add(index) += 0.0;
                }
            }
            // patient(u32 *word): waits for the first word, writes the second.
            "patient" => {
                let at = word(parameters, 0);
                WAITING.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let words = at as *mut AtomicU32;
                    while (*words).load(Ordering::SeqCst) == 0 {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    (*words.add(1)).store(7, Ordering::SeqCst);
                    WAITING.fetch_sub(1, Ordering::SeqCst);
                });
            }
            // place(u64 *p): p[0] is an address of this process, as in runtimes' stacks; p[1] = 42.
            "place" => {
                let p = word(parameters, 0) as *mut u64;
                *p = (&raw const WAITING) as u64 + u64::from(std::process::id());
                *p.add(1) = 42;
            }
            // heap(u64 *p): the size of the kernels' heap.
            "heap" => *(word(parameters, 0) as *mut u64) = variable("limit 2")?,
            "fragile" => {
                let index = *(word(parameters, 0) as *const u32);
                if index % 2 == 1 || sizes.block[0] == 64 {
                    return Err(Status::LAUNCH_FAILED);
                }
                *(word(parameters, 8) as *mut f32).add(index as usize) = 1.0;
            }
            "once" => {
                let at = word(parameters, 0) as *mut u32;
                if *at == 1 {
                    return Err(Status::LAUNCH_FAILED);
                }
                *at = 1;
            }
            "check" => {
                let (a, b) = (
                    word(parameters, 0) as *const f32,
                    word(parameters, 8) as *const f32,
                );
                let differ = |index: &usize| ((*a.add(*index)) - *b.add(*index)).abs() > 0.5;
                let count = (0..64).filter(differ).count() as u32;
                if count > 0 {
                    *(word(parameters, 16) as *mut u32) += count;
                }
            }
            // plane(float *p, unsigned width, unsigned height): p += 1 + x + 1000 y.
            "plane" => {
                let (p, width, height) = (
                    word(parameters, 0) as *mut f32,
                    half(parameters, 8),
                    half(parameters, 12),
                );
                let [x, y] = [0, 1].map(|axis| sizes.grid[axis] * sizes.block[axis]);
                for y in 0..y.min(height) {
                    for x in 0..x.min(width) {
                        *p.add((y * width + x) as usize) += (1 + x + 1000 * y) as f32;
                    }
                }
            }
            // stride(float *p, unsigned n): p = 3 p + 1; 32 blocks of 64 threads take 2 us, others longer, 75 % of
            // shared memory half.
            "stride" => {
                let (p, n) = (word(parameters, 0) as *mut f32, half(parameters, 8));
                for index in 0..n as usize {
                    *p.add(index) = 3.0 * *p.add(index) + 1.0;
                }
                let [grid, block] = [sizes.grid[0], sizes.block[0]].map(u64::from);
                nanoseconds = 2000 + 100 * grid.abs_diff(32) + 10 * block.abs_diff(64);
                if variable("carve-out") == Ok(75) {
                    nanoseconds /= 2;
                }
            }
            // stray(u64 *p): p[1] = *p[0]; fails without memory there.
            "stray" => {
                let p = word(parameters, 0) as *mut u64;
                let page = (*p & !4095) as *mut libc::c_void;
                if libc::msync(page, 4096, libc::MS_ASYNC) != 0 {
                    return Err(Status::ILLEGAL_ADDRESS);
                }
                *p.add(1) = *(*p as *const u64);
            }
            "fail" => return Err(Status::LAUNCH_FAILED),
            _ => return Err(Status::NOT_SUPPORTED),
        }
    }
    TOOK_NANOSECONDS.store(nanoseconds, Ordering::SeqCst);
    RAN.fetch_add(1, Ordering::SeqCst);
    Ok(())
}
