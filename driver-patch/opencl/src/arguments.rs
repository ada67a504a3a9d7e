// SPDX-License-Identifier: MIT OR Apache-2.0
//! Descriptions of kernels, and values of their arguments.

use core::ffi::c_void;
use core::mem::size_of;

use gpureplay_trace::note::{Argument, MAX_ARGUMENTS, MAX_SCALAR, Value, content_hash};

use crate::abi::{
    ARG_NAME, ARG_TYPE_CONST, ARG_TYPE_NAME, ARG_TYPE_QUALIFIER, Handle, KERNEL_FUNCTION_NAME,
    KERNEL_NUM_ARGS, KERNEL_PROGRAM, PROGRAM_BUILD_OPTIONS, PROGRAM_DEVICES, PROGRAM_SOURCE,
    SUCCESS, Status, signature,
};
use crate::set::Set;
use crate::state::{self, Described};
use crate::table::next;
use crate::types::{self, Types};

/// In bytes: escaped, it still fits a note.
const MAX_NAME: usize = 1024;
const MAX_READ: usize = 1 << 20;

fn text(query: impl Fn(usize, *mut c_void, *mut usize) -> Status) -> String {
    let mut bytes = whole(query, MAX_READ).unwrap_or_default();
    let end = bytes.iter().position(|&byte| byte == 0);
    bytes.truncate(end.unwrap_or(bytes.len()));
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if text.len() > MAX_NAME {
        text.truncate(text.floor_char_boundary(MAX_NAME - 17));
        text += &format!(".{:016x}", content_hash(&bytes));
    }
    text
}

fn describe(kernel: Handle) -> (String, Vec<Described>) {
    let Some(info) = next!(clGetKernelInfo: signature::Info) else {
        return Default::default();
    };
    // SAFETY: the buffer has the stated size, and the handle is the app's own.
    let named =
        |size, value, needed| unsafe { info(kernel, KERNEL_FUNCTION_NAME, size, value, needed) };
    // SAFETY: as above.
    let ask = |what, size, value| unsafe { info(kernel, what, size, value, core::ptr::null_mut()) };
    let name = text(named);
    let mut count = 0u32;
    if ask(KERNEL_NUM_ARGS, size_of::<u32>(), (&raw mut count).cast()) != SUCCESS {
        count = 0;
    }
    let arguments = (0..count.min(MAX_ARGUMENTS as u32)).map(|index| argument(kernel, index));
    let mut arguments: Vec<Described> = arguments.collect();
    if arguments
        .iter()
        .any(|it| !types::is_built_in(&it.type_name))
    {
        let mut program = Handle(0);
        let found = ask(
            KERNEL_PROGRAM,
            size_of::<Handle>(),
            (&raw mut program).cast(),
        );
        let types = (found == SUCCESS).then(|| program_types(program)).flatten();
        for argument in &mut arguments {
            if let Some(types) = &types {
                argument.type_name = types.resolve(&argument.type_name);
            }
        }
    }
    (name, arguments)
}

fn whole(query: impl Fn(usize, *mut c_void, *mut usize) -> Status, most: usize) -> Option<Vec<u8>> {
    let mut needed = 0;
    if query(0, core::ptr::null_mut(), &raw mut needed) != SUCCESS || needed > most {
        return None;
    }
    let mut answer = vec![0u8; needed];
    let status = query(needed, answer.as_mut_ptr().cast(), core::ptr::null_mut());
    (status == SUCCESS).then_some(answer)
}

fn program_types(program: Handle) -> Option<Types> {
    let info = next!(clGetProgramInfo: signature::Info)?;
    let build = next!(clGetProgramBuildInfo: signature::BuildInfo)?;
    let ask = |what| {
        // SAFETY: the buffer has the stated size, and the handle is the runtime's own.
        whole(
            |size, value, needed| unsafe { info(program, what, size, value, needed) },
            types::MAX_SOURCE_BYTES,
        )
    };
    let devices = ask(PROGRAM_DEVICES)?;
    let device = Handle(usize::from_ne_bytes(*devices.first_chunk()?));
    let source = ask(PROGRAM_SOURCE)?;
    let options = whole(
        // SAFETY: as above.
        |size, value, needed| unsafe {
            build(program, device, PROGRAM_BUILD_OPTIONS, size, value, needed)
        },
        types::MAX_SOURCE_BYTES,
    )?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', "");
    Some(Types::of(&text(source), &text(options)))
}

fn argument(kernel: Handle, index: u32) -> Described {
    let Some(info) = next!(clGetKernelArgInfo: signature::ArgumentInfo) else {
        return Described::default();
    };
    // SAFETY: as above.
    let ask = |what, size, value, needed| unsafe { info(kernel, index, what, size, value, needed) };
    let mut type_name = text(|size, value, needed| ask(ARG_TYPE_NAME, size, value, needed));
    let mut qualifier = 0u64;
    let known = ask(
        ARG_TYPE_QUALIFIER,
        size_of::<u64>(),
        (&raw mut qualifier).cast(),
        core::ptr::null_mut(),
    ) == SUCCESS;
    if known && qualifier & ARG_TYPE_CONST != 0 {
        type_name.insert_str(0, "const ");
    }
    Described {
        name: text(|size, value, needed| ask(ARG_NAME, size, value, needed)),
        type_name,
    }
}

pub(crate) fn current(kernel: Handle) -> (String, Vec<Argument>) {
    let known = state::with(|state| state.kernels.get(&kernel).map(|k| k.description.clone()));
    // The runtime may refuse the launch before it looks at a foreign kernel, so it is not asked about one.
    let Some(known) = known else {
        return Default::default();
    };
    let (name, described) = known.unwrap_or_else(|| {
        let description = describe(kernel);
        state::with(|state| {
            if let Some(known) = state.kernels.get_mut(&kernel) {
                known.description = Some(description.clone());
            }
        });
        description
    });
    let values = state::with(|state| {
        let kernel = state.kernels.get(&kernel);
        kernel
            .map(|kernel| kernel.values.clone())
            .unwrap_or_default()
    });
    let argument = |(index, described): (usize, Described)| Argument {
        value: values
            .get(&(index as u32))
            .map_or(Value::Unknown, |set| set.value(&described.type_name)),
        name: described.name,
        type_name: described.type_name,
    };
    let arguments = described.into_iter().enumerate().map(argument);
    (name, arguments.collect())
}

/// `None`: work-group memory.
pub(crate) fn set(size: usize, bytes: Option<&[u8]>) -> Set {
    let Some(bytes) = bytes else {
        return Set {
            local: Some(size as u64),
            ..Set::default()
        };
    };
    let handle = <[u8; size_of::<usize>()]>::try_from(bytes).ok();
    let handle = handle.map(|bytes| Handle(usize::from_ne_bytes(bytes)));
    state::with(|state| Set {
        object: handle.and_then(|handle| state.objects.get(&handle).copied()),
        sampler: handle.and_then(|handle| state.samplers.get(&handle).cloned()),
        bytes: Some(bytes.iter().take(MAX_SCALAR).copied().collect()),
        local: None,
    })
}
