// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program asks of the GPU.

use serde::{Deserialize, Serialize};

use super::Rows;
use crate::recording::hash::hex;

/// Numbers are those of the run's lists; events count up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Launches a kernel.
    Launch {
        /// Stream.
        stream: u32,
        /// Kernel.
        kernel: u32,
        /// In blocks.
        grid: [u32; 3],
        /// In threads.
        block: [u32; 3],
        /// Dynamic, in bytes.
        shared: u32,
        /// Packed.
        #[serde(with = "hex")]
        parameters: Vec<u8>,
        /// 72 bytes each.
        #[serde(with = "hex")]
        attributes: Vec<u8>,
    },
    /// Sets memory.
    Set {
        /// Stream.
        stream: u32,
        /// Of the first row.
        address: u64,
        /// Bytes between rows.
        pitch: u64,
        /// New value of elements.
        value: u32,
        /// In bytes: 1, 2 or 4.
        element: u32,
        /// Elements of a row.
        width: u64,
        /// Rows.
        height: u64,
    },
    /// Host to device.
    In {
        /// Stream.
        stream: u32,
        /// Target.
        address: u64,
        /// Input.
        input: u32,
        /// Several rows; none have gaps in the input.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<Rows>,
    },
    /// Device to host.
    Out {
        /// Stream.
        stream: u32,
        /// Source.
        address: u64,
        /// Output.
        output: u32,
        /// Several rows; none have gaps in the output.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<Rows>,
    },
    /// Device to device.
    Copy {
        /// Stream.
        stream: u32,
        /// Target.
        to: u64,
        /// Source.
        from: u64,
        /// Bytes.
        size: u64,
        /// Layout of several rows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<Rows>,
    },
    /// An event for a stream's work so far.
    Record {
        /// Stream.
        stream: u32,
        /// Event.
        event: u32,
    },
    /// A stream waits for an event.
    Wait {
        /// Stream.
        stream: u32,
        /// Event.
        event: u32,
    },
    /// The host waits for a stream; later operations follow.
    HostStream {
        /// Stream.
        stream: u32,
    },
    /// The host waits for an event.
    HostEvent {
        /// Event.
        event: u32,
    },
    /// The host waits for everything.
    HostAll {},
}

impl Operation {
    /// Stream of the operation, if any.
    #[must_use]
    pub fn stream(&self) -> Option<u32> {
        match self {
            Self::Launch { stream, .. }
            | Self::Set { stream, .. }
            | Self::In { stream, .. }
            | Self::Out { stream, .. }
            | Self::Copy { stream, .. }
            | Self::Record { stream, .. }
            | Self::Wait { stream, .. }
            | Self::HostStream { stream } => Some(*stream),
            Self::HostEvent { .. } | Self::HostAll {} => None,
        }
    }
}
