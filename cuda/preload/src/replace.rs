// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces kernels and sizes in a running program.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use gpureplay_cuda_launch::abi::{Handle, JitOptions, KernelNode, OldKernelNode, Status};
use gpureplay_cuda_launch::image::MAX_IMAGE;

use crate::asked::{Launch, Sizes, is_capturing};
use crate::durations::{self, Side};
use crate::functions::{self, Function};
use crate::guard;
use crate::module;
use crate::say::say;
use crate::settings::{Mode, Replace, settings};
use crate::tuned::{self, Plan};

/// Our images, in the first launch's context.
static MODULES: Mutex<Option<Vec<Handle>>> = Mutex::new(None);

fn replacement(function: &Function, handle: Handle, images: &[PathBuf]) -> Option<Handle> {
    *function.replacement.get_or_init(|| {
        let layout = function.layout(handle).ok()?;
        for module in modules(images) {
            match functions::fitting(module, &function.name, &layout) {
                Ok(None) => {}
                Ok(Some(other)) => {
                    function.give_attributes(other);
                    say(&format!("{} is replaced", function.name));
                    return Some(other);
                }
                Err(reason) => say(&format!("{} is not replaced: {reason}", function.name)),
            }
        }
        None
    })
}

pub(crate) fn in_node(node: &KernelNode) -> Option<KernelNode> {
    let handle = if node.function == 0 {
        node.kernel
    } else {
        node.function
    };
    let sizes = Sizes::new(node.grid, node.block, node.shared);
    let (function, sizes) = instead(handle, sizes)?;
    let (function, kernel) = match function == node.kernel {
        true => (0, function),
        false => (function, 0),
    };
    Some(KernelNode {
        function,
        kernel,
        grid: sizes.grid,
        block: sizes.block,
        shared: sizes.shared,
        ..*node
    })
}

pub(crate) fn in_old_node(node: &OldKernelNode) -> Option<OldKernelNode> {
    let sizes = Sizes::new(node.grid, node.block, node.shared);
    let (function, sizes) = instead(node.function, sizes)?;
    Some(OldKernelNode {
        function,
        grid: sizes.grid,
        block: sizes.block,
        shared: sizes.shared,
        ..*node
    })
}

fn instead(handle: Handle, sizes: Sizes) -> Option<(Handle, Sizes)> {
    let Mode::Replace(replace) = &settings().mode else {
        return None;
    };
    let function = wanted(handle)?;
    if let Some(plan) = planned(replace, &function, handle, sizes) {
        return Some(plan.instead(handle));
    }
    replacement(&function, handle, &replace.images).map(|other| (other, sizes))
}

fn wanted(handle: Handle) -> Option<Arc<Function>> {
    if functions::is_unwanted(handle) {
        return None;
    }
    functions::get(handle).ok().filter(|known| known.wanted)
}

fn planned(
    replace: &Replace,
    function: &Arc<Function>,
    handle: Handle,
    sizes: Sizes,
) -> Option<Arc<Plan>> {
    tuned::plan(replace.tuned.as_ref()?, function, handle, sizes)
}

pub(crate) fn launch(
    replace: &Replace,
    handle: Handle,
    describe: impl FnOnce() -> Launch,
    call: impl Fn(Handle, Option<Sizes>) -> Status,
) -> Status {
    let Some(function) = wanted(handle) else {
        return call(handle, None);
    };
    if replace.table.is_some() {
        return in_turn(replace, &function, handle, &describe(), call);
    }
    if replace.tuned.is_some() {
        let launch = describe();
        if let Some(plan) = planned(replace, &function, handle, launch.sizes) {
            let (other, sizes) = plan.instead(handle);
            let status = call(other, Some(sizes));
            if status == Status::SUCCESS {
                return status;
            }
            plan.refused(&function.name, status);
            return call(handle, None);
        }
    }
    let other = replacement(&function, handle, &replace.images);
    call(other.unwrap_or(handle), None)
}

/// In graphs, the replacement runs untimed.
fn in_turn(
    replace: &Replace,
    function: &Arc<Function>,
    handle: Handle,
    launch: &Launch,
    call: impl Fn(Handle, Option<Sizes>) -> Status,
) -> Status {
    let plan = planned(replace, function, handle, launch.sizes);
    let (other, other_sizes) = match &plan {
        Some(plan) => {
            let (other, sizes) = plan.instead(handle);
            (other, Some(sizes))
        }
        None => match replacement(function, handle, &replace.images) {
            Some(other) => (other, None),
            None => return call(handle, None),
        },
    };
    let replaced = || {
        let status = call(other, other_sizes);
        match &plan {
            Some(plan) if status != Status::SUCCESS => {
                plan.refused(&function.name, status);
                (call(handle, None), Side::Original)
            }
            _ => (status, Side::Replacement),
        }
    };
    if is_capturing(launch) {
        return replaced().0;
    }
    durations::in_turn(launch, &function.name, |side| match side {
        Side::Original => (call(handle, None), side),
        Side::Replacement => replaced(),
    })
}

fn modules(images: &[PathBuf]) -> Vec<Handle> {
    let mut modules = guard::lock(&MODULES);
    let load = |path: &PathBuf| {
        let image = read(path).map_err(|error| error.to_string());
        image
            .and_then(|image| module::load(image, JitOptions::default()))
            .inspect_err(|reason| say(&format!("{}: {reason}", path.display())))
            .ok()
    };
    modules
        .get_or_insert_with(|| images.iter().filter_map(load).collect())
        .clone()
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut image = Vec::new();
    File::open(path)?
        .take(MAX_IMAGE as u64 + 1)
        .read_to_end(&mut image)?;
    Ok(image)
}
