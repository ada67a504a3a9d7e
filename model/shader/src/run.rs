// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dispatch: checks, layout, host threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::control::{DECODING_COST, SPECIALISING_COST};
use crate::core::{Core, Family};
use crate::engine::deal::Deal;
use crate::engine::layout::Layout;
use crate::engine::worker::Worker;
use crate::ir::Program;
use crate::probe::{self, Analyser, Launch, Probing, Wanted};
use crate::rows::LANES;
use crate::{AddressSpace, Control, FaultKind, Grid, ShaderFault, Statistics, Threads};

/// Hardware has 384 to 1024.
const LARGEST_WORKGROUP: u32 = 4096;

/// Fewer threads need no second host thread.
const WORTH_SHARING: u64 = 512;

/// Executes a dispatch, with an analyser's probes if any.
///
/// # Errors
///
/// The first fault; earlier stores stay, as on hardware.
pub fn launch(
    grid: &Grid,
    family: &mut dyn Family,
    analyser: Option<&dyn Analyser>,
    space: &dyn AddressSpace,
    threads: &Threads,
    control: &Control,
) -> Result<Statistics, ShaderFault> {
    let stop = AtomicBool::new(false);
    let mut core = Core::new(grid, family, space, control, &stop);
    let invalid = |text: String| ShaderFault {
        kind: FaultKind::InvalidData,
        address: grid.shader,
        clause: grid.shader,
        text,
    };
    let size = grid
        .workgroup_threads()
        .filter(|&size| size <= LARGEST_WORKGROUP);
    let size =
        size.ok_or_else(|| invalid(format!("work groups of {:?} threads", grid.workgroup_size)))?;
    let workgroups = u64::try_from(grid.workgroups());
    let workgroups =
        workgroups.map_err(|_| invalid(format!("{:?} work groups", grid.workgroup_count)))?;
    // Like a branch to 0: an empty kernel has no code and no address.
    if size == 0 || workgroups == 0 || grid.shader == 0 {
        return Ok(Statistics::default());
    }
    let (program, decoded) = threads.shader(grid.shader, core.isa, &mut core.fetch);
    let clauses = program.clauses.len() as u64;
    charge(&core, &program, decoded as u64 * DECODING_COST + clauses)?;
    if core.begin.is_some() && (size != 1 || program.sees_warp) {
        let text = "a shader of vertices or fragments that looks at other threads is not modelled";
        return Err(invalid(text.into()));
    }
    let mut words = uniforms(grid, &mut core)?;
    core.family.add_uniforms(&mut words);
    core.uniforms = words.into();
    let all = u64::from(size).saturating_mul(workgroups);
    let (program, looked_at) = threads.own_shader(program, &core.uniforms, all);
    charge(&core, &program, looked_at as u64 * SPECIALISING_COST)?;
    let wanted = analyser.map(Analyser::wanted);
    let program = match wanted {
        Some(wanted) => {
            let mut probed = Arc::unwrap_or_clone(program);
            probe::insert(&mut probed, wanted);
            Arc::new(probed)
        }
        None => program,
    };
    let (layout, workers) =
        layout(&core, &program, wanted, size, workgroups, threads.count()).map_err(invalid)?;

    let sets = layout.sets();
    let deal = Deal::new(grid.cores, sets);
    let step = step(sets, workers);
    let next = AtomicU64::new(0);
    let work = |core: Core<'_>,
                program: Arc<Program>,
                index: u32|
     -> Result<Statistics, (u64, Box<ShaderFault>)> {
        let mut core = core;
        core.probing = analyser.map(|analyser| {
            let launch = Launch {
                grid,
                workgroup_threads: size,
                warp_lanes: core.warp_lanes,
            };
            let mut probing = Probing::new(analyser, &launch, &layout, core.isa.messages());
            probing.learn(&program);
            Box::new(probing)
        });
        let mut worker = Worker::new(core, program, layout, index, threads);
        loop {
            let start = next.fetch_add(step, Relaxed);
            if start >= sets {
                return Ok(worker.totals());
            }
            let end = start.saturating_add(step).min(sets);
            let in_order = wanted.is_some_and(|wanted| wanted.in_order);
            let dealt = |number| if in_order { number } else { deal.set(number) };
            for set in (start..end).map(dealt) {
                if stop.load(Relaxed) {
                    return Ok(worker.totals());
                }
                let first = set * u64::from(layout.together);
                worker.run(first, deal.core(set)).map_err(|fault| {
                    stop.store(true, Relaxed);
                    (first, fault)
                })?;
            }
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let (work, stop) = (&work, &stop);
        let others: Vec<_> = (1..workers)
            .map_while(|index| {
                let (program, uniforms) = (Arc::clone(&program), Arc::clone(&core.uniforms));
                let mut family = core.family.again();
                let other = move || {
                    let mut core = Core::new(grid, &mut *family, space, control, stop);
                    core.uniforms = uniforms;
                    work(core, program, index)
                };
                std::thread::Builder::new().spawn_scoped(scope, other).ok()
            })
            .collect();
        let own = work(core, program, 0);
        others
            .into_iter()
            .filter_map(|other| other.join().ok())
            .chain([own])
            .collect()
    });
    let mut statistics = Statistics::default();
    let mut fault: Option<(u64, Box<ShaderFault>)> = None;
    for result in results {
        match result {
            Ok(part) => statistics.add(&part),
            Err((_, other)) if other.kind == FaultKind::Aborted && !control.is_aborted() => {}
            Err(other) if fault.as_ref().is_none_or(|first| other.0 < first.0) => {
                fault = Some(other)
            }
            Err(_) => {}
        }
    }
    match fault {
        Some((_, fault)) => Err(*fault),
        None => Ok(statistics),
    }
}

fn charge(core: &Core<'_>, program: &Program, clauses: u64) -> Result<(), ShaderFault> {
    let charged = core.charge(clauses);
    charged.map_err(|trouble| *program.clauses[0].fault(trouble))
}

/// Neighbours write neighbouring memory, which two processors should not share, but threads should end together.
fn step(batches: u64, workers: u32) -> u64 {
    (batches / (64 * u64::from(workers))).clamp(1, 64)
}

fn uniforms(grid: &Grid, core: &mut Core<'_>) -> Result<Vec<u32>, ShaderFault> {
    let mut bytes = vec![0; grid.push_uniform_count.min(128) as usize * 8];
    core.read
        .read(grid.push_uniforms, &mut bytes)
        .map_err(|fault| ShaderFault {
            kind: FaultKind::Mmu(fault),
            address: fault.va,
            clause: grid.shader,
            text: format!("cannot read the push uniforms: {fault}"),
        })?;
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    };
    Ok(bytes.chunks_exact(4).map(word).collect())
}

/// Plans batches, and as many host threads as pay and as storage allows.
fn layout(
    core: &Core<'_>,
    program: &Program,
    wanted: Option<Wanted>,
    size: u32,
    workgroups: u64,
    threads: usize,
) -> Result<(Layout, u32), String> {
    let whole_warps =
        program.sees_warp || wanted.is_some() || (core.begin.is_none() && program.is_open());
    let warp = if whole_warps { core.warp_lanes } else { 1 };
    let pitch = size.next_multiple_of(warp);
    let (tls, wls) = (&core.grid.thread_storage, &core.grid.workgroup_storage);
    let mut lanes = u32::MAX;
    if tls.base != 0 && tls.bytes_per_thread != 0 {
        lanes = tls.threads;
        if lanes < pitch {
            return Err(format!(
                "thread storage for {lanes} threads, but a work group has {size}"
            ));
        }
    }
    let mut instances = u32::MAX;
    if wls.base != 0 && wls.bytes != 0 {
        instances = wls.instances;
        if instances == 0 {
            return Err("work-group storage without an instance".into());
        }
    }
    let mut together = (LANES as u32 / pitch)
        .max(1)
        .min(instances)
        .min(lanes / pitch);
    together = together.min(u32::try_from(workgroups).unwrap_or(u32::MAX));
    let in_order = wanted.is_some_and(|wanted| wanted.in_order);
    if in_order && (program.is_open() || program.clauses.iter().any(|clause| clause.barrier)) {
        together = 1;
    }
    let work = u64::from(size) * workgroups;
    let workers = if work < WORTH_SHARING || in_order {
        1
    } else {
        threads as u32
    };
    let sets = workgroups.div_ceil(together.into());
    let workers = workers
        .min(instances / together)
        .min(lanes / (pitch * together));
    let workers = u64::from(workers).min(sets).max(1) as u32;
    Ok((
        Layout {
            size,
            pitch,
            together,
            workgroups,
        },
        workers,
    ))
}
