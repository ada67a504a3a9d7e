// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors from host writes and reads.

mod chosen;
mod kept;
mod remarks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use gpureplay_format::Piece;
use gpureplay_tensors::{Element, Form, Layout, Names, Stated, StatedError, Tensor};
use gpureplay_trace::note::Direction;

use super::copies::{self, Depends, Origin};
use super::error::ProposeError;
use super::events::{Event, Events, Given, Host, Launched};
use super::looped;
use super::naming;
use super::place::{Located, Moved, Work, locate};
use super::steps::{Kept, Turn};
use crate::capture::Capture;
use crate::pages::Moment;
use crate::ranges::Ranges;
use crate::tag::{Found, Role};

pub(super) use chosen::apply;

/// The user's choices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Names, types and shapes.
    pub stated: Stated,
    /// What both runs write alike is stored: no tensor.
    pub fixed_weights: bool,
    /// Of a repeated step: the notes before it, and what it leaves.
    pub step: Option<Turn>,
    /// Left for the next step.
    pub kept: Vec<Kept>,
    /// Tensors called states.
    pub states: Vec<String>,
}

/// Tensors found through notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// In app order.
    pub tensors: Vec<Found>,
    /// Second-run values by name.
    pub second: Vec<(String, Tensor)>,
    /// A second run told inputs from weights.
    pub sure: bool,
    /// Memory with other values in each run: earlier turns of a loop, or read through copies.
    pub earlier: Vec<Range<u64>>,
    /// Turns of a loop, if there are several; the tensors are the last one's.
    pub turns: Option<usize>,
    /// For people.
    pub remarks: Vec<String>,
    /// An input was not found; a remark says why.
    pub lost_input: bool,
    /// An output was not found; a remark says why.
    pub lost_output: bool,
}

impl Proposal {
    /// Drops what overlaps tensors found otherwise.
    pub fn leave_to(&mut self, others: &[Found]) {
        let covered = |tensor: &Found| {
            let (low, high) = tensor.layout.address_range()?;
            Some(others.iter().any(|other| {
                let range = other.layout.address_range();
                other.is_result() == tensor.is_result()
                    && range.is_some_and(|(start, end)| start < high && low < end)
            }))
        };
        self.tensors.retain(|tensor| covered(tensor) != Some(true));
        let names: BTreeSet<&str> = self.tensors.iter().map(|t| t.name.as_str()).collect();
        self.second
            .retain(|(name, _)| names.contains(name.as_str()));
    }
}

/// A second run with other inputs tells inputs from weights; without it, the last writes before the final launches
/// count as inputs.
///
/// # Errors
/// No notes, the runs do different things, or a choice names no tensor.
pub fn propose(
    capture: &Capture,
    second: Option<&Capture>,
    choices: &Choices,
) -> Result<Proposal, ProposeError> {
    if capture.opencl.is_empty() {
        return Err(ProposeError::NoNotes);
    }
    let mut events = Events::of(capture);
    let mut other = second.map(Events::of);
    if let Some(other) = &other {
        same_steps(&events.list, &other.list)?;
    }
    let work = Work::default();
    let followed = copies::follow((capture, &mut events), second.zip(other.as_mut()), &work);
    let turns = looped::find(&events.list);
    let mut builder = Builder {
        capture,
        second: second.zip(other.as_ref()),
        events: &events,
        last_turn: turns.map_or(0, |turns| turns.last),
        fixed_weights: choices.fixed_weights,
        step: choices.step.map(|turn| turn.first),
        taken: Names::default(),
        steps: Steps::of(&events.list),
        work,
        moved: Moved::of(capture),
        said: BTreeSet::new(),
        origins: followed.origins.clone(),
        carried: followed.carried.clone(),
        made: BTreeMap::new(),
        outputs: Vec::new(),
        proposal: Proposal {
            sure: second.is_some(),
            turns: turns.map(|turns| turns.turns),
            ..Proposal::default()
        },
    };
    builder.remark_on_unseen();
    builder.proposal.remarks.extend(followed.remarks.clone());
    builder.proposal.lost_output = followed.lost;
    let inputs_from = builder.last_writes();
    let depend = copies::dependencies(&events, |step, host| {
        let unsure = second.is_none() && choices.step.is_none();
        let inputs = unsure || host.hash.is_none() || builder.differs(step, host, inputs_from);
        Depends {
            inputs,
            weights: !inputs && !choices.fixed_weights,
        }
    });
    followed.refusal(&events, &depend)?;
    for (step, event) in events.list.iter().enumerate() {
        if let Event::Host(host) = event {
            match host.direction {
                Direction::Read => builder.read(step, host),
                Direction::Write | Direction::Unchanged => builder.write(step, host, inputs_from),
            }
        }
    }
    builder.keep_all(&choices.kept);
    builder.work.was_enough()?;
    builder.moved.was_enough()?;
    builder.remark_on_constants(&depend, &choices.stated);
    let mut proposal = builder.proposal;
    apply(&mut proposal, choices)?;
    kept::keep_named(&mut proposal, &choices.states)?;
    let has = |role| proposal.tensors.iter().any(|tensor| tensor.role == role);
    let (input, output) = (has(Role::Input), has(Role::Output));
    let unseen = |event: &Event| {
        matches!(event, Event::Host(host)
            if host.direction != Direction::Read && host.hash.is_none())
    };
    if !input && !proposal.lost_input && !events.list.iter().any(unseen) {
        proposal.remarks.push(match second {
            Some(_) => {
                "no input: what the app's OpenCL calls write for kernels is the same in both runs"
                    .to_owned()
            }
            None => "no input: the app wrote nothing to the GPU that a kernel reads".to_owned(),
        });
    }
    if !output && !proposal.lost_output {
        let text = "no output: the app read nothing from the GPU that a kernel wrote";
        proposal.remarks.push(text.to_owned());
    }
    Ok(proposal)
}

fn same_steps(first: &[Event], second: &[Event]) -> Result<(), ProposeError> {
    let text = |event: Option<&Event>| event.map_or("the end".to_owned(), Event::to_string);
    for step in 0..first.len().max(second.len()) {
        let (a, b) = (first.get(step), second.get(step));
        if !matches!((a, b), (Some(a), Some(b)) if a.is_like(b)) {
            return Err(ProposeError::Steps {
                step,
                first: text(a),
                second: text(b),
            });
        }
        if let (Some(Event::Launch(a)), Some(Event::Launch(b))) = (a, b)
            && let Some(argument) = a.other_number(b)
        {
            return Err(ProposeError::Scalar {
                launch: a.id,
                kernel: a.kernel.clone(),
                argument,
            });
        }
    }
    Ok(())
}

struct Builder<'a> {
    capture: &'a Capture,
    second: Option<(&'a Capture, &'a Events)>,
    events: &'a Events,
    last_turn: usize,
    fixed_weights: bool,
    /// Later writes happen in every step.
    step: Option<usize>,
    taken: Names,
    steps: Steps,
    work: Work,
    moved: Moved,
    said: BTreeSet<String>,
    origins: BTreeMap<usize, Origin>,
    carried: BTreeSet<usize>,
    made: BTreeMap<Origin, usize>,
    outputs: Vec<(String, usize)>,
    proposal: Proposal,
}

#[derive(Debug, Default)]
struct Steps {
    of_object: BTreeMap<u32, Vec<usize>>,
    /// Reads of other than the host's own bytes, by size and hash.
    reads: BTreeMap<(u64, u64), Vec<usize>>,
}

impl Steps {
    fn of(list: &[Event]) -> Self {
        let mut out = Steps::default();
        for (step, event) in list.iter().enumerate() {
            for object in event.objects() {
                let steps = out.of_object.entry(object).or_default();
                if steps.last() != Some(&step) {
                    steps.push(step);
                }
            }
            if let Event::Host(host) = event
                && host.direction == Direction::Read
                && !host.kept
                && let Some(hash) = host.hash
            {
                out.reads.entry((host.size, hash)).or_default().push(step);
            }
        }
        out
    }
}

impl<'a> Builder<'a> {
    fn remark(&mut self, text: String) {
        if self.said.insert(text.clone()) {
            self.proposal.remarks.push(text);
        }
    }

    /// Ends when the work is used up.
    fn after(&self, step: usize, object: u32) -> impl Iterator<Item = &'a Event> + '_ {
        let steps = self.steps.of_object.get(&object);
        let steps = steps.map_or(&[][..], Vec::as_slice);
        let next = steps.partition_point(|other| *other <= step);
        self.events_of(steps.get(next..).unwrap_or_default().iter())
    }

    fn before(&self, step: usize, object: u32) -> impl Iterator<Item = &'a Event> + '_ {
        let steps = self.steps.of_object.get(&object);
        let steps = steps.map_or(&[][..], Vec::as_slice);
        let next = steps.partition_point(|other| *other < step);
        self.events_of(steps.get(..next).unwrap_or_default().iter().rev())
    }

    fn events_of<'s>(
        &'s self,
        steps: impl Iterator<Item = &'s usize>,
    ) -> impl Iterator<Item = &'a Event> {
        let list = &self.events.list;
        let events = steps.filter_map(|step| list.get(*step));
        events.take_while(|event| self.work.spend(event.work() as u64))
    }

    /// Step after which writes are inputs, without a second run: the last launch before the last write that a
    /// launch uses.
    fn last_writes(&self) -> usize {
        let list = &self.events.list;
        let used = |(step, event): &(usize, &Event)| match event {
            Event::Host(host) => {
                host.direction != Direction::Read && self.reader(*step, host).is_some()
            }
            Event::Launch(_) | Event::Moved(_) => false,
        };
        let last = list.iter().enumerate().rfind(used);
        let last = last.map_or(0, |(step, _)| step);
        let launch = list[..last]
            .iter()
            .rposition(|e| matches!(e, Event::Launch(_)));
        launch.map_or(0, |launch| launch + 1)
    }

    /// `None` if overwritten before, or never read.
    fn reader(&self, step: usize, host: &Host) -> Option<(&'a Launched, &'a Given)> {
        for event in self.after(step, host.at.object) {
            match event {
                Event::Launch(launch) => {
                    if let Some(given) = launch.having(host).next() {
                        return Some((launch, given));
                    }
                }
                Event::Host(later) if later.direction != Direction::Read => {
                    let end = |host: &Host| host.at.offset.saturating_add(host.size);
                    let covers = later.at.offset <= host.at.offset && end(later) >= end(host);
                    if covers && later.overlaps(host) {
                        return None;
                    }
                }
                Event::Moved(moved) if host.is_within(&moved.to) => return None,
                Event::Host(_) | Event::Moved(_) => {}
            }
        }
        None
    }

    /// `None` if the host wrote it last.
    fn writer(&self, step: usize, host: &Host) -> Option<(&'a Launched, &'a Given)> {
        let mut given_only = None;
        for event in self.before(step, host.at.object) {
            match event {
                Event::Launch(launch) => {
                    let mut given = launch.having(host);
                    if let Some(given) = given.find(|given| !given.is_constant()) {
                        return Some((launch, given));
                    }
                    let given = launch.having(host).next();
                    given_only = given_only.or(given.map(|given| (launch, given)));
                }
                Event::Host(earlier)
                    if earlier.direction != Direction::Read && earlier.overlaps(host) =>
                {
                    return None;
                }
                Event::Moved(moved) if host.touches(&moved.to) => return None,
                Event::Host(_) | Event::Moved(_) => {}
            }
        }
        given_only
    }

    fn write(&mut self, step: usize, host: &Host, inputs_from: usize) {
        let differs = self.differs(step, host, inputs_from);
        let Some((launch, given)) = self.reader(step, host) else {
            // Launches read it through a copy.
            if differs && self.carried.contains(&step) {
                self.elsewhere(host);
            }
            return;
        };
        let (name, type_name) = (naming::name(launch, given), given.type_name.clone());
        if differs && step < self.last_turn {
            self.elsewhere(host);
            return;
        }
        let mut role = match differs {
            true => Role::Input,
            false if self.fixed_weights => return,
            false => Role::Weight,
        };
        let copied = self.origins.get(&step).copied();
        let origin = copied.unwrap_or(Origin {
            step,
            offset: 0,
            size: host.size,
        });
        if let Some(at) = self.made.get(&origin).copied() {
            if self.also_at(at, host) {
                return;
            }
            if let Some(tensor) = self.proposal.tensors.get(at) {
                role = tensor.role;
                let of = tensor.name.clone();
                self.remark(format!(
                    "'{name}' is what the app copies from '{of}' at another time: give both the same values"
                ));
            }
        } else if let Some(origin) = copied {
            self.remark_on_part(origin, &name);
        }
        if role == Role::Input {
            self.remark_on_carried(step, host, &name);
        }
        if host.jobs < self.capture.jobs.len() {
            let moment = Moment::before(host.jobs);
            let next = self.proposal.tensors.len();
            self.tensor(step, host, (role, name, &type_name), moment);
            if self.proposal.tensors.len() > next {
                self.made.entry(origin).or_insert(next);
            }
        }
    }

    /// Without a second run: whether the write counts as an input.
    fn differs(&self, step: usize, host: &Host, inputs_from: usize) -> bool {
        let other = self.second.and_then(|(_, events)| events.list.get(step));
        match (other, self.step) {
            (_, Some(first)) if step >= first => true,
            (Some(Event::Host(other)), _) => other.hash != host.hash,
            (_, Some(_)) => false,
            _ => step >= inputs_from,
        }
    }

    /// Adds a place to tensor `at`: the app copies it before the same job.
    fn also_at(&mut self, at: usize, host: &Host) -> bool {
        let moment = Moment::before(host.jobs);
        let found = self.events.roots.get(&host.at.object).and_then(|root| {
            (!root.image).then(|| locate(self.capture, root, host, moment, &self.work))?
        });
        let (Some(tensor), Some(found)) = (self.proposal.tensors.get_mut(at), found) else {
            return false;
        };
        // A state is looked up by its only place.
        if tensor.job != host.jobs || self.step.is_some() || found.bytes != tensor.tensor.bytes() {
            return false;
        }
        let Some(elements) = tensor.shape.iter().copied().next() else {
            return false;
        };
        let piece = Piece::dense(elements, tensor.layout.dtype, found.va);
        let pieces = tensor.layout.pieces.len() as u64;
        if !self.work.spend(pieces) {
            return false;
        }
        if !tensor.layout.pieces.contains(&piece) {
            if !self.moved.add(found.bytes.len() as u64) {
                return false;
            }
            tensor.layout.pieces.push(piece);
        }
        true
    }

    fn elsewhere(&mut self, host: &Host) {
        let moment = Moment::before(host.jobs);
        let root = self.events.roots.get(&host.at.object);
        let found = root.and_then(|root| locate(self.capture, root, host, moment, &self.work));
        if let Some(Located { va, bytes }) = found {
            let end = va.saturating_add(bytes.len() as u64);
            self.proposal.earlier.push(va..end);
        }
    }

    fn read(&mut self, step: usize, host: &Host) {
        if step < self.last_turn || host.kept || self.read_again(step, host) {
            return;
        }
        let Some((launch, given)) = self.writer(step, host) else {
            self.remark_on_filled(step, host);
            return;
        };
        let (name, type_name) = (naming::name(launch, given), given.type_name.clone());
        if let Some(job) = host.jobs.checked_sub(1) {
            self.tensor(
                step,
                host,
                (Role::Output, name, &type_name),
                Moment::after(job),
            );
        }
    }

    fn read_again(&self, step: usize, host: &Host) -> bool {
        for event in self.after(step, host.at.object) {
            match event {
                Event::Launch(launch) => {
                    if launch.having(host).any(|given| !given.is_constant()) {
                        return false;
                    }
                }
                Event::Host(later) if later.direction == Direction::Read => {
                    if (later.at, later.size) == (host.at, host.size) {
                        return true;
                    }
                }
                Event::Moved(moved) if host.touches(&moved.to) => return false,
                Event::Host(_) | Event::Moved(_) => {}
            }
        }
        false
    }

    fn tensor(
        &mut self,
        step: usize,
        host: &Host,
        (role, name, type_name): (Role, String, &str),
        moment: Moment,
    ) {
        let Some(root) = self.events.roots.get(&host.at.object) else {
            return;
        };
        let found = match root.image {
            true => None,
            false => locate(self.capture, root, host, moment, &self.work),
        };
        // Clearing memory makes no weight.
        let cleared = |found: &Located| found.bytes.iter().all(|byte| *byte == 0);
        if role == Role::Weight && found.as_ref().is_some_and(cleared) {
            return;
        }
        let name = self.taken.unique(name);
        let next = self.proposal.tensors.len();
        self.place(
            step,
            host,
            root.image,
            (role, &name, type_name),
            found,
            moment,
        );
        if self.proposal.tensors.len() > next {
            if role == Role::Output {
                self.outputs.push((name, step));
            }
        } else if role == Role::Output {
            self.proposal.lost_output = true;
        } else if role == Role::Input {
            self.proposal.lost_input = true;
        }
    }

    fn place(
        &mut self,
        step: usize,
        host: &Host,
        is_image: bool,
        (role, name, type_name): (Role, &str, &str),
        found: Option<Located>,
        moment: Moment,
    ) {
        let name = name.to_owned();
        if is_image {
            self.remark(format!(
                "'{name}' is an image with an unknown layout in memory: name its file with --reads or --writes; if it has none, two runs with --no-layer may take it"
            ));
            return;
        }
        let Some(Located { va, bytes }) = found else {
            self.remark(format!(
                "'{name}' ({} bytes) was not found in GPU memory {}",
                host.size,
                match role {
                    Role::Output => "after the job that computes it",
                    _ => "before the job that reads it",
                }
            ));
            return;
        };
        // Beyond the limit: refused at the end.
        if !self.moved.add(bytes.len() as u64) {
            return;
        }
        let second = self.in_second_run(step, moment);
        let dtype = naming::element(type_name, &bytes, role == Role::Output);
        let Ok(elements) = u32::try_from(bytes.len() / dtype.bytes()) else {
            self.remark(format!("'{name}' is larger than 4 GiB"));
            return;
        };
        let flat = |bytes| Tensor::new(dtype, &[u64::from(elements)], bytes);
        let Ok(tensor) = flat(bytes) else { return };
        if let Some(second) = second.and_then(|located| flat(located.bytes).ok()) {
            self.proposal.second.push((name.clone(), second));
        }
        self.proposal.tensors.push(Found {
            role,
            name,
            shape: vec![elements],
            layout: Layout::packed(va, dtype, elements),
            job: moment.job(),
            tensor,
            converted_from: None,
        });
    }

    fn in_second_run(&self, step: usize, moment: Moment) -> Option<Located> {
        let (capture, events) = self.second?;
        let Event::Host(host) = events.list.get(step)? else {
            return None;
        };
        locate(
            capture,
            events.roots.get(&host.at.object)?,
            host,
            moment,
            &self.work,
        )
    }
}
