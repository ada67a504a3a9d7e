// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies device memory by two pinned buffers and several threads.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use gpureplay_cuda_launch::abi::{Driver, Handle, Status, attribute};

use crate::guard;
use crate::real::{current_context, driver};
use crate::report::COPIED;

const BUFFER: usize = 32 << 20;
/// In bytes; less is copied by the driver alone.
const LEAST: usize = 1 << 20;
/// More are not faster.
const MOST_THREADS: usize = 8;
const HUGE_PAGE: usize = 2 << 20;

#[derive(Clone, Copy)]
struct Lane {
    stream: Handle,
    buffer: usize,
}

/// By context; none without memory.
static LANES: LazyLock<Mutex<HashMap<Handle, Option<[Lane; 2]>>>> = LazyLock::new(Mutex::default);

fn lane(driver: &Driver) -> Result<Lane, Status> {
    let (mut stream, mut buffer) = (0, std::ptr::null_mut());
    // SAFETY: pointers to locals.
    unsafe {
        driver
            .cuStreamCreate(&raw mut stream, attribute::stream::NON_BLOCKING)
            .check()?;
        driver
            .cuMemHostAlloc(&raw mut buffer, BUFFER, attribute::host::PORTABLE)
            .check()?;
    }
    Ok(Lane {
        stream,
        buffer: buffer as usize,
    })
}

fn count(bytes: usize, began: Instant) {
    let nanoseconds = began.elapsed().min(Duration::from_secs(1 << 30)).as_nanos();
    COPIED[0].fetch_add(bytes as u64, Ordering::Relaxed);
    COPIED[1].fetch_add(u64::try_from(nanoseconds).unwrap_or(0), Ordering::Relaxed);
}

fn through(address: u64, size: usize, mut part: impl FnMut(usize, &[u8])) -> Result<(), Status> {
    let driver = driver()?;
    let mut lanes = guard::lock(&LANES);
    let lanes = *lanes.entry(current_context()?).or_insert_with(|| {
        let lanes = [lane(driver), lane(driver)];
        lanes.iter().all(Result::is_ok).then(|| {
            lanes.map(|lane| {
                lane.unwrap_or(Lane {
                    stream: 0,
                    buffer: 0,
                })
            })
        })
    });
    let lanes = lanes.filter(|_| size >= LEAST);
    let Some(lanes) = lanes else {
        let mut bytes = vec![0; size.min(BUFFER)];
        for offset in (0..size).step_by(BUFFER) {
            let length = (size - offset).min(BUFFER);
            // SAFETY: the vector has room for so many bytes.
            unsafe {
                driver.cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), address + offset as u64, length)
            }
            .check()?;
            part(offset, &bytes[..length]);
        }
        return Ok(());
    };
    let fill = |number: usize| {
        let offset = number * BUFFER;
        let Lane { stream, buffer } = lanes[number % 2];
        if offset >= size {
            return Ok(());
        }
        let length = (size - offset).min(BUFFER);
        // SAFETY: the buffer is pinned, as long, and emptied.
        unsafe {
            driver.cuMemcpyDtoHAsync_v2(buffer as *mut _, address + offset as u64, length, stream)
        }
        .check()
    };
    fill(0)?;
    fill(1)?;
    for (number, offset) in (0..size).step_by(BUFFER).enumerate() {
        let Lane { stream, buffer } = lanes[number % 2];
        // SAFETY: our stream.
        unsafe { driver.cuStreamSynchronize(stream) }.check()?;
        let length = (size - offset).min(BUFFER);
        // SAFETY: the copy into the buffer has ended, the next has not begun.
        part(offset, unsafe {
            std::slice::from_raw_parts(buffer as *const u8, length)
        });
        fill(number + 2)?;
    }
    Ok(())
}

fn threads() -> usize {
    gpureplay_host::cores().min(MOST_THREADS)
}

fn append(to: &mut Vec<u8>, from: &[u8]) {
    if from.len() <= LEAST {
        return to.extend_from_slice(from);
    }
    let share = from.len().div_ceil(threads()).max(LEAST);
    let room = &mut to.spare_capacity_mut()[..from.len()];
    std::thread::scope(|scope| {
        for (to, from) in room.chunks_mut(share).zip(from.chunks(share)) {
            scope.spawn(move || to.write_copy_of_slice(from));
        }
    });
    // SAFETY: the new bytes were just written, within the capacity.
    unsafe { to.set_len(to.len() + from.len()) };
}

fn same(one: &[u8], other: &[u8]) -> bool {
    if one.len() <= LEAST {
        return one == other;
    }
    let share = one.len().div_ceil(threads()).max(LEAST);
    std::thread::scope(|scope| {
        let threads: Vec<_> = one
            .chunks(share)
            .zip(other.chunks(share))
            .map(|(one, other)| scope.spawn(move || one == other))
            .collect();
        threads
            .into_iter()
            .all(|thread| thread.join().unwrap_or(false))
    })
}

fn room(size: usize) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    bytes.try_reserve_exact(size).ok()?;
    let start = (bytes.as_ptr() as usize).next_multiple_of(HUGE_PAGE);
    let end = (bytes.as_ptr() as usize + size) / HUGE_PAGE * HUGE_PAGE;
    if end > start {
        // SAFETY: whole pages inside the vector's memory; advice may be refused.
        let _ = unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_HUGEPAGE) };
    }
    Some(bytes)
}

/// None without room.
pub(crate) fn read(address: u64, size: usize) -> Result<Option<Vec<u8>>, Status> {
    let began = Instant::now();
    let Some(mut bytes) = room(size) else {
        return Ok(None);
    };
    through(address, size, |_, part| append(&mut bytes, part))?;
    count(size, began);
    Ok(Some(bytes))
}

/// Device memory if not as before, else `Some(None)`. The outer `None` means no room.
pub(crate) fn changed(address: u64, before: &[u8]) -> Result<Option<Option<Vec<u8>>>, Status> {
    let began = Instant::now();
    let mut after: Option<Vec<u8>> = None;
    let mut no_room = false;
    through(address, before.len(), |offset, part| {
        if after.is_none() && !no_room && !same(part, &before[offset..offset + part.len()]) {
            after = room(before.len());
            no_room = after.is_none();
            if let Some(after) = &mut after {
                append(after, &before[..offset]);
            }
        }
        if let Some(after) = &mut after {
            append(after, part);
        }
    })?;
    count(before.len(), began);
    Ok((!no_room).then_some(after))
}
