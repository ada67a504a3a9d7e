// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recorder on panthor: streams, and unmapped objects.

use mali_uapi::panthor::{self, BoCreate, BoMmapOffset, QueueSubmit, VmBindOp};

use super::*;
use crate::files::Sealed;

const FD: RawFd = 23;

#[test]
fn a_stream_sees_all_that_its_address_space_has() {
    const VA: u64 = 0x7fff_0000_0000;
    let mut app = App::new();
    let recorder = &mut app.recorder;
    assert_eq!(recorder.kind(FD), Some(Driven::Panthor));
    let made = BoCreate {
        size: PAGE as u64,
        handle: 1,
        ..BoCreate::default()
    };
    recorder.made(FD, &made);
    let bind = VmBindOp {
        flags: panthor::MAP_NO_EXECUTE,
        handle: 1,
        va: VA,
        size: PAGE as u64,
        ..VmBindOp::default()
    };
    recorder.binds(FD, 1, &bind);
    app.write(FD, 1, 0, 5);
    let submit = QueueSubmit {
        bytes: 64,
        address: VA,
        ..QueueSubmit::default()
    };
    app.recorder.before_stream(FD);
    app.recorder.started_stream(FD, &submit, 1);
    app.write(FD, 1, 0, 6);
    app.recorder.ended_stream(FD, &submit, true);
    // A part of an object has no place in the trace.
    let part = VmBindOp {
        offset: PAGE as u64,
        va: VA + PAGE as u64,
        ..bind
    };
    app.recorder.binds(FD, 1, &part);
    let unbind = VmBindOp {
        flags: panthor::BIND_UNMAP,
        handle: 0,
        ..bind
    };
    app.recorder.binds(FD, 1, &unbind);
    let told = app.end();
    let place = |what: &str| told.iter().position(|line| line == what);
    let order = [
        format!("before {VA:#x} 5"),
        format!("submit 0 {VA:#x}"),
        format!("after {VA:#x} 6"),
        "complete 0x1".into(),
        "error 13 0x1".into(),
        "end".into(),
    ];
    let places: Vec<_> = order.iter().map(|line| place(line)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{told:#?}"
    );
    assert!(
        told.iter().any(|line| line.starts_with("unmap")),
        "{told:#?}"
    );
}

#[test]
fn what_an_app_will_not_map_it_cannot_map() {
    let mut app = App::new();
    let recorder = &mut app.recorder;
    recorder.kind(FD);
    let made = |handle| BoCreate {
        size: PAGE as u64,
        handle,
        ..BoCreate::default()
    };
    let told = |handle, offset| BoMmapOffset {
        handle,
        pad: 0,
        offset,
    };
    // Newer drivers do not say where, older ones do not map.
    recorder.made_sealed(FD, &made(1), Sealed::Refused(libc::EPERM));
    recorder.made_sealed(FD, &made(2), Sealed::At(None));
    recorder.made(FD, &made(3));
    let refused = [1, 2, 3].map(|handle| recorder.place_refused(FD, handle));
    assert_eq!(refused, [Some(libc::EPERM), None, None]);
    recorder.place_told(FD, &told(2, 0x2000));
    recorder.place_told(FD, &told(3, 0x3000));
    let mut sealed = |offset| recorder.is_sealed(FD, offset);
    assert_eq!([0, 0x2000, 0x3000].map(&mut sealed), [false, true, false]);
    recorder.given_up(FD, 2);
    recorder.made(FD, &made(2));
    assert!(!recorder.is_sealed(FD, 0x2000));
}
