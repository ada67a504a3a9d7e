// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw trace to recording.
