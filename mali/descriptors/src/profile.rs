// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPUs that can be modelled, and the values of their feature registers.

use mali_regs::{GpuId, gpu};

use crate::Architecture;

/// Where the values of a profile come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Read from registers of the real GPU, by the recordings of the original GPUReplay.
    Silicon,
    /// Printed by Linux at boot on the named board; the rest as on the nearest GPU.
    BootLog(&'static str),
    /// As on silicon, but for the product in GPU_ID: that is the one by which the named driver knows the GPU.
    DriverTable(&'static str),
    /// Not public; this is the value of silicon of the GPU whose profile has the name.
    Nearest(&'static str),
    /// Not public; this is what the named driver assumes when the register is 0.
    DriverDefault(&'static str),
    /// The model's own choice, for this reason.
    Model(&'static str),
}

/// One GPU: its name and all registers that say what it is.
///
/// Values that are the model's own choice and not the GPU's: `afbc_features` (1 declares frame buffer compression
/// missing, which the model does not decode), `texture_features[0]` of all but G71 (0: no compressed textures), and
/// `coherency_features` of all but G71 (1: ACE-lite; the model is always coherent with its host's memory). `l2_present`
/// of G76 is one cache with the slices that `mem_features` says, so that Linux uses all of its cores.
#[derive(Debug)]
pub struct Profile {
    /// Name on the command line: `g52`.
    pub name: &'static str,
    /// Where most values come from; [`Profile::source_of`] has the source of each.
    pub source: Source,
    /// Generation of instructions and descriptors.
    pub architecture: Architecture,
    /// GPU_ID.
    pub gpu_id: GpuId,
    /// L2_FEATURES.
    pub l2_features: u32,
    /// CORE_FEATURES.
    pub core_features: u32,
    /// TILER_FEATURES.
    pub tiler_features: u32,
    /// MEM_FEATURES.
    pub mem_features: u32,
    /// MMU_FEATURES.
    pub mmu_features: u32,
    /// AS_PRESENT.
    pub as_present: u32,
    /// JS_PRESENT.
    pub js_present: u32,
    /// THREAD_MAX_THREADS.
    pub max_threads: u32,
    /// THREAD_MAX_WORKGROUP_SIZE.
    pub max_workgroup_size: u32,
    /// THREAD_MAX_BARRIER_SIZE.
    pub max_barrier_size: u32,
    /// THREAD_FEATURES.
    pub thread_features: u32,
    /// TEXTURE_FEATURES_0 to 3.
    pub texture_features: [u32; 4],
    /// JS0_FEATURES to JS2_FEATURES; slots beyond have none.
    pub js_features: [u32; 3],
    /// SHADER_PRESENT.
    pub shader_present: u64,
    /// TILER_PRESENT.
    pub tiler_present: u64,
    /// L2_PRESENT.
    pub l2_present: u64,
    /// COHERENCY_FEATURES.
    pub coherency_features: u32,
    /// AFBC_FEATURES.
    pub afbc_features: u32,
}

impl Profile {
    /// Bits of a physical address.
    pub const fn physical_bits(&self) -> u32 {
        self.mmu_features >> 8 & 0xff
    }

    /// One more than the highest core id.
    pub const fn core_id_range(&self) -> u32 {
        64 - self.shader_present.leading_zeros()
    }

    /// Offsets and values of all identity registers that are not 0.
    pub fn identity(&self) -> impl Iterator<Item = (u32, u32)> {
        let words = [
            (gpu::GPU_ID, self.gpu_id.0),
            (gpu::L2_FEATURES, self.l2_features),
            (gpu::CORE_FEATURES, self.core_features),
            (gpu::TILER_FEATURES, self.tiler_features),
            (gpu::MEM_FEATURES, self.mem_features),
            (gpu::MMU_FEATURES, self.mmu_features),
            (gpu::AS_PRESENT, self.as_present),
            (gpu::JS_PRESENT, self.js_present),
            (gpu::AFBC_FEATURES, self.afbc_features),
            (gpu::THREAD_MAX_THREADS, self.max_threads),
            (gpu::THREAD_MAX_WORKGROUP_SIZE, self.max_workgroup_size),
            (gpu::THREAD_MAX_BARRIER_SIZE, self.max_barrier_size),
            (gpu::THREAD_FEATURES, self.thread_features),
            (gpu::TEXTURE_FEATURES_0, self.texture_features[0]),
            (gpu::TEXTURE_FEATURES_1, self.texture_features[1]),
            (gpu::TEXTURE_FEATURES_2, self.texture_features[2]),
            (gpu::TEXTURE_FEATURES_3, self.texture_features[3]),
            (gpu::JS0_FEATURES, self.js_features[0]),
            (gpu::JS1_FEATURES, self.js_features[1]),
            (gpu::JS2_FEATURES, self.js_features[2]),
            (gpu::SHADER_PRESENT_LO, self.shader_present as u32),
            (gpu::SHADER_PRESENT_HI, (self.shader_present >> 32) as u32),
            (gpu::TILER_PRESENT_LO, self.tiler_present as u32),
            (gpu::TILER_PRESENT_HI, (self.tiler_present >> 32) as u32),
            (gpu::L2_PRESENT_LO, self.l2_present as u32),
            (gpu::L2_PRESENT_HI, (self.l2_present >> 32) as u32),
            (gpu::COHERENCY_FEATURES, self.coherency_features),
        ];
        words.into_iter().filter(|(_, value)| *value != 0)
    }

    /// Where the value of an identity register comes from.
    pub fn source_of(&self, register: u32) -> Source {
        let printed = matches!(
            register,
            gpu::GPU_ID
                | gpu::L2_FEATURES
                | gpu::CORE_FEATURES
                | gpu::TILER_FEATURES
                | gpu::MEM_FEATURES
                | gpu::MMU_FEATURES
                | gpu::AS_PRESENT
                | gpu::JS_PRESENT
                | gpu::SHADER_PRESENT_LO
                | gpu::SHADER_PRESENT_HI
                | gpu::L2_PRESENT_LO
                | gpu::L2_PRESENT_HI
        );
        let v7 = self.architecture == Architecture::V7;
        match (self.source, register) {
            (_, gpu::AFBC_FEATURES) => Source::Model("frame buffer compression is not decoded"),
            (Source::DriverTable(_), gpu::GPU_ID) | (Source::Silicon, _) => self.source,
            (Source::DriverTable(_), _) => Source::Silicon,
            (_, gpu::L2_PRESENT_LO) if self.name == "g76" => {
                Source::Model("one cache, so that Linux uses all cores")
            }
            // The log at hand does not show these two.
            (_, gpu::L2_FEATURES | gpu::MEM_FEATURES) if self.name == "g76" => {
                Source::Model("caches for sixteen cores")
            }
            _ if printed => self.source,
            (_, gpu::TEXTURE_FEATURES_0) => Source::Model("compressed textures are not decoded"),
            (_, gpu::TEXTURE_FEATURES_1 | gpu::TEXTURE_FEATURES_2) if v7 => {
                Source::Model("the formats that the model decodes")
            }
            (_, gpu::COHERENCY_FEATURES) => {
                Source::Model("memory is coherent with the host's, by ACE-lite")
            }
            (_, gpu::THREAD_MAX_THREADS) if v7 => Source::DriverDefault("Mesa"),
            _ => Source::Nearest("g71"),
        }
    }

    /// The profile with this name (`g52`), in any case, with or without `mali-` before it.
    pub fn by_name(name: &str) -> Option<&'static Profile> {
        let name = match name.split_at_checked(5) {
            Some((family, product)) if family.eq_ignore_ascii_case("mali-") => product,
            _ => name,
        };
        PROFILES
            .iter()
            .find(|profile| profile.name.eq_ignore_ascii_case(name))
    }

    /// The profile of a product: the upper half of GPU_ID. Products that differ in minor revision match.
    pub fn by_product(product: u16) -> Option<&'static Profile> {
        let model = |product: u16| product & 0xf00f;
        PROFILES
            .iter()
            .find(|profile| profile.gpu_id.product() == product)
            .or_else(|| {
                PROFILES
                    .iter()
                    .find(|profile| model(profile.gpu_id.product()) == model(product))
            })
    }
}

const V7: Profile = Profile {
    name: "",
    source: Source::BootLog(""),
    architecture: Architecture::V7,
    gpu_id: GpuId(0),
    l2_features: 0x0711_0206,
    core_features: 0,
    tiler_features: 0x809,
    mem_features: 1,
    mmu_features: 0x2830,
    as_present: 0xff,
    js_present: 7,
    max_threads: 0x300,
    max_workgroup_size: 0x180,
    max_barrier_size: 0x180,
    thread_features: 0x0a04_6000,
    texture_features: [0, 0x0000_ffff, 0x9f81_ffff, 0],
    js_features: [0x20e, 0x4fe, 0x7e],
    shader_present: 3,
    tiler_present: 1,
    l2_present: 1,
    coherency_features: 1,
    afbc_features: 1,
};

const V6: Profile = Profile {
    architecture: Architecture::V6,
    max_threads: 0x180,
    texture_features: [0, 0x00ff_0fff, 0xfe3f_ffff, 0],
    ..V7
};

const G71: Profile = Profile {
    name: "g71",
    source: Source::Silicon,
    gpu_id: GpuId(0x60a0_0002),
    l2_features: 0x0713_0206,
    mem_features: 0x101,
    texture_features: [0xffff_ffff, 0x00ff_0fff, 0xfe3f_ffff, 0],
    shader_present: 0xff,
    coherency_features: 3,
    ..V6
};

/// Every GPU that can be modelled.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "g52",
        source: Source::BootLog("Amlogic S922X"),
        gpu_id: GpuId(0x7212_0000),
        ..V7
    },
    Profile {
        name: "g31",
        source: Source::BootLog("Allwinner H616"),
        gpu_id: GpuId(0x7093_0000),
        l2_features: 0x0710_0206,
        tiler_features: 0x209,
        mmu_features: 0x2821,
        shader_present: 1,
        ..V7
    },
    Profile {
        name: "g76",
        source: Source::BootLog("HiSilicon Kirin 990"),
        gpu_id: GpuId(0x7211_0000),
        l2_features: 0x0713_0206,
        mem_features: 0x301,
        shader_present: 0xffff,
        l2_present: 1,
        ..V7
    },
    Profile {
        name: "g72",
        source: Source::BootLog("MediaTek MT8183"),
        gpu_id: GpuId(0x6221_0030),
        l2_features: 0x0712_0206,
        shader_present: 7,
        ..V6
    },
    G71,
    // The G71 whose registers were recorded calls itself product 0x60a0, architecture 6.0.10. Mesa knows a G71 only as
    // 0x6000 (`panfrost_model_list`) and refuses every other product; Linux masks the revision and accepts both.
    Profile {
        name: "g71-mesa",
        source: Source::DriverTable("Mesa"),
        gpu_id: GpuId(0x6000_0002),
        ..G71
    },
];

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::format;

    use super::*;

    #[test]
    fn profiles_are_found() {
        for profile in PROFILES {
            assert_eq!(
                Profile::by_name(profile.name).unwrap().gpu_id,
                profile.gpu_id
            );
            let found = Profile::by_product(profile.gpu_id.product()).unwrap();
            assert_eq!(found.gpu_id, profile.gpu_id);
            assert!(
                profile
                    .gpu_id
                    .name()
                    .unwrap()
                    .to_lowercase()
                    .ends_with(profile.name.trim_end_matches("-mesa"))
            );
        }
        assert_eq!(Profile::by_name("Mali-G52").unwrap().name, "g52");
        assert_eq!(Profile::by_product(0x7402).unwrap().name, "g52");
        assert_eq!(Profile::by_product(0x60a0).unwrap().name, "g71");
        assert_eq!(Profile::by_product(0x6010).unwrap().name, "g71");
        assert_eq!(Profile::by_product(0x6000).unwrap().name, "g71-mesa");
        assert!(Profile::by_name("g77").is_none() && Profile::by_product(0x9093).is_none());
    }

    #[test]
    fn every_value_has_a_source() {
        let g71 = Profile::by_name("g71").unwrap();
        let recorded: HashMap<u32, u32> = g71.identity().collect();
        for profile in PROFILES {
            for (register, value) in profile.identity() {
                let name = format!("{} {register:#x}", profile.name);
                match profile.source_of(register) {
                    Source::Silicon | Source::Nearest(_) => {
                        assert_eq!(recorded.get(&register), Some(&value), "{name}");
                    }
                    Source::BootLog(board) => {
                        assert_eq!(profile.source, Source::BootLog(board), "{name}");
                    }
                    Source::DriverTable(_) => assert_eq!(register, gpu::GPU_ID, "{name}"),
                    // Mesa, pan_props.c: 768 threads on v7.
                    Source::DriverDefault(_) => assert_eq!(value, 768, "{name}"),
                    Source::Model(why) => assert!(!why.is_empty(), "{name}"),
                }
            }
        }
    }

    #[test]
    fn core_ids() {
        assert_eq!(Profile::by_name("g52").unwrap().core_id_range(), 2);
        assert_eq!(Profile::by_name("g76").unwrap().core_id_range(), 16);
    }
}
