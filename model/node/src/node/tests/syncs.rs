// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that wait for others.

use super::*;

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
                    app.close_object(fd, jobs);
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
            timeout_ns: timeout,
            count: syncs.len() as u32,
            flags,
            first: 99,
            pad: 0,
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
        let file = app.sync_file(fd, full, 1);
        let merge = SyncMerge {
            fd: file,
            fence: -1,
            ..SyncMerge::default()
        };
        let merged = app.ask(file, MERGE, merge).unwrap().fence;
        app.sync_of(fd, empty, 1, merged);
        assert_eq!(waiter.join().unwrap(), Ok(0));
        app.close(file);
        app.close(merged);
    });
    let shared = app.sync_file(fd, empty, 0);
    let other = app.open();
    let handle = app.sync_of(other, 0, 0, shared);
    let handles = [handle];
    let array = SyncobjArray {
        handles: handles.as_ptr().expose_provenance() as u64,
        count: 1,
        pad: 0,
    };
    app.ask(other, SYNC_RESET, array).unwrap();
    assert_eq!(wait(&[empty], 0, 0), Err(Errno::INVALID));
    let gone = Syncobj {
        handle: empty,
        flags: 0,
    };
    app.ask(fd, SYNC_DESTROY, gone).unwrap();
    for fd in [shared, other, fd] {
        app.close(fd);
    }
    assert!(app.node.state().syncs.is_empty());
}
