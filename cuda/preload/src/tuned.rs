// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs launches as `tuned.toml` says.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, RwLock};

use gpureplay_cuda_launch::abi::{Handle, JitOptions, Status, attribute};
use gpureplay_cuda_launch::image::{ImageError, parts};
use gpureplay_cuda_launch::recording::{Change, Tuned, Winner};

use crate::asked::{Sizes, shown};
use crate::functions::{self, Function};
use crate::guard;
use crate::module;
use crate::real::{current_device, driver};
use crate::record::device;
use crate::say::say;

pub(crate) struct Plan {
    ordinal: i32,
    asked: Sizes,
    sizes: Sizes,
    other: Option<Handle>,
    is_refused: AtomicBool,
}

/// The function is held so that its address is not reused.
type Plans = HashMap<usize, (Arc<Function>, Vec<Arc<Plan>>)>;
static PLANS: LazyLock<RwLock<Plans>> = LazyLock::new(RwLock::default);

pub(crate) fn plan(
    (path, tuned): &(PathBuf, Tuned),
    function: &Arc<Function>,
    handle: Handle,
    asked: Sizes,
) -> Option<Arc<Plan>> {
    let key = Arc::as_ptr(function) as usize;
    let find = |plans: &Vec<Arc<Plan>>| {
        let mut fitting = plans.iter().filter(|plan| plan.asked == asked);
        fitting.find(|plan| plan.is_usable()).cloned()
    };
    let plans = guard::read(&PLANS);
    if let Some((_, plans)) = plans.get(&key) {
        return find(plans);
    }
    drop(plans);
    let mut plans = guard::write(&PLANS);
    let all = || (Arc::clone(function), all(path, tuned, function, handle));
    find(&plans.entry(key).or_insert_with(all).1)
}

fn all(path: &Path, tuned: &Tuned, function: &Function, handle: Handle) -> Vec<Arc<Plan>> {
    let winners = tuned.winners.iter();
    winners
        .filter(|winner| *winner.kernel == *function.name)
        .filter_map(|winner| {
            Plan::new(path, function, handle, winner)
                .inspect_err(|reason| say(&format!("{} is not tuned: {reason}", function.name)))
                .ok()
        })
        .map(Arc::new)
        .collect()
}

impl Plan {
    fn new(
        path: &Path,
        function: &Function,
        handle: Handle,
        winner: &Winner,
    ) -> Result<Self, String> {
        let device = device()?;
        if device.name != winner.gpu {
            return Err(format!(
                "it was tuned on {}, not on {}",
                winner.gpu, device.name
            ));
        }
        let image = function.image.as_ref();
        let image = image.ok_or("its image was loaded in a way that is not known")?;
        if image.hash() != winner.image {
            return Err("its image is not the one that was tuned".into());
        }
        let change = &winner.change;
        let other = match &change.image {
            None => None,
            Some(image) => {
                let image = Tuned::image(path, image).map_err(|error| error.to_string())?;
                Some(compiled(function, handle, image, change)?)
            }
        };
        say(&format!(
            "{}: grid {}, block {} runs as grid {}, block {}{}",
            function.name,
            shown(winner.grid),
            shown(winner.block),
            shown(change.grid),
            shown(change.block),
            if other.is_some() {
                ", of another image"
            } else {
                ""
            }
        ));
        Ok(Self {
            ordinal: device.ordinal,
            asked: Sizes::new(winner.grid, winner.block, winner.shared),
            sizes: Sizes::new(
                change.grid,
                change.block,
                change.shared.unwrap_or(winner.shared),
            ),
            other,
            is_refused: AtomicBool::new(false),
        })
    }

    fn is_usable(&self) -> bool {
        !self.is_refused.load(Ordering::Relaxed)
            && current_device().is_ok_and(|ordinal| ordinal == self.ordinal)
    }

    pub(crate) fn instead(&self, function: Handle) -> (Handle, Sizes) {
        (self.other.unwrap_or(function), self.sizes)
    }

    pub(crate) fn refused(&self, name: &str, status: Status) {
        self.is_refused.store(true, Ordering::Relaxed);
        say(&format!(
            "{name} is not tuned any more: the launch fails with {status}"
        ));
    }
}

/// Refuses images with variables: the program set others.
fn compiled(
    function: &Function,
    handle: Handle,
    image: Vec<u8>,
    change: &Change,
) -> Result<Handle, String> {
    let wrong = |error: ImageError| error.to_string();
    for part in parts(&image).map_err(wrong)? {
        if let Some(variable) = part.contents().map_err(wrong)?.variables.first() {
            let name = &variable.name;
            return Err(format!("the other image has variables, such as {name}"));
        }
    }
    let options = JitOptions {
        registers: change.max_registers,
        optimisation: change.optimisation,
        max_threads: change.max_threads,
        min_blocks: change.min_blocks,
    };
    let module = module::load(image, options)?;
    let layout = function
        .layout(handle)
        .map_err(|status| status.to_string())?;
    let other = functions::fitting(module, &function.name, &layout)?;
    let other = other.ok_or("the other image has no such kernel")?;
    function.give_attributes(other);
    let driver = driver().map_err(|status| status.to_string())?;
    let give = |what: &str, number, value: i32| {
        // SAFETY: a function of a module that we loaded.
        let status = unsafe { driver.cuFuncSetAttribute(other, number, value) };
        let wrong = |status: Status| format!("its {what}: {status}");
        status.check().map_err(wrong)
    };
    if let Some(percent) = change.carveout {
        let number = attribute::function::PREFERRED_SHARED_MEMORY_CARVEOUT;
        let percent = i32::try_from(percent).unwrap_or(100);
        give("carve-out of shared memory", number, percent)?;
    }
    if let Some(bytes) = change.shared {
        let number = attribute::function::MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let (bytes, mut most) = (i32::try_from(bytes).unwrap_or(i32::MAX), 0);
        // SAFETY: a pointer to a local.
        let status = unsafe { driver.cuFuncGetAttribute(&raw mut most, number, other) };
        if status != Status::SUCCESS || bytes > most {
            give("shared memory", number, bytes)?;
        }
    }
    Ok(other)
}
