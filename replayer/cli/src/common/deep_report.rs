// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reach of jobs, for `gpureplay verify --deep`.

use std::collections::BTreeMap;
use std::io::Write;

use gpureplay_format::{Access, Recording, RegionKind};
use mali_jobs::walk::{Job, MAX_LISTED_JOBS, Report};
use serde::Serialize;

use crate::Result;
use crate::text;

/// The jobs, in the order in which they run: as many as have 65,536 lines together.
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Reach {
    jobs: Vec<Entry>,
    /// Jobs that are not listed.
    #[serde(skip)]
    more: usize,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Entry {
    action: u32,
    job: String,
    kind: &'static str,
    descriptors: usize,
    /// Memory that descriptors name: purpose, range, region.
    named: Vec<Named>,
    /// Regions that pointers in uniforms lead to, with the number of pointers.
    reachable: BTreeMap<String, usize>,
}

#[cfg_attr(test, derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct Named {
    purpose: &'static str,
    address: String,
    bytes: Option<u64>,
    region: String,
}

impl Reach {
    pub(crate) fn new(recording: &Recording<'_>, report: &Report) -> Self {
        let chains = report.chains.iter();
        let jobs = chains.flat_map(|chain| chain.jobs.iter().map(|job| (chain.action, job)));
        let (mut listed, mut lines) = (Vec::new(), 0usize);
        for (action, job) in jobs.clone() {
            lines = lines.saturating_add(1 + job.uses.len() + job.pointers.len());
            if lines > MAX_LISTED_JOBS {
                break;
            }
            listed.push(entry(recording, action, job));
        }
        Self {
            more: jobs.count() - listed.len(),
            jobs: listed,
        }
    }

    pub(crate) fn left_out(&self) -> Option<usize> {
        Some(self.more).filter(|more| *more > 0)
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> Result<()> {
        for job in &self.jobs {
            writeln!(
                out,
                "  action {}: job {} {}, {}",
                job.action,
                job.job,
                job.kind,
                text::count(job.descriptors as u64, "descriptor")
            )?;
            for named in &job.named {
                let bytes = named.bytes.map_or("length not stated".into(), text::bytes);
                writeln!(
                    out,
                    "    {} {} ({bytes}) in {}",
                    named.purpose, named.address, named.region
                )?;
            }
            for (region, pointers) in &job.reachable {
                let pointers = text::count(*pointers as u64, "pointer");
                writeln!(out, "    {pointers} in uniforms to {region}")?;
            }
        }
        if self.more > 0 {
            writeln!(out, "  … and {} more jobs", self.more)?;
        }
        Ok(())
    }
}

fn entry(recording: &Recording<'_>, action: u32, job: &Job) -> Entry {
    let region_text = |address: u64| region_text(recording, address);
    let mut reachable = BTreeMap::new();
    for &pointer in &job.pointers {
        *reachable.entry(region_text(pointer)).or_default() += 1;
    }
    let named = job.uses.iter().map(|it| Named {
        purpose: it.purpose.name(),
        address: format!("{:#x}", it.address),
        bytes: it.length,
        region: region_text(it.address),
    });
    Entry {
        action,
        job: format!("{:#x}", job.address),
        kind: job.kind,
        descriptors: job.descriptors,
        named: named.collect(),
        reachable,
    }
}

fn region_text(recording: &Recording<'_>, address: u64) -> String {
    let Some(region) = recording.region_of(address, 1) else {
        return "no region".into();
    };
    let kind = RegionKind::from_code(region.kind.into()).map_or("unknown", RegionKind::name);
    let writable = Access(region.access).contains(Access::WRITE);
    format!(
        "{kind} region {:#x}..{:#x}{}",
        region.va.get(),
        region.end(),
        if writable { "" } else { ", read only" }
    )
}
