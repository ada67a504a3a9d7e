// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers to the engine.

use gpureplay_shader::core::{Begin, Family, Ids, Tlb, Trouble, UniformBuffer};
use gpureplay_shader::ir::Translate;

use super::bifrost::Bifrost;
use super::operations::graphics;
use super::operations::image::components;
use super::stage::{STAGE_WORDS, Stage};
use super::state::State;
use super::valhall::Valhall;

impl Family for State {
    fn isa(&self) -> &'static dyn Translate {
        match self.dispatch.architecture.has_clauses() {
            true => Bifrost::of(self.dispatch.product),
            false => Valhall::of(self.dispatch.subnormals),
        }
    }

    fn warp_lanes(&self) -> u32 {
        self.dispatch.architecture.warp_lanes()
    }

    fn ids(&self) -> Ids {
        Ids {
            local_xy: 55,
            local_z: 56,
            workgroup: 57,
            global: 60,
        }
    }

    fn again(&self) -> Box<dyn Family> {
        Box::new(State::new(&self.dispatch, self.stage.as_ref()))
    }

    fn add_uniforms(&self, words: &mut Vec<u32>) {
        if let Some(Stage::Fragments(fragments)) = &self.stage {
            words.resize(STAGE_WORDS.into(), 0);
            words.extend(fragments.blend);
        }
    }

    fn begin(&self) -> Option<Begin> {
        self.stage.is_some().then_some(graphics::begin)
    }

    fn uniform_buffer(
        &mut self,
        index: u32,
        read: &mut Tlb<'_>,
    ) -> Result<Option<UniformBuffer>, Trouble> {
        match self.has_resource_tables() {
            true => self.named_buffer(index, read),
            false => self.numbered_buffer(index, read),
        }
    }

    fn texel_bytes(&self, conversion: u32, m: u16) -> Result<usize, Trouble> {
        let (pixel, format) = self.conversion(conversion)?;
        Ok(match pixel {
            Some(pixel) => pixel.bytes.into(),
            None => format.registers(components(m.into())) * 4,
        })
    }
}

#[cfg(test)]
mod tests {
    use mali_isa::Product;

    use super::*;
    use crate::Subnormals;

    #[test]
    fn kept_shaders_fit_one_product_and_one_way_with_subnormals() {
        let product = Product::by_name("Mali-G52");
        assert!(product.is_some());
        let all: [&dyn Translate; 4] = [
            &Bifrost(None),
            &Bifrost(product),
            &Valhall(Subnormals::Kept),
            &Valhall(Subnormals::Flushed),
        ];
        for (number, one) in all.iter().enumerate() {
            let alike: Vec<bool> = all.iter().map(|other| one.is(*other)).collect();
            let only: Vec<bool> = (0..all.len()).map(|other| other == number).collect();
            assert_eq!(alike, only);
        }
    }
}
