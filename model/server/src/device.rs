// SPDX-License-Identifier: MIT OR Apache-2.0
//! The PCI device.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gpureplay_memory::Cached;
use mali_model::{Level, Log, Machine, Task};

use crate::config_space::ConfigSpace;
use crate::intx::Intx;
use crate::logging::RegisterLog;
use crate::outside;
use crate::protocol::{Command, Header, Malformed, Reply, errno, irq, region};
use crate::warden::Warden;

/// Can be reset, is a PCI device.
const DEVICE_FLAGS: u32 = 0b11;

/// Readable, writable.
const REGION_FLAGS: u32 = 0b11;

struct State {
    gpu: Machine<Cached>,
    config: ConfigSpace,
    intx: Intx,
    registers: Option<RegisterLog>,
    outside: Option<outside::Registers>,
    reads: u64,
    writes: u64,
    quit: bool,
}

impl State {
    fn update_interrupt(&mut self) {
        let level = self.gpu.irq().any();
        self.intx.set_level(level);
    }

    fn read32(&mut self, log: &dyn Log, register: u32) -> u32 {
        if let Some(outside) = &mut self.outside {
            if outside::has(register) {
                return outside.read(register);
            }
            if !outside.powered() {
                outside.miss(log, register);
                return 0;
            }
        }
        let value = self.gpu.read32(register);
        self.reads += 1;
        if let Some(log) = &mut self.registers {
            log.access('R', register, value);
        }
        value
    }

    fn write32(&mut self, memory: &Cached, log: &dyn Log, register: u32, value: u32) {
        if let Some(outside) = &mut self.outside {
            if outside::has(register) {
                let before = outside.powered();
                outside.write(memory, log, register, value);
                if before && !outside.powered() {
                    if self.gpu.is_busy() {
                        outside.interrupt(log);
                    }
                    self.gpu.lose_state();
                }
                return;
            }
            if !outside.powered() {
                outside.miss(log, register);
                return;
            }
            if self.gpu.resets(register, value) && !outside.resets() {
                return;
            }
        }
        self.writes += 1;
        if let Some(log) = &mut self.registers {
            log.access('W', register, value);
        }
        self.gpu.write32(register, value);
    }
}

pub(crate) struct Device {
    state: Mutex<State>,
    work: Condvar,
    memory: Arc<Cached>,
    bar_size: u32,
    log: Arc<dyn Log>,
    warden: Option<Arc<Warden>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Totals {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) interrupts: u64,
}

impl Device {
    pub(crate) fn new(
        gpu: Machine<Cached>,
        registers: Option<RegisterLog>,
        outside: Option<outside::Registers>,
        log: Arc<dyn Log>,
        warden: Option<Arc<Warden>>,
    ) -> Device {
        let memory = gpu.memory().clone();
        let bar_size = gpu.size();
        let config = ConfigSpace::new(gpu.id().product(), bar_size);
        Device {
            state: Mutex::new(State {
                gpu,
                config,
                intx: Intx::default(),
                registers,
                outside,
                reads: 0,
                writes: 0,
                quit: false,
            }),
            work: Condvar::new(),
            memory,
            bar_size,
            log,
            warden,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Body of the reply, or error number.
    pub(crate) fn handle(
        &self,
        header: &Header,
        body: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Result<Vec<u8>, u32> {
        let command = match Command::decode(header.command, body) {
            Ok(command) => command,
            Err(error) => {
                self.log.write(
                    Level::Error,
                    format_args!("command {}: {error}", header.command),
                );
                return Err(match error {
                    Malformed::Command(_) => errno::EOPNOTSUPP,
                    _ => errno::EINVAL,
                });
            }
        };
        match command {
            Command::Version => Ok(version()),
            Command::DmaMap {
                writable,
                offset,
                address,
                size,
            } => self
                .map(writable, offset, address, size, fds)
                .map(|()| vec![]),
            Command::DmaUnmap {
                all,
                flags,
                address,
                size,
            } => {
                self.unmap(all, address, size)?;
                Ok(Reply::default()
                    .word(24)
                    .word(flags)
                    .long(address)
                    .long(size)
                    .0)
            }
            Command::DeviceInfo => {
                let reply = Reply::default().word(16).word(DEVICE_FLAGS);
                Ok(reply.word(region::COUNT).word(irq::COUNT).0)
            }
            Command::RegionInfo { index } => region_info(index, self.bar_size),
            Command::IrqInfo { index } => irq_info(index),
            Command::SetIrqs {
                flags,
                index,
                start,
                count,
            } => match index {
                irq::INTX => self
                    .lock()
                    .intx
                    .set(flags, start, count, fds)
                    .map(|()| vec![]),
                // QEMU switches off missing ones.
                _ if index < irq::COUNT => Ok(vec![]),
                _ => Err(errno::EINVAL),
            },
            Command::RegionRead {
                offset,
                region,
                count,
            } => self.read(offset, region, count),
            Command::RegionWrite {
                offset,
                region,
                data,
            } => {
                self.write(offset, region, data)?;
                let reply = Reply::default().long(offset).word(region);
                Ok(reply.word(data.len() as u32).0)
            }
            Command::Reset => {
                self.reset();
                Ok(vec![])
            }
        }
    }

    fn map(
        &self,
        writable: bool,
        offset: u64,
        address: u64,
        size: u64,
        fds: Vec<OwnedFd>,
    ) -> Result<(), u32> {
        let Some(fd) = fds.into_iter().next() else {
            // Memory without a descriptor, like a ROM, is a bus error for the GPU.
            let message =
                format_args!("{address:#x}+{size:#x} cannot be shared and stays unmapped");
            self.log.write(Level::Warning, message);
            return Ok(());
        };
        self.log.write(
            Level::Info,
            format_args!("guest memory {address:#x}+{size:#x}, file offset {offset:#x}"),
        );
        if !has(&fd, offset, size) {
            let message = format_args!("{address:#x}+{size:#x}: its file is shorter");
            self.log.write(Level::Error, message);
            return Err(errno::EINVAL);
        }
        self.memory
            .add(address, size, &fd, offset, writable)
            .map_err(|error| {
                self.log.write(Level::Error, format_args!("{error}"));
                errno::EINVAL
            })
    }

    fn unmap(&self, all: bool, address: u64, size: u64) -> Result<(), u32> {
        if all {
            self.memory.clear();
            return Ok(());
        }
        // The region may be one that could not be shared.
        if let Err(error) = self.memory.remove(address, size) {
            self.log.write(Level::Warning, format_args!("{error}"));
        }
        Ok(())
    }

    fn read(&self, offset: u64, region: u32, count: u32) -> Result<Vec<u8>, u32> {
        let mut data = vec![0; count as usize];
        let mut state = self.lock();
        match region {
            region::CONFIG => {
                let interrupt = state.intx.level();
                state.config.read(offset, &mut data, interrupt);
            }
            region::BAR0 => {
                bar_range(offset, data.len(), self.bar_size)?;
                let mut at = offset;
                let mut rest = data.as_mut_slice();
                while !rest.is_empty() {
                    let register = at as u32 & !3;
                    let value = state.read32(&*self.log, register);
                    let within = (at & 3) as usize;
                    let bytes = &value.to_le_bytes()[within..];
                    let length = bytes.len().min(rest.len());
                    let (now, later) = rest.split_at_mut(length);
                    now.copy_from_slice(&bytes[..length]);
                    rest = later;
                    at += length as u64;
                }
            }
            _ => return Err(errno::EINVAL),
        }
        Ok(Reply::default()
            .long(offset)
            .word(region)
            .word(count)
            .bytes(&data)
            .0)
    }

    fn write(&self, offset: u64, region: u32, data: &[u8]) -> Result<(), u32> {
        let mut state = self.lock();
        match region {
            region::CONFIG => state.config.write(offset, data),
            region::BAR0 => {
                bar_range(offset, data.len(), self.bar_size)?;
                let words = data.chunks_exact(4);
                if !offset.is_multiple_of(4) || !words.remainder().is_empty() {
                    let count = data.len();
                    let message =
                        format_args!("write of {count} bytes to {offset:#x} is not of words");
                    self.log.write(Level::Warning, message);
                    return Err(errno::EIO);
                }
                for (register, word) in (offset as u32..).step_by(4).zip(words) {
                    let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                    state.write32(&self.memory, &*self.log, register, value);
                }
                state.update_interrupt();
                if state.gpu.has_work() {
                    self.work.notify_all();
                }
            }
            _ => return Err(errno::EINVAL),
        }
        Ok(())
    }

    fn reset(&self) {
        self.log.write(Level::Info, format_args!("device reset"));
        let mut state = self.lock();
        state.gpu.lose_state();
        state.config.reset();
        state.intx.reset();
    }

    pub(crate) fn stalled(&self, begins: bool) {
        if let Some(warden) = &self.warden {
            warden.stall(begins);
        }
        if begins {
            let mut state = self.lock();
            state.gpu.poll_faults();
            state.update_interrupt();
        }
    }

    pub(crate) fn run_jobs(&self) {
        while let Some(mut work) = self.wait_for_work() {
            if let Some(warden) = &self.warden {
                warden.begin();
            }
            loop {
                let finished = work.execute();
                if let (true, Some(warden)) = (finished.is_cut(), &self.warden) {
                    warden.begin();
                }
                self.memory.written();
                let mut state = self.lock();
                state.gpu.finish(finished);
                state.update_interrupt();
                match state.gpu.take_work() {
                    Some(next) => work = next,
                    None => break,
                }
            }
            if let Some(warden) = &self.warden {
                warden.end();
            }
        }
    }

    fn wait_for_work(&self) -> Option<Task<Cached>> {
        let mut state = self.lock();
        loop {
            if state.quit {
                return None;
            }
            if let Some(work) = state.gpu.take_work() {
                return Some(work);
            }
            state = self
                .work
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn quit(&self) -> Totals {
        let mut state = self.lock();
        state.quit = true;
        state.gpu.lose_state();
        self.work.notify_all();
        if let Some(outside) = &state.outside {
            outside.report(&*self.log);
        }
        Totals {
            reads: state.reads,
            writes: state.writes,
            interrupts: state.intx.fired(),
        }
    }
}

/// An access past the file's end would be a signal.
fn has(file: &OwnedFd, offset: u64, size: u64) -> bool {
    rustix::fs::fstat(file).is_ok_and(|status| {
        let regular = rustix::fs::FileType::from_raw_mode(status.st_mode).is_file();
        let end = offset.checked_add(size);
        !regular || end.is_some_and(|end| end <= u64::try_from(status.st_size).unwrap_or(0))
    })
}

/// Version 0.0, the oldest.
fn version() -> Vec<u8> {
    let capabilities = format!(
        "{{\"capabilities\":{{\"max_msg_fds\":1,\"max_data_xfer_size\":{}}}}}\0",
        crate::protocol::MAXIMUM_DATA
    );
    let mut body = Vec::with_capacity(4 + capabilities.len());
    body.extend([0; 4]);
    body.extend(capabilities.as_bytes());
    body
}

fn region_info(index: u32, bar_size: u32) -> Result<Vec<u8>, u32> {
    let size = match index {
        region::BAR0 => u64::from(bar_size),
        region::CONFIG => crate::config_space::SIZE as u64,
        _ if index < region::COUNT => 0,
        _ => return Err(errno::EINVAL),
    };
    let flags = if size == 0 { 0 } else { REGION_FLAGS };
    Ok(Reply::default()
        .word(32)
        .word(flags)
        .word(index)
        .word(0)
        .long(size)
        .long(0)
        .0)
}

fn irq_info(index: u32) -> Result<Vec<u8>, u32> {
    let (flags, count) = match index {
        irq::INTX => (irq::INTX_FLAGS, 1),
        _ if index < irq::COUNT => (0, 0),
        _ => return Err(errno::EINVAL),
    };
    Ok(Reply::default()
        .word(16)
        .word(flags)
        .word(index)
        .word(count)
        .0)
}

fn bar_range(offset: u64, length: usize, size: u32) -> Result<(), u32> {
    match offset.checked_add(length as u64) {
        Some(end) if end <= u64::from(size) => Ok(()),
        _ => Err(errno::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mali_model::{NoLog, Options, Product};

    fn device() -> Device {
        of("g52")
    }

    fn of(name: &str) -> Device {
        let product = Product::by_name(name).unwrap();
        let gpu = Machine::new(product, Arc::new(Cached::coherent()), Options::default());
        Device::new(gpu, None, None, Arc::new(NoLog), None)
    }

    fn send(device: &Device, command: u16, words: &[u32]) -> Result<Vec<u8>, u32> {
        let mut header = [0; 16];
        header[2..4].copy_from_slice(&command.to_ne_bytes());
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        device.handle(&Header::from_bytes(&header), &body, vec![])
    }

    fn read(device: &Device, offset: u32, count: u32) -> Vec<u8> {
        send(device, 9, &[offset, 0, region::BAR0, count]).unwrap()[16..].to_vec()
    }

    #[test]
    fn registers_are_read_in_any_width() {
        let device = device();
        assert_eq!(read(&device, 0, 4), [0, 0, 0x12, 0x72]);
        assert_eq!(read(&device, 2, 2), [0x12, 0x72]);
        assert_eq!(read(&device, 0, 8), [0, 0, 0x12, 0x72, 6, 2, 0x11, 7]);
        assert!(read(&device, 0, 0).is_empty());
        assert_eq!(read(&device, 0xfffc, 4), [0; 4]);
    }

    #[test]
    fn writes_are_whole_words_inside_the_bar() {
        let device = device();
        send(&device, 10, &[0x28, 0, region::BAR0, 4, 0x100]).unwrap();
        assert_eq!(read(&device, 0x28, 4), [0, 1, 0, 0]);
        for (offset, high) in [(0xffff, 0), (0x10000, 0), (0xffff_fffc, u32::MAX)] {
            assert_eq!(
                send(&device, 10, &[offset, high, region::BAR0, 4, 1]),
                Err(errno::EINVAL)
            );
            assert_eq!(
                send(&device, 9, &[offset, high, region::BAR0, 4]),
                Err(errno::EINVAL)
            );
        }
        assert_eq!(
            send(&device, 10, &[0x2a, 0, region::BAR0, 4, 1]),
            Err(errno::EIO)
        );
        assert_eq!(send(&device, 9, &[0, 0, 3, 4]), Err(errno::EINVAL));
    }

    #[test]
    fn a_gpu_with_command_streams_has_doorbells_behind_its_registers() {
        let device = of("g610");
        let info = send(&device, 5, &[32, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(info[16..24], 0x20_0000u64.to_ne_bytes());
        assert_eq!(read(&device, 0, 4), [5, 0, 0x67, 0xa8]);
        assert_eq!(read(&device, 0x1_0000, 4), [1, 0, 0, 0]);
        send(&device, 10, &[0x1f_0000, 0, region::BAR0, 4, 1]).unwrap();
        let beyond = send(&device, 10, &[0x20_0000, 0, region::BAR0, 4, 1]);
        assert_eq!(beyond, Err(errno::EINVAL));
    }

    #[test]
    fn information_is_there_for_every_index_and_no_more() {
        let device = device();
        let info = send(&device, 5, &[32, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(info[16..24], 0x10000u64.to_ne_bytes());
        for index in 0..12 {
            let known = send(&device, 5, &[32, 0, index, 0, 0, 0, 0, 0]).is_ok();
            assert_eq!(known, index < region::COUNT);
            assert_eq!(
                send(&device, 7, &[16, 0, index, 0]).is_ok(),
                index < irq::COUNT
            );
        }
        assert_eq!(send(&device, 11, &[0; 8]), Err(errno::EOPNOTSUPP));
    }

    #[test]
    fn reset_leaves_no_interrupt() {
        let device = device();
        send(&device, 10, &[0x28, 0, region::BAR0, 4, u32::MAX]).unwrap();
        send(&device, 10, &[0x30, 0, region::BAR0, 4, 7]).unwrap();
        assert!(device.lock().intx.level());
        send(&device, 13, &[]).unwrap();
        assert!(!device.lock().intx.level());
        assert_eq!(read(&device, 0x20, 4), [0; 4]);
    }
}
