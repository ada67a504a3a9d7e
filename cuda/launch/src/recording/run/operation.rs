// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a program asks of the GPU, one thing at a time.

use serde::{Deserialize, Serialize};

use super::Rows;
use crate::recording::hash::hex;

/// What a program asks of the GPU. Numbers of streams, kernels, inputs and outputs are those of the run's lists; events are numbered
/// as they come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// A kernel is launched.
    Launch {
        /// Into which stream.
        stream: u32,
        /// Which kernel.
        kernel: u32,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads of a block in x, y, z.
        block: [u32; 3],
        /// Dynamic shared memory, in bytes.
        shared: u32,
        /// The packed parameters.
        #[serde(with = "hex")]
        parameters: Vec<u8>,
        /// Attributes of the launch, 72 bytes each, one after the other.
        #[serde(with = "hex")]
        attributes: Vec<u8>,
    },
    /// Memory is set.
    Set {
        /// In which stream.
        stream: u32,
        /// Where the first row begins.
        address: u64,
        /// Bytes from row to row.
        pitch: u64,
        /// What each element becomes.
        value: u32,
        /// Bytes of an element: 1, 2 or 4.
        element: u32,
        /// Elements of a row.
        width: u64,
        /// Rows.
        height: u64,
    },
    /// The host copies an input in.
    In {
        /// In which stream.
        stream: u32,
        /// Where it goes.
        address: u64,
        /// Which input.
        input: u32,
        /// How it is laid out, if it is several rows; the input's bytes have no gaps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<Rows>,
    },
    /// The host copies an output out.
    Out {
        /// In which stream.
        stream: u32,
        /// Where it comes from.
        address: u64,
        /// Which output.
        output: u32,
        /// How it lies, if it is several rows; the output's bytes have no gaps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<Rows>,
    },
    /// Memory is copied on the device.
    Copy {
        /// In which stream.
        stream: u32,
        /// Where it goes.
        to: u64,
        /// Where it comes from.
        from: u64,
        /// Bytes.
        size: u64,
        /// How they lie, if they are several rows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rows: Option<Rows>,
    },
    /// An event stands for what a stream was asked so far.
    Record {
        /// Which stream.
        stream: u32,
        /// Which event.
        event: u32,
    },
    /// A stream waits for an event.
    Wait {
        /// Which stream.
        stream: u32,
        /// Which event.
        event: u32,
    },
    /// The host waits for a stream: what it asks for later comes after what that stream was asked.
    HostStream {
        /// Which stream.
        stream: u32,
    },
    /// The host waits for an event.
    HostEvent {
        /// Which event.
        event: u32,
    },
    /// The host waits for everything.
    HostAll {},
}

impl Operation {
    /// The stream that does it, if it is one.
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
