// SPDX-License-Identifier: MIT OR Apache-2.0
//! In place of the model, for programs that are built without the feature `model`: it cannot be opened, so there never is one.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gpureplay_core::Gpu;

use crate::error::Error;
use crate::model_options::ModelOptions;

/// Who is told of each job on the model: nobody.
pub trait Observer: Send + Sync {}

/// The job that used up what a run may do on the model: there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsedUp {}

impl fmt::Display for UsedUp {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

/// A model that is open: there is none.
pub(crate) struct Model {
    never: Never,
    pub(crate) jobs: Arc<AtomicU64>,
    pub(crate) description: String,
}

enum Never {}

impl Model {
    pub(crate) fn open(
        _: Option<&str>,
        _: u32,
        _: ModelOptions,
        _: Option<Arc<dyn Observer>>,
    ) -> Result<Self, Error> {
        Err(Error::NoModel(
            "this program was built without the model (feature `model` of gpureplay-library); name another device".into(),
        ))
    }

    pub(crate) fn get_ref(&self) -> &(dyn Gpu + Send + 'static) {
        match self.never {}
    }

    pub(crate) fn get_mut(&mut self) -> &mut (dyn Gpu + Send + 'static) {
        match self.never {}
    }

    pub(crate) fn into_inner(self) -> Box<dyn Gpu + Send> {
        match self.never {}
    }

    pub(crate) fn expect_recording(&mut self, _: u64) {
        match self.never {}
    }

    pub(crate) fn renew_work(&mut self) {
        match self.never {}
    }

    pub(crate) fn used_up(&self) -> Option<UsedUp> {
        match self.never {}
    }

    pub(crate) fn working(&self) -> Duration {
        match self.never {}
    }
}

/// What a run was allowed to do.
pub(crate) const fn limit(used_up: &UsedUp) -> u64 {
    match *used_up {}
}
