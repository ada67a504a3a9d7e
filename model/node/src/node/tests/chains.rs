// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chains, their files and objects.

use super::*;

#[test]
fn it_says_what_it_is() {
    let app = App::new();
    let fd = app.open();
    let mut name = [0u8; 16];
    let asked = uapi::Version {
        name_length: 16,
        name: name.as_mut_ptr().expose_provenance(),
        ..uapi::Version::default()
    };
    let version = app.ask(fd, VERSION, asked).unwrap();
    assert_eq!(
        (version.major, version.minor, version.name_length),
        (1, 3, 8)
    );
    assert_eq!(&name[..9], b"panfrost\0");
    let parameter = |parameter| {
        let asked = GetParam {
            parameter,
            ..GetParam::default()
        };
        app.ask(fd, GET_PARAM, asked)
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
    let prime = Prime {
        handle: data,
        flags: libc::O_CLOEXEC as u32,
        fd: -1,
    };
    let shared = app.ask(first, HANDLE_TO_FD, prime).unwrap().fd;
    assert_eq!(descriptor::size(shared), Some(4096));
    let prime = Prime {
        fd: shared,
        ..Prime::default()
    };
    let import = |fd| app.ask(fd, FD_TO_HANDLE, prime).unwrap().handle;
    assert_eq!(import(first), data);
    let imported = import(second);
    assert_eq!(import(second), imported);
    assert_ne!(imported, other);
    let place = GetBoOffset {
        handle: imported,
        ..GetBoOffset::default()
    };
    let va = app.ask(second, GET_BO_OFFSET, place).unwrap().va;
    assert_ne!(va, same);
    // Writes the first file's object.
    let (jobs, chain) = app.create(second, 4096, 1);
    app.write_value_job(app.bus_address(second, jobs), va, 77);
    app.submit(second, chain, 0, &[jobs, imported]).unwrap();
    assert_eq!(app.load(app.bus_address(first, data)), 77);
    assert_eq!(app.load(app.bus_address(second, other)), 0);
    app.close(first);
    app.close_object(second, imported);
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
    let refused = app.map_offset(fd, heap);
    assert_eq!(refused.err(), Some(Errno::INVALID));
    let (jobs, chain) = app.create(fd, 4096, 1);
    let sync = app.sync(fd, 0);
    app.write_value_job(app.bus_address(fd, jobs), va + (1 << 20), 3);
    app.submit(fd, chain, sync, &[jobs, heap]).unwrap();
    assert_eq!(app.status(fd, sync), 1);
    app.close(fd);
}
