// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shared memory, filled before a launch: what the launch before left there helps no kernel.

use gpureplay_cuda_launch::abi::{
    Handle, JitOptions, LaunchConfiguration, LaunchParameter, attribute,
};

use super::Session;
use crate::ReplayError;
use crate::error::driver;
use crate::module;

/// A kernel that fills all shared memory of its block with a pattern: 0xa5a5a5a5 is a small negative number as f32 and an index out of
/// range as i32.
const TEXT: &str = "\
.version 6.0
.target sm_60
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry gpureplay_scratch(.param .u64 bytes)
{
    .reg .b32 %r<6>;
    .reg .b64 %rd<2>;
    .reg .pred %p<2>;
    ld.param.u64 %rd0, [bytes];
    cvt.u32.u64 %r0, %rd0;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, room;
    shl.b32 %r1, %r1, 2;
    shl.b32 %r2, %r2, 2;
    mov.u32 %r5, 0xa5a5a5a5;
FILL:
    setp.ge.u32 %p0, %r1, %r0;
    @%p0 bra DONE;
    add.u32 %r4, %r3, %r1;
    st.volatile.shared.u32 [%r4], %r5;
    add.u32 %r1, %r1, %r2;
    bra FILL;
DONE:
    ret;
}
";
/// Blocks: several times as many as a GPU has multiprocessors, each of which has room for one.
const BLOCKS: u32 = 1024;

/// The kernel, loaded.
pub(super) struct Scratch {
    module: Handle,
    function: Handle,
    /// Bytes of shared memory of a block.
    bytes: u32,
}

impl Session {
    /// From now on, or no more, shared memory is filled before each launch that is not timed.
    ///
    /// # Errors
    /// If the driver refuses the kernel that does so.
    pub fn fill_shared_memory(&mut self, fill: bool) -> Result<(), ReplayError> {
        if let Some(scratch) = self.scratch.take() {
            // SAFETY: our module, of which nothing runs.
            let _ = unsafe { self.gpu.driver.cuModuleUnload(scratch.module) };
        }
        if !fill {
            return Ok(());
        }
        let mut text = TEXT.as_bytes().to_vec();
        text.push(0);
        let module = module::load(&self.gpu, &text, JitOptions::default())?;
        let layout = [[0, 8]];
        let function = module::kernel(&self.gpu, module, ("gpureplay_scratch", 1), &layout)?;
        let bytes = self
            .gpu
            .attribute(attribute::device::MAX_SHARED_MEMORY_OPTIN)?;
        let number = attribute::function::MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: a function that is loaded.
        let status = unsafe { self.gpu.driver.cuFuncSetAttribute(function, number, bytes) };
        driver("cuFuncSetAttribute", status)?;
        self.scratch = Some(Scratch {
            module,
            function,
            bytes: u32::try_from(bytes).unwrap_or(0),
        });
        Ok(())
    }

    /// Fills shared memory, if that is asked for.
    pub(super) fn scratch(&self) -> Result<(), ReplayError> {
        let Some(scratch) = &self.scratch else {
            return Ok(());
        };
        let configuration = LaunchConfiguration {
            grid: [BLOCKS, 1, 1],
            block: [256, 1, 1],
            shared: scratch.bytes,
            stream: 0,
            attributes: std::ptr::null(),
            attribute_count: 0,
        };
        let parameters = u64::from(scratch.bytes).to_le_bytes();
        let size = parameters.len();
        let extra = [
            LaunchParameter::BufferPointer as usize as *const _,
            parameters.as_ptr().cast(),
            LaunchParameter::BufferSize as usize as *const _,
            (&raw const size).cast(),
            LaunchParameter::End as usize as *const _,
        ];
        // SAFETY: configuration and parameters live until the call returns; the driver copies them.
        let status = unsafe {
            self.gpu.driver.cuLaunchKernelEx(
                &raw const configuration,
                scratch.function,
                std::ptr::null(),
                extra.as_ptr(),
            )
        };
        driver("cuLaunchKernelEx", status)
    }
}
