// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Mali job-manager register map as one table.
