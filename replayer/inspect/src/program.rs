// SPDX-License-Identifier: MIT OR Apache-2.0
//! GPU memory through the program of a recording: what each action puts there, and what is there when a chain is submitted.

use gpureplay_core::Verified;
use gpureplay_format::lz4::History;
use gpureplay_format::{Action, Payload};
use mali_descriptors::Memory;

use crate::image::Image;
use crate::rules::{DeepRule, DeepViolation};

/// A chain at the moment of its submission.
#[derive(Clone, Copy)]
pub struct Submission<'a> {
    /// Index of the action that submits it.
    pub action: u32,
    /// The job slot.
    pub slot: u8,
    /// Address of its first header.
    pub head: u64,
    /// Headers that were made ready since the submission before.
    pub rearmed: &'a [u64],
    /// Memory as the recording has filled it. What jobs before wrote is not in it.
    pub memory: &'a dyn Memory,
}

/// Shown what [`steps`] finds. All methods have empty defaults.
pub trait Steps {
    /// An action has put `length` bytes at `va` (an upload, a fill, a header made ready).
    fn changed(&mut self, action: u32, va: u64, length: u64, memory: &dyn Memory) {
        let _ = (action, va, length, memory);
    }

    /// A chain is submitted.
    ///
    /// # Errors
    /// What ends the walk.
    fn submitted(&mut self, submission: &Submission<'_>) -> Result<(), DeepViolation> {
        let _ = submission;
        Ok(())
    }
}

/// Goes through all actions in their order, as a first run does.
///
/// # Errors
/// What `steps` returns, or [`DeepRule::MemoryLimit`]: more is uploaded than is kept.
pub fn steps(verified: &Verified<'_>, steps: &mut dyn Steps) -> Result<(), DeepViolation> {
    let recording = verified.recording();
    let mut image = Image::default();
    let mut history = Box::new(History::new());
    for segment in recording.segments() {
        history.clear();
        let first = segment.first_action.get();
        let mut rearmed = Vec::new();
        for (action, step) in (first..).zip(recording.segment_actions(segment)) {
            let full = |address| DeepViolation {
                rule: DeepRule::MemoryLimit,
                action,
                address,
                text: "more memory is uploaded than this check keeps".into(),
            };
            match step {
                Ok(Action::Upload {
                    va,
                    length,
                    payload,
                }) => {
                    let bytes = match payload {
                        Payload::Raw(bytes) => Some(bytes),
                        Payload::Lz4(block) => history.decode(block, length as usize),
                    };
                    // Verified recordings decode.
                    let stored = image.write(va, bytes.unwrap_or(&[]));
                    stored.ok_or_else(|| full(va))?;
                    steps.changed(action, va, length.into(), &image);
                }
                Ok(Action::Fill { va, length, byte }) => {
                    image.fill(va, length, byte).ok_or_else(|| full(va))?;
                    steps.changed(action, va, length.into(), &image);
                }
                Ok(Action::Rearm { va }) => {
                    image.write(va, &[0; 16]).ok_or_else(|| full(va))?;
                    steps.changed(action, va, 16, &image);
                    rearmed.push(va);
                }
                Ok(Action::Submit { chain, slot, .. }) => {
                    steps.submitted(&Submission {
                        action,
                        slot,
                        head: chain,
                        rearmed: &rearmed,
                        memory: &image,
                    })?;
                    rearmed.clear();
                }
                _ => {}
            }
        }
    }
    Ok(())
}
