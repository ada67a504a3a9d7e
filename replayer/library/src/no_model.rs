// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replaces the model without the feature `model`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use gpureplay_core::Gpu;

use crate::error::Error;
use crate::model_options::ModelOptions;

/// Never used here.
pub trait Observer: Send + Sync {}

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

    pub(crate) fn renew_work(&mut self) {
        match self.never {}
    }

    pub(crate) fn working(&self) -> Duration {
        match self.never {}
    }
}
