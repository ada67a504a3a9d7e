// SPDX-License-Identifier: MIT OR Apache-2.0
//! Proofs about jobs.

use gpureplay_format::Recording;
use mali_facts::{Architecture, PixelFormat, Profile};
use mali_isa::{Fau, Mnemonic, Operand, Product, Tuple, Unit};
use mali_jobs::walk::Code;

use crate::rules::{Refusal, TargetRule};
use crate::survey::{Compute, Job};

pub(crate) struct Pair {
    pub(crate) source: &'static Profile,
    pub(crate) target: &'static Profile,
    /// Only cores that jobs run on.
    pub(crate) used_of_source: Profile,
    pub(crate) used_of_target: Profile,
    pub(crate) mixed: bool,
}

impl Pair {
    pub(crate) fn version(&self) -> Result<(), Refusal> {
        let (from, to) = (self.source.architecture, self.target.architecture);
        let cores = [&self.used_of_source, &self.used_of_target].map(|one| one.shader_present);
        if self.source.gpu_id == self.target.gpu_id && cores[0] == cores[1] {
            return Ok(());
        }
        let bifrost = from.has_clauses() && to.has_clauses();
        if bifrost && (from == to || self.mixed) {
            return Ok(());
        }
        let (source, target) = (self.source.name, self.target.name);
        let text = match bifrost {
            true => format!("the recording is of {from:?}, {target} is {to:?}"),
            false => format!(
                "the recording is of {source} ({from:?}), not of {target} ({to:?}): only recordings of Bifrost (V6, V7) become ones of another GPU"
            ),
        };
        Err(Refusal::new(TargetRule::Version, text))
    }

    pub(crate) fn address_bits(&self, recording: &Recording<'_>) -> Result<(), Refusal> {
        let bits = self.target.virtual_bits();
        let last = recording.regions().last();
        let last = last.map_or(0, |region| region.end().saturating_sub(1));
        if last.checked_shr(bits).unwrap_or(0) == 0 {
            return Ok(());
        }
        let text = format!(
            "memory up to {last:#x}, {} has {bits} bits",
            self.target.name
        );
        Err(Refusal::new(TargetRule::AddressBits, text))
    }

    pub(crate) fn jobs(&self, jobs: &[Job]) -> Result<(), Refusal> {
        jobs.iter().try_for_each(|job| self.job(job))
    }

    fn job(&self, job: &Job) -> Result<(), Refusal> {
        let target = self.target;
        let refuse = |rule, text: String| Err(Refusal::of_job(rule, job.place(), text));
        let features = target.js_features.get(usize::from(job.slot)).copied();
        let present = target.js_present.checked_shr(job.slot.into()).unwrap_or(0) & 1;
        if present == 0 || features.unwrap_or(0) >> job.kind as u32 & 1 == 0 {
            let text = format!("slot {} and {} jobs", job.slot, job.kind.name());
            return refuse(TargetRule::JobSlot, text);
        }
        let Some(compute) = &job.compute else {
            return Ok(());
        };
        let threads = compute.threads;
        let most = self.most_threads(compute);
        if threads > u64::from(most) {
            let text = format!(
                "work groups of {threads} threads, {} has {most}",
                target.name
            );
            return refuse(TargetRule::GroupSize, text);
        }
        let most = target.max_barrier_size;
        if compute.state.contains_barrier() != 0 && threads > u64::from(most) {
            let text = format!(
                "work groups of {threads} threads with a barrier, {} has {most}",
                target.name
            );
            return refuse(TargetRule::BarrierSize, text);
        }
        for format in &compute.formats {
            if let Some(why) = self.format(*format) {
                return refuse(TargetRule::Format, format!("{format}: {why}"));
            }
        }
        match &compute.code {
            Some(code) => self.code(code, job.place()),
            None => Ok(()),
        }
    }

    fn most_threads(&self, compute: &Compute) -> u32 {
        // 64 registers halve the threads of 32; version 6 always gives 64.
        let wide = compute.state.register_allocation() != THIRTY_TWO_REGISTERS;
        let fit = match self.target.architecture {
            Architecture::V7 if wide => self.target.max_threads / 2,
            _ => self.target.max_threads,
        };
        self.target.max_workgroup_size.min(fit)
    }

    fn format(&self, format: PixelFormat) -> Option<String> {
        if self.source.architecture != self.target.architecture {
            return Some("versions 6 and 7 write the order of components differently".into());
        }
        let number = format.number();
        // Compressed formats come first, with a bit each in TEXTURE_FEATURES.
        let bit = 1u32.checked_shl(number)?;
        let has = |profile: &Profile| profile.texture_features[0] & bit != 0;
        (!has(self.target) && number != 0).then(|| format!("{} lacks it", self.target.name))
    }

    fn code(&self, code: &Code, job: (u32, u64)) -> Result<(), Refusal> {
        let refuse = |rule, text: String| Err(Refusal::of_job(rule, job, text));
        let product = self.target.gpu_id.name().and_then(Product::by_name);
        let Some(product) = product else {
            let text = format!("the instructions of {} are not known", self.target.name);
            return refuse(TargetRule::Instructions, text);
        };
        if code.shader.dynamic {
            let text = format!("shader {:#x} jumps to a computed address", code.address);
            return refuse(TargetRule::WholeShader, text);
        }
        let (source, target) = (self.source, self.target);
        let cores = [&self.used_of_source, &self.used_of_target].map(|one| one.shader_present);
        let cores_differ = cores[0] != cores[1];
        let lanes = [source, target].map(|one| one.architecture.warp_lanes());
        for placed in &code.shader.clauses {
            let clause = code.address.wrapping_add(placed.offset.into());
            let place = format!("clause {clause:#x} of shader {:#x}", code.address);
            for tuple in &placed.clause.tuples {
                for unit in [Unit::Fma, Unit::Add] {
                    let info = tuple.instruction(unit).op.info();
                    if !info.products.contains(product) {
                        let name = format!("{}{}", unit.mark(), info.name);
                        let why = info.product_evidence.name();
                        let text = format!("{name} in {place}: {product} lacks it, {why}");
                        return refuse(TargetRule::Instructions, text);
                    }
                }
                let reads = |fau: Fau| reads(tuple, fau);
                if cores_differ && reads(Fau::CoreId) {
                    let text = format!("{place} reads the number of its core");
                    return refuse(TargetRule::CoreNumber, text);
                }
                let looks = reads(Fau::LaneId) || reads(Fau::WarpId) || across_lanes(tuple);
                if lanes[0] != lanes[1] && looks {
                    let [from, to] = lanes;
                    let text =
                        format!("{place} looks at its warp, of {from} lanes there and {to} here");
                    return refuse(TargetRule::Warp, text);
                }
            }
        }
        Ok(())
    }
}

/// For at most 32 registers.
const THIRTY_TWO_REGISTERS: u64 = 2;

fn reads(tuple: &Tuple, fau: Fau) -> bool {
    let mut operands = tuple.operands(Unit::Fma).chain(tuple.operands(Unit::Add));
    operands.any(|operand| match operand {
        Operand::FauLow(read) | Operand::FauHigh(read) => read == fau,
        _ => false,
    })
}

/// Whether the width of warps changes a value or a branch.
fn across_lanes(tuple: &Tuple) -> bool {
    [tuple.fma.op, tuple.add.op].into_iter().any(|op| {
        matches!(
            op.mnemonic(),
            Mnemonic::ClperI32
                | Mnemonic::ClperOldI32
                | Mnemonic::Wmask
                | Mnemonic::BranchcI16
                | Mnemonic::BranchcI32
                | Mnemonic::BranchDiverg
                | Mnemonic::BranchNoDiverg
        )
    })
}
