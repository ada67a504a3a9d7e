// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux panthor's user space interface 1.2, from `panthor_drm.h`; shared requests:
//! [`panfrost`](crate::panfrost::request).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::panfrost::request::{IN, OUT, Request, arguments, requests};
use mali_facts::StreamGpu;
use mali_facts::registers::gpu;

requests! {
    DRM {
        /// About GPU and firmware.
        DEV_QUERY = 0x40, IN | OUT, DevQuery;
        /// Creates an address space.
        VM_CREATE = 0x41, IN | OUT, VmCreate;
        /// Destroys an address space.
        VM_DESTROY = 0x42, IN | OUT, VmDestroy;
        /// Maps and unmaps objects.
        VM_BIND = 0x43, IN | OUT, VmBind;
        /// Whether it is usable.
        VM_GET_STATE = 0x44, IN | OUT, VmGetState;
        /// Creates an object.
        BO_CREATE = 0x45, IN | OUT, BoCreate;
        /// An object's file offset.
        BO_MMAP_OFFSET = 0x46, IN | OUT, BoMmapOffset;
        /// Creates a group of queues.
        GROUP_CREATE = 0x47, IN | OUT, GroupCreate;
        /// Destroys a group.
        GROUP_DESTROY = 0x48, IN | OUT, GroupDestroy;
        /// To queues of a group.
        GROUP_SUBMIT = 0x49, IN | OUT, GroupSubmit;
        /// Whether it is usable.
        GROUP_GET_STATE = 0x4a, IN | OUT, GroupGetState;
        /// Creates a tiler heap.
        TILER_HEAP_CREATE = 0x4b, IN | OUT, TilerHeapCreate;
        /// Destroys a tiler heap.
        TILER_HEAP_DESTROY = 0x4c, IN | OUT, TilerHeapDestroy;
    }
}

/// Of LATEST_FLUSH's page.
pub const FLUSH_ID_OFFSET: u64 = 1 << 56;
/// [`SyncOp::flags`]: the handle's kind.
pub const SYNC_KIND: u32 = 0xff;
/// [`SyncOp::flags`]: with a time line.
pub const SYNC_TIMELINE: u32 = 1;
/// [`SyncOp::flags`]: signal, do not wait.
pub const SYNC_SIGNAL: u32 = 1 << 31;
/// [`VmBind::flags`]: in the space's queue, with sync operations.
pub const BIND_ASYNC: u32 = 1;
/// [`VmBindOp::flags`]: for the GPU.
pub const MAP_READ_ONLY: u32 = 1;
/// [`VmBindOp::flags`]: for the GPU.
pub const MAP_NO_EXECUTE: u32 = 2;
/// [`VmBindOp::flags`]: past the GPU's caches.
pub const MAP_UNCACHED: u32 = 4;
/// [`VmBindOp::flags`]: the operation.
pub const BIND_KIND: u32 = 0xf << 28;
/// [`BIND_KIND`]: map.
pub const BIND_MAP: u32 = 0;
/// [`BIND_KIND`]: unmap.
pub const BIND_UNMAP: u32 = 1 << 28;
/// [`BIND_KIND`]: only wait and signal.
pub const BIND_SYNC_ONLY: u32 = 2 << 28;
/// [`BoCreate::flags`]: never by the processor.
pub const NO_MMAP: u32 = 1;
/// [`GroupGetState::state`]: a stream faulted; no more work.
pub const GROUP_FATAL_FAULT: u32 = 2;

/// Values of [`DevQuery::kind`].
pub mod query {
    /// [`GpuInfo`](super::GpuInfo).
    pub const GPU_INFO: u32 = 0;
    /// [`CsifInfo`](super::CsifInfo).
    pub const CSIF_INFO: u32 = 1;
    /// [`TimestampInfo`](super::TimestampInfo).
    pub const TIMESTAMP_INFO: u32 = 2;
    /// [`GroupPriorities`](super::GroupPriorities).
    pub const GROUP_PRIORITIES: u32 = 3;
}

arguments! {
    /// `drm_panthor_obj_array`
    ObjectArray { stride: u32, count: u32, array: u64 }
    /// `drm_panthor_sync_op`
    SyncOp { flags: u32, handle: u32, point: u64 }
    /// `drm_panthor_gpu_info`
    GpuInfo {
        gpu_id: u32, gpu_rev: u32, csf_id: u32, l2_features: u32, tiler_features: u32, mem_features: u32, mmu_features: u32,
        thread_features: u32, max_threads: u32, max_workgroup_size: u32, max_barrier_size: u32, coherency_features: u32,
        texture_features: [u32; 4], as_present: u32, pad0: u32, shader_present: u64, l2_present: u64, tiler_present: u64,
        core_features: u32, pad: u32,
    }
    /// `drm_panthor_csif_info`
    CsifInfo { groups: u32, streams: u32, registers: u32, scoreboards: u32, kernel_registers: u32, pad: u32 }
    /// `drm_panthor_timestamp_info`
    TimestampInfo { frequency: u64, current: u64, offset: u64 }
    /// `drm_panthor_group_priorities_info`
    GroupPriorities { allowed: u8, pad: [u8; 3] }
    /// `drm_panthor_dev_query`
    DevQuery { kind: u32, size: u32, pointer: u64 }
    /// `drm_panthor_vm_create`
    VmCreate { flags: u32, id: u32, user_range: u64 }
    /// `drm_panthor_vm_destroy`
    VmDestroy { id: u32, pad: u32 }
    /// `drm_panthor_vm_bind_op`
    VmBindOp { flags: u32, handle: u32, offset: u64, va: u64, size: u64, syncs: ObjectArray }
    /// `drm_panthor_vm_bind`
    VmBind { vm: u32, flags: u32, operations: ObjectArray }
    /// `drm_panthor_vm_get_state`
    VmGetState { vm: u32, state: u32 }
    /// `drm_panthor_bo_create`
    BoCreate { size: u64, flags: u32, exclusive_vm: u32, handle: u32, pad: u32 }
    /// `drm_panthor_bo_mmap_offset`
    BoMmapOffset { handle: u32, pad: u32, offset: u64 }
    /// `drm_panthor_queue_create`
    QueueCreate { priority: u8, pad: [u8; 3], ring_bytes: u32 }
    /// `drm_panthor_group_create`
    GroupCreate {
        queues: ObjectArray, compute_cores: u8, fragment_cores: u8, tilers: u8, priority: u8, pad: u32, compute_mask: u64,
        fragment_mask: u64, tiler_mask: u64, vm: u32, handle: u32,
    }
    /// `drm_panthor_group_destroy`
    GroupDestroy { handle: u32, pad: u32 }
    /// `drm_panthor_queue_submit`
    QueueSubmit { queue: u32, bytes: u32, address: u64, latest_flush: u32, pad: u32, syncs: ObjectArray }
    /// `drm_panthor_group_submit`
    GroupSubmit { group: u32, pad: u32, submits: ObjectArray }
    /// `drm_panthor_group_get_state`
    GroupGetState { group: u32, state: u32, fatal_queues: u32, pad: u32 }
    /// `drm_panthor_tiler_heap_create`
    TilerHeapCreate {
        vm: u32, initial_chunks: u32, chunk_bytes: u32, max_chunks: u32, target_in_flight: u32, handle: u32, context: u64,
        first_chunk: u64,
    }
    /// `drm_panthor_tiler_heap_destroy`
    TilerHeapDestroy { handle: u32, pad: u32 }
}

impl From<&StreamGpu> for GpuInfo {
    fn from(gpu: &StreamGpu) -> Self {
        let profile = &gpu.profile;
        Self {
            gpu_id: profile.gpu_id.0,
            gpu_rev: 0,
            csf_id: gpu.csf_id,
            l2_features: profile.l2_features,
            tiler_features: profile.tiler_features,
            mem_features: profile.mem_features,
            mmu_features: profile.mmu_features,
            thread_features: profile.thread_features,
            max_threads: profile.max_threads,
            max_workgroup_size: profile.max_workgroup_size,
            max_barrier_size: profile.max_barrier_size,
            coherency_features: profile.coherency_features,
            texture_features: profile.texture_features,
            as_present: profile.as_present,
            shader_present: profile.shader_present,
            l2_present: profile.l2_present,
            tiler_present: profile.tiler_present,
            core_features: profile.core_features,
            ..Self::default()
        }
    }
}

impl From<&StreamGpu> for CsifInfo {
    fn from(gpu: &StreamGpu) -> Self {
        Self {
            groups: gpu.groups,
            streams: gpu.streams,
            registers: gpu.registers,
            scoreboards: gpu.scoreboards,
            kernel_registers: StreamGpu::KERNEL_REGISTERS,
            pad: 0,
        }
    }
}

/// Registers as panthor tells them.
pub fn registers(info: &GpuInfo) -> [(u32, u32); 12] {
    [
        (gpu::GPU_ID, info.gpu_id),
        (gpu::L2_FEATURES, info.l2_features),
        (gpu::TILER_FEATURES, info.tiler_features),
        (gpu::MEM_FEATURES, info.mem_features),
        (gpu::MMU_FEATURES, info.mmu_features),
        (gpu::AS_PRESENT, info.as_present),
        (gpu::THREAD_MAX_THREADS, info.max_threads),
        (gpu::THREAD_MAX_WORKGROUP_SIZE, info.max_workgroup_size),
        (gpu::THREAD_MAX_BARRIER_SIZE, info.max_barrier_size),
        (gpu::THREAD_FEATURES, info.thread_features),
        (gpu::SHADER_PRESENT_LO, info.shader_present as u32),
        (gpu::SHADER_PRESENT_HI, (info.shader_present >> 32) as u32),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from a C compiler.
    #[test]
    fn requests_are_the_kernels() {
        for (request, number) in [
            (DEV_QUERY, 0xc010_6440),
            (VM_CREATE, 0xc010_6441),
            (VM_DESTROY, 0xc008_6442),
            (VM_BIND, 0xc018_6443),
            (VM_GET_STATE, 0xc008_6444),
            (BO_CREATE, 0xc018_6445),
            (BO_MMAP_OFFSET, 0xc010_6446),
            (GROUP_CREATE, 0xc038_6447),
            (GROUP_DESTROY, 0xc008_6448),
            (GROUP_SUBMIT, 0xc018_6449),
            (GROUP_GET_STATE, 0xc010_644a),
            (TILER_HEAP_CREATE, 0xc028_644b),
            (TILER_HEAP_DESTROY, 0xc008_644c),
        ] {
            assert_eq!(request, Request(number), "{request:x?}");
        }
        assert_eq!(size_of::<VmBindOp>(), 48);
        assert_eq!(size_of::<QueueSubmit>(), 40);
        assert_eq!(size_of::<GpuInfo>(), 104);
    }
}
