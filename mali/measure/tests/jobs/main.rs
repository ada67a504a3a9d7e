// SPDX-License-Identifier: MIT OR Apache-2.0
//! Analyses, what they count, and the page that shows them.
#![allow(clippy::unwrap_used)]

mod analysed;
mod between;
mod browser;
mod oclgrind;
mod report;
mod valhall;
