// SPDX-License-Identifier: MIT OR Apache-2.0
//! Panthor's checks.

use super::*;

#[test]
fn operations_of_a_queue_signal_or_spoil_the_space() {
    let own = Streaming::new();
    let sync = own.app.sync(own.fd, 1);
    let handle = own.object(4096, 0);
    let syncs = [signal(sync, 1)];
    let map = VmBindOp {
        flags: MAP_NO_EXECUTE,
        handle,
        va: 0x10_0000,
        size: 4096,
        syncs: array(&syncs),
        ..VmBindOp::default()
    };
    assert_eq!(own.bind(0, &[map]), Err(Errno::INVALID));
    own.bind(BIND_ASYNC, &[map]).unwrap();
    assert_eq!(own.wait(sync, 1), Ok(()));
    own.submit(0, &adds(0x10_0000, 1), &[]).unwrap();
    assert_eq!(own.fatal_queues(), (0, 0));
    let only = VmBindOp {
        flags: BIND_SYNC_ONLY,
        syncs: array(&syncs),
        ..VmBindOp::default()
    };
    own.bind(BIND_ASYNC, &[only]).unwrap();
    let second = VmCreate::default();
    let second = own.app.ask(own.fd, uapi::VM_CREATE.0, second).unwrap().id;
    let foreign = VmBindOp {
        handle: own.object(4096, second),
        ..map
    };
    for wrong in [
        foreign,
        VmBindOp { size: 8192, ..map },
        VmBindOp { va: 1, ..map },
        VmBindOp { handle: 99, ..map },
        VmBindOp { flags: 8, ..map },
        VmBindOp {
            flags: 3 << 28,
            ..map
        },
    ] {
        let wrong = VmBindOp {
            syncs: ObjectArray::default(),
            ..wrong
        };
        assert_eq!(own.bind(0, &[wrong]), Err(Errno::INVALID), "{wrong:x?}");
    }
    let state = || {
        let state = VmGetState {
            vm: own.vm,
            state: 9,
        };
        own.app
            .ask(own.fd, uapi::VM_GET_STATE.0, state)
            .unwrap()
            .state
    };
    assert_eq!(state(), 0);
    let outside = VmBindOp { size: 8192, ..map };
    assert_eq!(own.bind(BIND_ASYNC, &[outside]), Err(Errno::INVALID));
    assert_eq!(state(), 1);
    assert_eq!(own.bind(BIND_ASYNC, &[map]), Err(Errno::INVALID));
}

#[test]
fn groups_and_heaps_are_checked() {
    let own = Streaming::new();
    let queues = [QueueCreate {
        priority: 1,
        pad: [0; 3],
        ring_bytes: 4096,
    }; 9];
    let good = GroupCreate {
        queues: array(&queues[..1]),
        compute_cores: 1,
        compute_mask: 1,
        vm: own.vm,
        ..GroupCreate::default()
    };
    let create = |group| own.app.ask(own.fd, uapi::GROUP_CREATE.0, group);
    create(good).unwrap();
    let ring = [QueueCreate {
        ring_bytes: 4097,
        ..queues[0]
    }];
    for wrong in [
        GroupCreate {
            compute_mask: 2,
            ..good
        },
        GroupCreate {
            compute_cores: 2,
            ..good
        },
        GroupCreate { vm: 7, ..good },
        GroupCreate {
            queues: array(&queues),
            ..good
        },
        GroupCreate {
            queues: array(&ring),
            ..good
        },
        GroupCreate {
            priority: 4,
            ..good
        },
    ] {
        let refused = create(wrong).err();
        assert_eq!(refused, Some(Errno::INVALID), "{wrong:x?}");
    }
    let urgent = GroupCreate {
        priority: 2,
        ..good
    };
    assert_eq!(create(urgent).err(), Some(Errno(libc::EACCES)));
    let heap = TilerHeapCreate {
        vm: own.vm,
        initial_chunks: 5,
        chunk_bytes: 2 << 20,
        max_chunks: 64,
        target_in_flight: 65535,
        ..TilerHeapCreate::default()
    };
    let make = |heap| own.app.ask(own.fd, uapi::TILER_HEAP_CREATE.0, heap);
    let made = make(heap).unwrap();
    assert!(made.context >= 1 << 47 && made.first_chunk > made.context);
    for wrong in [
        TilerHeapCreate {
            initial_chunks: 0,
            ..heap
        },
        TilerHeapCreate {
            initial_chunks: 65,
            ..heap
        },
        TilerHeapCreate {
            chunk_bytes: 64 << 10,
            ..heap
        },
        TilerHeapCreate { vm: 3, ..heap },
    ] {
        assert_eq!(make(wrong).err(), Some(Errno::INVALID), "{wrong:x?}");
    }
    let destroy = TilerHeapDestroy {
        handle: made.handle,
        pad: 0,
    };
    let destroy = || own.app.ask(own.fd, uapi::TILER_HEAP_DESTROY.0, destroy);
    destroy().unwrap();
    assert!(destroy().is_err());
    // Even if another has its number.
    let gone = VmDestroy { id: own.vm, pad: 0 };
    own.app.ask(own.fd, uapi::VM_DESTROY.0, gone).unwrap();
    assert_eq!(own.submit(0, &adds(DATA, 1), &[]), Err(Errno::INVALID));
    let again = VmCreate::default();
    let again = own.app.ask(own.fd, uapi::VM_CREATE.0, again).unwrap();
    assert_eq!(again.id, own.vm);
    assert_eq!(own.submit(0, &adds(DATA, 1), &[]), Err(Errno::INVALID));
}
