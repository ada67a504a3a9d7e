// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remarks on proposals.

use super::*;

impl Builder<'_> {
    pub(super) fn remark_on_unseen(&mut self) {
        for call in &self.events.unseen {
            self.proposal.remarks.push(format!(
                "the app calls {call}: what it does with that memory is not known"
            ));
        }
        if let Some(turns) = self.proposal.turns {
            self.proposal.remarks.push(format!(
                "the app does the same {turns} times; tensors are those of the last time, and what is before it runs once"
            ));
        }
    }

    pub(super) fn remark_on_part(&mut self, origin: Origin, name: &str) {
        let from = |step| Origin {
            step,
            offset: 0,
            size: 0,
        };
        let mut of_write = self.made.range(from(origin.step)..from(origin.step + 1));
        let whole = of_write.next();
        let whole = whole.and_then(|(_, at)| self.proposal.tensors.get(*at));
        if let Some(whole) = whole.map(|tensor| tensor.name.clone()) {
            self.remark(format!(
                "'{name}' is a part of the same data as '{whole}', from byte {} on, which the app copies: give both what belongs together",
                origin.offset
            ));
        }
    }

    /// No input reaches it: a replay gives the same answer for all.
    pub(super) fn remark_on_constants(
        &mut self,
        depend: &BTreeMap<usize, Depends>,
        stated: &Stated,
    ) {
        let unknown = |event: &Event| matches!(event, Event::Launch(l) if l.given.is_empty());
        if !self.events.unseen.is_empty() || self.events.list.iter().any(unknown) {
            return;
        }
        let constant = |step: &usize| depend.get(step).is_some_and(|on| !on.inputs);
        let outputs = std::mem::take(&mut self.outputs);
        for (name, _) in outputs.iter().filter(|(_, step)| constant(step)) {
            let name = stated.name(name);
            self.remark(format!(
                "output '{name}' depends on no input: a replay gives the same answer for every input"
            ));
        }
    }

    /// A replay does not carry over what the app read from the GPU.
    pub(super) fn remark_on_carried(&mut self, step: usize, host: &Host, name: &str) {
        let same = host
            .hash
            .and_then(|hash| self.steps.reads.get(&(host.size, hash)));
        let same = same.map_or(&[][..], Vec::as_slice);
        let earlier = same.partition_point(|other| *other < step).checked_sub(1);
        let Some(at) = earlier.and_then(|last| same.get(last).copied()) else {
            return;
        };
        let Some(Event::Host(read)) = self.events.list.get(at) else {
            return;
        };
        if let Some((launch, given)) = self.writer(at, read) {
            let from = naming::name(launch, given);
            self.remark(format!(
                "'{name}' is what the app read before as '{from}': the app carries it from one launch to another one, a replay does not"
            ));
        }
    }

    pub(super) fn remark_on_filled(&mut self, step: usize, host: &Host) {
        if let Some((call, name)) = self.filled(step, host) {
            self.proposal.lost_output = true;
            self.remark(format!(
                "'{name}' is no output: {call} overwrites a part of it before the app reads it; read the result before that, or in parts"
            ));
        }
    }

    /// The function, and the result's name.
    fn filled(&self, step: usize, host: &Host) -> Option<(String, String)> {
        let mut filled = None;
        for event in self.before(step, host.at.object) {
            match event {
                Event::Moved(moved) if host.is_within(&moved.to) => return None,
                Event::Moved(moved) if host.touches(&moved.to) => {
                    filled = filled.or(Some(moved.call.clone()));
                }
                Event::Host(earlier)
                    if earlier.direction != Direction::Read && earlier.overlaps(host) =>
                {
                    return None;
                }
                Event::Launch(launch) => {
                    let mut given = launch.having(host);
                    if let Some(given) = given.find(|given| !given.is_constant()) {
                        return Some((filled?, naming::name(launch, given)));
                    }
                }
                _ => {}
            }
        }
        None
    }
}
