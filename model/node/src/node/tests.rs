// SPDX-License-Identifier: MIT OR Apache-2.0
//! The node as an app sees it.

mod chains;
mod streams;
mod syncs;
mod wrong;

use std::os::fd::RawFd;

use gpureplay_memory::Bus;
use mali_facts::JobType;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::*;
use mali_uapi::panfrost::request::{self as uapi, *};

const VERSION: u32 = 0xc040_6400;
const GEM_CLOSE: u32 = 0x4008_6409;
const GET_CAP: u32 = 0xc010_640c;
const HANDLE_TO_FD: u32 = 0xc00c_642d;
const FD_TO_HANDLE: u32 = 0xc00c_642e;
const SUBMIT: u32 = 0x4028_6440;
const WAIT_BO: u32 = 0x4010_6441;
const CREATE_BO: u32 = 0xc018_6442;
const MMAP_BO: u32 = 0xc010_6443;
const GET_PARAM: u32 = 0xc010_6444;
const GET_BO_OFFSET: u32 = 0xc010_6445;
const MADVISE: u32 = 0xc00c_6448;
const SYNC_CREATE: u32 = 0xc008_64bf;
const SYNC_DESTROY: u32 = 0xc008_64c0;
const SYNC_TO_FD: u32 = 0xc010_64c1;
const FD_TO_SYNC: u32 = 0xc010_64c2;
const SYNC_WAIT: u32 = 0xc020_64c3;
const SYNC_RESET: u32 = 0xc010_64c4;
const MERGE: u32 = 0xc030_3e03;
const FILE_INFO: u32 = 0xc038_3e04;

struct App {
    node: Node,
}

impl App {
    fn new() -> Self {
        Self::of("g52")
    }

    fn of(gpu: &str) -> Self {
        Self {
            node: Node::new(Product::by_name(gpu).unwrap()).unwrap(),
        }
    }

    fn open(&self) -> RawFd {
        self.node.open(true).unwrap()
    }

    fn ask<T: FromBytes + IntoBytes + Immutable>(
        &self,
        fd: RawFd,
        request: u32,
        mut argument: T,
    ) -> Result<T> {
        let address = (&raw mut argument).expose_provenance() as u64;
        self.node.ioctl(fd, request, address).unwrap()?;
        Ok(argument)
    }

    fn create(&self, fd: RawFd, size: u32, flags: u32) -> (u32, u64) {
        let made = CreateBo {
            size,
            flags,
            ..CreateBo::default()
        };
        let made = self.ask(fd, CREATE_BO, made).unwrap();
        (made.handle, made.va)
    }

    fn bus_address(&self, fd: RawFd, handle: u32) -> u64 {
        self.map_offset(fd, handle).unwrap().offset
    }

    fn map_offset(&self, fd: RawFd, handle: u32) -> Result<MmapBo> {
        let place = MmapBo {
            handle,
            ..MmapBo::default()
        };
        self.ask(fd, MMAP_BO, place)
    }

    fn close_object(&self, fd: RawFd, handle: u32) {
        let object = GemClose { handle, pad: 0 };
        self.ask(fd, GEM_CLOSE, object).unwrap();
    }

    fn sync_file(&self, fd: RawFd, handle: u32, flags: u32) -> RawFd {
        let file = SyncobjFd {
            handle,
            flags,
            fd: -1,
            pad: 0,
        };
        self.ask(fd, SYNC_TO_FD, file).unwrap().fd
    }

    fn sync_of(&self, fd: RawFd, handle: u32, flags: u32, file: RawFd) -> u32 {
        let file = SyncobjFd {
            handle,
            flags,
            fd: file,
            pad: 0,
        };
        self.ask(fd, FD_TO_SYNC, file).unwrap().handle
    }

    fn store(&self, address: u64, value: u64) {
        let page = self.node.memory.bus().page(address).unwrap();
        page.store_u64((address % 4096) as usize, value);
    }

    fn load(&self, address: u64) -> u64 {
        let page = self.node.memory.bus().page(address).unwrap();
        page.load_u64((address % 4096) as usize)
    }

    fn write_value_job(&self, at: u64, target: u64, value: u64) {
        let kind = (JobType::WriteValue as u64) << 1 | 1;
        for (offset, word) in [
            (0, 0),
            (8, 0),
            (16, kind | 1 << 16),
            (24, 0),
            (32, target),
            (40, 7),
            (48, value),
        ] {
            self.store(at + offset, word);
        }
    }

    fn sync(&self, fd: RawFd, flags: u32) -> u32 {
        self.ask(fd, SYNC_CREATE, Syncobj { handle: 0, flags })
            .unwrap()
            .handle
    }

    fn submit(&self, fd: RawFd, chain: u64, out_sync: u32, handles: &[u32]) -> Result<Submit> {
        let submit = Submit {
            head: chain,
            out_sync,
            handles: handles.as_ptr().expose_provenance() as u64,
            handle_count: handles.len() as u32,
            ..Submit::default()
        };
        self.ask(fd, SUBMIT, submit)
    }

    fn status(&self, fd: RawFd, sync: u32) -> i32 {
        let file = self.sync_file(fd, sync, 1);
        let mut one = SyncFenceInfo::default();
        let info = SyncFileInfo {
            name: [1; 32],
            fences: 1,
            list: (&raw mut one).expose_provenance() as u64,
            ..SyncFileInfo::default()
        };
        let told = self.ask(file, FILE_INFO, info).unwrap();
        assert_eq!((told.fences, told.status), (1, one.status));
        let driver = match &self.node.model {
            Model::Panfrost(_) => &b"panfrost\0"[..],
            Model::Panthor { .. } => b"panthor\0",
        };
        assert!(one.driver.starts_with(driver), "{:?}", one.driver);
        self.close(file);
        told.status
    }

    fn close(&self, fd: RawFd) {
        let forget = self.node.closing(fd);
        // SAFETY: a descriptor that the test has.
        assert_eq!(unsafe { libc::close(fd) }, 0);
        if let Some(forget) = forget {
            forget(&self.node);
        }
    }
}
