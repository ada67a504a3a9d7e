// SPDX-License-Identifier: MIT OR Apache-2.0
//! Types, headers, parts of jobs.

use crate::field::Kind::{Address, Bool, Enum, Hex, Unsigned};
use crate::field::{Layout, descriptors};

/// Of headers, in bytes.
pub const ALIGNMENT: u64 = 64;
/// Header's bytes that the GPU writes at the end: status, first incomplete task, fault pointer.
pub const WRITTEN_BACK: u64 = 16;

/// In WRITE_VALUE, CACHE_FLUSH, FRAGMENT jobs.
pub const PAYLOAD: u64 = JobHeader::SIZE as u64;
/// [`Invocation`] in COMPUTE and INDEXED_VERTEX jobs.
pub const INVOCATION: u64 = PAYLOAD;
/// [`ComputeParameters`] in COMPUTE jobs.
pub const COMPUTE_PARAMETERS: u64 = INVOCATION + Invocation::SIZE as u64;
/// [`Draw`] in COMPUTE jobs.
pub const COMPUTE_DRAW: u64 = 64;
/// Of a COMPUTE job.
pub const COMPUTE_BYTES: u64 = COMPUTE_DRAW + Draw::SIZE as u64;
/// [`Primitive`](crate::Primitive) in INDEXED_VERTEX jobs.
pub const PRIMITIVE: u64 = INVOCATION + Invocation::SIZE as u64;
/// [`TilerPointer`](crate::TilerPointer) in INDEXED_VERTEX jobs.
pub const TILER_POINTER: u64 = 72;
/// Fragments' [`Draw`] in INDEXED_VERTEX jobs.
pub const FRAGMENT_DRAW: u64 = 128;
/// Vertices' [`Draw`] in INDEXED_VERTEX jobs.
pub const VERTEX_DRAW: u64 = FRAGMENT_DRAW + Draw::SIZE as u64;
/// Of an INDEXED_VERTEX job.
pub const INDEXED_VERTEX_BYTES: u64 = VERTEX_DRAW + Draw::SIZE as u64;

/// Header's number, bit in JSn_FEATURES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JobType {
    /// Not a job yet.
    NotStarted = 0,
    /// Does nothing.
    Null = 1,
    /// Writes a value to memory.
    WriteValue = 2,
    /// Cleans or invalidates caches.
    CacheFlush = 3,
    /// Compute shader.
    Compute = 4,
    /// Vertex shader.
    Vertex = 5,
    /// Geometry shader.
    Geometry = 6,
    /// Bins primitives.
    Tiler = 7,
    /// Vertex and tiler work.
    Fused = 8,
    /// Shades fragments.
    Fragment = 9,
    /// Fused, vertices by index.
    IndexedVertex = 10,
    /// IndexedVertex on Valhall; the tiler finds memory for vertices.
    MallocVertex = 11,
}

const JOB_TYPES: &[(u32, &str)] = &[
    (0, "NOT_STARTED"),
    (1, "NULL"),
    (2, "WRITE_VALUE"),
    (3, "CACHE_FLUSH"),
    (4, "COMPUTE"),
    (5, "VERTEX"),
    (6, "GEOMETRY"),
    (7, "TILER"),
    (8, "FUSED"),
    (9, "FRAGMENT"),
    (10, "INDEXED_VERTEX"),
    (11, "MALLOC_VERTEX"),
];

impl JobType {
    /// By number.
    pub const ALL: [JobType; 12] = [
        JobType::NotStarted,
        JobType::Null,
        JobType::WriteValue,
        JobType::CacheFlush,
        JobType::Compute,
        JobType::Vertex,
        JobType::Geometry,
        JobType::Tiler,
        JobType::Fused,
        JobType::Fragment,
        JobType::IndexedVertex,
        JobType::MallocVertex,
    ];

    /// Permitted in recordings: [`walk_chain`](crate::walk::walk_chain) can check all its memory before a replay. The
    /// model also runs three drawing types.
    pub const fn is_replayed(self) -> bool {
        matches!(
            self,
            JobType::Null | JobType::WriteValue | JobType::CacheFlush | JobType::Compute
        )
    }

    /// Offsets in bytes; empty if undeclared.
    pub const fn parts(self) -> &'static [(u64, &'static Layout)] {
        match self {
            JobType::Null => &[(0, JobHeader::LAYOUT)],
            JobType::WriteValue => &[(0, JobHeader::LAYOUT), (PAYLOAD, WriteValue::LAYOUT)],
            JobType::CacheFlush => &[(0, JobHeader::LAYOUT), (PAYLOAD, CacheFlush::LAYOUT)],
            JobType::Compute => &[
                (0, JobHeader::LAYOUT),
                (INVOCATION, Invocation::LAYOUT),
                (COMPUTE_PARAMETERS, ComputeParameters::LAYOUT),
                (COMPUTE_DRAW, Draw::LAYOUT),
            ],
            JobType::IndexedVertex => &[
                (0, JobHeader::LAYOUT),
                (INVOCATION, Invocation::LAYOUT),
                (PRIMITIVE, crate::Primitive::LAYOUT),
                (TILER_POINTER, crate::TilerPointer::LAYOUT),
                (FRAGMENT_DRAW, Draw::LAYOUT),
                (VERTEX_DRAW, Draw::LAYOUT),
            ],
            JobType::Fragment => &[
                (0, JobHeader::LAYOUT),
                (PAYLOAD, crate::FragmentPayload::LAYOUT),
            ],
            _ => &[],
        }
    }

    /// Decodes a header's type field.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits < Self::ALL.len() as u64 {
            Some(Self::ALL[bits as usize])
        } else {
            None
        }
    }

    /// Name in capitals, as in logs.
    pub const fn name(self) -> &'static str {
        JOB_TYPES[self as usize].1
    }
}

const WRITE_VALUE_TYPES: &[(u32, &str)] = &[
    (1, "cycle counter"),
    (2, "system timestamp"),
    (3, "zero"),
    (4, "immediate 8"),
    (5, "immediate 16"),
    (6, "immediate 32"),
    (7, "immediate 64"),
];

descriptors! {
    /// Of every job. Hardware writes words 0 to 3 at its end.
    JobHeader = "Job header", 8 words {
        exception_status = "Exception status", 0:0, 32, Hex;
        first_incomplete_task = "First incomplete task", 1:0, 32, Unsigned;
        fault_pointer = "Fault pointer", 2:0, 64, Hex;
        is_64_bit = "Is 64-bit", 4:0, 1, Bool;
        job_type = "Type", 4:1, 7, Enum(JOB_TYPES);
        barrier = "Barrier", 4:8, 1, Bool;
        invalidate_cache = "Invalidate cache", 4:9, 1, Bool;
        suppress_prefetch = "Suppress prefetch", 4:11, 1, Bool;
        enable_texture_mapper = "Enable texture mapper", 4:12, 1, Bool;
        relax_dependency_1 = "Relax dependency 1", 4:14, 1, Bool;
        relax_dependency_2 = "Relax dependency 2", 4:15, 1, Bool;
        index = "Index", 4:16, 16, Unsigned;
        dependency_1 = "Dependency 1", 5:0, 16, Unsigned;
        dependency_2 = "Dependency 2", 5:16, 16, Unsigned;
        next = "Next", 6:0, 64, Address;
    }

    /// 32 bytes into a WRITE_VALUE job.
    WriteValue = "Write value", 6 words {
        address = "Address", 0:0, 64, Address;
        value_type = "Type", 2:0, 32, Enum(WRITE_VALUE_TYPES);
        immediate = "Immediate value", 4:0, 64, Hex;
    }

    /// 32 bytes into a CACHE_FLUSH job.
    CacheFlush = "Cache flush", 2 words {
        clean_load_store = "Clean shader core LS", 0:0, 1, Bool;
        invalidate_load_store = "Invalidate shader core LS", 0:1, 1, Bool;
        invalidate_other = "Invalidate shader core other", 0:2, 1, Bool;
        clean_job_manager = "Job manager clean", 0:16, 1, Bool;
        invalidate_job_manager = "Job manager invalidate", 0:17, 1, Bool;
        clean_tiler = "Tiler clean", 0:24, 1, Bool;
        invalidate_tiler = "Tiler invalidate", 0:25, 1, Bool;
        clean_l2 = "L2 clean", 1:0, 1, Bool;
        invalidate_l2 = "L2 invalidate", 1:1, 1, Bool;
    }

    /// Packed sizes and counts, 32 bytes into a compute job.
    Invocation = "Invocation", 2 words {
        invocations = "Invocations", 0:0, 32, Hex;
        size_y_shift = "Size Y shift", 1:0, 5, Unsigned;
        size_z_shift = "Size Z shift", 1:5, 5, Unsigned;
        workgroups_x_shift = "Workgroups X shift", 1:10, 6, Unsigned;
        workgroups_y_shift = "Workgroups Y shift", 1:16, 6, Unsigned;
        workgroups_z_shift = "Workgroups Z shift", 1:22, 6, Unsigned;
        thread_group_split = "Thread group split", 1:28, 4, Unsigned;
    }

    /// 40 bytes into a compute job.
    ComputeParameters = "Compute parameters", 6 words {
        job_task_split = "Job task split", 0:26, 4, Unsigned;
    }

    /// A shader's pointers, 64 bytes into a compute job.
    Draw = "Draw", 32 words {
        four_components_per_vertex = "Four components per vertex", 0:0, 1, Bool;
        is_64_bit = "Draw descriptor is 64-bit", 0:1, 1, Bool;
        offset_start = "Offset start", 1:0, 32, Unsigned;
        primitive_index_base = "Primitive index base", 2:0, 32, Unsigned;
        position = "Position", 4:0, 64, Address;
        uniform_buffers = "Uniform buffers", 6:0, 64, Address;
        textures = "Textures", 8:0, 64, Address;
        samplers = "Samplers", 10:0, 64, Address;
        push_uniforms = "Push uniforms", 12:0, 64, Address;
        state = "State", 14:0, 64, Address;
        attribute_buffers = "Attribute buffers", 16:0, 64, Address;
        attributes = "Attributes", 18:0, 64, Address;
        varying_buffers = "Varying buffers", 20:0, 64, Address;
        varyings = "Varyings", 22:0, 64, Address;
        viewport = "Viewport", 24:0, 64, Address;
        occlusion = "Occlusion", 26:0, 64, Address;
        thread_storage = "Thread storage", 28:0, 64, Address;
    }
}

impl WriteValue {
    /// Bytes to write; 8 for unknown types.
    pub fn bytes(&self) -> u64 {
        match self.value_type() {
            kind @ 4..=7 => 1 << (kind - 4),
            _ => 8,
        }
    }
}

impl Invocation {
    /// Threads, work groups. `None`: shifts out of order.
    pub fn dimensions(&self) -> Option<([u32; 3], [u32; 3])> {
        let shifts = [
            0,
            self.size_y_shift() as u32,
            self.size_z_shift() as u32,
            self.workgroups_x_shift() as u32,
            self.workgroups_y_shift() as u32,
            self.workgroups_z_shift() as u32,
            32,
        ];
        let mut values = [0u32; 6];
        for (value, range) in values.iter_mut().zip(shifts.windows(2)) {
            let (low, high) = (range[0], range[1]);
            let width = high.checked_sub(low).filter(|_| high <= 32)?;
            let mask = (1u64 << width) - 1;
            *value = ((u64::from(self.words[0]) >> low & mask) as u32).checked_add(1)?;
        }
        let [size_x, size_y, size_z, count_x, count_y, count_z] = values;
        Some(([size_x, size_y, size_z], [count_x, count_y, count_z]))
    }

    /// Sizes and counts of at least 1. `None`: beyond 32 bits.
    pub fn pack(size: [u32; 3], count: [u32; 3]) -> Option<Self> {
        let (mut packed, mut shift) = (0u64, 0);
        let mut shifts = [0; 6];
        for (value, at) in size.into_iter().chain(count).zip(&mut shifts) {
            *at = shift;
            let stored = value.checked_sub(1)?;
            let width = 32 - stored.leading_zeros();
            if shift + width > 32 {
                return None;
            }
            packed |= u64::from(stored) << shift;
            shift += width;
        }
        let [_, size_y, size_z, x, y, z] = shifts;
        Some(Self {
            words: [
                packed as u32,
                size_y | size_z << 5 | x << 10 | y << 16 | z << 22,
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invocations_pack_and_unpack() {
        for (size, count) in [
            ([1, 1, 1], [1, 1, 1]),
            ([64, 1, 1], [1024, 1, 1]),
            ([2, 8, 1], [512, 31, 1]),
            ([4, 4, 4], [3, 5, 7]),
            ([256, 1, 1], [1 << 24, 1, 1]),
        ] {
            assert_eq!(
                Invocation::pack(size, count).unwrap().dimensions(),
                Some((size, count))
            );
        }
        assert_eq!(Invocation::pack([256, 1, 1], [1 << 24, 2, 1]), None);
        assert_eq!(Invocation::pack([0, 1, 1], [1, 1, 1]), None);
    }

    /// As `panfrost/genxml`'s type field, and JSn_FEATURES' bits.
    #[test]
    fn types_have_the_numbers_of_the_header() {
        for (number, job_type) in (0..).zip(JobType::ALL) {
            assert_eq!(job_type as u32, number);
            assert_eq!(JobType::from_bits(number.into()), Some(job_type));
            assert_eq!(JOB_TYPES[number as usize], (number, job_type.name()));
        }
        assert_eq!(JobType::from_bits(12), None);
        assert_eq!(JobType::from_bits(u64::MAX), None);
    }

    #[test]
    fn these_types_are_replayed() {
        let replayed = JobType::ALL.into_iter().filter(|kind| kind.is_replayed());
        let numbers: std::vec::Vec<_> = replayed.map(|kind| kind as u8).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
    }

    #[test]
    fn parts_of_jobs_do_not_overlap() {
        for kind in JobType::ALL {
            let ends = kind
                .parts()
                .iter()
                .map(|(at, layout)| at + 4 * layout.words as u64);
            let starts = kind.parts().iter().skip(1).map(|(at, _)| *at);
            for (end, start) in ends.zip(starts) {
                assert!(end <= start, "{}: {end} {start}", kind.name());
            }
            assert!(!kind.is_replayed() || !kind.parts().is_empty());
        }
        assert_eq!(
            (INVOCATION, COMPUTE_PARAMETERS, COMPUTE_BYTES),
            (32, 40, 192)
        );
        assert_eq!(
            (PRIMITIVE, VERTEX_DRAW, INDEXED_VERTEX_BYTES),
            (40, 256, 384)
        );
    }

    #[test]
    fn shifts_out_of_order_are_refused() {
        assert_eq!(Invocation { words: [0, 5] }.dimensions(), None);
        assert_eq!(
            Invocation {
                words: [0, 63 << 22]
            }
            .dimensions(),
            None
        );
    }
}
