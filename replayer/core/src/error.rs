// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong while a verified recording runs.

/// [`ReplayError::action`] when the error does not belong to an action of the recording.
pub const NO_ACTION: u32 = u32::MAX;

/// Why a device could not do what the engine asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// There are not enough pages.
    OutOfMemory,
    /// Nothing is mapped at this GPU virtual address.
    NotMapped(u64),
    /// The GPU did not come back from a soft reset, nor from a hard one.
    ResetFailed,
    /// A command of the address space did not end.
    AddressSpaceStuck,
    /// The device is gone, or its driver refused; the number is the device's own.
    Refused(i32),
}

/// An error and where it happened. The GPU has been reset when a caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayError {
    /// Index of the action in the recording, or [`NO_ACTION`].
    pub action: u32,
    /// Chains that were submitted before, in this run.
    pub submits: u32,
    /// What went wrong.
    pub kind: ErrorKind,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The device failed or refused.
    Device(DeviceError),
    /// The GPU is not the one that the recording is for.
    Identity {
        /// Register offset.
        register: u32,
        /// Bits that were compared.
        mask: u32,
        /// What the recording requires.
        expected: u32,
        /// What the GPU has.
        found: u32,
    },
    /// A region lies above the GPU's virtual address range of this many bits.
    AddressRange(u32),
    /// The GPU has no job slot of this number.
    NoSuchSlot(u8),
    /// Shader cores or the level-2 cache did not get power in time.
    NoPower {
        /// Offset of the register that says which have power (READY).
        register: u32,
        /// Its value when all have.
        expected: u32,
        /// What was read last.
        found: u32,
    },
    /// The chain did not end in time.
    JobTimeout {
        /// Job slot.
        slot: u8,
        /// JS_STATUS at the end.
        status: u32,
        /// Job that was running (JS_TAIL).
        tail: u64,
        /// How long the engine waited.
        timeout_us: u32,
    },
    /// The chain failed.
    JobFault {
        /// Job slot.
        slot: u8,
        /// JS_STATUS.
        status: u32,
        /// Job that failed (JS_TAIL).
        tail: u64,
        /// The fault pointer in its header.
        fault_address: u64,
    },
    /// The slot reports success, but a job of the chain is not done.
    JobNotDone {
        /// Address of the job header.
        header: u64,
        /// Exception status in it.
        status: u32,
    },
    /// The GPU accessed memory that it may not access.
    MmuFault {
        /// AS_FAULTSTATUS.
        status: u32,
        /// AS_FAULTADDRESS.
        address: u64,
    },
    /// The GPU reports a fault of its own.
    GpuFault {
        /// GPU_FAULT_STATUS.
        status: u32,
        /// GPU_FAULT_ADDRESS.
        address: u64,
    },
    /// A tensor that has no value was not given one.
    Unbound {
        /// Index of the tensor.
        tensor: u32,
    },
    /// A tensor was given the wrong number of bytes.
    TensorSize {
        /// Index of the tensor.
        tensor: u32,
        /// Bytes that it has.
        expected: u32,
        /// Bytes that were given.
        found: usize,
    },
    /// No segment has this index, or it is not one that runs.
    NoSuchSegment(u32),
    /// The verifier and the engine disagree; a bug, not a property of the file.
    Internal,
}

impl From<DeviceError> for ErrorKind {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}
