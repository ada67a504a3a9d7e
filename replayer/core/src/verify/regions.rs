// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for memory and identity.

use gpureplay_format::{Access, PAGE_SIZE, RegionKind, Section};
use mali_regs::gpu::GPU_ID;

use super::{Checker, Rule};
use crate::allow;

/// Virtual address bits of the largest GPU; the engine compares with the actual one.
const ADDRESS_BITS: u32 = 48;
/// Bits of an address within the reach of a page table of the lower three levels.
const TABLE_SHIFTS: [u32; 3] = [21, 30, 39];
/// The product in GPU_ID.
const PRODUCT: u32 = 0xffff_0000;

impl Checker<'_, '_> {
    pub(super) fn check_regions(&mut self) -> Result<(), Rule> {
        self.section = Section::Regions;
        let mut end = 0;
        // The root of the page tables.
        let mut pages = 1u64;
        for (index, region) in (0..).zip(self.recording.regions()) {
            self.index = index;
            self.value = region.va.get();
            if !self.value.is_multiple_of(PAGE_SIZE.into()) || region.pages == 0 || region.zero != 0
            {
                return Err(Rule::RegionShape);
            }
            if region.end() > 1 << ADDRESS_BITS {
                return Err(Rule::RegionRange);
            }
            if self.value < end {
                return Err(Rule::RegionsDisjoint);
            }
            // Tables that the regions before do not have; for the first region all of them are new.
            let (before, last) = (end.wrapping_sub(1), region.end().wrapping_sub(1));
            for shift in TABLE_SHIFTS {
                let first = self.value >> shift;
                pages += (last >> shift) - first + u64::from(before >> shift != first);
            }
            end = region.end();
            let access = Access(region.access);
            if access.contains(Access::WRITE | Access::EXECUTE) {
                return Err(Rule::WriteXorExecute);
            }
            let suits = match RegionKind::from_code(region.kind.into()) {
                Some(RegionKind::Code) => access == Access::READ_EXECUTE,
                Some(_) => access == Access::READ || access == Access::READ_WRITE,
                None => false,
            };
            if !suits {
                return Err(Rule::RegionKind);
            }
            pages += u64::from(region.pages.get());
            if pages > self.limits.pages {
                return Err(Rule::MemoryLimit);
            }
        }
        Ok(())
    }

    pub(super) fn check_identity(&mut self) -> Result<(), Rule> {
        self.section = Section::Identity;
        let gpu_id = self.recording.gpu_id();
        let mut product = false;
        for (index, entry) in (0..).zip(self.recording.identity()) {
            self.index = index;
            let register = entry.register.get();
            self.ensure(
                allow::identity(register),
                Rule::IdentityRegister,
                register.into(),
            )?;
            product |= register == GPU_ID
                && entry.mask.get() & PRODUCT == PRODUCT
                && (entry.value.get() ^ gpu_id) & PRODUCT == 0;
        }
        self.ensure(product, Rule::IdentityProduct, gpu_id.into())
    }
}
