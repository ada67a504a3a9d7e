// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors from what the host wrote and read: inputs, weights, outputs, without a file that names them.

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

/// What the user wants of the tensors that notes give.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    /// Names, types and shapes.
    pub stated: Stated,
    /// What both runs write alike is part of the recording instead of a tensor.
    pub fixed_weights: bool,
    /// Of a step that the app repeats: the notes before it, and what it leaves for the next one.
    pub step: Option<Turn>,
    /// What a step leaves for the next one: states.
    pub kept: Vec<Kept>,
    /// Names of tensors that are states because the user says so.
    pub states: Vec<String>,
}

/// Tensors found through notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// In the order in which the app wrote and read them.
    pub tensors: Vec<Found>,
    /// What the second run wrote and read in their places, by name.
    pub second: Vec<(String, Tensor)>,
    /// A second run told inputs from weights.
    pub sure: bool,
    /// GPU memory that the app wrote in earlier turns of a loop, or that launches read through copies, other values in each run.
    pub earlier: Vec<Range<u64>>,
    /// How often the app does the same, if more than once; the tensors are those of the last time.
    pub turns: Option<usize>,
    /// What could not be told, for people.
    pub remarks: Vec<String>,
    /// The app writes an input that could not be made a tensor; a remark says why.
    pub lost_input: bool,
    /// The app reads something computed that could not be made a tensor; a remark says why.
    pub lost_output: bool,
}

impl Proposal {
    /// Leaves out what overlaps tensors that were found in another way.
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

/// Makes tensors from a trace's notes. A second run with other inputs tells inputs from weights; without one, what the app wrote last
/// before its final launches counts as input.
///
/// # Errors
/// There are no notes, the runs do different things, or a choice names no tensor.
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
        first: turns.map_or(0, |turns| turns.last),
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
        // One run does not tell inputs from weights for sure.
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
    keep_named(&mut proposal, &choices.states)?;
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
    /// The first step of which results and inputs count: that of the last turn of a loop.
    first: usize,
    fixed_weights: bool,
    /// The first event of a step that the app repeats: what it writes from there on it writes in every step.
    step: Option<usize>,
    taken: Names,
    steps: Steps,
    work: Work,
    moved: Moved,
    /// Remarks that were made.
    said: BTreeSet<String>,
    /// Writes that are copies of other ones.
    origins: BTreeMap<usize, Origin>,
    /// Writes that are copied or copies.
    carried: BTreeSet<usize>,
    /// The tensor of a write.
    made: BTreeMap<Origin, usize>,
    /// Names of outputs, and the steps that read them.
    outputs: Vec<(String, usize)>,
    proposal: Proposal,
}

/// Where in the list of steps something happens, ascending.
#[derive(Debug, Default)]
struct Steps {
    /// Steps that are about an object.
    of_object: BTreeMap<u32, Vec<usize>>,
    /// Reads of what the host had not written there, by number and hash of the bytes.
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

    /// The steps behind one that are about an object, as long as there is work left.
    fn after(&self, step: usize, object: u32) -> impl Iterator<Item = &'a Event> + '_ {
        let steps = self.steps.of_object.get(&object);
        let steps = steps.map_or(&[][..], Vec::as_slice);
        let next = steps.partition_point(|other| *other <= step);
        self.events_of(steps.get(next..).unwrap_or_default().iter())
    }

    /// The steps before one that are about an object, the last one first.
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

    fn remark_on_unseen(&mut self) {
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

    /// The step after which a write is an input, for want of a second run: the last launch before the last write that a launch uses.
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

    /// The launch that reads what a step wrote first; `None` if it is written again before, or never read.
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

    /// The launch that wrote last what a step reads; `None` if the host wrote it.
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
        if differs && step < self.first {
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

    /// Whether a write is another one in each run, or, for want of a second run, counts as an input.
    fn differs(&self, step: usize, host: &Host, inputs_from: usize) -> bool {
        let other = self.second.and_then(|(_, events)| events.list.get(step));
        match (other, self.step) {
            (_, Some(first)) if step >= first => true,
            (Some(Event::Host(other)), _) => other.hash != host.hash,
            (_, Some(_)) => false,
            _ => step >= inputs_from,
        }
    }

    /// Has a tensor written to one more place, to which the app copies it before the same job.
    fn also_at(&mut self, at: usize, host: &Host) -> bool {
        let moment = Moment::before(host.jobs);
        let found = self.events.roots.get(&host.at.object).and_then(|root| {
            (!root.image).then(|| locate(self.capture, root, host, moment, &self.work))?
        });
        let (Some(tensor), Some(found)) = (self.proposal.tensors.get_mut(at), found) else {
            return false;
        };
        // What a step leaves for the next one is looked up by its only place.
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

    /// Says so if an input is only a part of what the app wrote, and the whole is one too.
    fn remark_on_part(&mut self, origin: Origin, name: &str) {
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

    /// Says so if an output cannot depend on an input: a replay answers the same whatever it is given.
    fn remark_on_constants(&mut self, depend: &BTreeMap<usize, Depends>, stated: &Stated) {
        let unknown = |event: &Event| matches!(event, Event::Launch(l) if l.given.is_empty());
        if !self.events.unseen.is_empty() || self.events.list.iter().any(unknown) {
            return;
        }
        let constant = |step: &usize| depend.get(step).is_some_and(|on| !on.inputs);
        let outputs = std::mem::take(&mut self.outputs);
        for (name, _) in outputs.iter().filter(|(_, step)| constant(step)) {
            let name = stated.name(name);
            self.remark(format!(
                "output '{name}' depends on no input: a replay answers the same whatever it is given"
            ));
        }
    }

    /// Says so if the app has read from the GPU what it writes here: a replay does not carry that over.
    fn remark_on_carried(&mut self, step: usize, host: &Host, name: &str) {
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

    /// Remembers where an input lies that is no tensor: one of an earlier turn, or one that launches read through a copy.
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
        if step < self.first || host.kept || self.read_again(step, host) {
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

    /// Says so if the app reads a result of which the runtime has overwritten a part.
    fn remark_on_filled(&mut self, step: usize, host: &Host) {
        if let Some((call, name)) = self.filled(step, host) {
            self.proposal.lost_output = true;
            self.remark(format!(
                "'{name}' is no output: {call} overwrites a part of it before the app reads it; read the result before that, or in parts"
            ));
        }
    }

    /// The function that overwrote a part of what a launch wrote and the app reads, and the result's name.
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

    /// Whether the same bytes are read again with no launch that may write them between.
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
        // Whoever clears memory means no weight by it.
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

    /// Makes a tensor of what was found, or says why there is none.
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
                "'{name}' is an image, of which the layout in memory is not known: name its file with --reads or --writes; if it has none, two runs with --no-layer may take it"
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
        // What is beyond the limit is not kept; it is refused at the end.
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

    /// Makes a state of what a step leaves for the next one: of the tensor that the app wrote there, or of memory that it never wrote.
    fn keep_all(&mut self, all: &[Kept]) {
        // The first tensor that the app gives at each range of addresses.
        let mut given: HashMap<(u64, u64), usize> = HashMap::new();
        for (at, tensor) in self.proposal.tensors.iter().enumerate() {
            if let Some(range) = tensor
                .layout
                .address_range()
                .filter(|_| !tensor.is_result())
            {
                given.entry(range).or_insert(at);
            }
        }
        for kept in all {
            let range = (kept.va, kept.va.saturating_add(kept.size));
            let tensor = given.get(&range).copied();
            match tensor.and_then(|at| self.proposal.tensors.get_mut(at)) {
                Some(tensor) => tensor.role = Role::State,
                None => {
                    let next = self.proposal.tensors.len();
                    self.keep(kept);
                    if self.proposal.tensors.len() > next {
                        given.insert(range, next);
                    }
                }
            }
        }
    }

    /// Makes a state of memory that the app never wrote.
    fn keep(&mut self, kept: &Kept) {
        let name = self.taken.unique(kept.name.clone());
        let (Ok(length), true) = (usize::try_from(kept.size), self.moved.add(kept.size)) else {
            return;
        };
        let mut bytes = vec![0; length];
        // Memory that nobody wrote yet is zero.
        self.capture
            .memory
            .read(Moment::before(0), kept.va, &mut bytes);
        let dtype = naming::element(&kept.type_name, &bytes, true);
        let Ok(elements) = u32::try_from(bytes.len() / dtype.bytes()) else {
            return;
        };
        let Ok(tensor) = Tensor::new(dtype, &[u64::from(elements)], bytes) else {
            return;
        };
        self.proposal.tensors.push(Found {
            role: Role::State,
            name,
            shape: vec![elements],
            layout: Layout::packed(kept.va, dtype, elements),
            job: 0,
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

/// Makes states of these tensors, and leaves out what the app reads from the memory of any state: a session reads that itself.
fn keep_named(proposal: &mut Proposal, names: &[String]) -> Result<(), ProposeError> {
    for name in names {
        let mut tensors = proposal.tensors.iter_mut();
        let found = tensors.find(|tensor| tensor.name == *name && !tensor.is_result());
        let Some(found) = found else {
            let known = proposal.tensors.iter();
            return Err(ProposeError::Stated(StatedError::Name {
                name: name.clone(),
                known: known.map(|tensor| tensor.name.clone()).collect(),
            }));
        };
        found.role = Role::State;
    }
    let states = proposal.tensors.iter();
    let states = states.filter(|tensor| tensor.role == Role::State);
    let mut kept = Ranges::default();
    for (start, end) in states.filter_map(|tensor| tensor.layout.address_range()) {
        kept.add(start, end);
    }
    proposal.tensors.retain(|tensor| {
        let range = tensor.layout.address_range();
        tensor.role == Role::State || !range.is_some_and(|(low, high)| kept.touches(low, high))
    });
    Ok(())
}

/// Gives tensors the names, types and shapes that the user chose.
pub(super) fn apply(proposal: &mut Proposal, choices: &Choices) -> Result<(), ProposeError> {
    let stated = &choices.stated;
    let known: Vec<String> = proposal.tensors.iter().map(|t| t.name.clone()).collect();
    stated.check(&known)?;
    let mut seconds: HashMap<&str, Vec<&mut Tensor>> = HashMap::new();
    let mut new_names = Vec::new();
    for (name, other) in &mut proposal.second {
        new_names.push(stated.name(name).to_owned());
        seconds.entry(name).or_default().push(other);
    }
    for tensor in &mut proposal.tensors {
        let bytes = tensor.tensor.bytes().len() as u64;
        if let Some(form) = stated.form_of(&tensor.name, bytes)? {
            let wrong = || StatedError::Form {
                name: tensor.name.clone(),
                bytes,
                form: form.clone(),
            };
            tensor.tensor = reformed(&tensor.tensor, form).ok_or_else(wrong)?;
            let elements = u32::try_from(tensor.tensor.len()).map_err(|_| wrong())?;
            let places = tensor.layout.pieces.iter().map(|piece| piece.va);
            tensor.layout = Layout {
                dtype: form.dtype,
                pieces: places
                    .map(|va| Piece::dense(elements, form.dtype, va))
                    .collect(),
            };
            tensor.shape.clone_from(&form.shape);
            for other in seconds.get_mut(tensor.name.as_str()).into_iter().flatten() {
                **other = reformed(other, form).ok_or_else(wrong)?;
            }
        }
        tensor.name = stated.name(&tensor.name).to_owned();
    }
    for ((name, _), new) in proposal.second.iter_mut().zip(new_names) {
        *name = new;
    }
    Ok(())
}

/// The same bytes with another type and shape.
fn reformed(tensor: &Tensor, form: &Form) -> Option<Tensor> {
    let shape: Vec<u64> = form.shape.iter().copied().map(u64::from).collect();
    Tensor::new(form.dtype, &shape, tensor.bytes().to_vec()).ok()
}
