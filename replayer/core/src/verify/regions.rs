// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for memory and identity.

use gpureplay_format::{Access, PAGE_SIZE, RegionKind, Section};
use mali_regs::gpu::GPU_ID;

use super::{Checker, Rule};
use crate::allow;

/// Virtual address bits of the largest GPU; the engine compares with the actual one.
const ADDRESS_BITS: u32 = 48;
/// Page tables that a region needs in each of three levels because of where it begins and ends. Besides, each 512 pages need one
/// of the lowest level, and so on: fewer than one for 256 pages in all.
const TABLES: u64 = 3 * 2;
/// The product in GPU_ID.
const PRODUCT: u32 = 0xffff_0000;

impl Checker<'_, '_> {
    pub(super) fn check_regions(&mut self) -> Result<(), Rule> {
        self.section = Section::Regions;
        let mut end = 0;
        let mut pages = 0u64;
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
            let own = u64::from(region.pages.get());
            pages += own + own / 256 + TABLES;
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
