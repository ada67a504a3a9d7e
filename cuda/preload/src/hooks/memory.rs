// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory is made, mapped and freed.

use std::sync::atomic::Ordering;

use gpureplay_cuda_launch::abi::{Handle, IpcHandle, Status};

use super::of_thread;
use crate::memory::{Kind, Piece};
use crate::settings::{Mode, settings};
use crate::state::{CAPTURES, memory, track, unrecordable};
use crate::{arena, gate, real, run};

unsafe fn made(status: Status, address: *const u64, size: usize, kind: Kind) -> Status {
    if status == Status::SUCCESS && !address.is_null() {
        // SAFETY: the driver wrote the address.
        let address = unsafe { *address };
        track(address, size, kind);
        run::allocated(address);
    }
    status
}

unsafe fn allocated(address: *mut u64, size: usize, call: impl FnOnce() -> Status) -> Status {
    let wanted = matches!(&settings().mode, Mode::Record(record) if record.arena);
    // In a capture, allocations are the graph's.
    if wanted && !address.is_null() && size > 0 && CAPTURES.load(Ordering::SeqCst) == 0 {
        match arena::allocate(size) {
            Ok(at) => {
                // SAFETY: the program's pointer, which is not null.
                unsafe { *address = at };
                track(at, size, Kind::Device);
                run::allocated(at);
                return Status::SUCCESS;
            }
            Err(Status::OUT_OF_MEMORY) => return Status::OUT_OF_MEMORY,
            Err(status) => crate::say::say(&format!(
                "{size} bytes are not from the arena: {status}; replays of kernels that use them may need several processes"
            )),
        }
    }
    let status = call();
    // SAFETY: the driver wrote the address if it made memory.
    unsafe { made(status, address, size, Kind::Device) }
}

/// Frees arena memory after `wait`.
fn given_back(
    address: u64,
    wait: impl FnOnce() -> Status,
    call: impl FnOnce() -> Status,
) -> Status {
    freed(address, || {
        if arena::range(address).is_none_or(|(start, _)| start != address) {
            return call();
        }
        // Waits break captures; leave the memory unused.
        if CAPTURES.load(Ordering::SeqCst) == 0 {
            let status = wait();
            if status != Status::SUCCESS {
                return status;
            }
            arena::free(address);
            run::freed();
        }
        Status::SUCCESS
    })
}

fn wait_for_all() -> Status {
    real::synchronize().err().unwrap_or(Status::SUCCESS)
}

fn wait_for(stream: Handle) -> Status {
    match real::driver() {
        // SAFETY: the program's stream.
        Ok(driver) => unsafe { driver.cuStreamSynchronize(stream) },
        Err(status) => status,
    }
}

fn freed(address: u64, call: impl FnOnce() -> Status) -> Status {
    let _pass = gate::pass();
    let status = call();
    if status == Status::SUCCESS {
        memory().remove(address);
    }
    status
}

hooks! {
    cuMemAlloc_v2(address: *mut u64, size: usize) {
        allocated(address, size, || driver::cuMemAlloc_v2(address, size))
    }
    cuMemAllocPitch_v2(address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32) {
        if let Mode::Record(record) = &settings().mode && record.arena && !pitch.is_null() && width > 0 {
            // As the driver pads.
            let padded = width.next_multiple_of(512);
            let status = allocated(address, padded.saturating_mul(height), || Status::NOT_SUPPORTED);
            if status == Status::SUCCESS {
                *pitch = padded;
            }
            if status != Status::NOT_SUPPORTED {
                return status;
            }
        }
        let status = driver::cuMemAllocPitch_v2(address, pitch, width, height, element);
        let size = if status == Status::SUCCESS { (*pitch).saturating_mul(height) } else { 0 };
        made(status, address, size, Kind::Device)
    }
    cuMemFree_v2(address: u64) { given_back(address, wait_for_all, || driver::cuMemFree_v2(address)) }
    cuMemAllocAsync(address: *mut u64, size: usize, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocAsync(address, size, stream))
    }
    cuMemAllocAsync_ptsz(address: *mut u64, size: usize, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocAsync_ptsz(address, size, stream))
    }
    cuMemAllocFromPoolAsync(address: *mut u64, size: usize, pool: Handle, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocFromPoolAsync(address, size, pool, stream))
    }
    cuMemAllocFromPoolAsync_ptsz(address: *mut u64, size: usize, pool: Handle, stream: Handle) {
        allocated(address, size, || driver::cuMemAllocFromPoolAsync_ptsz(address, size, pool, stream))
    }
    cuMemFreeAsync(address: u64, stream: Handle) {
        given_back(address, || wait_for(stream), || driver::cuMemFreeAsync(address, stream))
    }
    cuMemFreeAsync_ptsz(address: u64, stream: Handle) {
        given_back(address, || wait_for(of_thread(stream)), || driver::cuMemFreeAsync_ptsz(address, stream))
    }
    cuMemAllocManaged(address: *mut u64, size: usize, flags: u32) {
        made(driver::cuMemAllocManaged(address, size, flags), address, size, Kind::Managed)
    }
    cuMemHostAlloc(address: *mut u64, size: usize, flags: u32) {
        made(driver::cuMemHostAlloc(address, size, flags), address, size, Kind::Host)
    }
    cuMemAllocHost_v2(address: *mut u64, size: usize) {
        made(driver::cuMemAllocHost_v2(address, size), address, size, Kind::Host)
    }
    cuMemFreeHost(address: u64) { freed(address, || driver::cuMemFreeHost(address)) }
    cuMemHostRegister_v2(address: u64, size: usize, flags: u32) {
        made(driver::cuMemHostRegister_v2(address, size, flags), &raw const address, size, Kind::Host)
    }
    cuMemHostUnregister(address: u64) { freed(address, || driver::cuMemHostUnregister(address)) }
    cuMemAddressReserve(address: *mut u64, size: usize, alignment: usize, wanted: u64, flags: u64) {
        let is_arena = matches!(&settings().mode, Mode::Record(record) if record.arena);
        let other = if is_arena && wanted == 0 { arena::addresses(size, alignment) } else { wanted };
        let status = driver::cuMemAddressReserve(address, size, alignment, other, flags);
        if status == Status::SUCCESS || other == wanted {
            return status;
        }
        driver::cuMemAddressReserve(address, size, alignment, wanted, flags)
    }
    cuMemMap(address: u64, size: usize, offset: usize, handle: Handle, flags: u64) {
        let status = driver::cuMemMap(address, size, offset, handle, flags);
        let kind = {
            let unrecordable = unrecordable();
            if unrecordable.multicasts.contains(&handle) {
                Kind::Multicast
            } else if unrecordable.imports.contains(&handle) {
                Kind::Imported
            } else {
                Kind::Mapped
            }
        };
        made(status, &raw const address, size, kind)
    }
    cuMemUnmap(address: u64, size: usize) {
        let _pass = gate::pass();
        let status = driver::cuMemUnmap(address, size);
        if status == Status::SUCCESS {
            memory().remove_range(address, size as u64);
        }
        status
    }
    cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) {
        // The driver only knows slabs.
        if let Some((start, bytes)) = arena::range(address) {
            if !base.is_null() {
                *base = start;
            }
            if !size.is_null() {
                *size = bytes as usize;
            }
            return Status::SUCCESS;
        }
        driver::cuMemGetAddressRange_v2(base, size, address)
    }
    cuIpcOpenMemHandle_v2(address: *mut u64, handle: IpcHandle, flags: u32) {
        let status = driver::cuIpcOpenMemHandle_v2(address, handle, flags);
        if status == Status::SUCCESS {
            let (mut base, mut size) = (0, 0);
            if driver::cuMemGetAddressRange_v2(&raw mut base, &raw mut size, *address) == Status::SUCCESS {
                memory().insert(Piece { address: base, size: size as u64, kind: Kind::Imported, device: 0 });
            }
        }
        status
    }
    cuIpcCloseMemHandle(address: u64) { freed(address, || driver::cuIpcCloseMemHandle(address)) }
}
