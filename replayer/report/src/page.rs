// SPDX-License-Identifier: MIT OR Apache-2.0
//! One page of HTML.
