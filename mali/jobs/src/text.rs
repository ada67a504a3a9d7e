// SPDX-License-Identifier: MIT OR Apache-2.0
//! What jobs name, as text.

use mali_facts::walk::{Found, Problem, Visitor};
use mali_facts::{JobType, Profile, Text};

use crate::walk::Submission;

struct Chosen<'a> {
    text: Text<'a>,
    left: usize,
    next: usize,
    selected: &'a [usize],
    on: bool,
}

impl Visitor for Chosen<'_> {
    fn wants_more(&self) -> bool {
        self.on && self.left > 0
    }

    fn job(&mut self, address: u64, kind: Option<JobType>) {
        self.on = self.selected.binary_search(&self.next).is_ok();
        self.next += 1;
        if self.on {
            self.text.job(address, kind);
        }
    }

    fn descriptor(&mut self, found: &Found<'_>) {
        if self.on && self.left > 0 {
            self.left -= 1;
            self.text.descriptor(found);
        }
    }

    fn problem(&mut self, address: u64, problem: &Problem) {
        if self.on {
            self.text.problem(address, problem);
        }
    }
}

/// Descriptors of the jobs in `selected`, which ascends; the submission's first job is number `first`. `left`: most
/// descriptors.
pub fn descriptors_of(
    submission: &Submission<'_>,
    profile: &Profile,
    first: usize,
    selected: &[usize],
    left: &mut usize,
) -> String {
    let mut text = String::new();
    let mut chosen = Chosen {
        text: Text::new(&mut text, profile.architecture),
        left: *left,
        next: first,
        selected,
        on: false,
    };
    submission.walk(profile, &mut chosen);
    *left = chosen.left;
    text
}
