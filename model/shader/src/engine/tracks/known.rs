// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sets of work groups have tracks.

use std::collections::HashMap;

use super::pages::{Reached, Resolved};
use super::record::Recorder;
use super::room::Room;
use super::track::Track;
use crate::core::{Core, Counts};
use crate::engine::batch::Batch;

/// Larger dispatches take so long that others use the memory better.
const MOST_SETS: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Set {
    pub(crate) first: u64,
    pub(crate) core: Option<u32>,
}

#[derive(Debug)]
enum Known {
    Seen,
    Track(Box<Track>),
    Refused,
}

#[derive(Debug)]
pub(crate) struct Tracks {
    known: HashMap<Set, Known>,
    reached: Reached,
    room: Room,
    full: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Followed,
    Record,
    Execute,
}

impl Tracks {
    pub(crate) fn new(room: Room) -> Tracks {
        Tracks {
            known: HashMap::new(),
            reached: Reached::default(),
            room,
            full: false,
        }
    }

    pub(crate) fn take(&mut self) -> Tracks {
        let none = Tracks::new(self.room.share());
        std::mem::replace(self, none)
    }

    pub(crate) fn go<'s>(
        &mut self,
        (set, sets): (Set, u64),
        pages: &mut Resolved<'s>,
        batches: &mut [Batch],
        core: &mut Core<'s>,
    ) -> Way {
        if sets > MOST_SETS {
            return Way::Execute;
        }
        let full = self.full || self.known.len() as u64 > 2 * MOST_SETS;
        match self.known.get(&set) {
            Some(Known::Track(track)) => {
                // A failure comes again, and is reported, when the clauses execute.
                let done =
                    pages.complete(&self.reached, core) && track.follow(pages, batches, core);
                if !done {
                    return Way::Execute;
                }
                self.room.win(track.counts.clauses());
                Way::Followed
            }
            Some(Known::Seen) if !full && self.room.is_worth_it() => Way::Record,
            None if !full => {
                self.known.insert(set, Known::Seen);
                Way::Execute
            }
            _ => Way::Execute,
        }
    }

    /// [`Tracks::keep`] must follow.
    pub(crate) fn recorder(&mut self, batches: usize) -> Recorder {
        let reached = std::mem::take(&mut self.reached);
        Recorder::new(batches, reached, self.room.bytes_left())
    }

    pub(crate) fn keep(
        &mut self,
        set: Set,
        recorder: Recorder,
        (counts, failed): (Counts, bool),
        batches: &mut [Batch],
    ) {
        self.room.spend(counts.clauses());
        self.full |= recorder.is_too_long();
        let wanted =
            !failed && !recorder.is_refused() && self.room.take(recorder.bytes() + counts.bytes());
        let (track, reached) = recorder.track((counts, wanted), batches);
        self.reached = reached;
        let known = track.map_or(Known::Refused, |track| Known::Track(Box::new(track)));
        self.known.insert(set, known);
    }
}
