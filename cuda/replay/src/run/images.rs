// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of a run in the driver: kernels and variables.

use gpureplay_cuda_launch::abi::{DevicePointer, Handle};
use gpureplay_cuda_launch::recording::{ImageReference, Run, Store};

use crate::module::{self, load, set_attributes, variable_address};
use crate::relocate::{Move, Moves};
use crate::{Gpu, JitOptions, ReplayError};

/// What is read of images and variables, before anything is loaded.
pub(super) struct Read {
    images: Vec<Vec<u8>>,
    variables: Vec<Vec<u8>>,
}

/// Reads images and the contents of variables, each checked against its hash.
pub(super) fn read(
    [major, minor]: [i32; 2],
    store: &Store,
    run: &Run,
) -> Result<Read, ReplayError> {
    let capability = u32::try_from(major * 10 + minor).unwrap_or(0);
    let one = |image: &ImageReference| {
        let mut bytes = store.image(image.hash, image.size)?;
        gpureplay_cuda_launch::image::check_for(&bytes, capability)?;
        // The end of a text.
        bytes.push(0);
        Ok::<_, ReplayError>(bytes)
    };
    // Images decompress slowly: each core takes a share of them.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = run.images.len().div_ceil(cores).max(1);
    let mut images = Vec::with_capacity(run.images.len());
    std::thread::scope(|scope| {
        let all = |share: &[ImageReference]| share.iter().map(one).collect::<Result<Vec<_>, _>>();
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

/// A variable in this process.
struct Placed {
    address: DevicePointer,
    contents: Vec<u8>,
}

/// Kernels and variables in this process.
pub(super) struct Images {
    /// By the numbers of kernels.
    pub(super) functions: Vec<Handle>,
    variables: Vec<Placed>,
    moves: Moves,
}

impl Images {
    pub(super) fn load(gpu: &Gpu, run: &Run, read: Read) -> Result<Self, ReplayError> {
        let mut modules = Vec::new();
        for image in &read.images {
            modules.push(load(gpu, image, JitOptions::default())?);
        }
        let mut functions = Vec::new();
        for kernel in &run.kernels {
            let module = modules[kernel.image as usize];
            let named = (kernel.name.as_str(), kernel.layout.len());
            let function = module::kernel(gpu, module, named, &kernel.layout)?;
            set_attributes(gpu, function, &kernel.attributes);
            functions.push(function);
        }
        let (mut variables, mut moves) = (Vec::new(), Vec::new());
        for (variable, contents) in run.variables.iter().zip(read.variables) {
            let module = modules[variable.image as usize];
            let address = variable_address(gpu, module, &variable.name, variable.size)?;
            moves.push(Move {
                from: variable.address,
                size: variable.size,
                to: address,
            });
            variables.push(Placed { address, contents });
        }
        let moves = Moves::new(moves);
        for variable in &mut variables {
            if !moves.is_empty() {
                moves.apply(&mut variable.contents);
            }
        }
        Ok(Self {
            functions,
            variables,
            moves,
        })
    }

    /// Where variables moved.
    pub(super) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Variables as they were at the beginning.
    pub(super) fn restore(&self, gpu: &Gpu) -> Result<(), ReplayError> {
        for variable in &self.variables {
            gpu.upload(variable.address, &variable.contents)?;
        }
        Ok(())
    }
}
