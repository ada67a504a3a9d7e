// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU family for tests, whose dispatches have only threads.

use super::copies::Copies;
use crate::core::{Begin, Family, Ids, Tlb, Trouble, UniformBuffer};
use crate::ir::Translate;

pub(crate) struct Bare;

impl Family for Bare {
    fn isa(&self) -> &'static dyn Translate {
        &Copies
    }

    fn warp_lanes(&self) -> u32 {
        8
    }

    fn ids(&self) -> Ids {
        Ids {
            local_xy: 0,
            local_z: 1,
            workgroup: 2,
            global: 5,
        }
    }

    fn again(&self) -> Box<dyn Family> {
        Box::new(Bare)
    }

    fn add_uniforms(&self, _: &mut Vec<u32>) {}

    fn begin(&self) -> Option<Begin> {
        None
    }

    fn uniform_buffer(
        &mut self,
        _: u32,
        _: &mut Tlb<'_>,
    ) -> Result<Option<UniformBuffer>, Trouble> {
        Ok(None)
    }

    fn texel_bytes(&self, _: u32, _: u16) -> Result<usize, Trouble> {
        Ok(0)
    }
}
