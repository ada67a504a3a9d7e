// SPDX-License-Identifier: MIT OR Apache-2.0
//! kbase's user space interface: job-manager version 11, r9p0 to r44p1.
//!
//! From `mali_kbase_ioctl.h`, `mali_base_jm_kernel.h` (older: `mali_base_kernel.h`).

use core::ops::Range;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::panfrost::request::{IN, OUT, Request, arguments, requests};

requests! {
    KBASE {
        /// Exchanges versions.
        VERSION_CHECK = 0, IN | OUT, Version;
        /// For a new context.
        SET_FLAGS = 1, IN, SetFlags;
        /// Submits atoms.
        JOB_SUBMIT = 2, IN, Submit;
        /// Reads properties.
        GET_GPUPROPS = 3, IN, Buffer;
        /// Allocates a region.
        MEM_ALLOC = 5, IN | OUT, Allocate;
        /// A region's number.
        MEM_QUERY = 6, IN | OUT, Query;
        /// Frees a region.
        MEM_FREE = 7, IN, Free;
        /// The release's name.
        GET_DDK_VERSION = 13, IN, Buffer;
        /// Cleans or invalidates.
        MEM_SYNC = 15, IN, Sync;
        /// Sets a region's pages.
        MEM_COMMIT = 20, IN, Commit;
        /// Maps regions at other addresses.
        MEM_ALIAS = 21, IN | OUT, Allocate;
        /// Imports memory.
        MEM_IMPORT = 22, IN | OUT, Import;
        /// Whether the kernel may take pages.
        MEM_FLAGS_CHANGE = 23, IN, FlagsChange;
        /// Exchanges versions, for command streams.
        VERSION_CHECK_STREAMS = 52, IN | OUT, Version;
        /// Allocates a region, from r32p0.
        MEM_ALLOC_EX = 59, IN | OUT, AllocateEx;
    }
}

/// Major, for job managers.
pub const MAJOR: u16 = 11;
/// Highest minor; the driver answers with its own.
pub const NEWEST: u16 = 0xfff;
/// Its mapping marks the context's owner; required before r38.
pub const TRACKING_PAGE: i64 = 3 << 12;
/// New regions' offsets; mapping gives addresses.
pub const COOKIES: Range<u64> = 64 << 12..128 << 12;
/// [`Query::number`]: pages of a region.
pub const COMMIT_SIZE: u64 = 1;
/// [`Sync::kind`]: write back.
pub const CLEAN: u8 = 1;
/// [`Sync::kind`]: invalidates the processor's caches.
pub const INVALIDATE: u8 = 2;
/// Bytes, for all releases.
pub const ATOM: u32 = 48;
/// Bytes with a render pass's number.
pub const ATOM_OF_PASS: u32 = 56;
/// The same, after a sequence number of 8 bytes.
pub const ATOM_OF_SEQUENCE: u32 = 64;

/// `BASE_MEM_*`: what a region is for.
pub mod flags {
    /// Processor reads.
    pub const CPU_READ: u64 = 1 << 0;
    /// Processor writes.
    pub const CPU_WRITE: u64 = 1 << 1;
    /// GPU reads.
    pub const GPU_READ: u64 = 1 << 2;
    /// GPU writes.
    pub const GPU_WRITE: u64 = 1 << 3;
    /// GPU executes.
    pub const GPU_EXECUTE: u64 = 1 << 4;
    /// Pages come on GPU access.
    pub const GROW: u64 = 1 << 9;
    /// The processor caches it.
    pub const CPU_CACHED: u64 = 1 << 12;
    /// As the CPU.
    pub const SAME_VA: u64 = 1 << 13;
    /// The kernel may take pages.
    pub const DONT_NEED: u64 = 1 << 17;
}

/// `BASE_JD_REQ_*`: what an atom needs.
pub mod requirement {
    /// Fragment jobs.
    pub const FRAGMENT: u32 = 1 << 0;
    /// Compute jobs.
    pub const COMPUTE: u32 = 1 << 1;
    /// Fragment, compute, tiler, cache flush, value; without, it only depends.
    pub const CHAINS: u32 = 0x1f;
    /// With a later event.
    pub const EVENT_COALESCE: u32 = 1 << 5;
    /// By the kernel; low bits say which.
    pub const SOFT_JOB: u32 = 1 << 9;
    /// Allocates in the order of atoms.
    pub const JIT_ALLOC: u32 = SOFT_JOB | 0x9;
    /// Frees such memory.
    pub const JIT_FREE: u32 = SOFT_JOB | 0xa;
    /// Tells soft jobs apart.
    pub const SOFT_KIND: u32 = SOFT_JOB | 0x1f;
    /// An event only on failure.
    pub const EVENT_ON_FAILURE: u32 = 1 << 12;
    /// No event.
    pub const EVENT_NEVER: u32 = 1 << 14;
    /// Named by the atom.
    pub const JOB_SLOT: u32 = 1 << 17;
    /// Begins or ends one of several atoms.
    pub const RENDER_PASS: u32 = 3 << 18;
    /// Only some cores run it.
    pub const CORE_MASK: u32 = 1 << 20;
}

/// `BASE_JD_EVENT_*`: ends of atoms; others are faults.
pub mod event {
    /// Well.
    pub const DONE: u32 = 0x1;
    /// Taken off the GPU.
    pub const STOPPED: u32 = 0x3;
    /// Off the GPU, by force.
    pub const TERMINATED: u32 = 0x4;
    /// Never run.
    pub const JOB_CANCELLED: u32 = 0x4002;
}

arguments! {
    /// `VERSION_CHECK`
    Version { major: u16, minor: u16 }
    /// `SET_FLAGS`
    SetFlags { flags: u32 }
    /// In: pages of addresses, of memory, extension, [`flags`]. Out: flags, address or cookie.
    Allocate { words: [u64; 4] }
    /// Perhaps at a fixed address.
    AllocateEx { words: [u64; 4], more: [u64; 4] }
    /// Address in, number out.
    Query { address: u64, number: u64 }
    /// `MEM_FREE`
    Free { address: u64 }
    /// `MEM_SYNC`
    Sync { region: u64, at: u64, size: u64, kind: u8, zero: [u8; 7] }
    /// `MEM_COMMIT`
    Commit { address: u64, pages: u64 }
    /// In: flags, handle's place, kind. Out: flags, address, pages.
    Import { words: [u64; 3] }
    /// New [`flags`].
    FlagsChange { address: u64, flags: u64, mask: u64 }
    /// `JOB_SUBMIT`
    Submit { atoms: u64, count: u32, stride: u32 }
    /// For properties, or a release's name.
    Buffer { buffer: u64, size: u32, zero: u32 }
    /// An earlier atom; kind 1 passes failures on.
    Dependency { atom: u8, kind: u8 }
    /// The [`ATOM`] bytes of all releases.
    Atom {
        chain: u64, user_data: [u64; 2], resources: u64, resource_count: u16, jit: [u8; 2], dependencies: [Dependency; 2],
        number: u8, priority: u8, device: u8, slot: u8, requirements: u32,
    }
    /// Read: an atom has ended.
    Event { code: u32, atom: u8, padding: [u8; 3], user_data: [u64; 2] }
}

impl Atom {
    /// Offset in an element of `stride` bytes; `None` if unknown.
    pub fn offset(stride: u32) -> Option<usize> {
        match stride {
            ATOM | ATOM_OF_PASS => Some(0),
            ATOM_OF_SEQUENCE => Some(8),
            _ => None,
        }
    }

    /// As the driver's `kbase_js_get_slot`, with one core group.
    pub fn job_slot(&self) -> u8 {
        let has = |bits: u32| self.requirements & bits == bits;
        if has(requirement::JOB_SLOT) {
            self.slot
        } else {
            u8::from(!has(requirement::FRAGMENT))
        }
    }
}

const _: () = {
    assert!(size_of::<Atom>() == ATOM as usize);
    assert!(size_of::<Event>() == 24);
    assert!(size_of::<Sync>() == 32);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// On arm64.
    #[test]
    fn requests_are_those_of_the_headers() {
        let all = [
            (VERSION_CHECK, 0xc004_8000),
            (SET_FLAGS, 0x4004_8001),
            (JOB_SUBMIT, 0x4010_8002),
            (GET_GPUPROPS, 0x4010_8003),
            (MEM_ALLOC, 0xc020_8005),
            (MEM_QUERY, 0xc010_8006),
            (MEM_FREE, 0x4008_8007),
            (MEM_SYNC, 0x4020_800f),
            (MEM_COMMIT, 0x4010_8014),
            (MEM_ALIAS, 0xc020_8015),
            (MEM_IMPORT, 0xc018_8016),
            (MEM_FLAGS_CHANGE, 0x4018_8017),
            (MEM_ALLOC_EX, 0xc040_803b),
        ];
        for (request, bits) in all {
            assert_eq!(request.0, bits, "{request:x?}");
        }
    }

    #[test]
    fn atoms_find_their_slots() {
        let of = |requirements| {
            let atom = Atom {
                requirements,
                slot: 2,
                ..Atom::default()
            };
            atom.job_slot()
        };
        use requirement as needs;
        assert_eq!(of(needs::FRAGMENT), 0);
        assert_eq!(of(needs::COMPUTE), 1);
        assert_eq!(of(needs::COMPUTE | needs::JOB_SLOT), 2);
    }
}
