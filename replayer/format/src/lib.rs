// SPDX-License-Identifier: MIT OR Apache-2.0
//! Zero-copy view and encoder of a recording.
