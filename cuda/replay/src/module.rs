// SPDX-License-Identifier: MIT OR Apache-2.0
//! An image in the driver.

use std::ffi::CString;

use gpureplay_cuda_launch::abi::{DevicePointer, Handle, JitOptions, Status, attribute};
use gpureplay_cuda_launch::image::{MemberKind, parts};
use gpureplay_cuda_launch::recording::Launch;

use crate::error::driver;
use crate::{Gpu, Limits, OpenMp, ReplayError, Sizes};

/// A loaded image.
pub struct Loaded {
    pub(crate) module: Handle,
    pub(crate) function: Handle,
    /// Recorded variables' addresses in this process.
    pub(crate) variables: Vec<DevicePointer>,
    /// Its own carve-out overrides the launch's.
    pub(crate) has_carveout: bool,
    limits: Limits,
}

const LOG_BYTES: usize = 8192;

impl Loaded {
    /// What GPU and kernel allow.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn new(
        gpu: &Gpu,
        launch: &Launch,
        image: &[u8],
        options: JitOptions,
    ) -> Result<Self, ReplayError> {
        let kernel = gpureplay_cuda_launch::image::kernel(image, &launch.kernel)?
            .ok_or_else(|| ReplayError::NoKernel(launch.kernel.clone()))?;
        let mut bytes = text(image, &launch.kernel, options)?;
        bytes.push(0);
        let module = load(gpu, &bytes, options)?;
        let mut loaded = Self {
            module,
            function: 0,
            variables: Vec::new(),
            has_carveout: false,
            limits: Limits {
                threads: 0,
                block: [0; 3],
                grid: [0; 3],
                shared: 0,
                required: kernel.required_threads,
                registers: 0,
                openmp: OpenMp::default(),
            },
        };
        let prepared = loaded.prepare(gpu, launch, kernel.parameters.len());
        if prepared.is_err() {
            loaded.unload(gpu);
        }
        prepared.map(|()| loaded)
    }

    fn prepare(
        &mut self,
        gpu: &Gpu,
        launch: &Launch,
        parameters: usize,
    ) -> Result<(), ReplayError> {
        self.function = kernel(
            gpu,
            self.module,
            (&launch.kernel, parameters),
            &launch.layout,
        )?;
        for variable in &launch.variables {
            let address = variable_address(gpu, self.module, &variable.name, variable.size)?;
            self.variables.push(address);
        }
        set_attributes(gpu, self.function, &launch.function_attributes);
        self.limits = Limits {
            openmp: self.openmp(gpu, launch)?,
            ..self.read_limits(gpu)?
        };
        Ok(())
    }

    fn attribute(&self, gpu: &Gpu, number: i32) -> Result<u32, ReplayError> {
        let mut value = 0;
        // SAFETY: a pointer to a local, a loaded function.
        let status = unsafe {
            gpu.driver
                .cuFuncGetAttribute(&raw mut value, number, self.function)
        };
        driver("cuFuncGetAttribute", status)?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Static, in bytes.
    pub(crate) fn shared(&self, gpu: &Gpu) -> Result<u32, ReplayError> {
        self.attribute(gpu, attribute::function::SHARED_SIZE_BYTES)
    }

    fn read_limits(&self, gpu: &Gpu) -> Result<Limits, ReplayError> {
        let three = |first: i32| -> Result<[u32; 3], ReplayError> {
            let axis = |step| {
                gpu.attribute(first + step)
                    .map(|value| u32::try_from(value).unwrap_or(0))
            };
            Ok([axis(0)?, axis(1)?, axis(2)?])
        };
        let all =
            u32::try_from(gpu.attribute(attribute::device::MAX_SHARED_MEMORY_OPTIN)?).unwrap_or(0);
        let fixed = self.attribute(gpu, attribute::function::SHARED_SIZE_BYTES)?;
        Ok(Limits {
            threads: self.attribute(gpu, attribute::function::MAX_THREADS_PER_BLOCK)?,
            block: three(attribute::device::MAX_BLOCK_DIM_X)?,
            grid: three(attribute::device::MAX_GRID_DIM_X)?,
            shared: all.saturating_sub(fixed),
            required: self.limits.required,
            registers: self.attribute(gpu, attribute::function::NUM_REGS)?,
            openmp: self.limits.openmp,
        })
    }

    fn openmp(&self, gpu: &Gpu, launch: &Launch) -> Result<OpenMp, ReplayError> {
        let name = OpenMp::variable(&launch.kernel);
        let (address, size) = variable(gpu, self.module, &name)?;
        if size < OpenMp::BYTES as u64 {
            return Ok(OpenMp::default());
        }
        let mut environment = [0; OpenMp::BYTES];
        gpu.download(address, &mut environment)?;
        let recorded = Sizes {
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
        };
        Ok(OpenMp::read(&environment, &recorded))
    }

    /// Never lowers the limit.
    pub(crate) fn allow_shared(&self, gpu: &Gpu, bytes: u32) -> Result<(), ReplayError> {
        let number = attribute::function::MAX_DYNAMIC_SHARED_SIZE_BYTES;
        if bytes > self.attribute(gpu, number)? {
            let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
            // SAFETY: a loaded function.
            let status = unsafe { gpu.driver.cuFuncSetAttribute(self.function, number, bytes) };
            driver("cuFuncSetAttribute", status)?;
        }
        Ok(())
    }

    /// Shared memory's percentage of what it shares with the first-level cache.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn prefer_shared(&mut self, gpu: &Gpu, percent: u32) -> Result<(), ReplayError> {
        let number = attribute::function::PREFERRED_SHARED_MEMORY_CARVEOUT;
        let percent = i32::try_from(percent).unwrap_or(i32::MAX);
        // SAFETY: a loaded function.
        let status = unsafe {
            gpu.driver
                .cuFuncSetAttribute(self.function, number, percent)
        };
        driver("cuFuncSetAttribute", status)?;
        self.has_carveout = true;
        Ok(())
    }

    pub(crate) fn unload(&self, gpu: &Gpu) {
        // SAFETY: our module.
        let _ = unsafe { gpu.driver.cuModuleUnload(self.module) };
    }
}

/// Offset and size of each. Asking beyond a known count would look like an error to watching tools.
pub(crate) fn layout(
    gpu: &Gpu,
    function: Handle,
    known: usize,
) -> Result<Vec<[usize; 2]>, ReplayError> {
    let mut layout = Vec::new();
    loop {
        if known > 0 && layout.len() == known {
            return Ok(layout);
        }
        let (mut offset, mut size) = (0, 0);
        // SAFETY: pointers to locals, a loaded function.
        let status = unsafe {
            gpu.driver
                .cuFuncGetParamInfo(function, layout.len(), &raw mut offset, &raw mut size)
        };
        match status {
            Status::SUCCESS => layout.push([offset, size]),
            // There are no more.
            Status::INVALID_VALUE => return Ok(layout),
            status => driver("cuFuncGetParamInfo", status)?,
        }
    }
}

pub(crate) fn text(
    image: &[u8],
    kernel: &str,
    options: JitOptions,
) -> Result<Vec<u8>, ReplayError> {
    if options == JitOptions::default() {
        Ok(image.to_vec())
    } else {
        ptx(image, kernel)
    }
}

pub(crate) fn ptx(image: &[u8], kernel: &str) -> Result<Vec<u8>, ReplayError> {
    let mut texts: Vec<_> = parts(image)?
        .into_iter()
        .filter(|part| part.kind == MemberKind::Ptx)
        .collect();
    texts.sort_by_key(|part| std::cmp::Reverse(part.capability));
    for part in texts {
        if part
            .contents()?
            .kernels
            .iter()
            .any(|other| other.name == kernel)
        {
            return Ok(part.bytes()?.into_owned());
        }
    }
    Err(ReplayError::NoPtx(kernel.to_owned()))
}

/// The image must end with a zero byte.
pub(crate) fn load(gpu: &Gpu, image: &[u8], options: JitOptions) -> Result<Handle, ReplayError> {
    let mut log = vec![0u8; LOG_BYTES];
    let mut names = vec![
        attribute::jit::ERROR_LOG_BUFFER,
        attribute::jit::ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values = vec![log.as_mut_ptr() as u64, LOG_BYTES as u64];
    for (name, value) in options.listed() {
        names.push(name);
        values.push(value);
    }
    let count = u32::try_from(names.len()).unwrap_or(0);
    let mut module = 0;
    // SAFETY: the image is whole and ends with a zero byte; there are as many options as said, whose values the driver
    // changes (the log's size to what it wrote); the log has the said size.
    let status = unsafe {
        gpu.driver.cuModuleLoadDataEx(
            &raw mut module,
            image.as_ptr().cast(),
            count,
            names.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if status != Status::SUCCESS {
        let end = log.iter().position(|byte| *byte == 0).unwrap_or(LOG_BYTES);
        let log = String::from_utf8_lossy(&log[..end]).trim().to_owned();
        return Err(ReplayError::NotLoaded { status, log });
    }
    Ok(module)
}

fn c_string(text: &str) -> Result<CString, ReplayError> {
    CString::new(text).map_err(|_| ReplayError::Impossible("a name holds a zero byte"))
}

/// Parameters must be at the recorded places.
pub(crate) fn kernel(
    gpu: &Gpu,
    module: Handle,
    (name, parameters): (&str, usize),
    recorded: &[[usize; 2]],
) -> Result<Handle, ReplayError> {
    let text = c_string(name)?;
    let mut function = 0;
    // SAFETY: a pointer to a local, a loaded module, a C string.
    let status = unsafe {
        gpu.driver
            .cuModuleGetFunction(&raw mut function, module, text.as_ptr())
    };
    if status == Status::NOT_FOUND {
        return Err(ReplayError::NoKernel(name.to_owned()));
    }
    driver("cuModuleGetFunction", status)?;
    let found = layout(gpu, function, parameters)?;
    if found != recorded {
        let recorded = recorded.to_vec();
        return Err(ReplayError::Parameters { found, recorded });
    }
    Ok(function)
}

pub(crate) fn variable_address(
    gpu: &Gpu,
    module: Handle,
    name: &str,
    recorded: u64,
) -> Result<u64, ReplayError> {
    let (address, found) = variable(gpu, module, name)?;
    if found != recorded {
        return Err(ReplayError::Variable {
            name: name.to_owned(),
            found,
            recorded,
        });
    }
    Ok(address)
}

/// Size 0 if there is none.
fn variable(gpu: &Gpu, module: Handle, name: &str) -> Result<(u64, u64), ReplayError> {
    let text = c_string(name)?;
    let (mut address, mut size) = (0, 0);
    // SAFETY: pointers to locals, a loaded module, a C string.
    let status = unsafe {
        gpu.driver
            .cuModuleGetGlobal_v2(&raw mut address, &raw mut size, module, text.as_ptr())
    };
    if status != Status::NOT_FOUND {
        driver("cuModuleGetGlobal_v2", status)?;
    }
    Ok((address, size as u64))
}

/// Ignores refusals: they show in the limits, or at the launch.
pub(crate) fn set_attributes(gpu: &Gpu, function: Handle, attributes: &[[i32; 2]]) {
    for [number, value] in attributes {
        // SAFETY: a loaded function.
        let _ = unsafe { gpu.driver.cuFuncSetAttribute(function, *number, *value) };
    }
}
