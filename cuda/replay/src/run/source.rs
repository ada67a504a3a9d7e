// SPDX-License-Identifier: MIT OR Apache-2.0
//! What memory held at the beginning of a run, piece by piece: from the recording, and weights from their file. The host does not
//! hold it meanwhile, unless it is wanted often.

use gpureplay_cuda_launch::recording::{Run, Store, WeightTensor};

use crate::ReplayError;
use crate::relocate::Moves;

/// Says the bytes of a tensor of weights.
pub type Weights = Box<dyn Fn(&WeightTensor) -> Result<Vec<u8>, ReplayError> + Send>;

/// Where the contents of memory come from.
pub(super) struct Source {
    store: Store,
    weights: Option<Weights>,
    /// All pieces, if they are held.
    held: Vec<Vec<u8>>,
}

impl Source {
    pub(super) fn new(store: &Store, weights: Option<Weights>) -> Self {
        Self {
            store: store.clone(),
            weights,
            held: Vec::new(),
        }
    }

    /// Takes weights from elsewhere from now on.
    pub(super) fn set_weights(&mut self, weights: Weights) {
        self.weights = Some(weights);
        self.held.clear();
    }

    /// A piece as recorded, each byte checked against its hash; empty if it has no contents.
    fn read(&self, run: &Run, number: usize) -> Result<Vec<u8>, ReplayError> {
        let memory = &run.memory[number];
        let Some(contents) = memory.contents else {
            return Ok(Vec::new());
        };
        let mut bytes = self.store.get(contents, memory.size)?;
        for tensor in &run.tensors {
            for place in &tensor.places {
                let at = place.checked_sub(memory.address);
                let at = at.filter(|at| *at < memory.size);
                let Some(at) = at.and_then(|at| usize::try_from(at).ok()) else {
                    continue;
                };
                let wrong = |reason: &str| ReplayError::Weights {
                    name: tensor.name.clone(),
                    reason: reason.into(),
                };
                let weights = self.weights.as_ref();
                let weights = weights.ok_or_else(|| wrong("no file of weights is given"))?;
                let found = weights(tensor)?;
                let to = bytes
                    .get_mut(at..)
                    .and_then(|rest| rest.get_mut(..found.len()));
                match to {
                    Some(to) if found.len() as u64 == tensor.size => to.copy_from_slice(&found),
                    _ => return Err(wrong("has another size than recorded")),
                }
            }
        }
        Ok(bytes)
    }

    /// Calls `use_piece` with each piece and its number, pointers to variables rewritten.
    pub(super) fn each(
        &self,
        run: &Run,
        moves: &Moves,
        mut use_piece: impl FnMut(usize, &[u8]) -> Result<(), ReplayError>,
    ) -> Result<usize, ReplayError> {
        let mut rewritten = 0;
        for number in 0..run.memory.len() {
            if let Some(bytes) = self.held.get(number) {
                use_piece(number, bytes)?;
                continue;
            }
            let mut bytes = self.read(run, number)?;
            if !moves.is_empty() {
                rewritten += moves.apply(&mut bytes).len();
            }
            if !bytes.is_empty() {
                use_piece(number, &bytes)?;
            }
        }
        Ok(rewritten)
    }

    /// All pieces, if they are held.
    pub(super) fn held(&self) -> &[Vec<u8>] {
        &self.held
    }

    /// Holds other pieces from now on.
    pub(super) fn put(&mut self, held: Vec<Vec<u8>>) {
        self.held = held;
    }

    /// Holds all pieces from now on, pointers to variables rewritten.
    pub(super) fn hold(&mut self, run: &Run, moves: &Moves) -> Result<(), ReplayError> {
        let mut held = vec![Vec::new(); run.memory.len()];
        self.each(run, moves, |number, bytes| {
            held[number] = bytes.to_vec();
            Ok(())
        })?;
        self.held = held;
        Ok(())
    }
}
