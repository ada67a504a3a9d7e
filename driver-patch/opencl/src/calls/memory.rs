// SPDX-License-Identifier: MIT OR Apache-2.0
//! Creation of memory objects with the host's contents.

use core::ffi::c_void;

use gpureplay_trace::note::{Direction, Note, ObjectKind, Place, Transfer};

use super::transfer::content;
use super::{ABSENT, functions, place, unseen};
use crate::abi::{
    BUFFER_REGION, BufferRegion, Handle, ImageDescription, MEM_COPY_HOST_PTR, MEM_REFERENCE_COUNT,
    MEM_USE_HOST_PTR, Status, ask, signature,
};
use crate::reach;
use crate::sink;
use crate::state;
use crate::table::next;

functions! {
    clCreateBuffer => create_buffer: signature::CreateBuffer,
    clCreateBufferWithProperties => create_buffer_with_properties: signature::CreateBufferWithProperties,
    clCreateSubBuffer => create_sub_buffer: signature::CreateSubBuffer,
    clCreateImage => create_image: signature::CreateImage,
    clCreateImageWithProperties => create_image_with_properties: signature::CreateImageWithProperties,
    clCreateImage2D => create_image_2d: signature::CreateImage2D,
    clCreateImage3D => create_image_3d: signature::CreateImage3D,
    clSVMAlloc => svm_alloc: signature::SvmAlloc,
    clReleaseMemObject => release: signature::Object,
}

/// # Safety
/// With a flag that uses it, `host` is the address of `size` bytes.
unsafe fn made(buffer: Handle, flags: u64, size: usize, host: *const c_void) {
    if buffer == Handle::NULL {
        return;
    }
    let object = state::with(|state| state.add_object(buffer, ObjectKind::Buffer, size as u64));
    if flags & (MEM_COPY_HOST_PTR | MEM_USE_HOST_PTR) != 0 && !host.is_null() {
        // SAFETY: the caller's promise. A runtime may look at memory that it uses only when it needs it.
        let seen = content(unsafe { reach::hash(host, size) });
        sink::put(&Note::Transfer(Transfer {
            direction: Direction::Write,
            at: Place { object, offset: 0 },
            size: size as u64,
            content: seen,
            queue: None,
            complete: true,
        }));
    }
}

unsafe extern "C" fn create_buffer(
    context: Handle,
    flags: u64,
    size: usize,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateBuffer: signature::CreateBuffer, or Handle::NULL);
    // SAFETY: the app's own arguments; the runtime has accepted flags, size and address.
    unsafe {
        let buffer = next(context, flags, size, host, status);
        made(buffer, flags, size, host);
        buffer
    }
}

unsafe extern "C" fn create_buffer_with_properties(
    context: Handle,
    properties: *const u64,
    flags: u64,
    size: usize,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let next =
        next!(clCreateBufferWithProperties: signature::CreateBufferWithProperties, or Handle::NULL);
    // SAFETY: as above.
    unsafe {
        let buffer = next(context, properties, flags, size, host, status);
        made(buffer, flags, size, host);
        buffer
    }
}

unsafe extern "C" fn create_sub_buffer(
    buffer: Handle,
    flags: u64,
    kind: u32,
    info: *const c_void,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateSubBuffer: signature::CreateSubBuffer, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let part = unsafe { next(buffer, flags, kind, info, status) };
    if part != Handle::NULL && kind == BUFFER_REGION && !info.is_null() {
        // SAFETY: of this kind, a region that the runtime has accepted.
        let region = unsafe { info.cast::<BufferRegion>().read_unaligned() };
        match place(buffer, region.origin) {
            Some(of) => {
                let kind = ObjectKind::Part(of);
                state::with(|state| state.add_object(part, kind, region.size as u64));
            }
            None => unseen("clCreateSubBuffer"),
        }
    }
    part
}

/// An image that views another object is a part of it.
fn made_image(image: Handle, of: Handle) -> Handle {
    if image != Handle::NULL {
        let kind = place(of, 0).map_or(ObjectKind::Image, ObjectKind::Part);
        state::with(|state| state.add_object(image, kind, 0));
    }
    image
}

/// # Safety
/// The runtime has accepted the description.
unsafe fn viewed(description: *const c_void) -> Handle {
    if description.is_null() {
        return Handle::NULL;
    }
    // SAFETY: the caller's promise; the structure may lie anywhere.
    unsafe { description.cast::<ImageDescription>().read_unaligned() }.of
}

unsafe extern "C" fn create_image(
    context: Handle,
    flags: u64,
    format: *const c_void,
    description: *const c_void,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateImage: signature::CreateImage, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let image = unsafe { next(context, flags, format, description, host, status) };
    if image == Handle::NULL {
        return image;
    }
    // SAFETY: the runtime has made an image of this description.
    made_image(image, unsafe { viewed(description) })
}

unsafe extern "C" fn create_image_with_properties(
    context: Handle,
    properties: *const u64,
    flags: u64,
    format: *const c_void,
    description: *const c_void,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let next =
        next!(clCreateImageWithProperties: signature::CreateImageWithProperties, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let image = unsafe {
        next(
            context,
            properties,
            flags,
            format,
            description,
            host,
            status,
        )
    };
    if image == Handle::NULL {
        return image;
    }
    // SAFETY: the runtime has made an image of this description.
    made_image(image, unsafe { viewed(description) })
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn create_image_2d(
    context: Handle,
    flags: u64,
    format: *const c_void,
    width: usize,
    height: usize,
    row: usize,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateImage2D: signature::CreateImage2D, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let image = unsafe { next(context, flags, format, width, height, row, host, status) };
    made_image(image, Handle::NULL)
}

#[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
unsafe extern "C" fn create_image_3d(
    context: Handle,
    flags: u64,
    format: *const c_void,
    width: usize,
    height: usize,
    depth: usize,
    row: usize,
    slice: usize,
    host: *mut c_void,
    status: *mut Status,
) -> Handle {
    let next = next!(clCreateImage3D: signature::CreateImage3D, or Handle::NULL);
    // SAFETY: the app's own arguments.
    let image = unsafe {
        next(
            context, flags, format, width, height, depth, row, slice, host, status,
        )
    };
    made_image(image, Handle::NULL)
}

unsafe extern "C" fn svm_alloc(
    context: Handle,
    flags: u64,
    size: usize,
    alignment: u32,
) -> *mut c_void {
    let next = next!(clSVMAlloc: signature::SvmAlloc, or core::ptr::null_mut());
    // SAFETY: the app's own arguments.
    let memory = unsafe { next(context, flags, size, alignment) };
    if !memory.is_null() {
        unseen("clSVMAlloc");
    }
    memory
}

unsafe extern "C" fn release(object: Handle) -> Status {
    let next = next!(clReleaseMemObject: signature::Object, or ABSENT);
    let info = next!(clGetMemObjectInfo: signature::Info);
    let known = state::with(|state| {
        state.objects.contains_key(&object) || state.mapped.keys().any(|(of, _)| *of == object)
    });
    if known && ask(info, object, MEM_REFERENCE_COUNT).map(u32::from_ne_bytes) == Some(1) {
        state::with(|state| {
            state.objects.remove(&object);
            // A mapping says nothing about a later object of this handle.
            state.mapped.retain(|(of, _), _| *of != object);
        });
    }
    // SAFETY: the app's own argument.
    unsafe { next(object) }
}
