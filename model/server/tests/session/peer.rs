// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's end of the socket.

use std::fs::{self, File};
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mali_facts::registers::{address_space, gpu, job, job_slot};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

pub(crate) const VERSION: u16 = 1;
pub(crate) const DMA_MAP: u16 = 2;
pub(crate) const DMA_UNMAP: u16 = 3;
pub(crate) const SET_IRQS: u16 = 8;
pub(crate) const REGION_READ: u16 = 9;
pub(crate) const REGION_WRITE: u16 = 10;

pub(crate) const RAM: u64 = 0x4000_0000;
pub(crate) const RAM_SIZE: u64 = 0x10_0000;

pub(crate) struct Session {
    pub(crate) server: Child,
    pub(crate) stream: UnixStream,
    pub(crate) folder: PathBuf,
    pub(crate) id: u16,
}

impl Session {
    pub(crate) fn start(name: &str) -> Session {
        Session::start_with(name, &[])
    }

    pub(crate) fn start_with(name: &str, options: &[&str]) -> Session {
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

    pub(crate) fn send(&mut self, command: u16, flags: u32, body: &[u8], fds: &[BorrowedFd<'_>]) {
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

    pub(crate) fn call(
        &mut self,
        command: u16,
        body: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, u32> {
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

    pub(crate) fn words(
        &mut self,
        command: u16,
        words: &[u32],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, u32> {
        let body: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.call(command, &body, fds)
    }

    pub(crate) fn read32(&mut self, register: u32) -> u32 {
        let reply = self.words(REGION_READ, &[register, 0, 0, 4], &[]).unwrap();
        u32::from_le_bytes(reply[16..].try_into().unwrap())
    }

    /// Posted: no reply.
    pub(crate) fn write32(&mut self, register: u32, value: u32) {
        let body: Vec<u8> = [register, 0, 0, 4, value]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        self.send(REGION_WRITE, 0x10, &body, &[]);
    }

    pub(crate) fn write64(&mut self, low: u32, value: u64) {
        self.write32(low, value as u32);
        self.write32(low + 4, (value >> 32) as u32);
    }

    /// The job of [`guest_memory`], on slot 1.
    pub(crate) fn submit(&mut self) {
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

    pub(crate) fn wait_until(&mut self, register: u32, bit: u32) {
        let start = Instant::now();
        while self.read32(register) & bit == 0 {
            assert!(start.elapsed() < Duration::from_secs(30), "{register:#x}");
        }
    }

    pub(crate) fn maintain(&mut self, operation: u32, bytes: u64) {
        self.write32(0xf004, (RAM / 64) as u32);
        self.write32(0xf008, (bytes / 64) as u32);
        let before = self.read32(0xf010);
        self.write32(0xf00c, operation);
        assert_eq!(self.read32(0xf010), before + 1);
    }

    pub(crate) fn map(&mut self, memory: &File) -> Result<Vec<u8>, u32> {
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

/// Mali LPAE maps virtual 0 on to it; a job at 0x8000 writes to 0x9000.
pub(crate) fn guest_memory() -> File {
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

pub(crate) fn word(memory: &File, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, at).unwrap();
    u64::from_le_bytes(bytes)
}

pub(crate) fn wait_for(event: &OwnedFd) {
    let mut bytes = [0; 8];
    assert_eq!(rustix::io::read(event, &mut bytes).unwrap(), 8);
}
