// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verifier and replay engine over the Gpu trait.
