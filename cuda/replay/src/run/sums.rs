// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums of memory after each operation: all words, mixed with their places.

use gpureplay_cuda_launch::abi::{Handle, JitOptions, LaunchConfiguration};
use gpureplay_cuda_launch::recording::{Operation, UNKNOWN_SUM};

use super::RunSession;
use super::issue::What;
use crate::error::driver;
use crate::{Gpu, ReplayError, module};

/// `first` counts words from address 0.
const TEXT: &str = "\
.version 6.0
.target sm_60
.address_size 64
.visible .entry gpureplay_sum(.param .u64 memory, .param .u64 words, .param .u64 first, .param .u64 sum)
{
    .reg .b32 %r<5>;
    .reg .b64 %rd<12>;
    .reg .pred %p<2>;
    ld.param.u64 %rd0, [memory];
    ld.param.u64 %rd1, [words];
    ld.param.u64 %rd2, [first];
    ld.param.u64 %rd3, [sum];
    mov.u32 %r0, %ctaid.x;
    mov.u32 %r1, %ntid.x;
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %nctaid.x;
    mul.wide.u32 %rd4, %r0, %r1;
    cvt.u64.u32 %rd5, %r2;
    add.u64 %rd4, %rd4, %rd5;
    mul.wide.u32 %rd5, %r1, %r3;
    mov.u64 %rd6, 0;
NEXT:
    setp.ge.u64 %p0, %rd4, %rd1;
    @%p0 bra DONE;
    shl.b64 %rd7, %rd4, 3;
    add.u64 %rd7, %rd0, %rd7;
    ld.global.u64 %rd8, [%rd7];
    add.u64 %rd9, %rd4, %rd2;
    mul.lo.u64 %rd9, %rd9, 0x9e3779b97f4a7c15;
    xor.b64 %rd8, %rd8, %rd9;
    shr.u64 %rd9, %rd8, 30;
    xor.b64 %rd8, %rd8, %rd9;
    mul.lo.u64 %rd8, %rd8, 0xbf58476d1ce4e5b9;
    shr.u64 %rd9, %rd8, 27;
    xor.b64 %rd8, %rd8, %rd9;
    mul.lo.u64 %rd8, %rd8, 0x94d049bb133111eb;
    shr.u64 %rd9, %rd8, 31;
    xor.b64 %rd8, %rd8, %rd9;
    add.u64 %rd6, %rd6, %rd8;
    add.u64 %rd4, %rd4, %rd5;
    bra NEXT;
DONE:
    red.global.add.u64 [%rd3], %rd6;
    ret;
}
";
const LAYOUT: [[usize; 2]; 4] = [[0, 8], [8, 8], [16, 8], [24, 8]];
const MOST_BLOCKS: u64 = 2048;
const THREADS: u32 = 256;
const WORD: u64 = 8;

/// Sums bytes as the kernel, from word `first`; padded with zeros.
fn sum(bytes: &[u8], first: u64) -> u64 {
    let words = bytes.chunks(8).zip(first..);
    words.fold(0, |sum: u64, (bytes, number)| {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let mut word = u64::from_le_bytes(word) ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum.wrapping_add(word ^ (word >> 31))
    })
}

struct Adder<'a> {
    gpu: &'a Gpu,
    module: Handle,
    function: Handle,
    sum: u64,
    stream: Handle,
}

impl<'a> Adder<'a> {
    fn new(gpu: &'a Gpu, stream: Handle) -> Result<Self, ReplayError> {
        let mut text = TEXT.as_bytes().to_vec();
        text.push(0);
        let mut adder = Self {
            gpu,
            module: module::load(gpu, &text, JitOptions::default())?,
            function: 0,
            sum: 0,
            stream,
        };
        let named = ("gpureplay_sum", LAYOUT.len());
        adder.function = module::kernel(gpu, adder.module, named, &LAYOUT)?;
        // SAFETY: a pointer to a field.
        let status = unsafe { gpu.driver.cuMemAlloc_v2(&raw mut adder.sum, WORD as usize) };
        driver("cuMemAlloc_v2", status)?;
        Ok(adder)
    }

    /// Adds memory as if it lay at `place`.
    fn add(&self, address: u64, size: u64, place: u64) -> Result<(), ReplayError> {
        let words = size / WORD;
        let parameters = [address, words, place / WORD, self.sum];
        let pointers: [*const std::ffi::c_void; 4] =
            std::array::from_fn(|number| (&raw const parameters[number]).cast());
        let blocks = words.div_ceil(u64::from(THREADS)).clamp(1, MOST_BLOCKS);
        let configuration = LaunchConfiguration {
            grid: [u32::try_from(blocks).unwrap_or(1), 1, 1],
            block: [THREADS, 1, 1],
            shared: 0,
            stream: self.stream,
            attributes: std::ptr::null(),
            attribute_count: 0,
        };
        // SAFETY: configuration and parameters live until the call returns. The kernel has these parameters, and reads
        // mapped memory.
        let status = unsafe {
            self.gpu.driver.cuLaunchKernelEx(
                &raw const configuration,
                self.function,
                pointers.as_ptr(),
                std::ptr::null(),
            )
        };
        driver("cuLaunchKernelEx", status)
    }
}

impl Drop for Adder<'_> {
    fn drop(&mut self) {
        // SAFETY: ours, and idle or ended with the process.
        unsafe {
            let _ = self.gpu.driver.cuModuleUnload(self.module);
            if self.sum != 0 {
                let _ = self.gpu.driver.cuMemFree_v2(self.sum);
            }
        }
    }
}

impl RunSession {
    /// Runs from the beginning to `end`, and leaves memory so.
    ///
    /// # Errors
    /// Memory holds variables' addresses, which differ between processes; as [`RunSession::execute`].
    pub fn sums(&mut self, end: u32) -> Result<Vec<u64>, ReplayError> {
        self.without_addresses()?;
        self.restore()?;
        self.ports.clear_outputs();
        let adder = Adder::new(&self.gpu, self.main)?;
        let mut sums = Vec::new();
        for (operation, number) in self.run.operations.iter().zip(0..end) {
            self.issuer()?.issue(What::Part(number, number + 1))?;
            self.wait()?;
            let last = sums.last().copied();
            sums.push(match (operation, last) {
                (operation, Some(last)) if !changes_memory(operation) => last,
                _ => self.sum(&adder)?,
            });
        }
        Ok(sums)
    }

    fn sum(&self, adder: &Adder<'_>) -> Result<u64, ReplayError> {
        self.gpu.upload(adder.sum, &[0; WORD as usize])?;
        let memory = self.run.memory.iter();
        let memory = memory.map(|one| (one.address, one.size, one.address));
        let variables = self.run.variables.iter().zip(self.images.variables());
        let variables = variables.map(|(one, (placed, _))| (placed, one.size, one.address));
        let mut of_host = 0u64;
        for (address, size, place) in memory.chain(variables) {
            if address % WORD == 0 && place % WORD == 0 {
                adder.add(address, size, place)?;
            }
            // The kernel leaves out rests and unaligned bytes.
            let done = match (address | place) % WORD {
                0 => size / WORD * WORD,
                _ => 0,
            };
            let rest = usize::try_from(size - done)
                .map_err(|_| ReplayError::Impossible("memory is larger than memory"))?;
            if rest > 0 {
                let mut bytes = vec![0; rest];
                self.gpu.download(address + done, &mut bytes)?;
                of_host = of_host.wrapping_add(sum(&bytes, (place + done) / WORD));
            }
        }
        self.wait()?;
        let mut found = [0; WORD as usize];
        self.gpu.download(adder.sum, &mut found)?;
        // 0 is reserved for unknown.
        Ok(u64::from_le_bytes(found)
            .wrapping_add(of_host)
            .max(UNKNOWN_SUM + 1))
    }
}

fn changes_memory(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Launch { .. }
            | Operation::Set { .. }
            | Operation::In { .. }
            | Operation::Copy { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn a_sum_knows_bytes_and_their_places() {
        let bytes: Vec<u8> = (0..64).collect();
        let whole = sum(&bytes, 5);
        assert_eq!(
            whole,
            sum(&bytes[..24], 5).wrapping_add(sum(&bytes[24..], 8))
        );
        assert_ne!(whole, sum(&bytes, 6));
        let mut swapped = bytes.clone();
        swapped.rotate_left(8);
        assert_ne!(whole, sum(&swapped, 5));
        assert_eq!(sum(&[1, 2], 0), sum(&[1, 2, 0, 0, 0, 0, 0, 0], 0));
        // The finaliser of splitmix64, as its first output for seed 0.
        assert_eq!(sum(&[0; 8], 1), 0xe220_a839_7b1d_cdaf);
    }
}
