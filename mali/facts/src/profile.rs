// SPDX-License-Identifier: MIT OR Apache-2.0
//! Identity registers of GPUs.

use crate::registers::{GpuId, gpu};

use crate::Architecture;

/// Source of a profile's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The original GPUReplay's recordings.
    Silicon,
    /// Printed by Linux on this board; else the nearest GPU's.
    BootLog(&'static str),
    /// As silicon; the product is the named driver's.
    DriverTable(&'static str),
    /// Not public; from this profile's silicon.
    Nearest(&'static str),
    /// Not public; the named driver's for 0.
    DriverDefault(&'static str),
    /// The model's choice, for this reason.
    Model(&'static str),
}

/// Name and identity registers.
///
/// The model's choices: `afbc_features` (1: no frame buffer compression); `texture_features[0]` (0: no compressed
/// textures) and `coherency_features` (1: ACE-lite) but for G71. G76's `l2_present` is one cache with `mem_features`'
/// slices: so Linux uses all cores.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Command-line name: `g52`.
    pub name: &'static str,
    /// For most; see [`Profile::source_of`].
    pub source: Source,
    /// Generation.
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
    /// JS0_FEATURES to JS2_FEATURES; no more.
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
    /// Bits of a virtual address.
    pub const fn virtual_bits(&self) -> u32 {
        self.mmu_features & 0xff
    }

    /// Bits of a physical address.
    pub const fn physical_bits(&self) -> u32 {
        self.mmu_features >> 8 & 0xff
    }

    /// Highest core id plus one.
    pub const fn core_id_range(&self) -> u32 {
        64 - self.shader_present.leading_zeros()
    }

    /// Bits of SHADER_PRESENT; if none is left, all are used.
    #[must_use]
    pub fn without_cores(&self, unused: u32) -> Self {
        let mut profile = self.clone();
        let used = self.shader_present & !u64::from(unused);
        if used != 0 {
            profile.shader_present = used;
        }
        profile
    }

    /// Offsets and values other than 0.
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

    /// Source of an identity register's value.
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
        let v7 = self.architecture != Architecture::V6;
        let valhall = self.architecture.has_resource_tables();
        match (self.source, register) {
            (_, gpu::AFBC_FEATURES) => Source::Model("frame buffer compression is not decoded"),
            (Source::DriverTable(_), gpu::GPU_ID) | (Source::Silicon, _) => self.source,
            (Source::DriverTable(_), _) => Source::Silicon,
            (_, gpu::L2_PRESENT_LO) if self.name == "g76" => {
                Source::Model("one cache, so that Linux uses all cores")
            }
            // Not in the boot log.
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
            (_, gpu::THREAD_MAX_WORKGROUP_SIZE | gpu::THREAD_MAX_BARRIER_SIZE) if valhall => {
                Source::DriverDefault("Mesa")
            }
            _ => Source::Nearest("g71"),
        }
    }
}
