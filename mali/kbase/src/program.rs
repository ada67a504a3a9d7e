// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's actions, done as an app of kbase does them: memory is written, chains become atoms.

use gpureplay_format::lz4::History;
use gpureplay_format::{Action, Payload, Recording};

use crate::context::Context;
use crate::error::Error;
use crate::interface::{Atom, DEPENDS_ON_DATA, Dependency, REQUIRES_COMPUTE};
use crate::memory::Memory;
use crate::tensors::{self, Value};

/// The most atoms that are submitted together; numbers of atoms have eight bits.
const MOST_ATOMS: usize = 64;

/// What a run did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Statistics {
    /// Atoms that ended well.
    pub(crate) atoms: usize,
    /// Calls that submitted them.
    pub(crate) submissions: usize,
}

/// Runs a recording's segments.
pub(crate) struct Program<'a> {
    /// The recording.
    pub(crate) recording: Recording<'a>,
    /// Its memory.
    pub(crate) memory: Memory,
    /// Submit each chain by itself, without dependencies.
    pub(crate) one_by_one: bool,
    waiting: Vec<Atom>,
    statistics: Statistics,
}

impl<'a> Program<'a> {
    /// A program that has not run.
    pub(crate) fn new(recording: Recording<'a>, memory: Memory, one_by_one: bool) -> Self {
        Program {
            recording,
            memory,
            one_by_one,
            waiting: Vec::new(),
            statistics: Statistics::default(),
        }
    }

    /// Does all segments once, with these values for tensors.
    pub(crate) fn run(&mut self, context: &Context, values: &[Value]) -> Result<Statistics, Error> {
        self.statistics = Statistics::default();
        let mut index = 0;
        let recording = self.recording;
        for segment in recording.segments() {
            let mut history = History::new();
            for action in recording.segment_actions(segment) {
                let action =
                    action.map_err(|fault| Error::Tensor(format!("action {index}: {fault:?}")))?;
                self.act(context, index, &action, values, &mut history)?;
                index += 1;
            }
            self.submit(context)?;
        }
        Ok(self.statistics)
    }

    fn act(
        &mut self,
        context: &Context,
        index: usize,
        action: &Action<'_>,
        values: &[Value],
        history: &mut History,
    ) -> Result<(), Error> {
        match *action {
            // Registers are the driver's business.
            Action::Write { .. } | Action::Seek { .. } => Ok(()),
            Action::Upload {
                va,
                length,
                payload,
            } => {
                self.submit(context)?;
                match payload {
                    Payload::Raw(bytes) => self.memory.write(va, bytes),
                    Payload::Lz4(block) => {
                        let bytes = history.decode(block, length as usize);
                        self.memory.write(
                            va,
                            bytes.ok_or(Error::Action {
                                index,
                                what: "upload of damaged bytes",
                            })?,
                        )
                    }
                }
            }
            Action::Fill { va, length, byte } => {
                self.submit(context)?;
                // Pages that grow are zero when they come.
                if byte == 0 && self.memory.grows(va, length.into()) {
                    return Ok(());
                }
                self.memory.fill(va, length as usize, byte)
            }
            Action::Rearm { va } => self.memory.write(va, &[0; 16]),
            Action::Launch { .. } => Err(Error::Action {
                index,
                what: "launch, which no recording of a Mali has",
            }),
            Action::Submit { chain, .. } => {
                self.memory.relocate(chain)?;
                let number = self.waiting.len() + 1;
                let mut atom = Atom {
                    chain,
                    number: number as u8,
                    requirements: REQUIRES_COMPUTE,
                    ..Atom::default()
                };
                if let Some(before) = self.waiting.last() {
                    atom.dependencies[0] = Dependency {
                        atom: before.number,
                        kind: DEPENDS_ON_DATA,
                    };
                }
                self.waiting.push(atom);
                if self.one_by_one || self.waiting.len() == MOST_ATOMS {
                    self.submit(context)?;
                }
                Ok(())
            }
            Action::BindInput { tensor } => {
                self.submit(context)?;
                match values.iter().find(|value| value.tensor == tensor) {
                    Some(value) => tensors::scatter(&self.recording, &mut self.memory, value),
                    None => Ok(()),
                }
            }
            Action::BindOutput { .. } => self.submit(context),
        }
    }

    /// Runs the atoms that wait, each after the one before it.
    fn submit(&mut self, context: &Context) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        context.run(&self.waiting)?;
        self.statistics.atoms += self.waiting.len();
        self.statistics.submissions += 1;
        self.waiting.clear();
        Ok(())
    }
}
