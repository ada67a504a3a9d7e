// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory is made, mapped and freed.

use std::sync::atomic::Ordering;

use gpureplay_cuda_launch::abi::{Handle, IpcHandle, Status};

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
    cuMemAlloc_v2: (address: *mut u64, size: usize) |real| { allocated(address, size, real.call) }
    cuMemAllocPitch_v2: (address: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32) |real| {
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
        let status = real.call();
        let size = if status == Status::SUCCESS { (*pitch).saturating_mul(height) } else { 0 };
        made(status, address, size, Kind::Device)
    }
    cuMemFree_v2: (address: u64) |real| { given_back(address, wait_for_all, real.call) }
    cuMemAllocAsync | cuMemAllocAsync_ptsz: (address: *mut u64, size: usize, stream: Handle) |real| { allocated(address, size, real.call) }
    cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz: (address: *mut u64, size: usize, pool: Handle, stream: Handle) |real| {
        allocated(address, size, real.call)
    }
    cuMemFreeAsync | cuMemFreeAsync_ptsz: (address: u64, stream: Handle) |real| { given_back(address, || wait_for(real.stream(stream)), real.call) }
    cuMemAllocManaged: (address: *mut u64, size: usize, flags: u32) |real| { made(real.call(), address, size, Kind::Managed) }
    cuMemHostAlloc: (address: *mut u64, size: usize, flags: u32) |real| { made(real.call(), address, size, Kind::Host) }
    cuMemAllocHost_v2: (address: *mut u64, size: usize) |real| { made(real.call(), address, size, Kind::Host) }
    cuMemHostRegister_v2: (address: u64, size: usize, flags: u32) |real| { made(real.call(), &raw const address, size, Kind::Host) }
    cuMemFreeHost | cuMemHostUnregister | cuIpcCloseMemHandle: (address: u64) |real| { freed(address, real.call) }
    cuMemAddressReserve: (address: *mut u64, size: usize, alignment: usize, wanted: u64, flags: u64) |real| {
        let is_arena = matches!(&settings().mode, Mode::Record(record) if record.arena);
        let other = if is_arena && wanted == 0 { arena::addresses(size, alignment) } else { wanted };
        let status = (real.function)(address, size, alignment, other, flags);
        if status == Status::SUCCESS || other == wanted {
            return status;
        }
        real.call()
    }
    cuMemMap: (address: u64, size: usize, offset: usize, handle: Handle, flags: u64) |real| {
        let status = real.call();
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
    cuMemUnmap: (address: u64, size: usize) |real| {
        let _pass = gate::pass();
        real.then(|| memory().remove_range(address, size as u64))
    }
    cuMemGetAddressRange_v2: (base: *mut u64, size: *mut usize, address: u64) |real| {
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
        real.call()
    }
    cuIpcOpenMemHandle_v2: (address: *mut u64, handle: IpcHandle, flags: u32) |real| {
        real.then(|| {
            let (mut base, mut size) = (0, 0);
            if driver::cuMemGetAddressRange_v2(&raw mut base, &raw mut size, *address) == Status::SUCCESS {
                memory().insert(Piece { address: base, size: size as u64, kind: Kind::Imported, device: 0 });
            }
        })
    }
}
