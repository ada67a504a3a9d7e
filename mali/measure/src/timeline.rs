// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run in the Trace Event Format (Chrome, Perfetto): layers, chains, jobs, and uploads with arrows to their first
//! readers.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gpureplay_library::Transfer;
use serde::Serialize;
use serde_json::{Value, json};

use crate::measure::Measured;
use crate::report::Report;

const TRACKS: [(u32, &str); 4] = [(1, "layers"), (2, "chains"), (3, "jobs"), (4, "uploads")];
const LAYERS: u32 = 1;
const CHAINS: u32 = 2;
const JOBS: u32 = 3;
const UPLOADS: u32 = 4;
const PROCESS: u32 = 1;
/// Arrows are found by pages.
const PAGE: u64 = 4096;
/// The rest has no arrows.
const MAX_PAGES: u64 = 1 << 20;

/// Whole timeline file.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
    #[serde(rename = "displayTimeUnit")]
    unit: &'static str,
    #[serde(rename = "otherData")]
    about: Value,
}

#[derive(Clone, Debug, Serialize)]
struct Event {
    name: String,
    #[serde(rename = "cat")]
    category: &'static str,
    #[serde(rename = "ph")]
    phase: &'static str,
    #[serde(rename = "ts")]
    start: f64,
    #[serde(rename = "dur", skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    /// An arrow ends at the slice around it.
    #[serde(rename = "bp", skip_serializing_if = "Option::is_none")]
    binding: Option<&'static str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl Event {
    fn slice(track: u32, category: &'static str, name: String, span: Span, args: Value) -> Self {
        Self {
            name,
            category,
            phase: "X",
            start: span.start,
            duration: Some(span.duration),
            pid: PROCESS,
            tid: track,
            id: None,
            binding: None,
            args,
        }
    }

    fn arrow(phase: &'static str, track: u32, start: f64, id: u32) -> Self {
        Self {
            name: "read".into(),
            category: "flow",
            phase,
            start,
            duration: None,
            pid: PROCESS,
            tid: track,
            id: Some(id),
            binding: (phase == "f").then_some("e"),
            args: Value::Null,
        }
    }

    fn meta(track: u32, key: &str, value: Value) -> Self {
        Self {
            name: key.into(),
            category: "__metadata",
            phase: "M",
            start: 0.0,
            duration: None,
            pid: PROCESS,
            tid: track,
            id: None,
            binding: None,
            args: value,
        }
    }
}

/// In microseconds.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: f64,
    duration: f64,
}

impl Span {
    fn end(self) -> f64 {
        self.start + self.duration
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Timeline {
    /// Set-up and the last run, for the report's jobs. The run begins after `load`.
    pub fn new(report: &Report, measured: &Measured, load: Duration) -> Self {
        let mut events = vec![Event::meta(
            0,
            "process_name",
            json!({ "name": report.recording }),
        )];
        for (track, name) in TRACKS {
            events.push(Event::meta(track, "thread_name", json!({ "name": name })));
            events.push(Event::meta(
                track,
                "thread_sort_index",
                json!({ "sort_index": track }),
            ));
        }
        let base = |phase: &str| match phase {
            "setup" => 0.0,
            _ => micros(load),
        };
        let mut layers: BTreeMap<(String, String), (Span, Vec<usize>)> = BTreeMap::new();
        let mut jobs: BTreeMap<usize, Span> = BTreeMap::new();
        for chain in &report.chains {
            let Some(found) = measured.span(chain.number) else {
                continue;
            };
            let span = Span {
                start: base(&chain.phase) + micros(found.start),
                duration: micros(found.duration),
            };
            let name = format!("chain {}", chain.number);
            let args = json!({ "address": chain.address, "slot": chain.slot, "jobs": chain.jobs });
            events.push(Event::slice(CHAINS, "chain", name, span, args));
            let title = chain.layer.clone().unwrap_or_else(|| chain.phase.clone());
            let layer = layers.entry((chain.phase.clone(), title));
            let (whole, numbers) = layer.or_insert((span, Vec::new()));
            whole.duration = whole.duration.max(span.end() - whole.start);
            numbers.push(chain.number);
            jobs.extend(places(&chain.jobs, span, measured));
        }
        for ((phase, name), (span, chains)) in layers {
            let args = json!({ "phase": phase, "chains": chains });
            events.push(Event::slice(LAYERS, "layer", name, span, args));
        }
        for job in &report.jobs {
            let Some(span) = jobs.get(&job.index) else {
                continue;
            };
            let known = job.name.as_ref().or(job.kernel.as_ref());
            let name = format!("{} {}", job.index, known.unwrap_or(&job.kind));
            let args = serde_json::to_value(job).unwrap_or_default();
            events.push(Event::slice(JOBS, "job", name, *span, args));
        }
        let mut arrows = 0;
        for setup in [true, false] {
            let phase = if setup { "setup" } else { "run" };
            uploads(
                report,
                measured,
                (phase, base(phase)),
                &jobs,
                &mut arrows,
                &mut events,
            );
        }
        Self {
            events,
            unit: "ms",
            about: json!({
                "recording": report.recording,
                "recording_sha256": report.recording_sha256,
                "gpu": report.gpu,
                "selection": report.selection,
                "measurement": report.measurement,
            }),
        }
    }
}

/// The model knows each job's time; elsewhere only a job alone in its chain has one.
fn places(jobs: &[usize], chain: Span, measured: &Measured) -> Vec<(usize, Span)> {
    if let [only] = jobs {
        return vec![(*only, chain)];
    }
    let mut start = chain.start;
    let mut places = Vec::new();
    for &index in jobs {
        let Some(seconds) = measured.last_job(index) else {
            return Vec::new();
        };
        // Clocks may round: jobs lie within their chain.
        let duration = (seconds * 1e6).min((chain.end() - start).max(0.0));
        places.push((index, Span { start, duration }));
        start += duration;
    }
    places
}

/// One event between two chains, with arrows to the jobs that first read a page.
fn uploads(
    report: &Report,
    measured: &Measured,
    (phase, base): (&str, f64),
    jobs: &BTreeMap<usize, Span>,
    arrows: &mut u32,
    events: &mut Vec<Event>,
) {
    let mut readers = report
        .jobs
        .iter()
        .filter(|job| job.phase == phase)
        .peekable();
    let mut transfers = measured.transfers(phase == "setup").iter().peekable();
    while let Some(first) = transfers.next() {
        let start = base + micros(first.start);
        while readers
            .next_if(|job| jobs.get(&job.index).is_none_or(|it| it.start < start))
            .is_some()
        {}
        let limit = readers.peek().and_then(|job| jobs.get(&job.index));
        let limit = limit.map_or(f64::INFINITY, |span| span.start);
        let mut group = vec![*first];
        while let Some(next) = transfers.next_if(|next| base + micros(next.start) < limit) {
            group.push(*next);
        }
        let last = group.last().unwrap_or(first);
        let span = Span {
            start,
            duration: base + micros(last.start.saturating_add(last.duration)) - start,
        };
        let sum = |tensor: bool| -> u64 {
            let moved = group.iter().filter(|it| it.tensor == tensor);
            moved.map(|it| it.bytes).sum()
        };
        let args = json!({
            "bytes_of_recording": sum(false),
            "bytes_of_tensors": sum(true),
            "transfers": group.len(),
        });
        events.push(Event::slice(UPLOADS, "upload", "upload".into(), span, args));
        let mut pages = pages(&group);
        for job in report.jobs.iter().filter(|job| job.phase == phase) {
            let Some(place) = jobs
                .get(&job.index)
                .filter(|place| place.start >= span.start)
            else {
                continue;
            };
            let Some(read) = measured.pages(job.index) else {
                continue;
            };
            if !read.is_disjoint(&pages) {
                pages.retain(|page| !read.contains(page));
                *arrows += 1;
                events.push(Event::arrow("s", UPLOADS, span.start, *arrows));
                events.push(Event::arrow("f", JOBS, place.start, *arrows));
            }
        }
    }
}

fn pages(transfers: &[Transfer]) -> BTreeSet<u64> {
    let mut pages = BTreeSet::new();
    for transfer in transfers {
        let first = transfer.address - transfer.address % PAGE;
        let end = transfer.address.saturating_add(transfer.bytes);
        for page in (first..end).step_by(PAGE as usize) {
            if pages.len() as u64 >= MAX_PAGES {
                return pages;
            }
            pages.insert(page);
        }
    }
    pages
}
