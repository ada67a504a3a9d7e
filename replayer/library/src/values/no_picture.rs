// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces pictures without the feature `pictures`.

use std::convert::Infallible;
use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};

pub(super) struct Picture(Infallible);

#[derive(Clone)]
pub(super) struct Part(Infallible);

impl Picture {
    pub(super) fn decode(path: &Path, _: File) -> Result<Self> {
        Err(Error::file(
            path,
            "this program was built without pictures (feature `pictures` of gpureplay-library); give an .npy file",
        ))
    }

    pub(super) fn extent(&self) -> (u64, u64) {
        match self.0 {}
    }

    pub(super) fn whole(&self) -> Part {
        match self.0 {}
    }

    pub(super) fn middle(&self, _: u32, _: u32) -> Part {
        match self.0 {}
    }

    pub(super) fn grey(&self, _: &Part, _: u32, _: u32, _: impl FnMut(usize, &[f32])) {
        match self.0 {}
    }

    pub(super) fn rgb(&self, _: &Part, _: u32, _: u32, _: impl FnMut(usize, &[f32])) {
        match self.0 {}
    }
}
