// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bifrost shader cores: execution of decoded shaders.
