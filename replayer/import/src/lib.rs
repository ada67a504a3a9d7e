// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings of the original GPUReplay, imported.
