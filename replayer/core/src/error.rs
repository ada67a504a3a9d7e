// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a verified recording's run.

/// [`ReplayError::action`] outside of actions.
pub const NO_ACTION: u32 = u32::MAX;

/// Why a device failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// Not enough pages.
    OutOfMemory,
    /// At this GPU address.
    NotMapped(u64),
    /// Neither soft nor hard reset worked.
    ResetFailed,
    /// An address-space command did not end.
    AddressSpaceStuck,
    /// Gone, or refused by its driver; the device's number.
    Refused(i32),
}

/// The GPU has been reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayError {
    /// Index of the action, or [`NO_ACTION`].
    pub action: u32,
    /// Chains submitted before, in this run.
    pub submits: u32,
    /// What went wrong.
    pub kind: ErrorKind,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The device failed or refused.
    Device(DeviceError),
    /// The recording is for another GPU.
    Identity {
        /// Offset.
        register: u32,
        /// Compared bits.
        mask: u32,
        /// Required.
        expected: u32,
        /// Read.
        found: u32,
    },
    /// A region is above the GPU's address bits.
    AddressRange(u32),
    /// The GPU lacks this job slot.
    NoSuchSlot(u8),
    /// Shader cores or level-2 cache, in time.
    NoPower {
        /// Offset of the READY register.
        register: u32,
        /// Its value with full power.
        expected: u32,
        /// Last value read.
        found: u32,
    },
    /// The chain did not end in time.
    JobTimeout {
        /// Job slot.
        slot: u8,
        /// JS_STATUS at the end.
        status: u32,
        /// The running job (JS_TAIL).
        tail: u64,
        /// Time waited.
        timeout_us: u32,
    },
    /// The chain failed.
    JobFault {
        /// Job slot.
        slot: u8,
        /// JS_STATUS.
        status: u32,
        /// The failed job (JS_TAIL).
        tail: u64,
        /// Fault pointer in its header.
        fault_address: u64,
    },
    /// The slot reports success, a job does not.
    JobNotDone {
        /// Job header.
        header: u64,
        /// Exception status in it.
        status: u32,
    },
    /// The GPU accessed forbidden memory.
    MmuFault {
        /// AS_FAULTSTATUS.
        status: u32,
        /// AS_FAULTADDRESS.
        address: u64,
    },
    /// A fault of the GPU itself.
    GpuFault {
        /// GPU_FAULT_STATUS.
        status: u32,
        /// GPU_FAULT_ADDRESS.
        address: u64,
    },
    /// No value for a tensor that needs one.
    Unbound {
        /// Index.
        tensor: u32,
    },
    /// Wrong number of bytes.
    TensorSize {
        /// Index.
        tensor: u32,
        /// The tensor's bytes.
        expected: u32,
        /// Bytes given.
        found: usize,
    },
    /// Missing, or does not run.
    NoSuchSegment(u32),
    /// Verifier and engine disagree: a bug, not the file's fault.
    Internal,
}

impl From<DeviceError> for ErrorKind {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}
