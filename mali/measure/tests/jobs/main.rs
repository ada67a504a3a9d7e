// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses and their page.
#![allow(clippy::unwrap_used)]

mod analysed;
mod between;
mod browser;
mod oclgrind;
mod report;
mod valhall;
