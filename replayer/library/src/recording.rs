// SPDX-License-Identifier: MIT OR Apache-2.0
//! An open recording.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use gpureplay_format::Recording as View;
use self_cell::self_cell;

use crate::error::Result;
use crate::family::Verified;
use crate::files::Files;
use crate::manifest::Manifest;
use crate::tensors::{Layer, TensorInfo};
use crate::trust::Trust;

self_cell!(
    struct Parsed {
        owner: Files,
        #[covariant]
        dependent: View,
    }
);

self_cell!(
    struct Checked {
        owner: Parsed,
        #[covariant]
        dependent: Verified,
    }
);

pub(crate) struct Shared {
    checked: Checked,
    tensors: Vec<TensorInfo>,
    layers: Vec<Layer>,
    /// What this is a form of; none for a joined form: its recording stores it, and both would live for ever.
    pub(crate) origin: Option<Recording>,
    /// Keeps the private copy of its files alive.
    _beside: Option<Recording>,
    /// A form of another recording has no forms.
    pub(crate) is_form: bool,
    pub(crate) joined: OnceLock<Option<Recording>>,
}

/// A sound recording. Copies share its bytes.
#[derive(Clone)]
pub struct Recording(pub(crate) Arc<Shared>);

impl Recording {
    /// Opens a directory with a `recording.gpr`, such a file, or a pack.
    ///
    /// # Errors
    /// It is missing, damaged, or breaks a rule.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_files(Files::read(path.as_ref())?)
    }

    /// Demands a signature.
    ///
    /// # Errors
    /// As for [`Recording::open`], or it is not signed.
    pub fn open_trusted(path: impl AsRef<Path>, trust: &Trust) -> Result<Self> {
        Self::from_files(Files::open(path.as_ref(), trust)?)
    }

    /// A recording or a pack.
    ///
    /// # Errors
    /// It is damaged, or breaks a rule.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        Self::from_files(Files::from_bytes(bytes, &Trust::default())?)
    }

    /// # Errors
    /// The recording is damaged, or breaks a rule.
    pub fn from_files(files: Files) -> Result<Self> {
        Self::of_form(files, None, false)
    }

    pub(crate) fn beside(files: Files, other: &Self) -> Result<Self> {
        Self::with(files, None, false, Some(other.clone()))
    }

    pub(crate) fn of_form(files: Files, origin: Option<Self>, is_form: bool) -> Result<Self> {
        Self::with(files, origin, is_form, None)
    }

    fn with(
        files: Files,
        origin: Option<Self>,
        is_form: bool,
        beside: Option<Self>,
    ) -> Result<Self> {
        let parsed = Parsed::try_new(files, Files::view)?;
        let checked = Checked::try_new(parsed, |parsed| {
            parsed.borrow_owner().verify(parsed.borrow_dependent())
        })?;
        let view = checked.borrow_dependent().recording();
        Ok(Self(Arc::new(Shared {
            tensors: TensorInfo::all(view),
            layers: Layer::all(view),
            checked,
            origin,
            _beside: beside,
            is_form,
            joined: OnceLock::new(),
        })))
    }

    /// The recording's name.
    pub fn name(&self) -> String {
        self.files().name()
    }

    /// All tensors.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.0.tensors
    }

    /// Separately runnable parts, in order.
    pub fn layers(&self) -> &[Layer] {
        &self.0.layers
    }

    /// Facts for people.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.files().manifest.as_ref()
    }

    /// Files that it comes from.
    pub fn files(&self) -> &Files {
        self.0.checked.borrow_owner().borrow_owner()
    }

    /// The engine's view.
    pub fn verified(&self) -> &Verified<'_> {
        self.0.checked.borrow_dependent()
    }
}

impl std::fmt::Debug for Recording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Recording")
            .field(&self.files().path)
            .finish()
    }
}
