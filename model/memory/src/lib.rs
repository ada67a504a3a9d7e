// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory that the GPU model and a host share.
