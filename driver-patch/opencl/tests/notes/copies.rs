// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies and fills of memory objects, and their notes.

use core::ffi::c_void;
use std::sync::atomic::Ordering;

use gpureplay_trace::note::{Copied, Filled, Note, ObjectKind, Place, Value, content_hash};

use crate::SetArg;
use crate::app::*;
use crate::runtime::*;

type Copy = extern "C" fn(usize, usize, usize, usize, usize, usize, u32, List, *mut usize) -> i32;
type Triple = *const [usize; 3];
#[rustfmt::skip]
type CopyRectangle = extern "C" fn(usize, usize, usize, Triple, Triple, Triple, usize, usize, usize, usize, u32, List, *mut usize) -> i32;
#[rustfmt::skip]
type Fill = extern "C" fn(usize, usize, *const c_void, usize, usize, usize, u32, List, *mut usize) -> i32;
type FillImage =
    extern "C" fn(usize, usize, *const c_void, Triple, Triple, u32, List, *mut usize) -> i32;
type CreateImage =
    extern "C" fn(usize, u64, *const c_void, *const c_void, *const c_void, *mut i32) -> usize;

pub(crate) fn copies(app: &App, queue: usize, buffer: usize) {
    let (none, no_event) = (core::ptr::null(), core::ptr::null_mut());
    let nothing: *const c_void = core::ptr::null();
    let mut status = 0;
    let create = app.get::<CreateImage>(CREATE_IMAGE);
    // The last word names the viewed object.
    let mut description = [0usize; 9];
    let of = |description: &[usize; 9], status: &mut i32| {
        create(1, 0, nothing, description.as_ptr().cast(), nothing, status)
    };
    let image = of(&description, &mut status);
    description[8] = buffer;
    let view = of(&description, &mut status);
    assert_eq!(create(1, 0, nothing, nothing, nothing, &mut status) % 16, 0);

    let copy = app.get::<Copy>(COPY_BUFFER);
    assert_eq!(copy(queue, buffer, view, 8, 16, 24, 0, none, no_event), 0);
    assert_eq!(copy(queue, buffer, view, 0, 0, 65, 0, none, no_event), -30);
    let (origin, region) = ([4, 1, 0], [8, 2, 1]);
    let rectangle = app.get::<CopyRectangle>(COPY_RECTANGLE);
    for row in [8, 16] {
        let from = [0; 3];
        rectangle(
            queue, buffer, view, &from, &origin, &region, 8, 0, row, 0, 0, none, no_event,
        );
    }
    let at = |numbers: &[usize; 3]| numbers.as_ptr().expose_provenance();
    let (origin, region) = (at(&origin), at(&region));
    let images = app.get::<Copy>(COPY_IMAGE);
    images(
        queue, image, image, origin, origin, region, 0, none, no_event,
    );
    let images = app.get::<Copy>(COPY_IMAGE_TO_BUFFER);
    images(queue, image, buffer, origin, region, 32, 0, none, no_event);
    let images = app.get::<Copy>(COPY_BUFFER_TO_IMAGE);
    images(queue, buffer, image, 32, origin, region, 0, none, no_event);
    let fill = app.get::<Fill>(FILL_BUFFER);
    fill(queue, buffer, nothing, 4, 4, 12, 0, none, no_event);
    let fill = app.get::<FillImage>(FILL_IMAGE);
    fill(queue, image, nothing, &[0; 3], &[1; 3], 0, none, no_event);
    copy(queue, buffer, 1, 0, 0, 8, 0, none, no_event);

    type CreateSampler = extern "C" fn(usize, u32, u32, u32, *mut i32) -> usize;
    let sampler = app.get::<CreateSampler>(CREATE_SAMPLER)(1, 0, 0, 0, &mut status);
    let kernel = app.get::<CreateKernel>(CREATE_KERNEL)(3, c"look".as_ptr(), &mut status);
    SAMPLING.store(kernel, Ordering::Relaxed);
    let set = app.get::<SetArg>(SET_ARG);
    assert_eq!(set(kernel, 0, 8, (&raw const sampler).cast()), 0);
    let size = [1usize];
    app.launch((queue, kernel), 1, (size.as_ptr(), none), no_event);
}

pub(crate) fn copies_are_noted(next: &mut impl FnMut() -> Note) {
    let at = |object, offset| Place { object, offset };
    let view = ObjectKind::Part(at(0, 0));
    for expected in [ObjectKind::Image, view, ObjectKind::Image] {
        assert!(matches!(next(), Note::Object(o) if (o.kind, o.size) == (expected, 0)));
    }
    let (image, view) = (2, 3);
    for (call, from, to, sizes, dense) in [
        ("Buffer", at(0, 8), at(view, 16), (24, 24), true),
        ("BufferRect", at(0, 0), at(view, 12), (16, 16), true),
        ("BufferRect", at(0, 0), at(view, 20), (16, 24), false),
        ("Image", at(image, 0), at(image, 0), (0, 0), false),
        ("ImageToBuffer", at(image, 0), at(0, 32), (0, 64), false),
        ("BufferToImage", at(0, 32), at(image, 0), (64, 0), false),
    ] {
        let expected = Copied {
            from,
            to,
            size: sizes.0,
            to_size: sizes.1,
            dense,
            queue: Some(1),
            call: format!("clEnqueueCopy{call}"),
        };
        assert_eq!(next(), Note::Copy(expected));
    }
    for (call, at, size) in [("Buffer", at(0, 4), 12), ("Image", at(image, 0), 0)] {
        let expected = Filled {
            at,
            size,
            queue: Some(1),
            call: format!("clEnqueueFill{call}"),
        };
        assert_eq!(next(), Note::Fill(expected));
    }
    let call = "clEnqueueCopyBuffer".to_owned();
    assert_eq!(next(), Note::Unseen { call });
    let is: Vec<u8> = (2u32..5).flat_map(u32::to_ne_bytes).collect();
    let value = Value::Scalar(is);
    let Note::Launch(launched) = next() else {
        panic!()
    };
    assert_eq!(launched.arguments[0].value, value);
    let hash = content_hash(long_name().trim_end_matches('\0').as_bytes());
    let name = &long_name()[..1024 - 17];
    assert_eq!(launched.kernel, format!("{name}.{hash:016x}"));
}
