// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mali GPUs with command streams.
//!
//! A launch's words are a stream without jumps. They lie in the recording, not in GPU memory, so they cannot change
//! after the check.

use core::fmt::{self, Display, Formatter};

use gpureplay_core::family::{Driver, Failed, Family};
use gpureplay_core::gpu::{Gpu, Submission};
use gpureplay_core::verify::{Limits, Rule, Violation};
use gpureplay_core::{DeviceError, ErrorKind};
use gpureplay_format::layout::{FAMILY_STREAMS, Header, IdentityCheck};
use gpureplay_format::{Access, Action, Recording, RegionKind};
use mali_drive::{LAUNCHED_AT, Mali};
use mali_facts::registers::gpu;
use mali_facts::valhall::{
    ComputePayload, LocalStorage, Resource, ShaderEnvironment, ShaderProgram, of_registers,
};
use mali_isa::valhall::streams::{Fault, Instruction, Op, WORD_BYTES, walk};

mod change;

pub(crate) use change::waits;
pub use change::{alone, resized};
pub use mali_isa::valhall::streams::{Compute, WalkError, text};

/// Architecture version 10.
#[derive(Clone, Copy, Debug)]
pub struct Streams;

/// Verified recording for architecture version 10.
pub type Verified<'a> = gpureplay_core::verify::Verified<'a, Streams>;
/// Session on architecture version 10.
pub type Session<'a, 'w, G> = gpureplay_core::engine::Session<'a, 'w, G, Streams>;

/// Checks a recording against all rules.
///
/// # Errors
/// As for [`gpureplay_core::verify()`].
pub fn verify<'a>(
    recording: &'a Recording<'a>,
    limits: &Limits,
) -> Result<Verified<'a>, Violation> {
    gpureplay_core::verify::verify(recording, limits)
}

/// First of the kernel's registers: its ring calls a stream with them.
pub const KERNEL_REGISTERS: u8 = 92;
/// Bits of an address; the kernel's lie above.
pub const ADDRESS_BITS: u32 = 47;
const POINTER: u64 = (1 << 48) - 1;
/// Bytes: a list's alignment. The bits below count its entries.
const RESOURCES: u64 = 64;

const IDENTITY: [u32; 8] = [
    gpu::GPU_ID,
    gpu::THREAD_MAX_THREADS,
    gpu::THREAD_TLS_ALLOC,
    gpu::THREAD_FEATURES,
    gpu::SHADER_PRESENT_LO,
    gpu::SHADER_PRESENT_HI,
    gpu::L2_FEATURES,
    gpu::MMU_FEATURES,
];

/// What a launch breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Queue other than 0.
    Queue(u8),
    /// No words, or a half of one.
    Length(usize),
    /// Forbidden instruction.
    Instruction {
        /// Instruction's number.
        at: usize,
        /// Word.
        word: u64,
    },
    /// Resource other than the compute endpoint.
    Endpoint {
        /// Instruction's number.
        at: usize,
    },
    /// Writes a register of the kernel's driver.
    KernelRegister {
        /// Instruction's number.
        at: usize,
        /// Register.
        register: u8,
    },
    /// Instruction that cannot be executed.
    Fault {
        /// Instruction's number.
        at: usize,
        /// Cause.
        fault: Fault,
    },
    /// Unaligned, or outside of regions.
    Memory {
        /// Contents.
        what: &'static str,
        /// Address.
        address: u64,
    },
    /// Launch without a dispatch.
    NoDispatch,
}

impl Display for Broken {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Queue(queue) => write!(f, "queue {queue}: there is only queue 0"),
            Self::Length(bytes) => write!(f, "{bytes} bytes are no list of instructions"),
            Self::Instruction { at, word } => match Instruction::decode(word) {
                Some(found) => write!(
                    f,
                    "instruction {at}, {}, is not allowed",
                    found.op().row().name
                ),
                None => write!(f, "instruction {at}: {word:#018x} is unknown"),
            },
            Self::Endpoint { at } => {
                write!(
                    f,
                    "instruction {at} requests more than the compute endpoint"
                )
            }
            Self::KernelRegister { at, register } => {
                write!(
                    f,
                    "instruction {at} writes r{register}, a register of the kernel"
                )
            }
            Self::Fault { at, fault } => write!(f, "instruction {at}: {fault}"),
            Self::Memory { what, address } => {
                write!(
                    f,
                    "{what} at {address:#x} lies in no region, or is not aligned"
                )
            }
            Self::NoDispatch => f.write_str("there is no dispatch"),
        }
    }
}

impl core::error::Error for Broken {}

/// Without bytes after the last whole word.
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let words = bytes.as_chunks::<WORD_BYTES>().0.iter();
    words.map(|word| u64::from_le_bytes(*word))
}

/// Checks a launch.
///
/// # Errors
/// The first rule that it breaks.
pub fn check(recording: &Recording<'_>, queue: u8, bytes: &[u8]) -> Result<(), Broken> {
    if queue != 0 {
        return Err(Broken::Queue(queue));
    }
    if bytes.is_empty() || !bytes.len().is_multiple_of(WORD_BYTES) {
        return Err(Broken::Length(bytes.len()));
    }
    for (at, word) in words(bytes).enumerate() {
        allowed(at, word)?;
    }
    let mut found = Err(Broken::NoDispatch);
    dispatches(bytes, |_, compute| {
        if !matches!(found, Err(Broken::Memory { .. })) {
            found = memory(recording, compute);
        }
    })?;
    found
}

/// Gives each dispatch with its instruction's address on the model.
///
/// # Errors
/// An instruction cannot be executed.
pub fn dispatches(bytes: &[u8], visit: impl FnMut(u64, &Compute)) -> Result<(), Broken> {
    let (list, _) = bytes.as_chunks::<WORD_BYTES>();
    let at = |address: u64| address.wrapping_sub(LAUNCHED_AT) as usize / WORD_BYTES;
    let length = u32::try_from(list.len() * WORD_BYTES).map_err(|_| Broken::Length(bytes.len()))?;
    let read = |address: u64| list.get(at(address)).map(|word| u64::from_le_bytes(*word));
    let walked = walk(LAUNCHED_AT, length, list.len() as u32, read, visit);
    walked.map_err(|error| match error {
        WalkError::Fault { at: address, fault } => Broken::Fault {
            at: at(address),
            fault,
        },
        WalkError::Dynamic { at: address, .. } | WalkError::Unreadable(address) => {
            Broken::Instruction {
                at: at(address),
                word: read(address).unwrap_or(0),
            }
        }
        WalkError::TooLong(_) => Broken::Length(bytes.len()),
    })
}

fn allowed(at: usize, word: u64) -> Result<(), Broken> {
    let written = match Instruction::decode(word).map(Instruction::op) {
        Some(Op::Nop | Op::Wait | Op::SetSbEntry | Op::RunCompute | Op::FlushCache2) => None,
        Some(Op::ReqResource) if word & ALL_ENDPOINTS == COMPUTE_ENDPOINT => None,
        Some(Op::ReqResource) => return Err(Broken::Endpoint { at }),
        Some(Op::Move | Op::Move32) => Some((word >> DESTINATION) as u8),
        _ => return Err(Broken::Instruction { at, word }),
    };
    match written.filter(|register| *register >= KERNEL_REGISTERS) {
        Some(register) => Err(Broken::KernelRegister { at, register }),
        None => Ok(()),
    }
}

const DESTINATION: u32 = 48;
/// Compute, fragment, tiler, vertices (REQ_RESOURCE).
pub const ALL_ENDPOINTS: u64 = 0xf;
/// Recordings' only endpoint.
pub const COMPUTE_ENDPOINT: u64 = 1;

fn memory(recording: &Recording<'_>, compute: &Compute) -> Result<(), Broken> {
    let inside = |what, address: u64, bytes: u64, alignment: u64| {
        let found = recording.region_of(address, bytes);
        match found.is_some() && address.is_multiple_of(alignment) {
            true => Ok(()),
            false => Err(Broken::Memory { what, address }),
        }
    };
    inside("a program", compute.program, ShaderProgram::SIZE as u64, 32)?;
    if compute.uniforms >> 56 != 0 {
        let bytes = (compute.uniforms >> 56) * 8;
        inside("uniforms", compute.uniforms & POINTER, bytes, 8)?;
    }
    if compute.storage != 0 {
        inside("storage", compute.storage, LocalStorage::SIZE as u64, 32)?;
    }
    match compute.resources % RESOURCES {
        0 => Ok(()),
        count => {
            let list = compute.resources - count;
            inside(
                "a list of resources",
                list,
                count * Resource::SIZE as u64,
                1,
            )
        }
    }
}

/// As a job has them in memory.
pub fn payload(compute: &Compute) -> (ComputePayload, ShaderEnvironment) {
    let [x, y, z] = compute.count;
    let [from_x, from_y, from_z] = compute.offset;
    of_registers(
        [compute.size, compute.tasks, x, y, z, from_x, from_y, from_z],
        [
            compute.resources,
            compute.program,
            compute.storage,
            compute.uniforms,
        ],
        compute.attribute_offset,
    )
}

impl Family for Streams {
    const ID: u16 = FAMILY_STREAMS;
    const LAUNCHES: bool = true;
    const ADDRESS_BITS: u32 = ADDRESS_BITS;
    type State = ();
    const RESET: () = ();

    fn is_identity(register: u32) -> bool {
        IDENTITY.contains(&register)
    }

    fn demands_product(check: &IdentityCheck, gpu_id: u32) -> bool {
        Mali::demands_product(check, gpu_id)
    }

    /// Firmware and kernel make all settings.
    fn may_write(_: u32, _: u32, _: u32) -> bool {
        false
    }

    fn suits(kind: RegionKind, access: Access) -> bool {
        Mali::suits(kind, access)
    }

    fn may_rearm(_: &Recording<'_>, _: u64) -> bool {
        false
    }

    fn check(recording: &Recording<'_>, work: &Submission<'_>) -> Result<(), Rule> {
        check(recording, work.queue(), work.words).map_err(|_| Rule::JobConfiguration)
    }

    fn fits<G: Gpu>(_: &mut Driver<G, ()>, _: u64) -> Result<(), Failed> {
        Ok(())
    }

    fn power_up<G: Gpu>(at: &mut Driver<G, ()>, _: &Header) -> Result<(), Failed> {
        no_registers(at)
    }

    fn submit<G: Gpu>(at: &mut Driver<G, ()>, _: &Submission<'_>) -> Result<(), Failed> {
        no_registers(at)
    }

    fn done<G: Gpu>(at: &mut Driver<G, ()>, _: u64) -> Result<(), Failed> {
        no_registers(at)
    }
}

fn no_registers<G: Gpu>(at: &mut Driver<G, ()>) -> Result<(), Failed> {
    at.fail(ErrorKind::Device(DeviceError::Refused(NO_FIRMWARE)))
}

/// A device with registers runs no firmware.
pub const NO_FIRMWARE: i32 = -0x6c6;

/// The first wrong launch: its action's index, what it breaks.
pub fn broken(recording: &Recording<'_>) -> Option<(u32, Broken)> {
    let segments = recording.segments().iter();
    let actions = segments.flat_map(|segment| {
        let first = segment.first_action.get();
        (first..).zip(recording.segment_actions(segment))
    });
    actions.into_iter().find_map(|(action, step)| match step {
        Ok(Action::Launch { queue, words, .. }) => {
            Some((action, check(recording, queue, words).err()?))
        }
        _ => None,
    })
}

/// Converts a stream: without jumps, heaps and handlers, for the compute endpoint only.
///
/// # Errors
/// The stream cannot be walked, or is longer than `limit` instructions.
pub fn flatten(
    address: u64,
    bytes: u32,
    limit: u32,
    read: impl Fn(u64) -> Option<u64>,
) -> Result<Flat, WalkError> {
    let mut flat = Flat::default();
    let mut places = Vec::new();
    walk(
        address,
        bytes,
        limit,
        |at| {
            let word = read(at)?;
            places.push((at, word));
            Some(word)
        },
        |_, compute| flat.dispatches.push(*compute),
    )?;
    for (at, word) in places {
        match Instruction::decode(word).map(Instruction::op) {
            Some(Op::Jump | Op::HeapSet | Op::SetExceptionHandler | Op::Nop) => {}
            Some(Op::ReqResource) => {
                flat.words
                    .push(word & !ALL_ENDPOINTS | word & COMPUTE_ENDPOINT);
            }
            // A call may end on its caller's scoreboard; none known does.
            Some(op @ (Op::Call | Op::Branch)) => return Err(WalkError::Dynamic { at, op }),
            _ => flat.words.push(word),
        }
    }
    Ok(flat)
}

/// Stream without jumps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flat {
    /// Instructions.
    pub words: Vec<u64>,
    /// In order.
    pub dispatches: Vec<Compute>,
}

#[cfg(test)]
mod mutants;
#[cfg(test)]
mod tests;
