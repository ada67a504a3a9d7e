// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks whether another shader fits a job.

use gpureplay_jobs::Compute;
use mali_facts::{Architecture, Profile, RendererState};
use mali_isa::{Message, Product, Shader, Unit};

use crate::error::{Result, gate};
use crate::flow::Flow;

/// First register that may hold an id at a thread's start.
const FIRST_ID: u32 = 55;
/// Of a thread with 32: the first and last sixteen.
pub(crate) const OF_32: u64 = 0xffff_0000_0000_ffff;

pub(crate) fn preloads(state: &RendererState) -> [(&'static str, bool); 8] {
    [
        ("local x and y", state.preload_local_xy()),
        ("local z", state.preload_local_z()),
        ("work group x", state.preload_workgroup_x()),
        ("work group y", state.preload_workgroup_y()),
        ("work group z", state.preload_workgroup_z()),
        ("global x", state.preload_global_x()),
        ("global y", state.preload_global_y()),
        ("global z", state.preload_global_z()),
    ]
    .map(|(name, there)| (name, there != 0))
}

pub(crate) fn registers(compute: &Compute, profile: &Profile) -> u32 {
    let few =
        profile.architecture == Architecture::V7 && compute.job.state.register_allocation() == 2;
    if few { 32 } else { 64 }
}

/// Decodes and checks code.
///
/// # Errors
/// The first failed gate.
pub fn fits(code: &[u8], compute: &Compute, profile: &Profile) -> Result<Shader> {
    let shader = match Shader::decode(code) {
        Ok(shader) => shader,
        Err(error) => return gate("code", format!("the file is no shader: {error}")),
    };
    let flow = Flow::of(&shader);
    if flow.dynamic {
        return gate(
            "branches",
            "a branch goes where the code does not say".into(),
        );
    }
    let state = &compute.job.state;
    if u64::from(flow.uniform_slots) > state.uniform_count() {
        return gate(
            "uniforms",
            format!(
                "it reads {} slots of push uniforms, and the job gives {}",
                flow.uniform_slots,
                state.uniform_count()
            ),
        );
    }
    for (register, (_, preloaded)) in (FIRST_ID..).zip(preloads(state)) {
        if flow.initial >> register & 1 == 1 && !preloaded {
            return gate(
                "initial registers",
                format!(
                    "it may read r{register} before it writes it, and the job puts nothing there"
                ),
            );
        }
    }
    let few = registers(compute, profile) == 32;
    if few && flow.named & !OF_32 != 0 {
        let register = (flow.named & !OF_32).trailing_zeros();
        return gate(
            "register allocation",
            format!(
                "it uses r{register}, and the job gives each thread r0 to r15 and r48 to r63 only"
            ),
        );
    }
    if flow.barrier && state.contains_barrier() == 0 {
        return gate(
            "barrier",
            "it has a barrier, and the job says that there is none".into(),
        );
    }
    if flow.thread_storage && compute.thread_storage() == 0 {
        return gate(
            "thread storage",
            "it uses storage of its thread, and the job has none".into(),
        );
    }
    if flow.group_storage && compute.group_storage() == 0 {
        return gate(
            "group storage",
            "it uses storage of its work group, and the job has none".into(),
        );
    }
    resources(&shader, compute)?;
    opcodes(&shader, profile)?;
    Ok(shader)
}

fn resources(shader: &Shader, compute: &Compute) -> Result<()> {
    let state = &compute.job.state;
    let limits = [
        ("texture_index", state.texture_count()),
        ("sampler_index", state.sampler_count()),
        ("attribute_index", state.attribute_count()),
    ];
    for (placed, tuple, unit) in instructions(shader) {
        let instruction = tuple.instruction(unit);
        for (name, count) in limits {
            let index = instruction.immediate(name).map(u64::from);
            if index.is_some_and(|index| index >= count) {
                return gate(
                    "resources",
                    format!(
                        "{} in clause_{} names {name} {}, and the job has {count}",
                        instruction.op.info().name,
                        placed / 16,
                        index.unwrap_or(0)
                    ),
                );
            }
        }
        let info = instruction.op.info();
        let uniform =
            info.name.starts_with("LOAD.") && instruction.segment() == mali_isa::Segment::Ubo;
        if uniform {
            let number = tuple
                .operands(unit)
                .nth(1)
                .and_then(mali_isa::Operand::constant);
            if number.is_none_or(|number| u64::from(number) >= state.uniform_buffer_count()) {
                return gate(
                    "resources",
                    format!(
                        "a load in clause_{} reads a uniform buffer that the job does not have, or that the code does not name; it has {}",
                        placed / 16,
                        state.uniform_buffer_count()
                    ),
                );
            }
        }
        let message = info.message;
        if matches!(
            message,
            Some(
                Message::Tex
                    | Message::Vartex
                    | Message::Varying
                    | Message::Blend
                    | Message::Tile
                    | Message::ZStencil
                    | Message::Atest
            )
        ) && state.texture_count() == 0
        {
            return gate(
                "resources",
                format!("{} does not belong into this job", info.name),
            );
        }
    }
    Ok(())
}

fn opcodes(shader: &Shader, profile: &Profile) -> Result<()> {
    let Some(product) = profile.gpu_id.name().and_then(Product::by_name) else {
        return gate(
            "opcodes",
            format!("which instructions a {} has is not known", profile.name),
        );
    };
    for (placed, tuple, unit) in instructions(shader) {
        let info = tuple.instruction(unit).op.info();
        if !info.products.contains(product) {
            return gate(
                "opcodes",
                format!(
                    "{} in clause_{} is no instruction of {product}",
                    info.name,
                    placed / 16
                ),
            );
        }
    }
    Ok(())
}

fn instructions(shader: &Shader) -> impl Iterator<Item = (u32, &mali_isa::Tuple, Unit)> {
    shader.clauses.iter().flat_map(|placed| {
        placed.clause.tuples.iter().flat_map(move |tuple| {
            [
                (placed.offset, tuple, Unit::Fma),
                (placed.offset, tuple, Unit::Add),
            ]
        })
    })
}
