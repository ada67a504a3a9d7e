// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server as QEMU sees it: a device behind a socket that maps guest memory, runs a job and interrupts.

#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mali_facts::registers::{address_space, gpu, job, job_slot};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;

/// Where guest memory lies on the bus.
const RAM: u64 = 0x4000_0000;
const RAM_SIZE: u64 = 0x10_0000;

/// A server process, and the connection that QEMU would have.
struct Session {
    server: Child,
    stream: UnixStream,
    folder: PathBuf,
    id: u16,
}

impl Session {
    fn start(name: &str) -> Session {
        Session::start_with(name, &[])
    }

    fn start_with(name: &str, options: &[&str]) -> Session {
        let folder =
            std::env::temp_dir().join(format!("mali-session-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
        let socket = folder.join("gpu.sock");
        let server = Command::new(env!("CARGO_BIN_EXE_mali-vfio-user"))
            .arg("--socket")
            .arg(&socket)
            .args(["--gpu", "g31", "--threads", "1", "--register-log"])
            .arg(folder.join("registers.log"))
            .args(options)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(_) if start.elapsed() < Duration::from_secs(60) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(error) => panic!("no server: {error}"),
            }
        };
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Session {
            server,
            stream,
            folder,
            id: 0,
        }
    }

    fn send(&mut self, command: u16, flags: u32, body: &[u8], fds: &[BorrowedFd<'_>]) {
        self.id += 1;
        let mut message = Vec::new();
        message.extend(self.id.to_ne_bytes());
        message.extend(command.to_ne_bytes());
        message.extend((16 + body.len() as u32).to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(0u32.to_ne_bytes());
        message.extend(body);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let sent = sendmsg(
            &self.stream,
            &[IoSlice::new(&message)],
            &mut control,
            SendFlags::empty(),
        );
        assert_eq!(sent.unwrap(), message.len());
    }

    /// Sends a command and returns the body of its reply, or the error number.
    fn call(&mut self, command: u16, body: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Vec<u8>, u32> {
        self.send(command, 0, body, fds);
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).unwrap();
        let word = |at: usize| u32::from_ne_bytes(header[at..at + 4].try_into().unwrap());
        let mut body = vec![0; word(4) as usize - 16];
        self.stream.read_exact(&mut body).unwrap();
        assert_eq!(header[..2], self.id.to_ne_bytes());
        if word(8) & 0x20 != 0 {
            Err(word(12))
        } else {
            Ok(body)
        }
    }

    fn words(
        &mut self,
        command: u16,
        words: &[u32],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, u32> {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.call(command, &body, fds)
    }

    fn read32(&mut self, register: u32) -> u32 {
        let reply = self.words(REGION_READ, &[register, 0, 0, 4], &[]).unwrap();
        u32::from_le_bytes(reply[16..].try_into().unwrap())
    }

    /// A posted write, as QEMU sends them: no reply.
    fn write32(&mut self, register: u32, value: u32) {
        let body: Vec<u8> = [register, 0, 0, 4, value]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        self.send(REGION_WRITE, 0x10, &body, &[]);
    }

    fn write64(&mut self, low: u32, value: u64) {
        self.write32(low, value as u32);
        self.write32(low + 4, (value >> 32) as u32);
    }

    /// Starts the job of [`guest_memory`] on slot 1.
    fn submit(&mut self) {
        for on in [gpu::L2_PWRON_LO, gpu::SHADER_PWRON_LO] {
            self.write32(on, 1);
        }
        self.write64(
            address_space::offset(0, address_space::TRANSTAB_LO),
            RAM | 7,
        );
        self.write32(address_space::offset(0, address_space::COMMAND), 1);
        self.write32(job::JOB_INT_MASK, u32::MAX);
        self.write64(job_slot::offset(1, job_slot::HEAD_NEXT_LO), 0x8000);
        self.write64(job_slot::offset(1, job_slot::AFFINITY_NEXT_LO), 1);
        self.write32(job_slot::offset(1, job_slot::COMMAND_NEXT), 1);
    }

    /// Waits until a bit of a register is set.
    fn wait_until(&mut self, register: u32, bit: u32) {
        let start = Instant::now();
        while self.read32(register) & bit == 0 {
            assert!(start.elapsed() < Duration::from_secs(30), "{register:#x}");
        }
    }

    /// Tells what the processor did to lines of the first `bytes` of memory.
    fn maintain(&mut self, operation: u32, bytes: u64) {
        self.write32(0xf004, (RAM / 64) as u32);
        self.write32(0xf008, (bytes / 64) as u32);
        let before = self.read32(0xf010);
        self.write32(0xf00c, operation);
        assert_eq!(self.read32(0xf010), before + 1);
    }

    fn map(&mut self, memory: &File) -> Result<Vec<u8>, u32> {
        let range = [32, 3, 0, 0, RAM as u32, 0, RAM_SIZE as u32, 0];
        self.words(DMA_MAP, &range, &[memory.as_fd()])
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Guest memory with page tables (Mali LPAE) that map virtual 0 on to it, and a job at 0x8000 that writes to 0x9000.
fn guest_memory() -> File {
    let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).unwrap());
    memory.set_len(RAM_SIZE).unwrap();
    let put = |at: u64, value: u64| memory.write_all_at(&value.to_le_bytes(), at).unwrap();
    put(0, (RAM + 0x1000) | 3);
    put(0x1000, (RAM + 0x2000) | 3);
    put(0x2000, (RAM + 0x3000) | 3);
    for page in 0..16 {
        put(0x3000 + 8 * page, (RAM + 0x1000 * page) | 1 | 3 << 6);
    }
    put(0x8010, 1 | 2 << 1 | 1 << 16);
    put(0x8020, 0x9000);
    put(0x8028, 7);
    put(0x8030, 0x1122_3344_5566_7788);
    memory
}

fn word(memory: &File, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, at).unwrap();
    u64::from_le_bytes(bytes)
}

fn wait_for(event: &OwnedFd) {
    let mut bytes = [0; 8];
    assert_eq!(rustix::io::read(event, &mut bytes).unwrap(), 8);
}

#[test]
fn a_job_runs_in_guest_memory_and_interrupts() {
    let mut session = Session::start("job");
    let hello = b"\0\0\0\0{\"capabilities\":{}}\0";
    assert_eq!(session.call(VERSION, hello, &[]).unwrap()[..4], [0; 4]);
    let memory = guest_memory();
    session.map(&memory).unwrap();
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    session
        .words(SET_IRQS, &[20, 0x24, 0, 0, 1], &[event.as_fd()])
        .unwrap();

    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    session.submit();
    wait_for(&event);
    assert_eq!(session.read32(job::JOB_INT_STAT), job::done(1));
    assert_eq!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
    assert_eq!(word(&memory, 0x8000) as u32, 1, "status in the header");

    let log = fs::read_to_string(session.folder.join("registers.log")).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], "R 0x0000 0x70930000 GPU_ID");
    assert!(
        lines.contains(&"W 0x18e0 0x00000001 JS1_COMMAND_NEXT"),
        "{log}"
    );

    // The line is still high: unmasking fires again.
    session.words(SET_IRQS, &[20, 0x11, 0, 0, 1], &[]).unwrap();
    wait_for(&event);

    // Memory that is gone is a bus error, not a crash.
    session
        .words(DMA_UNMAP, &[24, 0, RAM as u32, 0, RAM_SIZE as u32, 0], &[])
        .unwrap();
    session.write32(job::JOB_INT_CLEAR, u32::MAX);
    session.words(SET_IRQS, &[20, 0x11, 0, 0, 1], &[]).unwrap();
    session.write32(job_slot::offset(1, job_slot::COMMAND_NEXT), 1);
    session.wait_until(mali_facts::registers::mmu::MMU_INT_RAWSTAT, u32::MAX);
    assert_eq!(
        session.read32(mali_facts::registers::mmu::MMU_INT_RAWSTAT),
        mali_facts::registers::mmu::bus_error(0)
    );
}

#[test]
fn caches_that_are_not_coherent_have_to_be_maintained() {
    let mut session = Session::start_with("apart", &["--non-coherent"]);
    let memory = guest_memory();
    session.map(&memory).unwrap();
    assert_eq!(session.read32(0xf000), 0x4341_4348);
    // Nothing was cleaned: the GPU finds no page table.
    session.submit();
    session.wait_until(mali_facts::registers::mmu::MMU_INT_RAWSTAT, u32::MAX);
    session.write32(
        gpu::GPU_CMD,
        mali_facts::registers::GpuCommand::HardReset as u32,
    );
    session.write32(mali_facts::registers::mmu::MMU_INT_CLEAR, u32::MAX);
    session.write32(job::JOB_INT_CLEAR, u32::MAX);

    session.maintain(1, RAM_SIZE);
    session.submit();
    session.wait_until(job::JOB_INT_RAWSTAT, u32::MAX);
    assert_eq!(session.read32(job::JOB_INT_RAWSTAT), job::done(1));
    assert_ne!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
    session.maintain(2, 0xa000);
    assert_eq!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
    // What is not maintained any more is seen by both.
    session.maintain(4, 0xa000);
    session.write32(job::JOB_INT_CLEAR, u32::MAX);
    memory.write_all_at(&[0; 8], 0x9000).unwrap();
    memory.write_all_at(&[0; 8], 0x8000).unwrap();
    session.submit();
    session.wait_until(job::JOB_INT_RAWSTAT, u32::MAX);
    assert_eq!(word(&memory, 0x9000), 0x1122_3344_5566_7788);
}

#[test]
fn a_gpu_without_power_answers_nothing() {
    let mut session = Session::start_with("power", &["--power-domain"]);
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    session.write32(0xf014, 0);
    assert_eq!((session.read32(0xf014), session.read32(0xf018)), (0, 0));
    assert_eq!(session.read32(gpu::GPU_ID), 0);
    session.write32(gpu::GPU_INT_MASK, 1);
    assert_eq!(session.read32(0xf018), 2);
    session.write32(0xf014, 1);
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
    assert_eq!(session.read32(gpu::GPU_INT_MASK), 0);
    assert_eq!(session.read32(0xf018), 2);
    let mut session = Session::start("no-power");
    session.write32(0xf014, 0);
    assert_eq!(session.read32(0xf000), 0);
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000);
}

#[test]
fn nonsense_is_answered_with_errors() {
    let mut session = Session::start("nonsense");
    for (command, words) in [
        (VERSION, vec![1]),
        (VERSION, vec![]),
        (DMA_MAP, vec![32, 3, 1, 0, 5, 0, 7, 0]),
        (REGION_READ, vec![0, 0, 0, u32::MAX]),
        (REGION_READ, vec![u32::MAX, u32::MAX, 0, 4]),
        (REGION_READ, vec![0, 0, 99, 4]),
        (REGION_WRITE, vec![0, 0, 0, 400, 1]),
        (SET_IRQS, vec![20, 0x24, 77, 0, 1]),
        (SET_IRQS, vec![20, 0xff, 0, 9, 9]),
        (11, vec![0; 4]),
        (999, vec![]),
    ] {
        let memory = guest_memory();
        let fds = if command == DMA_MAP {
            vec![memory.as_fd()]
        } else {
            vec![]
        };
        assert!(
            session.words(command, &words, &fds).is_err(),
            "{command} {words:x?}"
        );
    }
    let memory = guest_memory();
    session.map(&memory).unwrap();
    assert!(session.map(&memory).is_err(), "the same range twice");
    assert_eq!(session.read32(gpu::GPU_ID), 0x7093_0000, "still there");
    // A size that no message has ends the conversation, with an exit code that says so.
    session.stream.write_all(&[0xff; 16]).unwrap();
    assert_eq!(session.server.wait().unwrap().code(), Some(1));
}

#[test]
fn the_server_ends_with_its_guest() {
    let mut session = Session::start("end");
    session.stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(session.server.wait().unwrap().code(), Some(0));
    assert!(!session.folder.join("gpu.sock").exists());
}
