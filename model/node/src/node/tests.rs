// SPDX-License-Identifier: MIT OR Apache-2.0
//! The node as an app sees it: requests with structures at addresses, as Mesa makes them and as nobody should.

use std::os::fd::RawFd;

use mali_descriptors::JobType;
use mali_memory::Bus;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::*;
use crate::uapi::*;

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
const SYNC_WAIT: u32 = 0xc028_64c3;
const SYNC_RESET: u32 = 0xc010_64c4;
const MERGE: u32 = 0xc030_3e03;
const FILE_INFO: u32 = 0xc038_3e04;

struct App {
    node: Node,
}

impl App {
    fn new() -> Self {
        Self {
            node: Node::new(Profile::by_name("g52").unwrap()).unwrap(),
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

    /// Handle and GPU address.
    fn create(&self, fd: RawFd, size: u32, flags: u32) -> (u32, u64) {
        let made = self
            .ask(
                fd,
                CREATE_BO,
                CreateBo {
                    size,
                    flags,
                    handle: 0,
                    pad: 0,
                    offset: 0,
                },
            )
            .unwrap();
        (made.handle, made.offset)
    }

    fn bus_address(&self, fd: RawFd, handle: u32) -> u64 {
        self.ask(
            fd,
            MMAP_BO,
            MmapBo {
                handle,
                flags: 0,
                offset: 0,
            },
        )
        .unwrap()
        .offset
    }

    fn store(&self, address: u64, value: u64) {
        let page = self.node.memory.bus().page(address).unwrap();
        page.store_u64((address % 4096) as usize, value);
    }

    fn load(&self, address: u64) -> u64 {
        let page = self.node.memory.bus().page(address).unwrap();
        page.load_u64((address % 4096) as usize)
    }

    /// Writes a job at the start of an object: it stores `value` at GPU address `target`.
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
            chain,
            in_syncs: 0,
            in_sync_count: 0,
            out_sync,
            handles: handles.as_ptr().expose_provenance() as u64,
            handle_count: handles.len() as u32,
            requirements: 0,
        };
        self.ask(fd, SUBMIT, submit)
    }

    fn status(&self, fd: RawFd, sync: u32) -> i32 {
        let file = self
            .ask(
                fd,
                SYNC_TO_FD,
                SyncobjFd {
                    handle: sync,
                    flags: 1,
                    fd: -1,
                    pad: 0,
                },
            )
            .unwrap()
            .fd;
        let mut one = SyncFenceInfo {
            object: [0; 32],
            driver: [0; 32],
            status: 0,
            flags: 0,
            timestamp: 0,
        };
        let info = (&raw mut one).expose_provenance() as u64;
        let told = self
            .ask(
                file,
                FILE_INFO,
                SyncFileInfo {
                    name: [1; 32],
                    status: 0,
                    flags: 0,
                    fences: 1,
                    pad: 0,
                    info,
                },
            )
            .unwrap();
        assert_eq!((told.fences, told.status), (1, one.status));
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

#[test]
fn it_says_what_it_is() {
    let app = App::new();
    let fd = app.open();
    let mut name = [0u8; 16];
    let place = name.as_mut_ptr().expose_provenance() as u64;
    let asked = uapi::Version {
        major: 0,
        minor: 0,
        patch: 0,
        pad: 0,
        name_length: 16,
        name: place,
        date_length: 0,
        date: 0,
        text_length: 0,
        text: 0,
    };
    let version = app.ask(fd, VERSION, asked).unwrap();
    assert_eq!(
        (version.major, version.minor, version.name_length),
        (1, 3, 8)
    );
    assert_eq!(&name[..9], b"panfrost\0");
    let parameter = |parameter| {
        app.ask(
            fd,
            GET_PARAM,
            GetParam {
                parameter,
                pad: 0,
                value: 0,
            },
        )
    };
    // As Linux prints them for this GPU.
    assert_eq!(parameter(0).unwrap().value, 0x7212);
    assert_eq!(parameter(6).unwrap().value, 0xff);
    assert_eq!(parameter(43).err(), Some(Errno::INVALID));
    let capability = |which| app.ask(fd, GET_CAP, Capability { which, value: 9 });
    assert_eq!(capability(0x13).unwrap().value, 1);
    assert_eq!(capability(0x14).unwrap().value, 0);
    assert_eq!(capability(1).err(), Some(Errno(libc::EOPNOTSUPP)));
    app.close(fd);
    assert!(app.node.ioctl(fd, VERSION, 0).is_none());
}

#[test]
fn a_chain_runs_and_a_bad_one_fails_alone() {
    let app = App::new();
    let fd = app.open();
    let (jobs, chain) = app.create(fd, 4096, 1);
    let (data, target) = app.create(fd, 8192, 1);
    let (at, out) = (app.bus_address(fd, jobs), app.bus_address(fd, data));
    let sync = app.sync(fd, 0);
    app.write_value_job(at, target + 4104, 0x1234_5678_9abc);
    app.submit(fd, chain, sync, &[jobs, data]).unwrap();
    assert_eq!(app.load(out + 4104), 0x1234_5678_9abc);
    // The header says that the job is done.
    assert_eq!(app.load(at) as u32, 1);
    assert_eq!(app.status(fd, sync), 1);

    app.write_value_job(at, 0x7000_0000, 1);
    app.submit(fd, chain, sync, &[jobs]).unwrap();
    assert_eq!(app.status(fd, sync), -libc::EINVAL);
    app.submit(fd, 0xdead_0000, sync, &[]).unwrap();
    assert_eq!(app.status(fd, sync), -libc::EINVAL);

    app.write_value_job(at, target, 5);
    app.submit(fd, chain, sync, &[jobs, data]).unwrap();
    assert_eq!((app.load(out), app.status(fd, sync)), (5, 1));
    app.close(fd);
}

#[test]
fn files_have_address_spaces_and_share_what_they_export() {
    let app = App::new();
    let (first, second) = (app.open(), app.open());
    let (data, target) = app.create(first, 4096, 1);
    let (other, same) = app.create(second, 4096, 1);
    assert_eq!(target, same);
    let shared = app
        .ask(
            first,
            HANDLE_TO_FD,
            Prime {
                handle: data,
                flags: libc::O_CLOEXEC as u32,
                fd: -1,
            },
        )
        .unwrap()
        .fd;
    assert_eq!(descriptor::size(shared), Some(4096));
    let import = |fd| {
        app.ask(
            fd,
            FD_TO_HANDLE,
            Prime {
                handle: 0,
                flags: 0,
                fd: shared,
            },
        )
        .unwrap()
        .handle
    };
    assert_eq!(import(first), data);
    let imported = import(second);
    assert_eq!(import(second), imported);
    assert_ne!(imported, other);
    let va = app
        .ask(
            second,
            GET_BO_OFFSET,
            GetBoOffset {
                handle: imported,
                pad: 0,
                offset: 0,
            },
        )
        .unwrap()
        .offset;
    assert_ne!(va, same);
    // A chain of the second file writes the first one's object, which both have closed meanwhile.
    let (jobs, chain) = app.create(second, 4096, 1);
    app.write_value_job(app.bus_address(second, jobs), va, 77);
    app.submit(second, chain, 0, &[jobs, imported]).unwrap();
    assert_eq!(app.load(app.bus_address(first, data)), 77);
    assert_eq!(app.load(app.bus_address(second, other)), 0);
    app.close(first);
    app.ask(
        second,
        GEM_CLOSE,
        GemClose {
            handle: imported,
            pad: 0,
        },
    )
    .unwrap();
    let again = import(second);
    assert_eq!(app.load(app.bus_address(second, again)), 77);
    app.close(second);
    app.close(shared);
}

#[test]
fn copies_of_a_descriptor_are_one_file() {
    let app = App::new();
    let fd = app.open();
    let (handle, _) = app.create(fd, 4096, 0);
    // SAFETY: copies a descriptor of the test.
    let copy = unsafe { libc::dup(fd) };
    app.close(fd);
    let place = app.bus_address(copy, handle);
    let (file, offset) = app.node.mapped(copy, 4096, place as i64).unwrap().unwrap();
    assert_eq!(
        (offset, descriptor::size(file.as_raw_fd())),
        (0, Some(4096))
    );
    for (length, offset) in [
        (4097, place as i64),
        (4096, place as i64 + 4096),
        (1, 0),
        (1, -1),
        (usize::MAX, place as i64),
    ] {
        let refused = app.node.mapped(copy, length, offset).unwrap();
        assert_eq!(refused.err(), Some(Errno::INVALID), "{length} {offset:#x}");
    }
    drop(file);
    app.close(copy);
    assert!(app.node.state().files.is_empty());
    assert!(app.node.memory.bus().page(place).is_none());
}

#[test]
fn code_runs_only_where_it_may_and_heaps_cannot_be_mapped() {
    let app = App::new();
    let fd = app.open();
    let (heap, va) = app.create(fd, 1, 3);
    assert_eq!(va % (2 << 20), 0);
    let refused = app.ask(
        fd,
        MMAP_BO,
        MmapBo {
            handle: heap,
            flags: 0,
            offset: 0,
        },
    );
    assert_eq!(refused.err(), Some(Errno::INVALID));
    // The GPU reaches it all the same.
    let (jobs, chain) = app.create(fd, 4096, 1);
    let sync = app.sync(fd, 0);
    app.write_value_job(app.bus_address(fd, jobs), va + (1 << 20), 3);
    app.submit(fd, chain, sync, &[jobs, heap]).unwrap();
    assert_eq!(app.status(fd, sync), 1);
    app.close(fd);
}

#[test]
fn two_threads_work_in_two_files() {
    let app = App::new();
    std::thread::scope(|scope| {
        for number in 0..2u64 {
            let app = &app;
            scope.spawn(move || {
                let fd = app.open();
                let (data, target) = app.create(fd, 4096, 1);
                for round in 0..50 {
                    let (jobs, chain) = app.create(fd, 4096, 1);
                    app.write_value_job(app.bus_address(fd, jobs), target, round << 1 | number);
                    app.submit(fd, chain, 0, &[jobs, data]).unwrap();
                    assert_eq!(app.load(app.bus_address(fd, data)), round << 1 | number);
                    app.ask(
                        fd,
                        GEM_CLOSE,
                        GemClose {
                            handle: jobs,
                            pad: 0,
                        },
                    )
                    .unwrap();
                }
                app.close(fd);
            });
        }
    });
}

#[test]
fn waits_end_by_a_fence_or_by_the_clock() {
    let app = App::new();
    let fd = app.open();
    let (empty, full) = (app.sync(fd, 0), app.sync(fd, 1));
    let wait = |syncs: &[u32], flags, timeout| {
        let handles = syncs.as_ptr().expose_provenance() as u64;
        let wait = SyncobjWait {
            handles,
            timeout,
            count: syncs.len() as u32,
            flags,
            first: 99,
            pad: 0,
            deadline: 0,
        };
        app.ask(fd, SYNC_WAIT, wait).map(|done| done.first)
    };
    assert_eq!(wait(&[full], 0, 0), Ok(0));
    assert_eq!(wait(&[empty], 0, i64::MAX), Err(Errno::INVALID));
    assert_eq!(wait(&[empty, full], 2, 0), Ok(1));
    assert_eq!(wait(&[empty, full], 3, 1), Err(Errno(libc::ETIME)));
    assert_eq!(wait(&[empty, 99], 3, 1), Err(Errno::NO_ENTRY));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| wait(&[full, empty], 3, i64::MAX));
        std::thread::sleep(std::time::Duration::from_millis(20));
        // The fence comes by a sync file.
        let file = app
            .ask(
                fd,
                SYNC_TO_FD,
                SyncobjFd {
                    handle: full,
                    flags: 1,
                    fd: -1,
                    pad: 0,
                },
            )
            .unwrap()
            .fd;
        let merged = app
            .ask(
                file,
                MERGE,
                SyncMerge {
                    name: [0; 32],
                    fd: file,
                    fence: -1,
                    flags: 0,
                    pad: 0,
                },
            )
            .unwrap()
            .fence;
        app.ask(
            fd,
            FD_TO_SYNC,
            SyncobjFd {
                handle: empty,
                flags: 1,
                fd: merged,
                pad: 0,
            },
        )
        .unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(0));
        app.close(file);
        app.close(merged);
    });
    // The object itself, by a descriptor, in another file.
    let shared = app
        .ask(
            fd,
            SYNC_TO_FD,
            SyncobjFd {
                handle: empty,
                flags: 0,
                fd: -1,
                pad: 0,
            },
        )
        .unwrap()
        .fd;
    let other = app.open();
    let handle = app
        .ask(
            other,
            FD_TO_SYNC,
            SyncobjFd {
                handle: 0,
                flags: 0,
                fd: shared,
                pad: 0,
            },
        )
        .unwrap()
        .handle;
    app.ask(
        other,
        SYNC_RESET,
        SyncobjArray {
            handles: [handle].as_ptr().expose_provenance() as u64,
            count: 1,
            pad: 0,
        },
    )
    .unwrap();
    assert_eq!(wait(&[empty], 0, 0), Err(Errno::INVALID));
    app.ask(
        fd,
        SYNC_DESTROY,
        Syncobj {
            handle: empty,
            flags: 0,
        },
    )
    .unwrap();
    for fd in [shared, other, fd] {
        app.close(fd);
    }
    assert!(app.node.state().syncs.is_empty());
}

/// What the kernel refuses is refused by the same number.
#[test]
fn wrong_arguments_are_refused() {
    let app = App::new();
    let fd = app.open();
    let (handle, va) = app.create(fd, 4096, 1);
    let no_fence = app.sync(fd, 0);
    let create = |size, flags, pad| {
        app.ask(
            fd,
            CREATE_BO,
            CreateBo {
                size,
                flags,
                handle: 0,
                pad,
                offset: 0,
            },
        )
        .err()
    };
    for (size, flags, pad) in [(0, 0, 0), (4096, 4, 0), (4096, 2, 0), (4096, 0, 1)] {
        assert_eq!(
            create(size, flags, pad),
            Some(Errno::INVALID),
            "{size} {flags} {pad}"
        );
    }
    // All of the address space but what is taken.
    assert_eq!(create(u32::MAX, 1, 0), Some(Errno::NO_MEMORY));
    let missing = 77;
    assert_eq!(
        app.ask(
            fd,
            GEM_CLOSE,
            GemClose {
                handle: missing,
                pad: 0
            }
        )
        .err(),
        Some(Errno::INVALID)
    );
    assert_eq!(
        app.ask(
            fd,
            MMAP_BO,
            MmapBo {
                handle: missing,
                flags: 0,
                offset: 0
            }
        )
        .err(),
        Some(Errno::NO_ENTRY)
    );
    assert_eq!(
        app.ask(
            fd,
            MMAP_BO,
            MmapBo {
                handle,
                flags: 1,
                offset: 0
            }
        )
        .err(),
        Some(Errno::INVALID)
    );
    assert_eq!(
        app.ask(
            fd,
            GET_BO_OFFSET,
            GetBoOffset {
                handle: missing,
                pad: 0,
                offset: 0
            }
        )
        .err(),
        Some(Errno::NO_ENTRY)
    );
    assert_eq!(
        app.ask(
            fd,
            WAIT_BO,
            WaitBo {
                handle: missing,
                pad: 0,
                timeout: 0
            }
        )
        .err(),
        Some(Errno::NO_ENTRY)
    );
    assert_eq!(
        app.ask(
            fd,
            MADVISE,
            Madvise {
                handle: missing,
                advice: 0,
                retained: 0
            }
        )
        .err(),
        Some(Errno::NO_ENTRY)
    );
    assert_eq!(
        app.ask(
            fd,
            HANDLE_TO_FD,
            Prime {
                handle,
                flags: 1,
                fd: 0
            }
        )
        .err(),
        Some(Errno::INVALID)
    );
    assert_eq!(
        app.ask(
            fd,
            HANDLE_TO_FD,
            Prime {
                handle: missing,
                flags: 0,
                fd: 0
            }
        )
        .err(),
        Some(Errno::NO_ENTRY)
    );
    assert_eq!(
        app.ask(
            fd,
            FD_TO_HANDLE,
            Prime {
                handle: 0,
                flags: 0,
                fd: -1
            }
        )
        .err(),
        Some(Errno(libc::EBADF))
    );
    assert_eq!(
        app.ask(
            fd,
            FD_TO_HANDLE,
            Prime {
                handle: 0,
                flags: 0,
                fd: 0
            }
        )
        .err(),
        Some(Errno::INVALID)
    );
    assert_eq!(
        app.ask(
            fd,
            FD_TO_HANDLE,
            Prime {
                handle: 0,
                flags: 0,
                fd
            }
        )
        .err(),
        Some(Errno::INVALID)
    );
    assert_eq!(
        app.ask(
            fd,
            FD_TO_SYNC,
            SyncobjFd {
                handle: 0,
                flags: 0,
                fd,
                pad: 0
            }
        )
        .err(),
        Some(Errno::INVALID)
    );

    let good = Submit {
        chain: va,
        in_syncs: 0,
        in_sync_count: 0,
        out_sync: 0,
        handles: 0,
        handle_count: 0,
        requirements: 0,
    };
    let no_fences = [no_fence; 4];
    let pending = no_fences.as_ptr().expose_provenance() as u64;
    for (submit, error) in [
        (Submit { chain: 0, ..good }, libc::EINVAL),
        (
            Submit {
                requirements: 4,
                ..good
            },
            libc::EINVAL,
        ),
        (
            Submit {
                out_sync: missing,
                ..good
            },
            libc::ENODEV,
        ),
        (
            Submit {
                handle_count: 1,
                handles: 8,
                ..good
            },
            libc::EFAULT,
        ),
        (
            Submit {
                handle_count: u32::MAX,
                handles: u64::MAX - 2,
                ..good
            },
            libc::EFAULT,
        ),
        (
            Submit {
                in_sync_count: 1,
                in_syncs: 0,
                ..good
            },
            libc::EFAULT,
        ),
        (
            Submit {
                in_sync_count: u32::MAX,
                in_syncs: pending,
                ..good
            },
            libc::EINVAL,
        ),
        (
            Submit {
                handle_count: 1,
                handles: [missing].as_ptr().expose_provenance() as u64,
                ..good
            },
            libc::ENOENT,
        ),
    ] {
        assert_eq!(
            app.ask(fd, SUBMIT, submit).err(),
            Some(Errno(error)),
            "{submit:?}"
        );
    }
    app.close(fd);
}

/// Every number, with arguments that are nowhere and arguments of any bits: an answer, and the node works on.
#[test]
fn nothing_that_an_app_asks_breaks_it() {
    let app = App::new();
    let fd = app.open();
    let fence = app
        .ask(
            fd,
            SYNC_TO_FD,
            SyncobjFd {
                handle: app.sync(fd, 1),
                flags: 1,
                fd: -1,
                pad: 0,
            },
        )
        .unwrap()
        .fd;
    for (fd, class) in [(fd, b'd'), (fence, b'>'), (fd, b'>'), (fence, b'd')] {
        for number in 0..=255u32 {
            for direction in 0..4u32 {
                for size in [0, 1, 8, 12, 64, 0x3fff] {
                    let request = direction << 30 | size << 16 | u32::from(class) << 8 | number;
                    for address in [0, 1, u64::MAX, u64::MAX - 7] {
                        let _ = app.node.ioctl(fd, request, address).unwrap();
                    }
                    for byte in [0x00, 0x01, 0x7f, 0xff] {
                        let mut argument = vec![byte; 0x4000];
                        let address = argument.as_mut_ptr().expose_provenance() as u64;
                        let _ = app.node.ioctl(fd, request, address).unwrap();
                    }
                }
            }
        }
    }
    let (handle, va) = app.create(fd, 4096, 1);
    let sync = app.sync(fd, 0);
    app.write_value_job(app.bus_address(fd, handle), va + 1024, 6);
    app.submit(fd, va, sync, &[handle]).unwrap();
    assert_eq!(app.status(fd, sync), 1);
}
