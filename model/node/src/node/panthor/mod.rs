// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panthor's requests: GPU, address spaces, objects, heaps.

mod submit;

use std::sync::Mutex;

use mali_model::driven::Rights;
use mali_uapi::panthor::{self as uapi, CsifInfo, GpuInfo, number, query};
use zerocopy::{Immutable, IntoBytes};

use crate::errno::{Errno, Result, valid};
use crate::machine::{StreamMachine, timestamp_info};
use crate::user;
use crate::vm::Region;

use crate::lock::locked;

use super::Call;

/// Low and medium: without rights.
const PRIORITIES: u8 = 0b11;
const CHUNK: std::ops::RangeInclusive<u32> = 128 << 10..=8 << 20;

impl Call<'_> {
    pub(super) fn panthor(&self, machine: &Mutex<StreamMachine>) -> Result<std::ffi::c_int> {
        match self.request.number() {
            number::DEV_QUERY => self.with(|argument| query(machine, argument)),
            number::VM_CREATE => self.with(|argument| self.vm_create(argument)),
            number::VM_DESTROY => self.with(|argument: &mut uapi::VmDestroy| {
                valid(argument.pad == 0)?;
                self.in_file(|file| file.spaces.destroy(argument.id))
            }),
            number::VM_BIND => self.with(|argument| self.vm_bind(argument)),
            number::VM_GET_STATE => self.with(|argument: &mut uapi::VmGetState| {
                let unusable = |vm: &mut crate::vm::Vm| u32::from(vm.unusable);
                argument.state =
                    self.in_file(|file| file.spaces.vms.get(argument.vm).map(unusable))?;
                Ok(())
            }),
            number::BO_CREATE => self.with(|argument| self.bo_create(argument)),
            number::BO_MMAP_OFFSET => self.with(|argument| self.bo_mmap_offset(argument)),
            number::GROUP_CREATE => self.with(|argument| self.group_create(machine, argument)),
            number::GROUP_DESTROY => self.with(|argument: &mut uapi::GroupDestroy| {
                valid(argument.pad == 0)?;
                self.in_file(|file| file.spaces.groups.remove(argument.handle).map(drop))
            }),
            number::GROUP_SUBMIT => self.with(|argument| self.group_submit(machine, argument)),
            number::GROUP_GET_STATE => self.with(|argument| self.group_get_state(argument)),
            number::TILER_HEAP_CREATE => self.with(|argument| self.heap_create(argument)),
            number::TILER_HEAP_DESTROY => self.with(|argument: &mut uapi::TilerHeapDestroy| {
                valid(argument.pad == 0)?;
                self.in_file(|file| file.spaces.heaps.remove(argument.handle).map(drop))
            }),
            _ => Err(Errno::INVALID),
        }
    }

    fn vm_create(&self, argument: &mut uapi::VmCreate) -> Result<()> {
        valid(argument.flags == 0)?;
        let number = self.node.new_number();
        let made = self.in_file(|file| file.spaces.create(argument.user_range, number));
        (argument.id, argument.user_range) = made?;
        Ok(())
    }

    fn vm_bind(&self, argument: &mut uapi::VmBind) -> Result<()> {
        let queued = match argument.flags {
            0 => false,
            uapi::BIND_ASYNC => true,
            _ => return Err(Errno::INVALID),
        };
        self.in_file(|file| file.spaces.vms.get(argument.vm).map(drop))?;
        let mut done = 0;
        let result = user::objects(&argument.operations, |operation: uapi::VmBindOp| {
            valid(queued || operation.syncs.count == 0)?;
            let signals = self.syncs(&operation.syncs)?;
            let bound = self.bind_one(argument.vm, queued, &operation);
            if queued && bound.is_err() {
                self.in_file(|file| {
                    file.spaces.vms.get(argument.vm)?.unusable = true;
                    Ok(())
                })?;
            }
            bound?;
            self.signal_all(signals, Ok(()));
            done += 1;
            Ok(())
        });
        if result.is_err() && !queued {
            // As the driver tells it.
            argument.operations.count = done;
        }
        result
    }

    fn bind_one(&self, vm: u32, queued: bool, operation: &uapi::VmBindOp) -> Result<()> {
        let map = uapi::MAP_READ_ONLY | uapi::MAP_NO_EXECUTE | uapi::MAP_UNCACHED;
        let flags = operation.flags & !uapi::BIND_KIND;
        let nothing = operation.handle == 0 && operation.offset == 0 && flags == 0;
        match operation.flags & uapi::BIND_KIND {
            uapi::BIND_MAP if flags & !map == 0 => self.in_file(|file| {
                let held = file.object(operation.handle).map_err(|_| Errno::INVALID)?;
                valid([0, vm].contains(&held.exclusive))?;
                let region = Region {
                    object: held.object.clone(),
                    offset: operation.offset,
                    size: operation.size,
                    rights: Rights {
                        write: flags & uapi::MAP_READ_ONLY == 0,
                        execute: flags & uapi::MAP_NO_EXECUTE == 0,
                    },
                };
                let space = file.spaces.vms.get(vm)?;
                valid(!space.unusable)?;
                space.map(operation.va, region)
            }),
            uapi::BIND_UNMAP if nothing => self.in_file(|file| {
                let space = file.spaces.vms.get(vm)?;
                space.unmap(operation.va, operation.size)
            }),
            uapi::BIND_SYNC_ONLY if nothing => {
                let empty = operation.va == 0 && operation.size == 0;
                valid(queued && empty && operation.syncs.count > 0)
            }
            _ => Err(Errno::INVALID),
        }
    }

    fn bo_create(&self, argument: &mut uapi::BoCreate) -> Result<()> {
        let mappable = match argument.flags {
            0 => true,
            uapi::NO_MMAP => false,
            _ => return Err(Errno::INVALID),
        };
        valid(argument.size != 0 && argument.pad == 0)?;
        let exclusive = argument.exclusive_vm;
        if exclusive != 0 {
            self.in_file(|file| file.spaces.vms.get(exclusive).map(drop))?;
        }
        let object = self.node.memory.create_plain(argument.size, mappable)?;
        argument.size = object.size;
        argument.handle = self.in_file(|file| file.add_plain(object, exclusive))?;
        Ok(())
    }

    fn bo_mmap_offset(&self, argument: &mut uapi::BoMmapOffset) -> Result<()> {
        valid(argument.pad == 0)?;
        argument.offset = self.in_file(|file| {
            let object = &file.object(argument.handle)?.object;
            match object.heap {
                true => Err(Errno(libc::EPERM)),
                false => Ok(object.address),
            }
        })?;
        Ok(())
    }

    fn heap_create(&self, argument: &mut uapi::TilerHeapCreate) -> Result<()> {
        let counts = (1..=argument.max_chunks).contains(&argument.initial_chunks);
        let bytes = argument.chunk_bytes;
        valid(counts && CHUNK.contains(&bytes) && bytes.is_power_of_two())?;
        let all = u64::from(bytes) * u64::from(argument.max_chunks);
        let (handle, heap) = self.in_file(|file| file.spaces.heap(argument.vm, all))?;
        argument.handle = handle;
        (argument.context, argument.first_chunk) = (heap.context, heap.first_chunk);
        Ok(())
    }
}

fn query(machine: &Mutex<StreamMachine>, argument: &mut uapi::DevQuery) -> Result<()> {
    let machine = locked(machine);
    match argument.kind {
        query::GPU_INFO => answer(argument, &GpuInfo::from(machine.gpu()), 96),
        query::CSIF_INFO => answer(argument, &CsifInfo::from(machine.gpu()), 24),
        query::TIMESTAMP_INFO => answer(argument, &timestamp_info(&machine), 16),
        query::GROUP_PRIORITIES => {
            let told = uapi::GroupPriorities {
                allowed: PRIORITIES,
                pad: [0; 3],
            };
            answer(argument, &told, 4)
        }
        _ => Err(Errno::INVALID),
    }
}

/// Writes an answer of at least `least` bytes; without a place, the size.
fn answer<T: IntoBytes + Immutable>(
    argument: &mut uapi::DevQuery,
    told: &T,
    least: usize,
) -> Result<()> {
    let bytes = told.as_bytes();
    if argument.pointer == 0 {
        argument.size = bytes.len() as u32;
        return Ok(());
    }
    let room = argument.size as usize;
    valid(room >= least)?;
    // SAFETY: the query says that so many bytes of an answer go there.
    unsafe { user::write(argument.pointer, &bytes[..room.min(bytes.len())]) }
}
