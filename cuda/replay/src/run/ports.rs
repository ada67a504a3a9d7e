// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inputs and outputs in pinned memory.

use gpureplay_cuda_launch::recording::{Run, Store};

use crate::error::driver;
use crate::{Gpu, ReplayError};

const ALIGNMENT_BYTES: usize = 256;

pub(super) struct Recorded {
    names: Vec<String>,
    inputs: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
}

impl Recorded {
    pub(super) fn read(store: &Store, run: &Run) -> Result<Self, ReplayError> {
        let names = run.inputs.iter().map(|port| port.name.clone()).collect();
        let mut both = [Vec::new(), Vec::new()];
        for (list, ports) in both.iter_mut().zip([&run.inputs, &run.outputs]) {
            for port in ports {
                list.push(store.get(port.contents, port.size)?);
            }
        }
        let [inputs, outputs] = both;
        Ok(Self {
            names,
            inputs,
            outputs,
        })
    }
}

pub(super) struct Ports {
    gpu: Gpu,
    recorded: Recorded,
    memory: *mut u8,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

impl Ports {
    pub(super) fn new(gpu: &Gpu, recorded: Recorded) -> Result<Self, ReplayError> {
        let mut end = 0usize;
        let too_large = ReplayError::Impossible("inputs and outputs are larger than memory");
        let mut place = |bytes: &Vec<u8>| {
            let at = end;
            let next = end.checked_add(bytes.len())?;
            end = next.checked_next_multiple_of(ALIGNMENT_BYTES)?;
            Some(at)
        };
        let inputs: Option<Vec<_>> = recorded.inputs.iter().map(&mut place).collect();
        let outputs: Option<Vec<_>> = recorded.outputs.iter().map(&mut place).collect();
        let (Some(inputs), Some(outputs)) = (inputs, outputs) else {
            return Err(too_large);
        };
        let mut memory = std::ptr::null_mut();
        // SAFETY: a pointer to a local.
        let status = unsafe { gpu.driver.cuMemHostAlloc(&raw mut memory, end.max(1), 0) };
        driver("cuMemHostAlloc", status)?;
        let ports = Self {
            gpu: gpu.clone(),
            recorded,
            memory: memory.cast(),
            inputs,
            outputs,
        };
        ports.refresh();
        Ok(ports)
    }

    fn put(&self, at: usize, bytes: impl Iterator<Item = u8>) {
        for (offset, byte) in bytes.enumerate() {
            // SAFETY: `new` made room for each input and output; nothing runs that uses it.
            unsafe { self.memory.add(at + offset).write(byte) };
        }
    }

    /// Copies inputs before each run, as programs do.
    pub(super) fn refresh(&self) {
        for (at, bytes) in self.inputs.iter().zip(&self.recorded.inputs) {
            // SAFETY: as in `put`.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.memory.add(*at), bytes.len());
            }
        }
    }

    /// Fills outputs with other bytes than recorded: shows what a run does not write.
    pub(super) fn clear_outputs(&self) {
        for (at, bytes) in self.outputs.iter().zip(&self.recorded.outputs) {
            self.put(*at, bytes.iter().map(|byte| !byte));
        }
    }

    pub(super) fn set_input(&mut self, number: usize, bytes: &[u8]) -> Result<(), ReplayError> {
        let input = &mut self.recorded.inputs[number];
        if input.len() != bytes.len() {
            return Err(ReplayError::Input {
                name: self.recorded.names[number].clone(),
                found: bytes.len() as u64,
                size: input.len() as u64,
            });
        }
        input.copy_from_slice(bytes);
        self.refresh();
        Ok(())
    }

    pub(super) fn inputs(&self) -> &[Vec<u8>] {
        &self.recorded.inputs
    }

    pub(super) fn output(&self, number: usize) -> &[u8] {
        let size = self.recorded.outputs[number].len();
        // SAFETY: `new` made room for it; the device has ended its copies.
        unsafe { std::slice::from_raw_parts(self.memory.add(self.outputs[number]), size) }
    }

    pub(super) fn recorded_output(&self, number: usize) -> &[u8] {
        &self.recorded.outputs[number]
    }

    pub(super) fn leave(&mut self) {
        self.memory = std::ptr::null_mut();
    }

    pub(super) fn input_place(&self, number: u32) -> (*mut u8, usize) {
        let number = number as usize;
        // SAFETY: as in `put`.
        let at = unsafe { self.memory.add(self.inputs[number]) };
        (at, self.recorded.inputs[number].len())
    }

    pub(super) fn output_place(&self, number: u32) -> (*mut u8, usize) {
        let number = number as usize;
        // SAFETY: as in `put`.
        let at = unsafe { self.memory.add(self.outputs[number]) };
        (at, self.recorded.outputs[number].len())
    }
}

// SAFETY: this value alone has the pinned memory.
unsafe impl Send for Ports {}

impl Drop for Ports {
    fn drop(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: our memory, which no copy uses any more.
            let _ = unsafe { self.gpu.driver.cuMemFreeHost(self.memory.cast()) };
        }
    }
}
