// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules for memory and identity.

use gpureplay_format::{Access, PAGE_SIZE, RegionKind, Section};

use super::{Checker, Rule};
use crate::family::Family;

/// For a region's two ends, on three levels. Each 512 pages need one of the lowest level, and so on: fewer than one
/// for 256 pages in all.
const TABLES: u64 = 3 * 2;

impl Checker<'_, '_> {
    pub(super) fn check_regions<F: Family>(&mut self) -> Result<(), Rule> {
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
            if region.end() > 1 << F::ADDRESS_BITS {
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
            let kind = RegionKind::from_code(region.kind.into());
            if !kind.is_some_and(|kind| F::suits(kind, access)) {
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

    pub(super) fn check_identity<F: Family>(&mut self) -> Result<(), Rule> {
        self.section = Section::Identity;
        let gpu_id = self.recording.gpu_id();
        let mut product = false;
        for (index, entry) in (0..).zip(self.recording.identity()) {
            self.index = index;
            let register = entry.register.get();
            self.ensure(
                F::is_identity(register),
                Rule::IdentityRegister,
                register.into(),
            )?;
            product |= F::demands_product(entry, gpu_id);
        }
        self.ensure(product, Rule::IdentityProduct, gpu_id.into())
    }
}
