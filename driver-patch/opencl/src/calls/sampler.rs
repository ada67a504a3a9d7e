// SPDX-License-Identifier: MIT OR Apache-2.0
//! Samplers: a kernel argument that is one counts as what the sampler is, since its handle is another one in each run.

use core::ptr;

use super::functions;
use crate::abi::{Handle, SAMPLER_QUERIES, SUCCESS, Status, signature};
use crate::state;
use crate::table::next;

functions! {
    clCreateSampler => create_sampler: signature::CreateSampler,
    clCreateSamplerWithProperties => create_sampler_with_properties: signature::CreateSamplerWithProperties,
}

/// Asks the runtime what a new sampler is: four bytes for each query, zeros where it does not say.
fn made(sampler: Handle) -> Handle {
    if sampler == Handle::NULL {
        return sampler;
    }
    let info = next!(clGetSamplerInfo: signature::Info);
    let ask = |what: u32| {
        let mut answer = [0u8; 4];
        let asked = info.map(|info| {
            let place = answer.as_mut_ptr().cast();
            // SAFETY: the place has room for the answer, and the handle is the app's own.
            unsafe { info(sampler, what, answer.len(), place, ptr::null_mut()) }
        });
        match asked {
            Some(SUCCESS) => answer,
            _ => [0; 4],
        }
    };
    let is = SAMPLER_QUERIES.map(ask);
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
    match next!(clCreateSampler: signature::CreateSampler) {
        // SAFETY: the app's own arguments, passed on.
        Some(next) => made(unsafe { next(context, normalized, addressing, filter, status) }),
        None => Handle::NULL,
    }
}

unsafe extern "C" fn create_sampler_with_properties(
    context: Handle,
    properties: *const u64,
    status: *mut Status,
) -> Handle {
    match next!(clCreateSamplerWithProperties: signature::CreateSamplerWithProperties) {
        // SAFETY: the app's own arguments, passed on.
        Some(next) => made(unsafe { next(context, properties, status) }),
        None => Handle::NULL,
    }
}
