// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches jobs and reports.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpureplay_shader::probe::Analyser;
use mali_model::{Dispatch, JobReport, Observer};

use crate::between::{Between, Unordered};
use crate::heat::{self, LINE};
use crate::map::{Area, AreaKind, Map};
use crate::pages::PAGE;
use crate::part::{Findings, JobAnalyser};
use crate::races::Place2;
use crate::report::{
    AreaHeat, Clause, Conflict, Job, MOST_PAGES, Memory, Outside, PageHeat, Race, Totals, Unwritten,
};
use crate::uninit::Written;
use crate::what::What;

const CELLS: u64 = 128;

type Chosen = Box<dyn Fn(usize) -> bool + Send + Sync>;

/// Watches a model's jobs.
pub struct Collector {
    what: What,
    map: Arc<Map>,
    chosen: Chosen,
    written: Option<Arc<Mutex<Written>>>,
    between: Mutex<Between>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ended: usize,
    running: Option<Arc<Mutex<Findings>>>,
    jobs: Vec<Job>,
}

impl Collector {
    /// `chosen` accepts job numbers, from 0 as jobs end.
    pub fn new(
        what: What,
        map: Map,
        chosen: impl Fn(usize) -> bool + Send + Sync + 'static,
    ) -> Collector {
        Collector {
            what,
            map: Arc::new(map),
            chosen: Box::new(chosen),
            written: what.uninit.then(Arc::default),
            between: Mutex::default(),
            state: Mutex::default(),
        }
    }

    /// Jobs that may run at the same time: reports their races if both are analysed.
    #[must_use]
    pub fn with_unordered(mut self, unordered: Unordered) -> Self {
        self.between = Mutex::new(Between::new(unordered));
        self
    }

    fn between(&self) -> MutexGuard<'_, Between> {
        self.between.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Findings, job by job.
    pub fn take(&self) -> Vec<Job> {
        std::mem::take(&mut self.state().jobs)
    }

    /// Number of ended jobs.
    pub fn ended(&self) -> usize {
        self.state().ended
    }

    fn job_of(&self, index: usize, report: &JobReport, findings: Option<Findings>) -> Job {
        let compute = report.compute.as_ref();
        let mut job = Job {
            index,
            address: report.address,
            kind: report.kind.into(),
            shader: compute.map(|compute| compute.shader),
            kernel: compute
                .and_then(|compute| compute.kernel)
                .map(|identity| format!("{:016x}", identity.hash)),
            local: compute.map(|compute| compute.workgroup_size),
            groups: compute.map(|compute| compute.workgroup_count),
            totals: compute
                .and_then(|compute| compute.statistics)
                .map(|counts| Totals {
                    threads: counts.threads,
                    fma: counts.fma,
                    add: counts.add,
                    messages: counts.messages(),
                    bytes_read: counts.bytes_read,
                    bytes_written: counts.bytes_written,
                }),
            ..Job::default()
        };
        let draws = !matches!(
            report.kind,
            "COMPUTE" | "NULL" | "WRITE_VALUE" | "CACHE_FLUSH"
        );
        if report.status.is_fault() {
            job.incomplete
                .push(format!("the job failed: {}", report.status));
        } else if draws || (report.kind == "COMPUTE" && findings.is_none()) {
            let why = format!("{} jobs are not looked into", report.kind);
            job.incomplete.push(why);
        }
        if let Some(findings) = findings {
            self.fill(&mut job, findings);
        }
        job
    }

    fn fill(&self, job: &mut Job, mut findings: Findings) {
        if let Some(reach) = findings.reach.take() {
            if reach.full {
                let why =
                    "races: the job reaches more memory than is kept to compare it with others";
                job.incomplete.push(why.into());
            }
            let races = self.between().ended(job.index, reach).into_iter();
            job.conflicts = races
                .map(|(with, pair, found)| Conflict {
                    with,
                    kind: pair.kind,
                    clauses: pair.clauses,
                    instructions: [None, None],
                    words: found.words,
                    address: found.address,
                    at: self.map.name(found.address),
                })
                .collect();
        }
        if findings.unseen > 0 && self.what.accesses() {
            job.incomplete.push(format!(
                "textures or images were read by coordinates {} times, which is not looked into",
                findings.unseen
            ));
        }
        job.thread_storage_bytes = findings.thread_storage;
        job.group_storage_bytes = findings.group_storage;
        job.clauses = clauses(&findings);
        if let Some(found) = &findings.heat {
            self.fill_heat(job, found);
        }
        if let Some(races) = &findings.races {
            job.incomplete.extend(races.stopped.map(str::to_owned));
            job.races = races
                .pairs()
                .map(|(clauses, pair, found)| Race {
                    kind: pair.kind,
                    clauses,
                    instructions: [None, None],
                    group_storage: pair.place == Place2::Group,
                    across_groups: pair.across,
                    times: found.times,
                    address: found.address,
                    at: self.map.name(found.address),
                    threads: found.threads.map(u64::from),
                })
                .collect();
        }
        if let Some(uninit) = findings.uninit.as_ref().filter(|_| self.what.uninit) {
            if uninit.is_full() {
                let why = "uninit: the recording has more memory than is kept";
                job.incomplete.push(why.into());
            }
            let reads = uninit.reads.iter();
            job.uninit = reads
                .map(|(&clause, found)| Unwritten {
                    clause,
                    instruction: None,
                    group_storage: found.group,
                    lanes: found.lanes,
                    bytes: found.bytes,
                    address: found.first,
                    at: self.map.name(found.first),
                    thread: found.thread,
                })
                .collect();
        }
        let strays = findings.strays.iter();
        job.outside = strays
            .map(|(&(clause, writes), found)| Outside {
                clause,
                instruction: None,
                writes,
                lanes: found.lanes,
                bytes: found.bytes,
                address: found.lowest,
                last: found.highest,
                at: self.map.name(found.lowest),
                thread: found.thread,
            })
            .collect();
    }

    fn fill_heat(&self, job: &mut Job, found: &heat::Heat) {
        if found.pages.full {
            let why = "heat: the job reaches more memory than is kept";
            job.incomplete.push(why.into());
        }
        let areas: Vec<&Area> = self.map.areas().collect();
        let mut heats: Vec<Option<AreaHeat>> = vec![None; areas.len()];
        for (number, page) in found.pages.sorted() {
            let mut sum = [0, 0];
            for (line, &[read, written]) in (0..).zip(&page.0) {
                if read | written == 0 {
                    continue;
                }
                sum = [sum[0] + read, sum[1] + written];
                let address = number * PAGE + line * LINE;
                // A line with a part of a tensor counts as the tensor's.
                let own = self.map.area(address);
                let is_tensor =
                    |at: &usize| areas.get(*at).map(|area| area.kind) == Some(AreaKind::Tensor);
                let last = || self.map.area(address + LINE - 1).filter(is_tensor);
                let area = own.filter(is_tensor).or_else(last).or(own);
                let Some(at) = area else { continue };
                let (Some(area), Some(heat)) = (areas.get(at), heats.get_mut(at)) else {
                    continue;
                };
                let heat = heat.get_or_insert_with(|| empty(area));
                heat.read += read;
                heat.written += written;
                heat.lines += 1;
                let cell = address.saturating_sub(area.address) / heat.cell_bytes;
                if let Some(cell) = heat.cells.get_mut(cell as usize) {
                    cell[0] += read;
                    cell[1] += written;
                }
            }
            if job.pages.len() < MOST_PAGES {
                job.pages.push(PageHeat {
                    address: number * PAGE,
                    read: sum[0],
                    written: sum[1],
                });
            } else {
                job.pages_left_out += 1;
            }
        }
        job.heat = heats.into_iter().flatten().collect();
    }
}

fn empty(area: &Area) -> AreaHeat {
    let lines = area.bytes.div_ceil(LINE).max(1);
    let cell_bytes = LINE * lines.div_ceil(CELLS).next_power_of_two();
    AreaHeat {
        name: area.name.clone(),
        kind: area.kind,
        address: area.address,
        bytes: area.bytes,
        read: 0,
        written: 0,
        lines: 0,
        cell_bytes,
        cells: vec![[0, 0]; area.bytes.div_ceil(cell_bytes).max(1) as usize],
    }
}

fn clauses(findings: &Findings) -> Vec<Clause> {
    let memory = |address: u64| {
        findings.lines.get(&address).map(|sum| Memory {
            accesses: sum.accesses,
            asked: sum.asked,
            used: sum.used,
            lines: sum.lines,
            read: sum.read,
            written: sum.written,
        })
    };
    let mut all: Vec<Clause> = findings
        .counts
        .values()
        .map(|(site, count)| Clause {
            address: site.clause,
            warps: count.warps,
            lanes: count.lanes,
            divergent: count.divergent,
            fma: site.fma,
            add: site.add,
            message: site.message.map(str::to_owned),
            messages: site.messages,
            memory: memory(site.clause),
        })
        .collect();
    if all.is_empty() {
        // Only accesses were looked at.
        all = findings
            .lines
            .keys()
            .map(|&address| Clause {
                address,
                memory: memory(address),
                ..Clause::default()
            })
            .collect();
    }
    all
}

impl Observer for Collector {
    fn job(&self, report: &JobReport) {
        let mut state = self.state();
        let index = state.ended;
        state.ended += 1;
        let findings = state.running.take();
        drop(state);
        if !(self.chosen)(index) {
            return;
        }
        let findings = findings.map(|findings| {
            let mut findings = findings.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *findings)
        });
        let job = self.job_of(index, report, findings);
        self.state().jobs.push(job);
    }

    fn wants_kernels(&self) -> bool {
        true
    }

    fn analyser(&self, _: u64, _: &Dispatch) -> Option<Box<dyn Analyser>> {
        let mut state = self.state();
        let chosen = (self.chosen)(state.ended);
        if !chosen && self.written.is_none() {
            return None;
        }
        let number = state.ended;
        let findings = Arc::new(Mutex::new(Findings::default()));
        state.running = Some(findings.clone());
        Some(Box::new(JobAnalyser {
            what: if chosen { self.what } else { What::default() },
            map: self.map.clone(),
            findings,
            written: self.written.clone(),
            reach: chosen.then(|| self.between().concerns(number)).flatten(),
        }))
    }

    fn wrote(&self, va: u64, bytes: u64) {
        if let Some(written) = &self.written {
            let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
            written.mark(va, bytes);
        }
    }
}
