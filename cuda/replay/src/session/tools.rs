// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our kernels: fill, sum, copy, read.

use gpureplay_cuda_launch::abi::{Handle, JitOptions, LaunchConfiguration, attribute};

use super::Session;
use crate::error::driver;
use crate::room::Room;
use crate::{Gpu, ReplayError, module};

const TEXT: &str = include_str!("tools.ptx");

/// Bytes per block of `shares`.
pub(super) const SHARE: usize = 64 << 10;
/// Several times a GPU's multiprocessors.
const BLOCKS: u32 = 1024;
/// More leave more in caches than programs' kernels: with 1024, a warm copy was 2 to 4 % slower than under Nsight
/// Compute, with these 0.6 % off (`device-test times` on an H100).
const BLOCKS_TO_COPY: u32 = 264;
const THREADS: u32 = 256;

pub(super) struct Tools {
    scratch: Handle,
    shares: Handle,
    copy: Handle,
    read: Handle,
}

impl Tools {
    fn new(gpu: &Gpu) -> Result<Self, ReplayError> {
        let mut text = TEXT.as_bytes().to_vec();
        text.push(0);
        let module = module::load(gpu, &text, JitOptions::default())?;
        let kernel = |name, parameters: usize| {
            let layout: Vec<[usize; 2]> = (0..parameters).map(|at| [8 * at, 8]).collect();
            module::kernel(gpu, module, (name, parameters), &layout)
        };
        Ok(Self {
            scratch: kernel("gpureplay_scratch", 1)?,
            shares: kernel("gpureplay_shares", 4)?,
            copy: kernel("gpureplay_copy", 3)?,
            read: kernel("gpureplay_read", 2)?,
        })
    }
}

fn launch(
    gpu: &Gpu,
    kernel: Handle,
    [blocks, shared]: [u32; 2],
    parameters: &[u64],
) -> Result<(), ReplayError> {
    let configuration = LaunchConfiguration {
        grid: [blocks, 1, 1],
        block: [THREADS, 1, 1],
        shared,
        stream: 0,
        attributes: std::ptr::null(),
        attribute_count: 0,
    };
    let parameters: Vec<u8> = parameters
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    // SAFETY: our kernel, with these parameters.
    let status = unsafe {
        gpu.driver
            .launch_packed(&configuration, kernel, &parameters)
    };
    driver("cuLaunchKernelEx", status)
}

impl Session {
    pub(super) fn tools(&self) -> Result<&Tools, ReplayError> {
        if self.tools.get().is_none() {
            let _ = self.tools.set(Tools::new(&self.gpu)?);
        }
        let missing = ReplayError::Impossible("kernels of ours are not loaded");
        self.tools.get().ok_or(missing)
    }

    /// Fills shared memory before untimed launches, or stops: old contents help no kernel.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn fill_shared_memory(&mut self, fill: bool) -> Result<(), ReplayError> {
        self.scratch = None;
        if !fill {
            return Ok(());
        }
        let function = self.tools()?.scratch;
        let most = attribute::device::MAX_SHARED_MEMORY_OPTIN;
        let bytes = self.gpu.attribute(most)?;
        let number = attribute::function::MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a loaded function.
        let status = unsafe { self.gpu.driver.cuFuncSetAttribute(function, number, bytes) };
        driver("cuFuncSetAttribute", status)?;
        self.scratch = u32::try_from(bytes).ok();
        Ok(())
    }

    pub(super) fn scratch(&self) -> Result<(), ReplayError> {
        // One such block fills a multiprocessor.
        self.scratch.map_or(Ok(()), |bytes| {
            let kernel = self.tools()?.scratch;
            launch(&self.gpu, kernel, [BLOCKS, bytes], &[u64::from(bytes)])
        })
    }

    /// Two sums of each share, not to be forged without the key.
    pub(super) fn sums_of_shares(
        &self,
        memory: u64,
        size: usize,
        key: u64,
    ) -> Result<Vec<[u64; 2]>, ReplayError> {
        let shares = size.div_ceil(SHARE);
        let blocks = u32::try_from(shares);
        let blocks = blocks.map_err(|_| ReplayError::Impossible("memory is larger than memory"))?;
        let sums = Room::new(&self.gpu, shares * 16)?;
        let parameters = [memory, size as u64, key, sums.address];
        launch(&self.gpu, self.tools()?.shares, [blocks, 0], &parameters)?;
        sums.read()
    }

    /// Addresses and size are multiples of 16.
    pub(super) fn copy_on_gpu(&self, from: u64, to: u64, size: usize) -> Result<(), ReplayError> {
        let parameters = [from, to, size as u64];
        launch(
            &self.gpu,
            self.tools()?.copy,
            [BLOCKS_TO_COPY, 0],
            &parameters,
        )
    }

    /// Address and size are multiples of 16.
    pub(super) fn read_on_gpu(&self, from: u64, size: usize) -> Result<(), ReplayError> {
        let parameters = [from, size as u64];
        launch(&self.gpu, self.tools()?.read, [BLOCKS, 0], &parameters)
    }
}
