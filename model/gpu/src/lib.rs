// SPDX-License-Identifier: MIT OR Apache-2.0
//! Functional model of a Mali job-manager GPU.
