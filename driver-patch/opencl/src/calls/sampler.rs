// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sampler as argument counts as what it is: its handle differs in each run.

use super::functions;
use crate::abi::{Handle, SAMPLER_QUERIES, Status, ask, signature};
use crate::state;
use crate::table::next;

functions! {
    clCreateSampler => create_sampler: signature::CreateSampler,
    clCreateSamplerWithProperties => create_sampler_with_properties: signature::CreateSamplerWithProperties,
}

/// Four bytes per answer, zeros where the runtime does not say.
fn made(sampler: Handle) -> Handle {
    if sampler == Handle::NULL {
        return sampler;
    }
    let info = next!(clGetSamplerInfo: signature::Info);
    let is = SAMPLER_QUERIES.map(|what| ask(info, sampler, what).unwrap_or([0u8; 4]));
    state::with(|state| state.samplers.insert(sampler, is.concat()));
    sampler
}

unsafe extern "C" fn create_sampler(
    context: Handle,
    normalized: u32,
    addressing: u32,
    filter: u32,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateSampler: signature::CreateSampler, or Handle::NULL);
    // SAFETY: the app's own arguments.
    made(unsafe { next(context, normalized, addressing, filter, status) })
}

unsafe extern "C" fn create_sampler_with_properties(
    context: Handle,
    properties: *const u64,
    status: *mut Status,
) -> Handle {
    type Next = signature::CreateSamplerWithProperties;
    let next = next!(clCreateSamplerWithProperties: Next, or Handle::NULL);
    // SAFETY: the app's own arguments.
    made(unsafe { next(context, properties, status) })
}
