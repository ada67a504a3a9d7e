// SPDX-License-Identifier: MIT OR Apache-2.0
//! A GPU by its name or a board's.

use mali_model::{Product, Profile};

#[derive(Clone, Debug)]
pub(crate) struct Gpu {
    /// In small letters.
    pub(crate) name: String,
    pub(crate) profile: &'static Profile,
}

pub(crate) fn gpu(name: &str) -> Result<Gpu, String> {
    found(name, Profile::by_name(name), Profile::names())
}

/// Also with command streams.
pub(crate) fn any_gpu(name: &str) -> Result<Gpu, String> {
    let product = Product::by_name(name);
    found(name, product.map(Product::profile), Product::names())
}

/// A render node can have each GPU of the model.
pub(crate) fn node_gpu(name: &str) -> Result<String, String> {
    any_gpu(name).map(|gpu| gpu.name)
}

fn found(
    name: &str,
    profile: Option<&'static Profile>,
    names: impl Iterator<Item = &'static str>,
) -> Result<Gpu, String> {
    let name = name.to_ascii_lowercase();
    let profile = profile.ok_or_else(|| {
        let names: Vec<_> = names.collect();
        format!("GPUs and boards are: {}", names.join(", "))
    })?;
    Ok(Gpu { name, profile })
}
