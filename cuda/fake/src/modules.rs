// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels and variables of parsed images.

use std::ffi::CString;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use gpureplay_cuda_launch::abi::Status;
use gpureplay_cuda_launch::image::{Contents, Extent, Kernel, PREFIX, extent, parts};

use crate::memory::memory;

pub(crate) struct Placed {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) size: usize,
}

/// Handles are numbers plus 1.
pub(crate) struct Module {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) variables: Vec<Placed>,
}

pub(crate) struct Function {
    pub(crate) module: u64,
    pub(crate) name: CString,
    pub(crate) kernel: Kernel,
    pub(crate) dynamic_shared: i32,
    /// In percent; -1 unless set.
    pub(crate) carveout: i32,
}

#[derive(Default)]
pub(crate) struct Modules {
    modules: Vec<Option<Module>>,
    functions: Vec<Function>,
    links: Vec<Option<Vec<u8>>>,
}

pub(crate) fn modules() -> MutexGuard<'static, Modules> {
    static MODULES: LazyLock<Mutex<Modules>> = LazyLock::new(Mutex::default);
    MODULES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// # Safety
/// There is a whole image, and at least as many bytes as its headers have.
unsafe fn image<'a>(address: *const u8) -> Result<&'a [u8], Status> {
    // SAFETY: the caller's promise, for as many bytes as the headers say.
    let bytes = |size: usize| unsafe { std::slice::from_raw_parts(address, size) };
    // SAFETY: a text ends with a zero byte; other images have more than four bytes.
    let text = unsafe { std::ffi::CStr::from_ptr(address.cast()) }.to_bytes();
    if text.len() >= PREFIX && extent(&text[..PREFIX]) == Ok(Extent::Text) {
        return Ok(text);
    }
    match extent(bytes(PREFIX)) {
        Ok(Extent::Bytes(size)) => Ok(bytes(size)),
        Ok(Extent::Sections {
            offset,
            size,
            least,
        }) => {
            let headers = &bytes(offset + size)[offset..];
            Ok(bytes(
                Extent::of_sections(least, headers).map_err(|_| Status::INVALID_IMAGE)?,
            ))
        }
        // SAFETY: the pointer inside a wrapper.
        Ok(Extent::Elsewhere(other)) => unsafe { image(other as *const u8) },
        _ => Err(Status::INVALID_IMAGE),
    }
}

fn index(handle: u64) -> Option<usize> {
    usize::try_from(handle).ok()?.checked_sub(1)
}

impl Modules {
    /// # Safety
    /// There is an image at the address.
    pub(crate) unsafe fn load(&mut self, address: *const u8) -> Result<u64, Status> {
        // SAFETY: the caller's promise.
        let image = unsafe { image(address) }?;
        let parts = parts(image).map_err(|_| Status::INVALID_IMAGE)?;
        let contents: Contents = parts
            .first()
            .ok_or(Status::NO_BINARY_FOR_GPU)?
            .contents()
            .map_err(|_| Status::INVALID_PTX)?;
        if contents.kernels.is_empty() {
            return Err(Status::INVALID_IMAGE);
        }
        let mut variables = Vec::new();
        for variable in contents.variables {
            let size =
                usize::try_from(variable.size.unwrap_or(8)).map_err(|_| Status::OUT_OF_MEMORY)?;
            variables.push(Placed {
                name: variable.name,
                address: memory().allocate(size)?,
                size,
            });
        }
        self.modules.push(Some(Module {
            kernels: contents.kernels,
            variables,
        }));
        Ok(self.modules.len() as u64)
    }

    pub(crate) fn bound(&mut self, handle: u64, threads: u32) -> Result<(), Status> {
        self.module(handle)?;
        let module = self.modules[handle as usize - 1].as_mut();
        for kernel in module.into_iter().flat_map(|module| &mut module.kernels) {
            kernel.most_threads = Some([threads, 1, 1]);
        }
        Ok(())
    }

    pub(crate) fn module(&self, handle: u64) -> Result<&Module, Status> {
        index(handle)
            .and_then(|index| self.modules.get(index)?.as_ref())
            .ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn unload(&mut self, handle: u64) -> Result<(), Status> {
        self.module(handle)?;
        let module = self.modules[handle as usize - 1].take();
        for variable in module.into_iter().flat_map(|module| module.variables) {
            memory().free(variable.address)?;
        }
        Ok(())
    }

    pub(crate) fn find(&mut self, module: u64, name: &str) -> Result<u64, Status> {
        let same = |f: &Function| f.module == module && f.kernel.name == name;
        if let Some(index) = self.functions.iter().position(same) {
            return Ok(index as u64 + 1);
        }
        let kernels = &self.module(module)?.kernels;
        let kernel = kernels
            .iter()
            .find(|kernel| kernel.name == name)
            .ok_or(Status::NOT_FOUND)?;
        let function = Function {
            module,
            name: CString::new(name).map_err(|_| Status::NOT_FOUND)?,
            kernel: kernel.clone(),
            dynamic_shared: 49_152,
            carveout: -1,
        };
        self.functions.push(function);
        Ok(self.functions.len() as u64)
    }

    pub(crate) fn function(&mut self, handle: u64) -> Result<&mut Function, Status> {
        index(handle)
            .and_then(|index| self.functions.get_mut(index))
            .ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn link(&mut self) -> u64 {
        self.links.push(Some(Vec::new()));
        self.links.len() as u64
    }

    pub(crate) fn linked(&mut self, link: u64) -> Result<&mut Vec<u8>, Status> {
        index(link)
            .and_then(|index| self.links.get_mut(index)?.as_mut())
            .ok_or(Status::INVALID_HANDLE)
    }

    pub(crate) fn unlink(&mut self, link: u64) -> Result<(), Status> {
        // So that a late copy shows.
        self.linked(link)?.fill(0);
        self.links[link as usize - 1] = None;
        Ok(())
    }

    pub(crate) fn variable(&self, module: u64, name: &str) -> Result<(u64, usize), Status> {
        let variables = &self.module(module)?.variables;
        let variable = variables.iter().find(|variable| variable.name == name);
        variable
            .map(|variable| (variable.address, variable.size))
            .ok_or(Status::NOT_FOUND)
    }
}
