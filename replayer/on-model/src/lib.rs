// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU model as a device for the replay engine.
