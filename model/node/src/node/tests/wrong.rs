// SPDX-License-Identifier: MIT OR Apache-2.0
//! Wrong requests.

use super::*;

macro_rules! refused {
    ($app:ident, $fd:ident; $($request:ident, $argument:expr => $error:expr;)*) => {$(
        let argument = $argument;
        let refused = $app.ask($fd, $request, argument).err();
        assert_eq!(refused, Some($error), "{argument:?}");
    )*};
}

#[test]
fn wrong_arguments_are_refused() {
    let app = App::new();
    let fd = app.open();
    let (handle, va) = app.create(fd, 4096, 1);
    let no_fence = app.sync(fd, 0);
    let create = |size, flags, pad| {
        let wrong = CreateBo {
            size,
            flags,
            pad,
            ..CreateBo::default()
        };
        app.ask(fd, CREATE_BO, wrong).err()
    };
    for (size, flags, pad) in [(0, 0, 0), (4096, 4, 0), (4096, 2, 0), (4096, 0, 1)] {
        let refused = create(size, flags, pad);
        assert_eq!(refused, Some(Errno::INVALID), "{size} {flags} {pad}");
    }
    // All free address space.
    assert_eq!(create(u32::MAX, 1, 0), Some(Errno::NO_MEMORY));
    let missing = 77;
    refused! { app, fd;
        GEM_CLOSE, GemClose { handle: missing, pad: 0 } => Errno::INVALID;
        MMAP_BO, MmapBo { handle: missing, flags: 0, offset: 0 } => Errno::NO_ENTRY;
        MMAP_BO, MmapBo { handle, flags: 1, offset: 0 } => Errno::INVALID;
        GET_BO_OFFSET, GetBoOffset { handle: missing, pad: 0, va: 0 } => Errno::NO_ENTRY;
        WAIT_BO, WaitBo { handle: missing, pad: 0, timeout_ns: 0 } => Errno::NO_ENTRY;
        MADVISE, Madvise { handle: missing, advice: 0, retained: 0 } => Errno::NO_ENTRY;
        HANDLE_TO_FD, Prime { handle, flags: 1, fd: 0 } => Errno::INVALID;
        HANDLE_TO_FD, Prime { handle: missing, flags: 0, fd: 0 } => Errno::NO_ENTRY;
        FD_TO_HANDLE, Prime { handle: 0, flags: 0, fd: -1 } => Errno(libc::EBADF);
        FD_TO_HANDLE, Prime { handle: 0, flags: 0, fd: 0 } => Errno::INVALID;
        FD_TO_HANDLE, Prime { handle: 0, flags: 0, fd } => Errno::INVALID;
        FD_TO_SYNC, SyncobjFd { handle: 0, flags: 0, fd, pad: 0 } => Errno::INVALID;
    }

    let good = Submit {
        head: va,
        ..Submit::default()
    };
    let no_fences = [no_fence; 4];
    let pending = no_fences.as_ptr().expose_provenance() as u64;
    let missing_handle = [missing];
    let unknown = missing_handle.as_ptr().expose_provenance() as u64;
    refused! { app, fd;
        SUBMIT, Submit { head: 0, ..good } => Errno(libc::EINVAL);
        SUBMIT, Submit { requirements: 4, ..good } => Errno(libc::EINVAL);
        SUBMIT, Submit { out_sync: missing, ..good } => Errno(libc::ENODEV);
        SUBMIT, Submit { handle_count: 1, handles: 8, ..good } => Errno(libc::EFAULT);
        SUBMIT, Submit { handle_count: u32::MAX, handles: u64::MAX - 2, ..good } => Errno(libc::EFAULT);
        SUBMIT, Submit { in_sync_count: 1, in_syncs: 0, ..good } => Errno(libc::EFAULT);
        SUBMIT, Submit { in_sync_count: 4, in_syncs: pending, ..good } => Errno(libc::EINVAL);
        SUBMIT, Submit { handle_count: 1, handles: unknown, ..good } => Errno(libc::ENOENT);
    }
    app.close(fd);
}

#[test]
fn nothing_that_an_app_asks_breaks_it() {
    let app = App::new();
    let fd = app.open();
    let fence = app.sync_file(fd, app.sync(fd, 1), 1);
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
