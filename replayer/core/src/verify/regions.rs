// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for memory and identity.

use gpureplay_format::{Access, PAGE_SIZE, Recording, RegionKind, Section};
use mali_regs::gpu::GPU_ID;

use super::{Limits, Rule, Violation, require};
use crate::allow;

/// Virtual address bits of the largest GPU; the engine compares with the actual one.
const ADDRESS_BITS: u32 = 48;
/// The product in GPU_ID.
const PRODUCT: u32 = 0xffff_0000;

pub(super) fn check(recording: &Recording<'_>, limits: &Limits) -> Result<(), Violation> {
    let mut end = 0;
    let mut pages = 0u64;
    for (index, region) in (0u32..).zip(recording.regions()) {
        let va = region.va.get();
        let check = |holds, rule| require(holds, rule, Section::Regions, index, va);
        let shape = va.is_multiple_of(PAGE_SIZE.into()) && region.pages != 0 && region.zero == 0;
        check(shape, Rule::RegionShape)?;
        check(region.end() <= 1 << ADDRESS_BITS, Rule::RegionRange)?;
        check(va >= end, Rule::RegionsDisjoint)?;
        end = region.end();
        let both = Access::WRITE | Access::EXECUTE;
        check(!Access(region.access).contains(both), Rule::WriteXorExecute)?;
        let suits = match RegionKind::from_code(region.kind.into()) {
            Some(RegionKind::Code) => region.access == Access::READ_EXECUTE.0,
            Some(_) => region.access == Access::READ.0 || region.access == Access::READ_WRITE.0,
            None => false,
        };
        check(suits, Rule::RegionKind)?;
        pages += u64::from(region.pages.get());
        check(pages <= limits.pages, Rule::MemoryLimit)?;
    }
    Ok(())
}

pub(super) fn check_identity(recording: &Recording<'_>) -> Result<(), Violation> {
    let mut product = false;
    for (index, entry) in (0u32..).zip(recording.identity()) {
        let register = entry.register.get();
        require(
            allow::identity(register),
            Rule::IdentityRegister,
            Section::Identity,
            index,
            register.into(),
        )?;
        product |= register == GPU_ID
            && entry.mask.get() & PRODUCT == PRODUCT
            && (entry.value.get() ^ recording.gpu_id()) & PRODUCT == 0;
    }
    require(
        product,
        Rule::IdentityProduct,
        Section::Identity,
        0,
        recording.gpu_id().into(),
    )
}
