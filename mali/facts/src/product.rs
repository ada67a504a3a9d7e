// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU of either kind.

use crate::registers::GpuId;
use crate::{Profile, STREAM_GPUS, StreamGpu};

/// For job slots only, take a [`Profile`].
#[derive(Clone, Copy, Debug)]
pub enum Product {
    /// With a job manager.
    Chains(&'static Profile),
    /// With command streams.
    Streams(&'static StreamGpu),
}

impl Product {
    /// By its name or its board's.
    pub fn by_name(name: &str) -> Option<Self> {
        let chains = Profile::by_name(name).map(Self::Chains);
        chains.or_else(|| StreamGpu::by_name(name).map(Self::Streams))
    }

    /// Finds a GPU by identity.
    pub fn by_id(id: impl Into<GpuId>) -> Option<Self> {
        let id = id.into();
        let product = |gpu: &&StreamGpu| gpu.profile.gpu_id.product() == id.product();
        let chains = Profile::by_product(id.product()).map(Self::Chains);
        chains.or_else(|| STREAM_GPUS.iter().find(product).map(Self::Streams))
    }

    /// Names known to [`Product::by_name`].
    pub fn names() -> impl Iterator<Item = &'static str> {
        Profile::names().chain(StreamGpu::names())
    }

    /// The GPU's registers.
    pub fn profile(self) -> &'static Profile {
        match self {
            Self::Chains(profile) => profile,
            Self::Streams(gpu) => &gpu.profile,
        }
    }
}

impl From<&'static Profile> for Product {
    fn from(profile: &'static Profile) -> Self {
        Self::Chains(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_and_each_identity_is_one_product() {
        for name in Product::names() {
            let product = Product::by_name(name).unwrap();
            let same = Product::by_id(product.profile().gpu_id).unwrap();
            let is_streams = |product| matches!(product, Product::Streams(_));
            assert_eq!(is_streams(product), is_streams(same), "{name}");
            let ids = [product, same].map(|product| product.profile().gpu_id.product() & 0xf00f);
            assert_eq!(ids[0], ids[1], "{name}");
        }
        assert!(Product::by_name("").is_none() && Product::by_id(GpuId(0)).is_none());
    }
}
