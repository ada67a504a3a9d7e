// SPDX-License-Identifier: MIT OR Apache-2.0
//! Groups of queues, with panthor's checks.

use std::sync::{Arc, Mutex};

use mali_model::Sequencer;
use mali_model::driven::NoRoom;
use mali_uapi::panthor as uapi;

use crate::errno::{Errno, Result, valid};
use crate::faults::tell;
use crate::machine::StreamMachine;
use crate::sync::Fence;
use crate::user;
use crate::vm::Group;

use super::PRIORITIES;
use crate::lock::locked;
use crate::node::Call;
use crate::node::syncs::Point;

const RING: std::ops::RangeInclusive<u32> = 4 << 10..=64 << 10;

impl Call<'_> {
    pub(super) fn group_create(
        &self,
        machine: &Mutex<StreamMachine>,
        argument: &mut uapi::GroupCreate,
    ) -> Result<()> {
        let gpu = locked(machine).gpu();
        let (shaders, tilers) = (gpu.profile.shader_present, gpu.profile.tiler_present);
        let fits = |mask: u64, present: u64, most: u8| {
            mask & !present == 0 && mask.count_ones() >= u32::from(most)
        };
        valid(
            argument.pad == 0
                && (1..=gpu.streams).contains(&argument.queues.count)
                && fits(argument.compute_mask, shaders, argument.compute_cores)
                && fits(argument.fragment_mask, shaders, argument.fragment_cores)
                && fits(argument.tiler_mask, tilers, argument.tilers)
                && argument.priority <= 3,
        )?;
        if PRIORITIES >> argument.priority & 1 == 0 {
            return Err(Errno(libc::EACCES));
        }
        let mut queues = Vec::new();
        user::objects(&argument.queues, |queue: uapi::QueueCreate| {
            let ring = queue.ring_bytes;
            let sized = RING.contains(&ring) && ring.is_power_of_two();
            valid(queue.priority <= 15 && queue.pad == [0; 3] && sized)?;
            queues.push(Arc::new(Mutex::new(Sequencer::new())));
            Ok(())
        })?;
        argument.handle = self.in_file(|file| {
            let (_, (space, _)) = file.spaces.vms.get(argument.vm)?.regions();
            file.spaces.groups.add(Group {
                vm: argument.vm,
                space,
                queues,
                fatal_queues: 0,
            })
        })?;
        Ok(())
    }

    pub(super) fn group_get_state(&self, argument: &mut uapi::GroupGetState) -> Result<()> {
        valid(argument.pad == 0)?;
        argument.fatal_queues =
            self.in_file(|file| Ok(file.spaces.groups.get(argument.group)?.fatal_queues))?;
        argument.state = match argument.fatal_queues {
            0 => 0,
            _ => uapi::GROUP_FATAL_FAULT,
        };
        Ok(())
    }

    /// Nothing runs unless all makes sense.
    pub(super) fn group_submit(
        &self,
        machine: &Mutex<StreamMachine>,
        argument: &mut uapi::GroupSubmit,
    ) -> Result<()> {
        valid(argument.pad == 0)?;
        let queues = self.in_file(|file| {
            let group = file.spaces.groups.get(argument.group)?;
            valid(group.fatal_queues == 0).map(|()| group.queues.len())
        })?;
        valid(argument.submits.count != 0)?;
        let mut jobs = Vec::new();
        user::objects(&argument.submits, |submit: uapi::QueueSubmit| {
            let (bytes, address) = (submit.bytes, submit.address);
            let placed = address.is_multiple_of(64) && bytes.is_multiple_of(8);
            let whole = (bytes == 0) == (address == 0);
            valid(submit.pad == 0 && (submit.queue as usize) < queues && whole && placed)?;
            jobs.push((submit, self.syncs(&submit.syncs)?));
            Ok(())
        })?;
        for (submit, signals) in jobs {
            let fence = self.run_stream(machine, argument.group, &submit)?;
            self.signal_all(signals, fence);
        }
        Ok(())
    }

    fn run_stream(
        &self,
        machine: &Mutex<StreamMachine>,
        group: u32,
        submit: &uapi::QueueSubmit,
    ) -> Result<Fence> {
        let (queue, fatal, (regions, space)) = self.in_file(|file| {
            let group = file.spaces.groups.get(group)?;
            let queue = group.queues.get(submit.queue as usize);
            let queue = queue.ok_or(Errno::INVALID)?.clone();
            let (vm, number, fatal) = (group.vm, group.space, group.fatal_queues != 0);
            let found = file.spaces.vms.get(vm)?.regions();
            valid(found.1.0 == number).map(|()| (queue, fatal, found))
        })?;
        if fatal {
            return Ok(Err(Errno::INVALID));
        }
        if submit.bytes == 0 {
            return Ok(Ok(()));
        }
        let stream = (submit.address, submit.bytes);
        let ended = {
            let mut machine = locked(machine);
            let mut queue = locked(&queue);
            machine.run(space, regions.maps(), &mut queue, stream)
        };
        let Err(fault) = ended.map_err(|NoRoom| Errno::NO_MEMORY)? else {
            return Ok(Ok(()));
        };
        tell(format_args!(
            "the stream at {:#x} ended with {fault}",
            submit.address
        ));
        self.in_file(|file| {
            file.spaces.groups.get(group)?.fatal_queues |= 1 << submit.queue;
            Ok(())
        })?;
        Ok(Err(Errno::INVALID))
    }

    /// All waited for has ended, or was never submitted. Returns what to signal.
    pub(super) fn syncs(&self, array: &uapi::ObjectArray) -> Result<Vec<Point>> {
        let mut signals = Vec::new();
        user::objects(array, |operation: uapi::SyncOp| {
            let timeline = match operation.flags & uapi::SYNC_KIND {
                0 => false,
                uapi::SYNC_TIMELINE => true,
                _ => return Err(Errno::INVALID),
            };
            let known = uapi::SYNC_KIND | uapi::SYNC_SIGNAL;
            valid(operation.flags & !known == 0 && (timeline || operation.point == 0))?;
            let sync = self.sync(operation.handle);
            let sync = sync.map_err(|_| Errno::INVALID)?;
            if operation.flags & uapi::SYNC_SIGNAL != 0 {
                signals.push((sync, operation.point));
                return Ok(());
            }
            // Others' failure stops nothing.
            let fence = sync.fence_at(operation.point);
            fence.map(drop).ok_or(Errno::INVALID)
        })?;
        Ok(signals)
    }

    pub(super) fn signal_all(&self, signals: Vec<Point>, fence: Fence) {
        for (sync, point) in signals {
            self.node.reach(&sync, point, fence);
        }
    }
}
