// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sources of bytes, copies that launches read, host reads.

use super::*;

impl Follower<'_> {
    pub(super) fn step(&mut self, step: usize) {
        let (_, events) = self.first;
        let Some(event) = events.list.get(step) else {
            return;
        };
        if !self.work.spend(event.work() as u64) {
            return;
        }
        match event {
            Event::Host(host) => {
                let end = match host.size {
                    0 => u64::MAX,
                    size => host.at.offset.saturating_add(size),
                };
                let (object, start) = (host.at.object, host.at.offset);
                match host.direction {
                    Direction::Read => self.read(step, object, (start, end)),
                    _ => self.set(object, (start, end), Source::Host(step)),
                }
            }
            Event::Launch(launch) => self.launch(step, launch),
            Event::Moved(moved) => match moved.from {
                None => {
                    let to = moved.to;
                    self.set(to.object, (to.start, to.end), Source::Constant(step));
                }
                Some(_) if self.is_job(moved) => {
                    self.is.insert(step, Is::Job);
                    self.launch(step, &job(moved));
                }
                Some(from) => self.copy(step, moved, from),
            },
        }
    }

    fn set(&mut self, object: u32, (start, end): (u64, u64), source: Source) {
        let known = self.objects.entry(object).or_default();
        if self.work.spend(known.parts.len() as u64) {
            known.set(start, end, source);
        }
    }

    fn launch(&mut self, step: usize, launch: &Launched) {
        for given in &launch.given {
            let Some(known) = self.objects.get(&given.object) else {
                self.may_write(step, given);
                continue;
            };
            let parts = match known.computed && self.work.spend(known.parts.len() as u64) {
                true => known.within(given.bytes.start, given.bytes.end),
                false => Vec::new(),
            };
            for (_, _, source) in parts {
                if let Source::Computed(copy) = source {
                    self.refuse(copy, step, given);
                }
            }
            self.may_write(step, given);
        }
    }

    fn may_write(&mut self, step: usize, given: &Given) {
        if !given.is_constant() {
            let known = self.objects.entry(given.object).or_default();
            let range = (given.bytes.start, given.bytes.end);
            known.launches.insert(range, step);
        }
    }

    fn refuse(&mut self, copy: usize, reader: usize, given: &Given) {
        if !self.read_by_launch.insert(copy) {
            return;
        }
        let Some(Event::Moved(moved)) = self.first.1.list.get(copy) else {
            return;
        };
        self.out.broken.push(Broken {
            copy,
            call: moved.call.clone(),
            writer: self.writers.get(&copy).copied(),
            reader,
            argument: match given.name.as_str() {
                "" => given.index.to_string(),
                name => name.to_owned(),
            },
        });
    }

    /// A runtime submission changes its destination.
    fn is_job(&mut self, moved: &Moved) -> bool {
        let (capture, events) = self.first;
        let first = events.unnamed.partition_point(|at| *at < moved.own.start);
        let own = events.unnamed.get(first..).unwrap_or_default().iter();
        let own: Vec<usize> = own
            .copied()
            .take_while(|at| *at < moved.own.end && self.work.spend(1))
            .collect();
        if own.is_empty() {
            return false;
        }
        let Some(buffer) = mapped(events, moved.to.object) else {
            self.out.remarks.push(format!(
                "whether the GPU or the CPU does {} to object {} is not known; a replay repeats it only if the GPU does",
                moved.call, moved.to.object
            ));
            return true;
        };
        let start = buffer.va.saturating_add(moved.to.start);
        let end = buffer.va.saturating_add(moved.to.end.min(buffer.size));
        own.into_iter()
            .any(|job| self.gpu_wrote(capture, (start, end), job))
    }

    fn gpu_wrote(&self, capture: &Capture, (start, end): (u64, u64), job: usize) -> bool {
        let moment = Moment::after(job);
        let pages = capture.memory.changed(moment);
        let mut pages = pages.range(start - start % PAGE..end.max(start));
        pages.any(|page| {
            let changed = capture.memory.difference(moment, *page).into_iter();
            self.work.spend(PAGE / 64)
                && changed
                    .map(|(from, to)| (page + from as u64, page + to as u64))
                    .any(|(from, to)| from < end && start < to)
        })
    }

    fn changed(
        &self,
        (capture, events): Run<'_>,
        (object, start, end): (u32, u64, u64),
        (since, until): (usize, usize),
    ) -> Option<bool> {
        let jobs = |step: usize| Some(events.list.get(step)?.jobs());
        let Event::Host(host) = events.list.get(since)? else {
            return None;
        };
        let root = events.roots.get(&object)?;
        let found = locate(capture, root, host, Moment::before(host.jobs), self.work)?;
        let at = |offset: u64| (found.va.checked_sub(host.at.offset)?).checked_add(offset);
        let range = (at(start)?, at(end.min(root.size))?);
        let mut jobs = jobs(since)?..jobs(until)?;
        Some(jobs.any(|job| self.work.spend(1) && self.gpu_wrote(capture, range, job)))
    }

    /// A kernel may be given memory to write and only read it.
    fn computed(&self, object: u32, (start, end): (u64, u64), at: usize) -> Option<usize> {
        let known = self.objects.get(&object)?;
        if !self
            .work
            .spend((known.launches.len() + known.parts.len()) as u64)
        {
            return None;
        }
        let mut covered = start;
        let mut found = None;
        for (from, to, source) in known.within(start, end) {
            if from > covered {
                found = found.max(known.launched((covered, from), None));
            }
            covered = to;
            let since = source.step();
            if let Source::Computed(copy) = source {
                found = found.max(Some(self.writers.get(&copy).copied().unwrap_or(copy)));
            }
            let Some(writer) = known.launched((from, to), Some(since)) else {
                continue;
            };
            let runs = [Some(self.first), self.second];
            let wrote = runs.into_iter().flatten().any(|run| {
                let changed = self.changed(run, (object, from, to), (since, at));
                changed.unwrap_or(true)
            });
            if wrote {
                found = found.max(Some(writer));
            }
        }
        // Only a kernel wrote the rest.
        if covered < end {
            found = found.max(known.launched((covered, end), None));
        }
        found
    }

    fn copy(&mut self, step: usize, moved: &Moved, from: Span) {
        let to = moved.to;
        let range = (from.start, from.end);
        let parts = match self.objects.get(&from.object) {
            Some(known) if self.work.spend(known.parts.len() as u64) => {
                known.within(range.0, range.1)
            }
            _ => Vec::new(),
        };
        let only = match parts.as_slice() {
            [(start, end, source)] if moved.dense && (*start, *end) == range => Some(*source),
            _ => None,
        };
        let source = if let Some(writer) = self.computed(from.object, range, step) {
            self.writers.insert(step, writer);
            let root = match only {
                Some(Source::Computed(copy)) => self
                    .roots
                    .get(&copy)
                    .copied()
                    .flatten()
                    .and_then(|(root, span)| Some((root, self.shifted(copy, span, from)?))),
                _ => moved.dense.then_some((step, from)),
            };
            self.roots.insert(step, root);
            Source::Computed(step)
        } else if parts
            .iter()
            .any(|(_, _, source)| matches!(source, Source::Host(_) | Source::Copied(_)))
        {
            if !self.work.spend(PART_WORK * parts.len() as u64) {
                return;
            }
            let mut covered = range.0;
            let origins = parts.iter().map(|(start, end, source)| {
                let gap = covered != *start;
                covered = *end;
                let part = Span {
                    object: from.object,
                    start: *start,
                    end: *end,
                };
                self.origin(*source, part).filter(|_| !gap)
            });
            let origins: Option<Vec<Origin>> = origins.collect();
            let sources = parts.iter().map(|(_, _, source)| source.step());
            self.out.carried.extend(sources.chain([step]));
            let whole = moved.dense && covered == range.1;
            let origins = origins.filter(|_| whole).unwrap_or_default();
            if let [only] = origins.as_slice() {
                self.out.origins.insert(step, *only);
            }
            self.is.insert(step, Is::Write(origins));
            Source::Copied(step)
        } else {
            Source::Constant(step)
        };
        let known = self.objects.entry(to.object).or_default();
        known.computed |= matches!(source, Source::Computed(_));
        self.set(to.object, (to.start, to.end), source);
    }

    fn shifted(&self, copy: usize, source: Span, part: Span) -> Option<Span> {
        let Some(Event::Moved(moved)) = self.first.1.list.get(copy) else {
            return None;
        };
        let start = part.start.checked_sub(moved.to.start)?;
        let start = source.start.checked_add(start)?;
        Some(Span {
            object: source.object,
            start,
            end: start.checked_add(part.size()?)?,
        })
    }

    fn origin(&self, source: Source, from: Span) -> Option<Origin> {
        let size = from.size()?;
        match (source, self.first.1.list.get(source.step())?) {
            (Source::Host(step), Event::Host(host)) => Some(Origin {
                step,
                offset: from.start.checked_sub(host.at.offset)?,
                size,
            }),
            (Source::Copied(step), Event::Moved(moved)) => {
                let origin = self.out.origins.get(&step)?;
                let offset = from.start.checked_sub(moved.to.start)?;
                Some(Origin {
                    step: origin.step,
                    offset: origin.offset.checked_add(offset)?,
                    size,
                })
            }
            _ => None,
        }
    }

    fn read(&mut self, step: usize, object: u32, (start, end): (u64, u64)) {
        let Some(known) = self.objects.get(&object).filter(|known| known.computed) else {
            return;
        };
        if !self
            .work
            .spend((known.parts.len() + known.launches.len()) as u64)
        {
            return;
        }
        let found = known.within(start, end);
        let copies = |(_, _, source): &(u64, u64, Source)| matches!(source, Source::Computed(_));
        if !found.iter().any(copies) || !self.work.spend(PART_WORK * found.len() as u64) {
            return;
        }
        let mut parts = Vec::new();
        let mut covered = start;
        for (from, to, source) in found {
            let later = known.launched((from, to), Some(source.step()));
            let part = match source {
                Source::Computed(copy) if from == covered && later.is_none() => {
                    let root = self.roots.get(&copy).copied().flatten();
                    let part = Span {
                        object,
                        start: from,
                        end: to,
                    };
                    root.and_then(|(root, span)| Some((root, self.shifted(copy, span, part)?)))
                }
                _ => None,
            };
            covered = to;
            parts.push(part);
        }
        let whole = covered == end;
        let parts: Option<Vec<_>> = parts.into_iter().collect();
        self.reads.push(ReadBack {
            step,
            parts: parts.filter(|_| whole).unwrap_or_default(),
            found: false,
        });
    }

    pub(super) fn read_back(&mut self) {
        let (capture, events) = self.first;
        let mut wanted: BTreeMap<usize, (Span, Hash)> = BTreeMap::new();
        let mut reads = std::mem::take(&mut self.reads);
        for read in &mut reads {
            let Some(Event::Host(host)) = events.list.get(read.step) else {
                continue;
            };
            let mut all = Vec::new();
            for (copy, span) in &read.parts {
                let jobs = events.list.get(*copy).map_or(0, Event::jobs);
                let moment = jobs.checked_sub(1).map(Moment::after);
                let size = span.size().unwrap_or(0) / 64;
                let part = moment
                    .filter(|_| self.work.spend(1 + size))
                    .and_then(|moment| bytes(capture, events, *span, moment));
                let Some(part) = part else {
                    all.clear();
                    break;
                };
                all.extend(part);
            }
            let known = host.hash.is_some() && host.hash == Some(content_hash(&all));
            read.found = known || (read.parts.len() == 1 && host.hash.is_some() && all.is_empty());
            if !read.found {
                self.out.lost = true;
                let call = read
                    .parts
                    .first()
                    .and_then(|(copy, _)| events.list.get(*copy));
                let call = match call {
                    Some(Event::Moved(moved)) => moved.call.as_str(),
                    _ => "a copy",
                };
                self.out.remarks.push(format!(
                    "the app reads {} bytes of object {}, which {call} put there from what a kernel computed, and which were not found at their source: let it read the source, or name the file with --writes",
                    host.size, host.at.object
                ));
                continue;
            }
            for (copy, span) in &read.parts {
                let hash = match read.parts.len() {
                    1 => Hash::Of(read.step),
                    _ => Hash::Memory,
                };
                let new = wanted.get(copy).map_or((*span, hash), |(old, _)| {
                    let union = Span {
                        object: span.object,
                        start: span.start.min(old.start),
                        end: span.end.max(old.end),
                    };
                    match union == *span {
                        true => (union, hash),
                        false => (union, Hash::Memory),
                    }
                });
                wanted.insert(*copy, new);
            }
        }
        self.reads = reads;
        for (copy, (span, hash)) in wanted {
            self.is.insert(copy, Is::Read(span, hash));
        }
    }
}
