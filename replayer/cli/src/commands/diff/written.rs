// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the instruction that writes a byte.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_core::{Chain, Gpu};
use gpureplay_format::Action;
use gpureplay_jobs::Shown;
use gpureplay_library::{Bindings, Device, Recording, Session};
use gpureplay_on_model::{OnModel, Watch, Watched};
use mali_jobs::walk::Codes;
use mali_model::{Product, Writer};
use serde::Serialize;

/// What wrote a byte.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "by")]
pub(super) enum Written {
    /// A store or an atomic operation.
    Instruction {
        /// Address of the job, or of the instruction that dispatched it.
        #[serde(skip)]
        job: u64,
        /// Address of the shader.
        shader: String,
        /// Address of the clause; on Valhall, of the first word of the block.
        clause: String,
        /// The clause or the word as `gpureplay disasm` calls it.
        label: String,
        /// The tuple of the clause, counted from 0; none on Valhall.
        #[serde(skip_serializing_if = "Option::is_none")]
        tuple: Option<usize>,
        /// The instruction as `gpureplay disasm` prints it; of a block, each that may be it.
        instruction: String,
    },
    /// The status of a job, or the value of a write-value job.
    JobManager {
        /// Address.
        #[serde(skip)]
        job: u64,
    },
    /// No job of the chain writes it on the model.
    Nobody,
}

impl Written {
    pub(super) fn job(&self) -> Option<u64> {
        match self {
            Self::Instruction { job, .. } | Self::JobManager { job } => Some(*job),
            Self::Nobody => None,
        }
    }

    /// `of` says what `job` is the address of.
    pub(super) fn text(&self, of: &str) -> String {
        match self {
            Self::Instruction {
                job,
                shader,
                clause,
                label,
                tuple,
                instruction,
            } => {
                let place = match tuple {
                    Some(tuple) => format!("in tuple {tuple} of {label}"),
                    None => format!("in the block from {label} on"),
                };
                format!(
                    "written in {of} {job:#x} by {instruction}\n  {place} at {clause}, shader {shader}"
                )
            }
            Self::JobManager { job } => {
                format!("written by the job manager when {of} {job:#x} ended, not by a shader")
            }
            Self::Nobody => "no job of this chain writes it on the model: it did not come from a store that the recording asks for".into(),
        }
    }
}

/// Asks the model for the writer just before the chain starts.
struct Search {
    chain: u32,
    words: Vec<u8>,
    va: u64,
    has_clauses: bool,
    found: Arc<Mutex<Option<Written>>>,
}

impl Watch for Search {
    fn starts(&mut self, device: &mut OnModel, number: u32, chain: &Chain) -> bool {
        if number < self.chain {
            return true;
        }
        let writer = device.writer(chain, &self.words, self.va);
        let found = writer.and_then(|writer| describe(device, self.has_clauses, writer));
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
        false
    }
}

fn describe(device: &mut OnModel, has_clauses: bool, writer: Writer) -> Option<Written> {
    let (job, shader, clause) = match writer {
        Writer::Nobody => return Some(Written::Nobody),
        Writer::JobManager { job } => return Some(Written::JobManager { job }),
        Writer::Clause {
            job,
            shader,
            clause,
        } => (job, shader, clause),
    };
    let offset = clause.checked_sub(shader)?;
    let instruction = |code: Shown<'_>, tuple, instruction| Written::Instruction {
        job,
        shader: format!("{shader:#x}"),
        clause: format!("{clause:#x}"),
        label: code.place(offset),
        tuple,
        instruction,
    };
    let device = RefCell::new(device);
    let memory = |va: u64, to: &mut [u8]| device.borrow_mut().read_memory(va, to).is_ok();
    let mut codes = Codes::default();
    let (code, words);
    let shown = match has_clauses {
        true => {
            code = codes.at(&memory, shader).ok()?;
            Shown::Clauses(&code)
        }
        false => {
            words = codes.words_at(&memory, shader).ok()?;
            Shown::Words(&words)
        }
    };
    let text = shown.messages(offset, Some(true))?;
    Some(instruction(shown, shown.tuple(offset), text))
}

/// Instructions of a launch, counted from 1; none of a chain.
fn launched(recording: &Recording, number: u32) -> Vec<u8> {
    let view = recording.verified().recording();
    let segments = view.segments().iter();
    let actions = segments.flat_map(|segment| view.segment_actions(segment).flatten());
    let launches = actions.filter_map(|action| match action {
        Action::Launch { words, .. } => Some(words),
        _ => None,
    });
    let before = number.saturating_sub(1) as usize;
    let mut launches = launches.skip(before);
    launches.next().unwrap_or_default().to_vec()
}

/// `chain` counts from 1. `None` if the model cannot tell within a run's work limit.
pub(super) fn written(
    recording: &Recording,
    bindings: &Bindings,
    work_limit: Option<u64>,
    (chain, va): (u32, u64),
) -> Option<Written> {
    let model = Product::by_id(recording.verified().recording().gpu_id())?;
    let has_clauses = model.profile().architecture.has_clauses();
    let options = mali_model::Options {
        work_limit,
        ..mali_model::Options::default()
    };
    let device = OnModel::new(model, options).ok()?;
    let found = Arc::new(Mutex::new(None));
    let search = Search {
        chain,
        words: launched(recording, chain),
        va,
        has_clauses,
        found: found.clone(),
    };
    let device = Device::custom(Box::new(Watched::new(device, search)), "model");
    let mut session = Session::on(recording.clone(), device);
    session.ignore_identity(true);
    session.bind_all(bindings.clone());
    // This fails: the chain does not start.
    let _ = session.run();
    drop(session);
    found.lock().unwrap_or_else(PoisonError::into_inner).take()
}
