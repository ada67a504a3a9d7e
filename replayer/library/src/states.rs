// SPDX-License-Identifier: MIT OR Apache-2.0
//! The states of a session on the caller's side: what the next run starts from, whatever becomes of the device.
//!
//! A run that ends well gives its states back, and only then do they count. So a run that fails, or an inference that is given up
//! between two layers, leaves them as they were; the next one puts them into GPU memory first.

use gpureplay_format::TensorKind;

use crate::tensors::TensorInfo;

/// One state. Its bytes are as many as the tensor has, wherever there are any.
#[derive(Clone, Debug, Default)]
struct Slot {
    bytes: usize,
    /// What set-up leaves in its memory; unknown before the recording was loaded.
    initial: Option<Vec<u8>>,
    /// What the last run left, or the caller wrote.
    value: Option<Vec<u8>>,
    /// What the current run leaves.
    coming: Vec<u8>,
    /// `coming` was written.
    came: bool,
    /// GPU memory may hold something else.
    stale: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct States {
    /// By tensor; nothing for other kinds.
    slots: Vec<Option<Slot>>,
    /// An inference has begun and not ended.
    begun: bool,
}

impl States {
    pub(crate) fn new(tensors: &[TensorInfo]) -> Self {
        let slot = |info: &TensorInfo| {
            (info.kind == TensorKind::State).then(|| Slot {
                bytes: info.bytes,
                ..Slot::default()
            })
        };
        Self {
            slots: tensors.iter().map(slot).collect(),
            begun: false,
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Slot> {
        self.slots.iter_mut().flatten()
    }

    fn slot(&mut self, tensor: usize) -> Option<&mut Slot> {
        self.slots.get_mut(tensor)?.as_mut()
    }

    /// Indices of the states and their sizes in bytes.
    pub(crate) fn sizes(&self) -> Vec<(usize, usize)> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter_map(|(index, slot)| Some((index, slot.as_ref()?.bytes)))
            .collect()
    }

    pub(crate) fn is_one(&self, tensor: usize) -> bool {
        self.slots.get(tensor).is_some_and(Option::is_some)
    }

    /// What the next run starts from; nothing if only set-up knows it.
    pub(crate) fn value(&self, tensor: usize) -> Option<&[u8]> {
        let slot = self.slots.get(tensor)?.as_ref()?;
        slot.value.as_deref().or(slot.initial.as_deref())
    }

    /// Gives a state a value, or with `None` the one that it has after set-up.
    pub(crate) fn set(&mut self, tensor: usize, value: Option<Vec<u8>>) {
        if let Some(slot) = self.slot(tensor) {
            slot.value = value;
            slot.stale = true;
        }
    }

    /// Takes away what set-up left the last time, so that its memory can hold what it leaves this time.
    pub(crate) fn forget_initial(&mut self, tensor: usize) -> Vec<u8> {
        let slot = self.slot(tensor);
        slot.and_then(|slot| slot.initial.take())
            .unwrap_or_default()
    }

    /// The recording was loaded, and this is what set-up left.
    pub(crate) fn loaded(&mut self, tensor: usize, initial: Vec<u8>) {
        if let Some(slot) = self.slot(tensor) {
            slot.initial = Some(initial);
            slot.stale = slot.value.is_some();
        }
    }

    pub(crate) fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            self.lost();
        }
    }

    /// GPU memory holds nothing any more, or something else.
    pub(crate) fn lost(&mut self) {
        for slot in self.all() {
            slot.came = false;
            slot.stale = true;
        }
    }

    /// All layers of an inference have run: what they left is what the next one starts from.
    pub(crate) fn end(&mut self) {
        self.begun = false;
        for slot in self.all() {
            if std::mem::replace(&mut slot.came, false) {
                let old = slot.value.take().unwrap_or_default();
                slot.value = Some(std::mem::replace(&mut slot.coming, old));
                slot.stale = false;
            }
        }
    }

    /// What a run puts into memory before its jobs; nothing if it is there.
    pub(crate) fn going(&self, tensor: usize) -> Option<&[u8]> {
        let slot = self.slots.get(tensor)?.as_ref()?;
        self.value(tensor).filter(|_| slot.stale)
    }

    /// Room for what a run leaves.
    pub(crate) fn coming(&mut self, tensor: usize) -> Option<&mut [u8]> {
        let slot = self.slot(tensor)?;
        slot.came = true;
        slot.coming.resize(slot.bytes, 0);
        Some(&mut slot.coming)
    }
}
