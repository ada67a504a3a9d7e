// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong memory, identity and tensors.

use gpureplay_format::layout::{AxisEntry, Region, TensorEntry};
use gpureplay_format::{Access, RegionKind, Section};
use zerocopy::IntoBytes;

use super::Mutant;
use crate::parts::Parts;

/// No shipped recording has memory there.
pub(super) const HIGH: u64 = 1 << 47;

pub(super) fn region(va: u64, pages: u32, access: Access, kind: RegionKind) -> Region {
    Region {
        va: va.into(),
        pages: pages.into(),
        access: access.0,
        kind: kind.code(),
        zero: 0.into(),
    }
}

pub(super) fn va_of(parts: &Parts, kind: RegionKind) -> u64 {
    let mut parts = parts.clone();
    let found = parts
        .regions()
        .iter()
        .find(|region| region.kind == kind.code());
    found.map_or(0, |region| region.va.get())
}

fn first_axes(parts: &mut Parts, axes: [(u32, u32, u32); 2]) {
    let axes = axes.map(|(extent, element_stride, byte_stride)| AxisEntry {
        extent: extent.into(),
        element_stride: element_stride.into(),
        byte_stride: byte_stride.into(),
    });
    // The piece's axis count is at byte 16.
    let at = &mut parts.section(Section::Pieces)[16..20];
    let before = u32::from_le_bytes([at[0], at[1], at[2], at[3]]) as usize;
    at.copy_from_slice(&2u32.to_le_bytes());
    let old = before * size_of::<AxisEntry>();
    let table = parts.section(Section::Axes);
    table.splice(..old, axes.as_bytes().iter().copied());
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let changed = |change: &dyn Fn(&mut Parts)| parts.changed(change);
    let also =
        |added: Region| changed(&|parts| parts.section(Section::Regions).extend(added.as_bytes()));
    let of_kind = |kind: RegionKind, change: &dyn Fn(&mut Region)| {
        changed(&|parts| {
            let mut regions = parts.regions().iter_mut();
            if let Some(region) = regions.find(|region| region.kind == kind.code()) {
                change(region);
            }
        })
    };
    let tensor = |change: &dyn Fn(&mut TensorEntry)| changed(&|p| change(&mut p.tensors()[0]));
    let piece = |at: usize, value: u8| changed(&|p| p.section(Section::Pieces)[at] = value);
    let input_at = |va: u64| {
        changed(&|parts| parts.section(Section::Pieces)[..8].copy_from_slice(&va.to_le_bytes()))
    };
    let rw = Access::READ_WRITE;
    let far = 0x7000_0000_0000;
    rows![
        // 256 MiB apart: a table each, every fourth a second one.
        "regions that need more page tables than there is memory", "memory-limit" => changed(&|parts| {
            for index in 0..1 << 19 {
                let added = region(HIGH + (index << 28), 1, rw, RegionKind::Data);
                parts.section(Section::Regions).extend(added.as_bytes());
            }
        });
        "region off a page", "region-shape" => also(region(far + 0x800, 1, rw, RegionKind::Data));
        "region without pages", "region-shape" => also(region(far, 0, rw, RegionKind::Data));
        "reserved field of a region", "region-shape" => changed(&|p| p.regions()[0].zero = 1.into());
        "region beyond the address range", "region-range" => also(region(0xffff_ffff_f000, 2, rw, RegionKind::Data));
        "region that wraps", "region-range" => also(region(0u64.wrapping_sub(4096), 1, rw, RegionKind::Data));
        "regions overlap", "regions-disjoint" => changed(&|p| { let first = p.regions()[0].va; p.regions()[1].va = first; });
        "region twice", "regions-disjoint" => changed(&|p| {
            let copy = p.section(Section::Regions)[..16].to_vec();
            p.section(Section::Regions).splice(..0, copy);
        });
        "regions reordered", "regions-disjoint" => changed(&|p| p.regions().reverse());
        "code that can be written", "write-xor-execute" => of_kind(RegionKind::Code, &|r| r.access = 7);
        "data that can be executed and written", "write-xor-execute" => of_kind(RegionKind::Data, &|r| r.access = 7);
        "data that can be executed", "region-kind" => of_kind(RegionKind::Data, &|r| r.access = 5);
        "code that cannot be executed", "region-kind" => of_kind(RegionKind::Code, &|r| r.access = 1);
        "data that cannot be read", "region-kind" => of_kind(RegionKind::Data, &|r| r.access = 2);
        "unknown kind of access", "region-kind" => of_kind(RegionKind::Data, &|r| r.access = 0xb);
        "unknown kind of memory", "region-kind" => of_kind(RegionKind::Data, &|r| r.kind = 9);
        "a terabyte of memory", "memory-limit" => also(region(far, 1 << 28, rw, RegionKind::Data));
        "no identity", "identity-product" => changed(&|p| p.section(Section::Identity).clear());
        "product that is half compared", "identity-product" => changed(&|p| p.section(Section::Identity)[7] = 0x0f);
        "header of another GPU", "identity-product" => changed(&|p| p.platform.gpu_id ^= 0x0002_0000);
        "identity of a counter", "identity-register" => changed(&|p| p.section(Section::Identity)[..4].copy_from_slice(&0x38u32.to_le_bytes()));
        "identity between two registers", "identity-register" => changed(&|p| p.section(Section::Identity)[0] = 2);
        "identity that rings a doorbell", "identity-register" => changed(&|p| {
            p.section(Section::Identity)[..4].copy_from_slice(&0x18e0u32.to_le_bytes())
        });
        "unknown element type", "tensor-shape" => tensor(&|t| t.element = 99);
        "unknown kind of tensor", "tensor-shape" => tensor(&|t| t.kind = 99);
        "unknown tensor flag", "tensor-shape" => tensor(&|t| t.flags |= 0x80);
        "tensor without a name", "tensor-shape" => tensor(&|t| t.name = u32::MAX.into());
        "rank of seven", "tensor-shape" => tensor(&|t| t.rank = 7);
        "extent of zero", "tensor-shape" => tensor(&|t| t.shape[0] = 0.into());
        "shape that overflows", "tensor-shape" => tensor(&|t| t.shape[0] = u32::MAX.into());
        "tensor of other pieces", "tensor-tables" => tensor(&|t| t.first_piece = 1.into());
        "pieces from outside the file", "tensor-tables" => tensor(&|t| t.pieces = u32::MAX.into());
        "piece of no tensor", "tensor-tables" => changed(&|p| p.section(Section::Pieces).extend([0; 20]));
        "axes from outside the file", "tensor-tables" => piece(19, 0x7f);
        "elements that no piece has", "tensor-elements" => tensor(&|t| t.shape[0] = (t.shape[0].get() * 2).into());
        "piece with a gap in its axes", "tensor-tables" => piece(12, 1);
        "first element beyond the last", "tensor-elements" => changed(&|p| p.section(Section::Pieces)[8..12].fill(0x7f));
        "elements in one place", "tensor-overlap" => changed(&|p| p.section(Section::Axes)[8..12].fill(0));
        "rows of bytes in one place", "tensor-overlap" => changed(&|p| first_axes(p, [(2, 4, 6), (4, 1, 4)]));
        "rows off their alignment", "tensor-region" => changed(&|p| first_axes(p, [(2, 4, 18), (4, 1, 4)]));
        "rows that leave the region", "tensor-region" => changed(&|p| first_axes(p, [(2, 4, 0xffff_fffc), (4, 1, 4)]));
        "input over a job chain", "tensor-region" => input_at(va_of(parts, RegionKind::Descriptors));
        "input over code", "tensor-region" => input_at(va_of(parts, RegionKind::Code));
        "input over scratch", "tensor-region" => input_at(va_of(parts, RegionKind::Scratch));
        "input outside all regions", "tensor-region" => input_at(far);
        "input off its alignment", "tensor-region" => input_at(va_of(parts, RegionKind::Data) + 1);
    ]
}
