// SPDX-License-Identifier: MIT OR Apache-2.0
//! Images of a run in the driver: kernels and variables.

use std::ffi::CString;

use gpureplay_cuda_abi::{DevicePointer, Handle, Status};
use gpureplay_cuda_recording::{ImageReference, Run, Store};

use super::Moves;
use crate::error::driver;
use crate::module::{layout, load};
use crate::relocate::Move;
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
        gpureplay_cuda_image::check_for(&bytes, capability)?;
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
        let c_string = |text: &str| {
            CString::new(text).map_err(|_| ReplayError::Impossible("a name holds a zero byte"))
        };
        let mut modules = Vec::new();
        for image in &read.images {
            modules.push(load(gpu, image, JitOptions::default())?);
        }
        let mut functions = Vec::new();
        for kernel in &run.kernels {
            let name = c_string(&kernel.name)?;
            let (mut function, module) = (0, modules[kernel.image as usize]);
            // SAFETY: a pointer to a local, a module that is loaded, a C string.
            let status = unsafe {
                gpu.driver
                    .cuModuleGetFunction(&raw mut function, module, name.as_ptr())
            };
            if status == Status::NOT_FOUND {
                return Err(ReplayError::NoKernel(kernel.name.clone()));
            }
            driver("cuModuleGetFunction", status)?;
            let found = layout(gpu, function, kernel.layout.len())?;
            if found != kernel.layout {
                let recorded = kernel.layout.clone();
                return Err(ReplayError::Parameters { found, recorded });
            }
            for [number, value] in &kernel.attributes {
                // SAFETY: a function that is loaded. One that this GPU lacks shows at the launch.
                let _ = unsafe { gpu.driver.cuFuncSetAttribute(function, *number, *value) };
            }
            functions.push(function);
        }
        let (mut variables, mut moves) = (Vec::new(), Vec::new());
        for (variable, contents) in run.variables.iter().zip(read.variables) {
            let name = c_string(&variable.name)?;
            let (mut address, mut size, module) = (0, 0, modules[variable.image as usize]);
            // SAFETY: pointers to locals, a module that is loaded, a C string.
            let status = unsafe {
                gpu.driver.cuModuleGetGlobal_v2(
                    &raw mut address,
                    &raw mut size,
                    module,
                    name.as_ptr(),
                )
            };
            if status != Status::NOT_FOUND {
                driver("cuModuleGetGlobal_v2", status)?;
            }
            if size as u64 != variable.size {
                return Err(ReplayError::Variable {
                    name: variable.name.clone(),
                    found: size as u64,
                    recorded: variable.size,
                });
            }
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
