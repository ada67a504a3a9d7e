// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run's first memory, uploaded in parts on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

use gpureplay_cuda_launch::recording::{CHUNK, Hash, Run, Store, WeightTensor};

use crate::relocate::{Leaving, Moves};
use crate::{Gpu, ReplayError};

/// Source of weights.
pub trait WeightBytes: Send + Sync {
    /// Unchecked until [`WeightBytes::check`].
    ///
    /// # Errors
    /// They are missing.
    fn read(&self, tensor: &WeightTensor, at: u64, bytes: &mut [u8]) -> Result<(), ReplayError>;

    /// Checks a tensor by the hash that [`Store::name`] gives.
    ///
    /// # Errors
    /// Another tensor.
    fn check(&self, tensor: &WeightTensor, found: Hash) -> Result<(), ReplayError>;
}

/// Source of weights.
pub type Weights = Box<dyn WeightBytes>;

/// In bytes: whole chunks.
const PART: usize = 4 * CHUNK;
/// More are not faster.
const MOST_THREADS: usize = 12;

pub(super) struct Source {
    store: Store,
    weights: Option<Weights>,
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

    pub(super) fn set_weights(&mut self, weights: Weights) {
        self.weights = Some(weights);
        self.held.clear();
    }

    fn weights_of(&self, tensor: &WeightTensor) -> Result<&dyn WeightBytes, ReplayError> {
        let weights = self.weights.as_deref();
        weights.ok_or_else(|| wrong(tensor, "no file of weights is given"))
    }

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
                let end = usize::try_from(tensor.size).ok();
                let end = end.and_then(|size| at.checked_add(size));
                let to = end.and_then(|end| bytes.get_mut(at..end));
                let to = to.ok_or_else(|| wrong(tensor, "has another size than recorded"))?;
                let weights = self.weights_of(tensor)?;
                weights.read(tensor, 0, to)?;
                weights.check(tensor, Store::name(to))?;
            }
        }
        Ok(bytes)
    }

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

    pub(super) fn put_back(&self, gpu: &Gpu, run: &Run) -> Result<(), ReplayError> {
        for (memory, bytes) in run.memory.iter().zip(&self.held) {
            match bytes.is_empty() {
                true => gpu.clear(memory.address, memory.size)?,
                false => gpu.upload(memory.address, bytes)?,
            }
        }
        Ok(())
    }

    /// Returns addresses and values of pointers to variables. `entered` makes the context current.
    pub(super) fn upload<E>(
        &self,
        (gpu, run): (&Gpu, &Run),
        entered: impl Fn() -> Result<E, ReplayError> + Sync,
    ) -> Result<Vec<(u64, u64)>, ReplayError> {
        let variables = run.variables.iter();
        let leaving = Leaving::new(variables.map(|one| (one.address, one.size)));
        let send = |address: u64, bytes: &[u8]| {
            gpu.upload(address, bytes)?;
            let found = leaving.words(bytes).into_iter();
            Ok::<_, ReplayError>(found.map(move |(at, word)| (address + at as u64, word)))
        };
        let mut chunks = Vec::new();
        for memory in &run.memory {
            gpu.clear(memory.address, memory.size)?;
            if let Some(contents) = memory.contents {
                let all = self.store.chunks(contents, memory.size)?.into_iter();
                let all = all.filter(|chunk| !chunk.is_zeros());
                chunks.extend(all.map(|chunk| (memory.address + chunk.at, chunk)));
            }
        }
        let found = on_all_cores(&chunks, &entered, |(address, chunk)| {
            Ok(send(*address, &self.store.chunk(chunk)?)?.collect::<Vec<_>>())
        })?;
        // The recording has zeros where the tensors lie.
        let tensors = run.tensors.iter();
        let tensors: Vec<&WeightTensor> = tensors.filter(|one| !one.places.is_empty()).collect();
        let mut parts = Vec::new();
        for (number, tensor) in tensors.iter().enumerate() {
            parts.extend((0..tensor.size).step_by(PART).map(|at| (number, at)));
        }
        let hashes = on_all_cores(&parts, &entered, |(number, at)| {
            let tensor = tensors[*number];
            let size = usize::try_from(tensor.size - at).unwrap_or(PART).min(PART);
            let mut bytes = vec![0; size];
            self.weights_of(tensor)?.read(tensor, *at, &mut bytes)?;
            let hashes: Vec<Hash> = bytes.chunks(CHUNK).map(Hash::of).collect();
            let mut found = Vec::new();
            for place in &tensor.places {
                found.extend(send(place + at, &bytes)?);
            }
            Ok((*number, hashes, found))
        })?;
        for own in hashes.chunk_by(|one, next| one.0 == next.0) {
            let tensor = tensors[own[0].0];
            let own: Vec<Hash> = own
                .iter()
                .flat_map(|(_, hashes, _)| hashes)
                .copied()
                .collect();
            self.weights_of(tensor)?
                .check(tensor, Store::name_of(&own))?;
        }
        let of_weights = hashes.into_iter().flat_map(|(.., found)| found);
        Ok(found.into_iter().flatten().chain(of_weights).collect())
    }

    pub(super) fn held(&self) -> &[Vec<u8>] {
        &self.held
    }

    pub(super) fn put(&mut self, held: Vec<Vec<u8>>) {
        self.held = held;
    }

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

fn wrong(tensor: &WeightTensor, reason: &str) -> ReplayError {
    ReplayError::Weights {
        name: tensor.name.clone(),
        reason: reason.into(),
    }
}

/// Answers in order; the first error counts. `enter`'s result lives as long as its thread.
fn on_all_cores<T: Sync, E, R: Send>(
    items: &[T],
    enter: &(impl Fn() -> Result<E, ReplayError> + Sync),
    work: impl Fn(&T) -> Result<R, ReplayError> + Sync,
) -> Result<Vec<R>, ReplayError> {
    let next = AtomicUsize::new(0);
    let share = || -> Result<Vec<(usize, R)>, ReplayError> {
        let _entered = enter()?;
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else {
                return Ok(done);
            };
            let answer = work(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
            done.push((number, answer));
        }
    };
    let cores = gpureplay_host::cores();
    let threads = cores.min(MOST_THREADS).min(items.len());
    let mut all = std::thread::scope(|scope| {
        // Without another thread this one does all.
        let others: Vec<_> = (1..threads)
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, share).ok())
            .collect();
        let own = if threads > 0 { share() } else { Ok(Vec::new()) };
        others.into_iter().fold(own, |done, thread| {
            let other = thread.join();
            let other = other.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let mut done = done?;
            done.extend(other?);
            Ok(done)
        })
    })?;
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, answer)| answer).collect())
}
