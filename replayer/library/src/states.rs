// SPDX-License-Identifier: MIT OR Apache-2.0
//! A session's states on the caller's side.
//!
//! A failed run or an unfinished inference leaves them as they were; the next run puts them into GPU memory first.

use gpureplay_format::TensorKind;

use crate::tensors::TensorInfo;

/// Each value has as many bytes as the tensor.
#[derive(Clone, Debug, Default)]
struct Slot {
    bytes: usize,
    /// Unknown before loading.
    initial: Option<Vec<u8>>,
    /// Left by the last run, or bound.
    value: Option<Vec<u8>>,
    /// Left by the current run.
    coming: Vec<u8>,
    came: bool,
    /// GPU memory may hold something else.
    stale: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct States {
    /// By tensor; states only.
    slots: Vec<Option<Slot>>,
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

    /// Indices and sizes in bytes.
    pub(crate) fn sizes(&self) -> Vec<(usize, usize)> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter_map(|(index, slot)| Some((index, slot.as_ref()?.bytes)))
            .collect()
    }

    pub(crate) fn is_one(&self, tensor: usize) -> bool {
        self.slots.get(tensor).is_some_and(Option::is_some)
    }

    /// `None` if only set-up knows it.
    pub(crate) fn value(&self, tensor: usize) -> Option<&[u8]> {
        let slot = self.slots.get(tensor)?.as_ref()?;
        slot.value.as_deref().or(slot.initial.as_deref())
    }

    /// `None`: as after set-up.
    pub(crate) fn set(&mut self, tensor: usize, value: Option<Vec<u8>>) {
        if let Some(slot) = self.slot(tensor) {
            slot.value = value;
            slot.stale = true;
        }
    }

    /// Returns the memory for reuse.
    pub(crate) fn forget_initial(&mut self, tensor: usize) -> Vec<u8> {
        let slot = self.slot(tensor);
        slot.and_then(|slot| slot.initial.take())
            .unwrap_or_default()
    }

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

    pub(crate) fn lost(&mut self) {
        for slot in self.all() {
            slot.came = false;
            slot.stale = true;
        }
    }

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

    /// `None` if GPU memory holds it already.
    pub(crate) fn going(&self, tensor: usize) -> Option<&[u8]> {
        let slot = self.slots.get(tensor)?.as_ref()?;
        self.value(tensor).filter(|_| slot.stale)
    }

    pub(crate) fn coming(&mut self, tensor: usize) -> Option<&mut [u8]> {
        let slot = self.slot(tensor)?;
        slot.came = true;
        slot.coming.resize(slot.bytes, 0);
        Some(&mut slot.coming)
    }
}
