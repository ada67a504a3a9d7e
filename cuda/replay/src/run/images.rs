// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run's kernels and variables in the driver.

use gpureplay_cuda_launch::abi::{DevicePointer, Handle};
use gpureplay_cuda_launch::recording::{Run, RunImage, Store, sm};

use crate::module::{self, load, set_attributes, variable_address};
use crate::relocate::{Move, Moves};
use crate::{Gpu, JitOptions, ReplayError};

pub(super) struct Read {
    images: Vec<Vec<u8>>,
    variables: Vec<Vec<u8>>,
}

pub(super) fn read(capability: [i32; 2], store: &Store, run: &Run) -> Result<Read, ReplayError> {
    let capability = sm(capability);
    let one = |image: &RunImage| {
        let mut bytes = image.read(store)?;
        gpureplay_cuda_launch::image::check_for(&bytes, capability)?;
        bytes.push(0);
        Ok::<_, ReplayError>(bytes)
    };
    // Decompression is slow: on all cores.
    let cores = gpureplay_host::cores();
    let share = run.images.len().div_ceil(cores).max(1);
    let mut images = Vec::with_capacity(run.images.len());
    std::thread::scope(|scope| {
        let all = |share: &[RunImage]| share.iter().map(one).collect::<Result<Vec<_>, _>>();
        let shares = run.images.chunks(share);
        let threads: Vec<_> = shares
            .map(|share| scope.spawn(move || all(share)))
            .collect();
        for thread in threads {
            let read = thread.join();
            images.extend(read.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, ReplayError>(())
    })?;
    let variables = run.variables.iter();
    let variables = variables.map(|variable| store.get(variable.contents, variable.size));
    Ok(Read {
        images,
        variables: variables.collect::<Result<_, _>>()?,
    })
}

struct Placed {
    address: DevicePointer,
    contents: Vec<u8>,
}

pub(super) struct Images {
    gpu: Gpu,
    modules: Vec<Handle>,
    pub(super) functions: Vec<Handle>,
    variables: Vec<Placed>,
    moves: Moves,
}

impl Images {
    pub(super) fn load(gpu: &Gpu, run: &Run, read: Read) -> Result<Self, ReplayError> {
        let mut loaded = Self {
            gpu: gpu.clone(),
            modules: Vec::new(),
            functions: Vec::new(),
            variables: Vec::new(),
            moves: Moves::new(Vec::new()),
        };
        for image in &read.images {
            let module = load(gpu, image, JitOptions::default())?;
            loaded.modules.push(module);
        }
        for kernel in &run.kernels {
            let module = loaded.modules[kernel.image as usize];
            let named = (kernel.name.as_str(), kernel.layout.len());
            let function = module::kernel(gpu, module, named, &kernel.layout)?;
            set_attributes(gpu, function, &kernel.attributes);
            loaded.functions.push(function);
        }
        let mut moves = Vec::new();
        for (variable, contents) in run.variables.iter().zip(read.variables) {
            let module = loaded.modules[variable.image as usize];
            let address = variable_address(gpu, module, &variable.name, variable.size)?;
            moves.push(Move {
                from: variable.address,
                size: variable.size,
                to: address,
            });
            loaded.variables.push(Placed { address, contents });
        }
        loaded.moves = Moves::new(moves);
        for variable in &mut loaded.variables {
            if !loaded.moves.is_empty() {
                loaded.moves.apply(&mut variable.contents);
            }
        }
        Ok(loaded)
    }

    pub(super) fn leave(&mut self) {
        self.modules.clear();
    }

    pub(super) fn moves(&self) -> &Moves {
        &self.moves
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = (DevicePointer, &[u8])> {
        let variables = self.variables.iter();
        variables.map(|variable| (variable.address, variable.contents.as_slice()))
    }

    pub(super) fn restore(&self, gpu: &Gpu) -> Result<(), ReplayError> {
        for variable in &self.variables {
            gpu.upload(variable.address, &variable.contents)?;
        }
        Ok(())
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        for module in self.modules.drain(..) {
            // SAFETY: our module, of which nothing runs.
            let _ = unsafe { self.gpu.driver.cuModuleUnload(module) };
        }
    }
}
