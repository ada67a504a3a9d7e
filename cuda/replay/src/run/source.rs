// SPDX-License-Identifier: MIT OR Apache-2.0
//! What memory held at the beginning of a run: from the recording, and weights from their file. It goes to the device in small parts,
//! on all cores; the host does not hold it meanwhile, unless it is wanted often.

use std::sync::atomic::{AtomicUsize, Ordering};

use gpureplay_cuda_launch::recording::{Run, Store, WeightTensor};

use crate::relocate::Moves;
use crate::{Gpu, ReplayError};

/// Says the bytes of a tensor of weights, part by part, in order: where each begins, and its bytes. What they are is known at the end.
pub type Weights =
    Box<dyn Fn(&WeightTensor, &mut dyn FnMut(u64, &[u8]) -> Done) -> Done + Send + Sync>;
type Done = Result<(), ReplayError>;

/// Threads that read; more do not read faster.
const MOST_THREADS: usize = 12;

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
                weights(tensor, &mut |offset, part| {
                    let begin = at.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX));
                    let to = bytes.get_mut(begin..);
                    let to = to.and_then(|rest| rest.get_mut(..part.len()));
                    to.ok_or_else(|| wrong("has another size than recorded"))?
                        .copy_from_slice(part);
                    Ok(())
                })?;
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

    /// Puts all pieces into the device's memory, pointers to variables rewritten; says how many. `entered` makes the context that of the
    /// thread that calls it.
    pub(super) fn upload<E>(
        &self,
        (gpu, run, moves): (&Gpu, &Run, &Moves),
        entered: impl Fn() -> Result<E, ReplayError> + Sync,
    ) -> Result<usize, ReplayError> {
        if !self.held.is_empty() {
            return self.each(run, moves, |number, bytes| {
                let memory = &run.memory[number];
                match bytes.is_empty() {
                    true => gpu.clear(memory.address, memory.size),
                    false => gpu.upload(memory.address, bytes),
                }
            });
        }
        let rewritten = AtomicUsize::new(0);
        let send = |address: u64, bytes: &mut [u8]| {
            if !moves.is_empty() {
                rewritten.fetch_add(moves.apply(bytes).len(), Ordering::Relaxed);
            }
            gpu.upload(address, bytes)
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
        on_all_cores(&chunks, &entered, |(address, chunk)| {
            send(*address, &mut self.store.chunk(chunk)?)
        })?;
        // They lie where the recording has zeros.
        let tensors = run.tensors.iter();
        let mut tensors: Vec<&WeightTensor> =
            tensors.filter(|one| !one.places.is_empty()).collect();
        tensors.sort_unstable_by_key(|tensor| std::cmp::Reverse(tensor.size));
        on_all_cores(&tensors, &entered, |tensor| {
            let weights = self.weights.as_ref();
            let weights = weights.ok_or_else(|| ReplayError::Weights {
                name: tensor.name.clone(),
                reason: "no file of weights is given".into(),
            })?;
            weights(tensor, &mut |offset, bytes| {
                let end = offset.checked_add(bytes.len() as u64);
                if end.is_none_or(|end| end > tensor.size) {
                    return Err(ReplayError::Weights {
                        name: tensor.name.clone(),
                        reason: "has another size than recorded".into(),
                    });
                }
                let mut places = tensor.places.iter();
                places.try_for_each(|place| send(place + offset, &mut bytes.to_vec()))
            })
        })?;
        Ok(rewritten.into_inner())
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

/// Does `work` on every item, on several cores; each thread begins with `enter`, and keeps what it gives. The first error counts.
fn on_all_cores<T: Sync, E>(
    items: &[T],
    enter: &(impl Fn() -> Result<E, ReplayError> + Sync),
    work: impl Fn(&T) -> Done + Sync,
) -> Done {
    let next = AtomicUsize::new(0);
    let share = || {
        let _entered = enter()?;
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item).inspect_err(|_| next.store(items.len(), Ordering::Relaxed))?;
        }
        Ok(())
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(MOST_THREADS).min(items.len());
    std::thread::scope(|scope| {
        // Where the system has no thread left, this one does all.
        let others: Vec<_> = (1..threads)
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, share).ok())
            .collect();
        let own = if threads > 0 { share() } else { Ok(()) };
        others.into_iter().fold(own, |done, thread| {
            let other = thread.join();
            done.and(other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    })
}
