// SPDX-License-Identifier: MIT OR Apache-2.0
//! A job's analyses, from all host threads.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use gpureplay_shader::probe::{
    Access, AccessKind, Analyser, Launch, Part, Place, Site, Storages, Visit, Wanted,
};

use crate::between::Reach;
use crate::counts::{Count, Counts};
use crate::heat::Heat;
use crate::lines::{Lines, Use};
use crate::map::Map;
use crate::outside::{Outside, Strays};
use crate::pattern::Pattern;
use crate::races::Races;
use crate::uninit::{Uninit, Written};
use crate::what::What;

#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) counts: BTreeMap<u64, (Site, Count)>,
    pub(crate) lines: BTreeMap<u64, Use>,
    pub(crate) heat: Option<Heat>,
    pub(crate) strays: Strays,
    pub(crate) races: Option<Races>,
    pub(crate) uninit: Option<Uninit>,
    pub(crate) reach: Option<Reach>,
    pub(crate) thread_storage: u64,
    pub(crate) group_storage: u64,
    /// Accesses not told of.
    pub(crate) unseen: u64,
}

pub(crate) struct JobAnalyser {
    /// Only writes in a job not asked for.
    pub(crate) what: What,
    pub(crate) map: Arc<Map>,
    pub(crate) findings: Arc<Mutex<Findings>>,
    pub(crate) written: Option<Arc<Mutex<Written>>>,
    /// In pages, if another job may run at the same time.
    pub(crate) reach: Option<usize>,
}

impl Analyser for JobAnalyser {
    fn wanted(&self) -> Wanted {
        Wanted {
            clauses: self.what.clauses(),
            accesses: self.what.accesses() || self.written.is_some(),
            in_order: self.what.races || self.written.is_some(),
        }
    }

    fn part(&self, launch: &Launch<'_>) -> Box<dyn Part> {
        let what = self.what;
        let storages = Storages::of(launch.grid);
        let size = launch.workgroup_threads;
        let threads = launch.grid.workgroups().saturating_mul(size.into());
        let taken = |written: &Arc<Mutex<Written>>| {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            Uninit::new(std::mem::take(&mut *written), storages)
        };
        Box::new(JobPart {
            what,
            findings: self.findings.clone(),
            written: self.written.clone(),
            storages,
            counts: Counts::default(),
            lines: Lines::default(),
            heat: what.heat.then(Heat::default),
            outside: what.outside.then(|| Outside::new(self.map.clone())),
            races: what.races.then(|| Races::new(storages, size, threads)),
            uninit: self.written.as_ref().map(taken),
            reach: (self.reach.filter(|_| what.races)).map(|room| Reach::new(storages, room)),
            thread_storage: 0,
            group_storage: 0,
            unseen: 0,
        })
    }
}

struct JobPart {
    what: What,
    findings: Arc<Mutex<Findings>>,
    written: Option<Arc<Mutex<Written>>>,
    storages: Storages,
    counts: Counts,
    lines: Lines,
    heat: Option<Heat>,
    outside: Option<Outside>,
    races: Option<Races>,
    uninit: Option<Uninit>,
    reach: Option<Reach>,
    thread_storage: u64,
    group_storage: u64,
    unseen: u64,
}

impl JobPart {
    /// A group storage's place is chance: only bytes count.
    fn heat(&mut self, access: &Access<'_>, pattern: Pattern) {
        let Some(heat) = &mut self.heat else { return };
        if self.storages.is_empty() {
            return heat.access(access, pattern);
        }
        let group = |lane: &usize| self.storages.place(access.address(*lane)) == Place::Group;
        let lanes = access.visit.lanes.iter().filter(group);
        let group = lanes.fold(0u64, |mask, lane| mask | 1 << lane);
        if group == 0 {
            return heat.access(access, pattern);
        }
        let times = if access.kind == AccessKind::Atomic {
            2
        } else {
            1
        };
        self.group_storage += u64::from(group.count_ones()) * u64::from(access.bytes) * times;
        let mut others = *access;
        others.visit.lanes.active &= !group;
        if others.visit.lanes.active != 0 {
            heat.access(&others, Pattern::of(&others));
        }
    }

    /// Without lanes that reach thread storage.
    fn shared<'a>(&mut self, access: &Access<'a>) -> Access<'a> {
        let mut access = *access;
        if !self.storages.is_empty() {
            let own = |lane: &usize| self.storages.place(access.address(*lane)) == Place::Thread;
            let lanes = access.visit.lanes.iter().filter(own);
            let own = lanes.fold(0, |mask, lane| mask | 1 << lane);
            access.visit.lanes.active &= !own;
            let times = if access.kind == AccessKind::Atomic {
                2
            } else {
                1
            };
            self.thread_storage += u64::from(own.count_ones()) * u64::from(access.bytes) * times;
        }
        access
    }
}

impl Part for JobPart {
    fn clause(&mut self, visit: &Visit<'_>) {
        self.counts.clause(visit);
    }

    fn access(&mut self, access: &Access<'_>) {
        let access = &self.shared(access);
        if access.visit.lanes.active == 0 {
            return;
        }
        let pattern = Pattern::of(access);
        if self.what.lines {
            self.lines.access(access, pattern);
        }
        self.heat(access, pattern);
        if let Some(outside) = &mut self.outside {
            outside.access(access, pattern);
        }
        if let Some(races) = &mut self.races {
            races.access(access, pattern);
        }
        if let Some(uninit) = &mut self.uninit {
            uninit.access(access, pattern);
        }
        if let Some(reach) = &mut self.reach {
            reach.access(access);
        }
    }

    fn unseen(&mut self, visit: &Visit<'_>) {
        self.unseen += u64::from(visit.lanes.active.count_ones());
    }

    fn finish(self: Box<Self>) {
        let findings = self.findings.clone();
        let mut all = findings.lock().unwrap_or_else(PoisonError::into_inner);
        let part = *self;
        part.counts.merge_into(&mut all.counts);
        part.lines.merge_into(&mut all.lines);
        match (&mut all.heat, part.heat) {
            (Some(all), Some(heat)) => all.merge(heat),
            (all, Some(heat)) => *all = Some(heat),
            _ => {}
        }
        if let Some(outside) = part.outside {
            outside.merge_into(&mut all.strays);
        }
        if let (Some(written), Some(mut uninit)) = (part.written, part.uninit) {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            *written = uninit.take_written();
            all.uninit = Some(uninit);
        }
        // One thread looks for races and reads of nothing.
        all.races = part.races.or(all.races.take());
        all.reach = part.reach.or(all.reach.take());
        all.thread_storage += part.thread_storage;
        all.group_storage += part.group_storage;
        all.unseen += part.unseen;
    }
}
