// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies and fills by the runtime, maybe on the CPU, where no replay repeats them.

use core::ffi::c_void;

use gpureplay_trace::note::{Copied, Filled, Note};

use super::rectangle::Rectangle;
use super::{ABSENT, Command, command, functions, place, unseen};
use crate::abi::{Handle, IMAGE_ELEMENT_SIZE, Status, ask, signature};
use crate::table::next;
use crate::{sink, state};

functions! {
    clEnqueueCopyBuffer => copy_buffer: signature::CopyBuffer,
    clEnqueueCopyBufferRect => copy_rectangle: signature::CopyRect,
    clEnqueueCopyImage => copy_image: signature::CopyImage,
    clEnqueueCopyImageToBuffer => copy_image_to_buffer: signature::CopyImageToBuffer,
    clEnqueueCopyBufferToImage => copy_buffer_to_image: signature::CopyBufferToImage,
    clEnqueueFillBuffer => fill_buffer: signature::FillBuffer,
    clEnqueueFillImage => fill_image: signature::FillImage,
}

/// Bytes of an object from an offset on; unknown of an image.
type Span = (Handle, usize, usize);

fn copied(queue: Handle, call: &str, from: Span, to: Span, dense: bool) {
    let (Some(source), Some(target)) = (place(from.0, from.1), place(to.0, to.1)) else {
        return unseen(call);
    };
    sink::put(&Note::Copy(Copied {
        from: source,
        to: target,
        size: from.2 as u64,
        to_size: to.2 as u64,
        dense,
        queue: Some(state::with(|state| state.queue(queue))),
        call: call.to_owned(),
    }));
}

fn filled(queue: Handle, call: &str, (object, offset, size): Span) {
    let Some(at) = place(object, offset) else {
        return unseen(call);
    };
    sink::put(&Note::Fill(Filled {
        at,
        size: size as u64,
        queue: Some(state::with(|state| state.queue(queue))),
        call: call.to_owned(),
    }));
}

fn texels(image: Handle, [width, height, depth]: [usize; 3]) -> usize {
    let element = ask(
        next!(clGetImageInfo: signature::Info),
        image,
        IMAGE_ELEMENT_SIZE,
    );
    let texels = width.checked_mul(height).and_then(|n| n.checked_mul(depth));
    let element = element.map(usize::from_ne_bytes);
    let bytes = texels
        .zip(element)
        .and_then(|(texels, element)| texels.checked_mul(element));
    bytes.unwrap_or(0)
}

/// Calls that nothing waits for, noted once the runtime has taken them.
macro_rules! noted {
    ($own:ident, $name:ident: $signature:ident, ($queue:ident, $($argument:ident: $type:ty),+), $note:expr) => {
        #[allow(clippy::too_many_arguments, reason = "OpenCL's own signature")]
        unsafe extern "C" fn $own(
            $queue: Handle,
            $($argument: $type,)+
            count: u32,
            list: *const Handle,
            event: *mut Handle,
        ) -> Status {
            let next = next!($name: signature::$signature, or ABSENT);
            let enqueue = || {
                // SAFETY: the app's own arguments.
                unsafe { next($queue, $($argument,)+ count, list, event) }
            };
            let call = Command::new($queue, event, false);
            command(call, enqueue, |_| $note)
        }
    };
}

noted!(
    copy_buffer,
    clEnqueueCopyBuffer: CopyBuffer,
    (queue, from: Handle, to: Handle, from_offset: usize, to_offset: usize, size: usize),
    {
        let (from, to) = ((from, from_offset, size), (to, to_offset, size));
        copied(queue, "clEnqueueCopyBuffer", from, to, true);
    }
);

noted!(
    copy_rectangle,
    clEnqueueCopyBufferRect: CopyRect,
    (
        queue,
        from: Handle,
        to: Handle,
        from_origin: *const [usize; 3],
        to_origin: *const [usize; 3],
        region: *const [usize; 3],
        from_row: usize,
        from_slice: usize,
        to_row: usize,
        to_slice: usize
    ),
    {
        const CALL: &str = "clEnqueueCopyBufferRect";
        // SAFETY: the runtime has accepted the addresses, so each holds three numbers.
        let [from_origin, to_origin, region] =
            unsafe { [from_origin.read(), to_origin.read(), region.read()] };
        let of = |origin, row, slice| Rectangle {
            origin,
            region,
            row,
            slice,
        };
        let source = of(from_origin, from_row, from_slice).span();
        let target = of(to_origin, to_row, to_slice).span();
        match (source, target) {
            (Some((first, size, whole)), Some((to_first, to_size, to_whole))) => {
                let (from, to) = ((from, first, size), (to, to_first, to_size));
                copied(queue, CALL, from, to, whole && to_whole);
            }
            _ => unseen(CALL),
        }
    }
);

noted!(
    copy_image,
    clEnqueueCopyImage: CopyImage,
    (
        queue,
        from: Handle,
        to: Handle,
        from_origin: *const [usize; 3],
        to_origin: *const [usize; 3],
        region: *const [usize; 3]
    ),
    copied(queue, "clEnqueueCopyImage", (from, 0, 0), (to, 0, 0), false)
);

noted!(
    copy_image_to_buffer,
    clEnqueueCopyImageToBuffer: CopyImageToBuffer,
    (
        queue,
        image: Handle,
        buffer: Handle,
        origin: *const [usize; 3],
        region: *const [usize; 3],
        offset: usize
    ),
    {
        // SAFETY: the runtime has accepted the region.
        let size = texels(image, unsafe { region.read() });
        let (from, to) = ((image, 0, 0), (buffer, offset, size));
        copied(queue, "clEnqueueCopyImageToBuffer", from, to, false);
    }
);

noted!(
    copy_buffer_to_image,
    clEnqueueCopyBufferToImage: CopyBufferToImage,
    (
        queue,
        buffer: Handle,
        image: Handle,
        offset: usize,
        origin: *const [usize; 3],
        region: *const [usize; 3]
    ),
    {
        // SAFETY: the runtime has accepted the region.
        let size = texels(image, unsafe { region.read() });
        let (from, to) = ((buffer, offset, size), (image, 0, 0));
        copied(queue, "clEnqueueCopyBufferToImage", from, to, false);
    }
);

noted!(
    fill_buffer,
    clEnqueueFillBuffer: FillBuffer,
    (
        queue,
        object: Handle,
        pattern: *const c_void,
        pattern_size: usize,
        offset: usize,
        size: usize
    ),
    filled(queue, "clEnqueueFillBuffer", (object, offset, size))
);

noted!(
    fill_image,
    clEnqueueFillImage: FillImage,
    (
        queue,
        image: Handle,
        color: *const c_void,
        origin: *const [usize; 3],
        region: *const [usize; 3]
    ),
    filled(queue, "clEnqueueFillImage", (image, 0, 0))
);
