// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds a file's elements in GPU memory.
//!
//! Each bit pattern is looked up in changed pages (`scan`); strides follow from places of single elements (`fit`).
//! *Every* element must agree: a coincidence makes the search longer but not wrong.

pub(crate) mod error;
mod fit;
mod flat;
mod near;
mod scan;

use gpureplay_format::{MAX_AXES, Piece};
use gpureplay_tensors::{Element, ElementType, Layout, Tensor, distinctiveness};
use gpureplay_trace::PAGE_SIZE;

pub use error::TagError;

use crate::capture::Capture;
use crate::pages::Moment;

/// A tensor looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Role.
    pub role: Role,
    /// Name.
    pub name: String,
    /// Element type.
    pub dtype: ElementType,
    /// Shape.
    pub shape: Vec<u64>,
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (role, dtype) = (self.role.name(), self.dtype.name());
        write!(f, "{role} '{}' ({dtype} {:?})", self.name, self.shape)
    }
}

/// Role of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Read by the app; other values in every run.
    Input,
    /// Written by the app.
    Output,
    /// Read by the app; part of the model.
    Weight,
    /// Changed by jobs, and kept for the next run; first written by the app.
    State,
    /// Written and read by jobs; the file's values agree up to rounding.
    Intermediate,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Input => "input",
            Role::Output => "output",
            Role::Weight => "weight",
            Role::Intermediate => "intermediate",
            Role::State => "state",
        }
    }

    fn writer(self) -> &'static str {
        match self {
            Role::Output | Role::Intermediate => "the GPU wrote",
            Role::Input | Role::Weight | Role::State => "the app wrote",
        }
    }
}

/// A found tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Role.
    pub role: Role,
    /// Name.
    pub name: String,
    /// Slowest dimension first.
    pub shape: Vec<u32>,
    /// Several pieces for copies.
    pub layout: Layout,
    /// The app writes it before this job, or this job does.
    pub job: usize,
    /// In the GPU's type; differs from the file's if the app converts.
    pub tensor: Tensor,
    /// The file's type, if converted.
    pub converted_from: Option<ElementType>,
}

impl Found {
    /// Jobs compute it.
    pub fn is_result(&self) -> bool {
        matches!(self.role, Role::Output | Role::Intermediate)
    }
}

/// Searches app writes forwards for inputs and weights, GPU writes backwards for outputs.
///
/// # Errors
/// What was found instead; see [`TagError`].
pub fn find(capture: &Capture, role: Role, name: &str, tensor: &Tensor) -> Result<Found, TagError> {
    let shape = check_shape(name, tensor)?;
    let mut best: Option<TagError> = None;
    for candidate in candidates(tensor) {
        let converted_from = (candidate.dtype() != tensor.dtype()).then_some(tensor.dtype());
        match find_as(capture, role, name, &candidate) {
            Ok((job, pieces)) => {
                let layout = Layout {
                    dtype: candidate.dtype(),
                    pieces,
                };
                return Ok(Found {
                    role,
                    name: name.to_string(),
                    shape,
                    layout,
                    job,
                    tensor: candidate,
                    converted_from,
                });
            }
            Err(error @ (TagError::PartialCopy { .. } | TagError::WrittenAgain { .. })) => {
                return Err(error);
            }
            Err(error) => best = Some(best.map_or(error.clone(), |b| closer(b, error))),
        }
    }
    Err(best.unwrap_or_else(|| TagError::Unsupported {
        name: name.to_string(),
        why: "it is empty".to_string(),
    }))
}

fn candidates(tensor: &Tensor) -> Vec<Tensor> {
    let mut out = vec![tensor.clone()];
    let converted = match tensor.dtype() {
        ElementType::F32 => Some(ElementType::F16),
        ElementType::F64 => Some(ElementType::F32),
        ElementType::I64 => Some(ElementType::I32),
        _ => None,
    };
    if let Some(dtype) = converted {
        let converted = Tensor::from_fn(dtype, tensor.shape(), |i| tensor.value(i));
        out.extend(converted.ok());
    }
    out
}

fn closer(a: TagError, b: TagError) -> TagError {
    let found = |e: &TagError| match e {
        TagError::NoLayout { found, .. } => *found,
        _ => 0,
    };
    if found(&b) > found(&a) { b } else { a }
}

fn check_shape(name: &str, tensor: &Tensor) -> Result<Vec<u32>, TagError> {
    let unsupported = |why: String| TagError::Unsupported {
        name: name.to_string(),
        why,
    };
    if tensor.is_empty() {
        return Err(unsupported(format!(
            "shape {:?} has no elements",
            tensor.shape()
        )));
    }
    if u32::try_from(tensor.bytes().len()).is_err() {
        return Err(unsupported("it is larger than 4 GiB".to_string()));
    }
    let extents = tensor.shape().iter().map(|e| u32::try_from(*e));
    extents
        .collect::<Result<_, _>>()
        .map_err(|_| unsupported("an extent exceeds 32 bits".to_string()))
}

fn find_as(
    capture: &Capture,
    role: Role,
    name: &str,
    tensor: &Tensor,
) -> Result<(usize, Vec<Piece>), TagError> {
    if role == Role::Intermediate {
        return near::find(capture, name, tensor)?.ok_or_else(|| TagError::NotFound {
            wanted: Box::new(Wanted {
                role,
                name: name.to_string(),
                dtype: tensor.dtype(),
                shape: tensor.shape().to_vec(),
            }),
            hint: "is it what a job ends with? frameworks join layers (a convolution with its activation), and may \
                   leave rows of memory between"
                .to_string(),
        });
    }
    // Many weights, each searched in all memory: a sample usually does.
    if role == Role::Weight
        && let Some(sample) = scan::Keys::sampled(tensor)
        && let Ok(found) = find_with(capture, role, name, tensor, &sample)
    {
        return Ok(found);
    }
    find_with(capture, role, name, tensor, &scan::Keys::new(tensor))
}

fn find_with(
    capture: &Capture,
    role: Role,
    name: &str,
    tensor: &Tensor,
    keys: &scan::Keys,
) -> Result<(usize, Vec<Piece>), TagError> {
    let moments: Vec<Moment> = match role {
        Role::Output | Role::Intermediate => {
            (0..capture.jobs.len()).rev().map(Moment::after).collect()
        }
        Role::Input | Role::Weight | Role::State => {
            (0..capture.jobs.len()).map(Moment::before).collect()
        }
    };
    let repeats = repeats(tensor);
    let mut found: Option<(usize, Vec<Piece>)> = None;
    let mut nearest: Option<(usize, String)> = None;
    let mut unchanged = 0;
    for moment in moments {
        let pages = capture.memory.changed(moment);
        let hits = scan::scan(&capture.memory, moment, pages, keys);
        let search = fit::Search {
            memory: &capture.memory,
            moment,
            tensor,
            hits: &hits,
            role,
        };
        let mut copies = match hits.is_empty() {
            true => Vec::new(),
            false => search.layouts(),
        };
        if copies.is_empty() && repeats {
            copies = flat::find(&capture.memory, moment, pages, tensor);
        }
        if copies.is_empty() && hits.is_empty() {
            continue;
        }
        if role == Role::State {
            // Jobs go on with only one copy.
            unchanged += copies.len();
            copies.retain(|piece| changes(capture, tensor, piece, moment));
            unchanged -= copies.len();
            if copies.len() > 1 {
                return Err(TagError::Unsupported {
                    name: name.to_string(),
                    why: format!(
                        "jobs change {} places that hold its first value",
                        copies.len()
                    ),
                });
            }
            if let Some(found) = copies.pop() {
                return Ok((moment.job(), vec![found]));
            }
            continue;
        }
        let Some(first) = copies.first() else {
            let seen = hits.elements();
            if nearest.as_ref().is_none_or(|(n, _)| *n < seen) {
                nearest = Some((seen, search.describe()));
            }
            continue;
        };
        if role == Role::Output {
            let job = last_holding(capture, tensor, first, moment.job());
            return Ok((job, vec![first.clone()]));
        }
        if let Some((job, known)) = &found {
            if copies.iter().all(|c| known.contains(c)) {
                continue;
            }
            if role == Role::Input {
                return Err(TagError::WrittenAgain {
                    name: name.to_string(),
                    job: moment.job(),
                    va: first.va,
                });
            }
            debug_assert!(*job < moment.job());
        }
        if role == Role::Input
            && let Some((first, last, va)) = search.leftover(&copies)
        {
            return Err(TagError::PartialCopy {
                name: name.to_string(),
                first,
                last,
                va,
                job: moment.job(),
            });
        }
        let job = found.as_ref().map_or(moment.job(), |(job, _)| *job);
        let mut pieces = found.take().map_or_else(Vec::new, |(_, pieces)| pieces);
        pieces.extend(copies);
        pieces.sort_by_key(|p| p.va);
        pieces.dedup();
        found = Some((job, pieces));
    }
    if let Some(found) = found {
        return Ok(found);
    }
    if unchanged > 0 {
        return Err(TagError::Unsupported {
            name: name.to_string(),
            why: "no job changes it after the app wrote it: a state is what a run changes"
                .to_string(),
        });
    }
    let wanted = Box::new(Wanted {
        role,
        name: name.to_string(),
        dtype: tensor.dtype(),
        shape: tensor.shape().to_vec(),
    });
    let hint = hint(role, tensor);
    Err(match nearest {
        None => TagError::NotFound { wanted, hint },
        Some((found, detail)) => TagError::NoLayout {
            wanted,
            found,
            detail,
            hint,
        },
    })
}

fn changes(capture: &Capture, tensor: &Tensor, piece: &Piece, from: Moment) -> bool {
    let layout = Layout {
        dtype: tensor.dtype(),
        pieces: vec![piece.clone()],
    };
    let Some((low, high)) = layout.address_range() else {
        return false;
    };
    (from.job()..capture.jobs.len()).any(|job| {
        let moment = Moment::after(job);
        let pages = capture.memory.changed(moment);
        pages.range(first_page(low)..high).any(|va| {
            let changed = capture.memory.difference(moment, *va);
            changed
                .iter()
                .any(|(start, end)| va + (*start as u64) < high && va + *end as u64 > low)
        })
    })
}

fn repeats(tensor: &Tensor) -> bool {
    let d = distinctiveness(tensor);
    d.distinct * 10 < d.elements * 9
}

/// Later jobs may compute the same values again, which no dump shows; other inputs would give other values. Reading
/// as late as the recording allows gives what the app read.
fn last_holding(capture: &Capture, tensor: &Tensor, piece: &Piece, job: usize) -> usize {
    let layout = Layout {
        dtype: tensor.dtype(),
        pieces: vec![piece.clone()],
    };
    let Some((low, high)) = layout.address_range() else {
        return job;
    };
    let mut last = job;
    for later in job + 1..capture.jobs.len() {
        let changed = [Moment::before(later), Moment::after(later)]
            .iter()
            .any(|moment| {
                let pages = capture.memory.changed(*moment);
                pages.range(first_page(low)..high).next().is_some()
            });
        if changed && !holds(capture, tensor, &layout, Moment::after(later)) {
            break;
        }
        last = later;
    }
    last
}

fn first_page(address: u64) -> u64 {
    address - address % PAGE_SIZE as u64
}

fn holds(capture: &Capture, tensor: &Tensor, layout: &Layout, moment: Moment) -> bool {
    let size = tensor.dtype().bytes();
    layout.runs().all(|run| {
        let mut bytes = vec![0; run.count as usize * size];
        let from = run.element as usize * size;
        capture.memory.read(moment, run.address, &mut bytes)
            && bytes == tensor.bytes()[from..from + bytes.len()]
    })
}

fn hint(role: Role, tensor: &Tensor) -> String {
    let shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
    if matches!(role, Role::Output | Role::Intermediate) {
        return "the app may compute its file from GPU memory instead of copying it (a softmax, an argmax, a \
                conversion): let it write the plain result"
            .to_string();
    }
    if repeats(tensor) {
        let d = distinctiveness(tensor);
        return format!(
            "only {} of its {} elements differ from each other: make a file that can be found with `gpureplay record \
             --make-input FILE.npy --shape {} --dtype {}`, and let the app read that",
            d.distinct,
            d.elements,
            shape.join(","),
            tensor.dtype().name()
        );
    }
    "does the app read this file? it may also convert the values (normalise, quantise) before the GPU sees them"
        .to_string()
}

pub(crate) const AXES: usize = MAX_AXES;

pub(crate) fn element_bits(bytes: &[u8], dtype: ElementType) -> u64 {
    let mut word = [0; 8];
    word[..dtype.bytes()].copy_from_slice(&bytes[..dtype.bytes()]);
    u64::from_le_bytes(word)
}
