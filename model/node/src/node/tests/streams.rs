// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panthor's node, a Mali-G610.

use mali_uapi::panfrost::request::{SyncobjTimelineArray, SyncobjTimelineWait, SyncobjTransfer};
use mali_uapi::panthor::{self as uapi, *};

use super::*;

mod checks;

const TIMELINE_WAIT: u32 = 0xc028_64ca;
const QUERY_POINTS: u32 = 0xc018_64cb;
const TRANSFER: u32 = 0xc020_64cc;
const TIMELINE_SIGNAL: u32 = 0xc018_64cd;

const CODE: u64 = 0x7fff_fff0_0000;
const DATA: u64 = 0x7fff_ffe0_0000;

struct Streaming {
    app: App,
    fd: RawFd,
    vm: u32,
    group: u32,
    /// Bus addresses.
    code: u64,
    data: u64,
}

fn array<T>(items: &[T]) -> ObjectArray {
    ObjectArray {
        stride: size_of::<T>() as u32,
        count: items.len() as u32,
        array: items.as_ptr().expose_provenance() as u64,
    }
}

fn app() -> (App, RawFd) {
    let app = App::of("g610");
    let fd = app.open();
    (app, fd)
}

impl Streaming {
    fn new() -> Self {
        let (app, fd) = app();
        let vm = VmCreate {
            user_range: 1 << 47,
            ..VmCreate::default()
        };
        let vm = app.ask(fd, uapi::VM_CREATE.0, vm).unwrap();
        assert_eq!((vm.id, vm.user_range), (1, 1 << 47));
        let queues = [QueueCreate {
            priority: 1,
            pad: [0; 3],
            ring_bytes: 64 << 10,
        }; 2];
        let group = GroupCreate {
            queues: array(&queues),
            compute_cores: 4,
            fragment_cores: 4,
            tilers: 1,
            priority: 1,
            compute_mask: 0x5_0005,
            fragment_mask: 0x5_0005,
            tiler_mask: 1,
            vm: vm.id,
            ..GroupCreate::default()
        };
        let group = app.ask(fd, uapi::GROUP_CREATE.0, group).unwrap().handle;
        let vm = vm.id;
        let mut own = Self {
            app,
            fd,
            vm,
            group,
            code: 0,
            data: 0,
        };
        own.code = own.mapped(CODE, MAP_READ_ONLY);
        own.data = own.mapped(DATA, MAP_NO_EXECUTE);
        own
    }

    fn object(&self, size: u64, exclusive_vm: u32) -> u32 {
        let made = BoCreate {
            size,
            exclusive_vm,
            ..BoCreate::default()
        };
        let made = self.app.ask(self.fd, uapi::BO_CREATE.0, made).unwrap();
        made.handle
    }

    /// 8 KiB; returns the bus address.
    fn mapped(&self, va: u64, flags: u32) -> u64 {
        let handle = self.object(8192, self.vm);
        let map = VmBindOp {
            flags,
            handle,
            va,
            size: 8192,
            ..VmBindOp::default()
        };
        self.bind(0, &[map]).unwrap();
        let place = BoMmapOffset {
            handle,
            ..BoMmapOffset::default()
        };
        let place = self
            .app
            .ask(self.fd, uapi::BO_MMAP_OFFSET.0, place)
            .unwrap();
        place.offset
    }

    fn bind(&self, flags: u32, operations: &[VmBindOp]) -> Result<()> {
        let bind = VmBind {
            vm: self.vm,
            flags,
            operations: array(operations),
        };
        self.app.ask(self.fd, uapi::VM_BIND.0, bind).map(drop)
    }

    fn submit(&self, queue: u32, words: &[u64], syncs: &[SyncOp]) -> Result<()> {
        for (at, word) in (self.code..).step_by(8).zip(words) {
            self.app.store(at, *word);
        }
        let submit = [QueueSubmit {
            queue,
            bytes: 8 * words.len() as u32,
            address: if words.is_empty() { 0 } else { CODE },
            syncs: array(syncs),
            ..QueueSubmit::default()
        }];
        let submit = GroupSubmit {
            group: self.group,
            pad: 0,
            submits: array(&submit),
        };
        self.app
            .ask(self.fd, uapi::GROUP_SUBMIT.0, submit)
            .map(drop)
    }

    fn fatal_queues(&self) -> (u32, u32) {
        let state = GroupGetState {
            group: self.group,
            ..GroupGetState::default()
        };
        let state = self
            .app
            .ask(self.fd, uapi::GROUP_GET_STATE.0, state)
            .unwrap();
        (state.state, state.fatal_queues)
    }

    fn wait(&self, sync: u32, point: u64) -> Result<()> {
        let (handles, points) = ([sync], [point]);
        let wait = SyncobjTimelineWait {
            handles: handles.as_ptr().expose_provenance() as u64,
            points: points.as_ptr().expose_provenance() as u64,
            timeout_ns: 0,
            count: 1,
            flags: 1,
            ..SyncobjTimelineWait::default()
        };
        self.app.ask(self.fd, TIMELINE_WAIT, wait).map(drop)
    }
}

/// d2 = an address, d4 = a number; SYNC_ADD64.
fn adds(address: u64, number: u64) -> [u64; 3] {
    [
        1 << 56 | 2 << 48 | address,
        1 << 56 | 4 << 48 | number,
        0x33 << 56 | 2 << 40 | 4 << 32,
    ]
}

fn signal(handle: u32, point: u64) -> SyncOp {
    SyncOp {
        flags: SYNC_SIGNAL | SYNC_TIMELINE,
        handle,
        point,
    }
}

fn waits(handle: u32, point: u64) -> SyncOp {
    SyncOp {
        flags: SYNC_TIMELINE,
        handle,
        point,
    }
}

#[test]
fn the_node_is_panthors_and_tells_of_a_g610() {
    let (app, fd) = app();
    let mut name = [0u8; 16];
    let version = uapi_version(&mut name);
    let version = app.ask(fd, VERSION, version).unwrap();
    assert_eq!((version.major, version.minor), (1, 2));
    assert_eq!(&name[..version.name_length], b"panthor");
    let mut info = GpuInfo::default();
    let query = |kind, size, pointer| {
        let query = DevQuery {
            kind,
            size,
            pointer,
        };
        app.ask(fd, uapi::DEV_QUERY.0, query)
    };
    assert_eq!(query(0, 0, 0).unwrap().size, size_of::<GpuInfo>() as u32);
    let place = (&raw mut info).expose_provenance() as u64;
    query(0, size_of::<GpuInfo>() as u32, place).unwrap();
    assert_eq!((info.gpu_id, info.csf_id), (0xa867_0005, 0x040a_0412));
    assert_eq!((info.shader_present, info.max_threads), (0x5_0005, 2048));
    let mut csif = CsifInfo::default();
    let place = (&raw mut csif).expose_provenance() as u64;
    query(1, 24, place).unwrap();
    assert_eq!(
        (csif.groups, csif.registers, csif.kernel_registers),
        (8, 96, 4)
    );
    for (kind, size) in [(0, 95), (1, 20), (2, 8), (3, 3), (4, 100)] {
        let answer = query(kind, size, place);
        assert_eq!(answer.err(), Some(Errno::INVALID), "{kind}");
    }
    assert_eq!(query(0, 104, 8).err(), Some(Errno::FAULT));
    let (page, offset) = app.node.mapped(fd, 4096, 1 << 56).unwrap().unwrap();
    assert_eq!(
        (descriptor::size(page.as_raw_fd()), offset),
        (Some(4096), 0)
    );
    assert!(app.node.mapped(fd, 8192, 1 << 56).unwrap().is_err());
    let create = mali_uapi::panfrost::request::CreateBo::default();
    assert_eq!(app.ask(fd, CREATE_BO, create).err(), Some(Errno::INVALID));
}

fn uapi_version(name: &mut [u8]) -> mali_uapi::panfrost::request::Version {
    mali_uapi::panfrost::request::Version {
        name_length: name.len(),
        name: name.as_mut_ptr().expose_provenance(),
        ..mali_uapi::panfrost::request::Version::default()
    }
}

#[test]
fn streams_run_and_reach_points_of_time_lines() {
    let own = Streaming::new();
    let sync = own.app.sync(own.fd, 1);
    assert_eq!(own.wait(sync, 1), Err(Errno::INVALID));
    own.app.store(own.data, 40);
    own.submit(0, &adds(DATA, 2), &[signal(sync, 1)]).unwrap();
    assert_eq!(own.app.load(own.data), 42);
    assert_eq!(own.app.status(own.fd, sync), 1);
    assert_eq!(
        (own.wait(sync, 1), own.wait(sync, 2)),
        (Ok(()), Err(Errno::INVALID))
    );
    let both = [waits(sync, 1), signal(sync, 2)];
    own.submit(1, &adds(DATA, 1), &both).unwrap();
    assert_eq!(own.app.load(own.data), 43);
    // A point that nobody submitted is refused, not waited for; submissions without a stream only signal.
    let early = own.submit(0, &adds(DATA, 1), &[waits(sync, 9)]);
    assert_eq!(early, Err(Errno::INVALID));
    own.submit(0, &[], &[waits(sync, 2), signal(sync, 5)])
        .unwrap();
    assert_eq!(own.app.load(own.data), 43);
    let (handles, mut points) = ([sync], [0u64]);
    let all = SyncobjTimelineArray {
        handles: handles.as_ptr().expose_provenance() as u64,
        points: points.as_mut_ptr().expose_provenance() as u64,
        count: 1,
        flags: 0,
    };
    own.app.ask(own.fd, QUERY_POINTS, all).unwrap();
    assert_eq!(points, [5]);
    let other = own.app.sync(own.fd, 0);
    let transfer = SyncobjTransfer {
        source: sync,
        target: other,
        source_point: 5,
        target_point: 3,
        ..SyncobjTransfer::default()
    };
    own.app.ask(own.fd, TRANSFER, transfer).unwrap();
    assert_eq!(
        (own.wait(other, 3), own.wait(other, 4)),
        (Ok(()), Err(Errno::INVALID))
    );
    points = [8];
    own.app.ask(own.fd, TIMELINE_SIGNAL, all).unwrap();
    assert_eq!((points, own.wait(sync, 8)), ([8], Ok(())));
    let far = SyncobjTimelineArray {
        points: u64::MAX - 3,
        ..all
    };
    for request in [QUERY_POINTS, TIMELINE_SIGNAL] {
        let answer = own.app.ask(own.fd, request, far);
        assert_eq!(answer.err(), Some(Errno::FAULT));
    }
}

#[test]
fn a_fault_ends_the_group_and_no_other() {
    let own = Streaming::new();
    let sync = own.app.sync(own.fd, 0);
    let signals = [SyncOp {
        flags: SYNC_SIGNAL,
        handle: sync,
        point: 0,
    }];
    own.submit(1, &adds(CODE + 4096, 1), &signals).unwrap();
    assert!(own.app.status(own.fd, sync) < 0);
    assert_eq!(own.fatal_queues(), (GROUP_FATAL_FAULT, 0b10));
    assert_eq!(own.submit(0, &adds(DATA, 1), &[]), Err(Errno::INVALID));
    let other = Streaming::new();
    other.submit(0, &adds(DATA, 1), &[]).unwrap();
    assert_eq!(
        (other.app.load(other.data), other.fatal_queues()),
        (1, (0, 0))
    );
    let unmap = VmBindOp {
        flags: BIND_UNMAP,
        va: DATA,
        size: 4096,
        ..VmBindOp::default()
    };
    other.bind(0, &[unmap]).unwrap();
    other.submit(0, &adds(DATA + 4096, 1), &[]).unwrap();
    assert_eq!(other.app.load(other.data + 4096), 1);
    other.submit(0, &adds(DATA, 1), &[]).unwrap();
    assert_eq!(other.fatal_queues(), (GROUP_FATAL_FAULT, 1));
}
