// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report in words.

use super::{AnalyseReport, SECTOR, SiteReport};
use crate::command::failure::Failure;
use crate::command::report::{bytes, say, sizes};

impl AnalyseReport<'_> {
    fn ranked<T>(
        &self,
        numbers: impl Fn(&SiteReport<'_>) -> Option<T>,
        size: impl Fn(&T) -> u64,
    ) -> Vec<(&SiteReport<'_>, T)> {
        let sites = self.sites.iter();
        let mut sites: Vec<_> = sites
            .filter_map(|site| Some((site, numbers(site)?)))
            .collect();
        sites.sort_by_key(|(_, one)| std::cmp::Reverse(size(one)));
        sites
    }

    pub(in crate::command::analyse) fn print(&self, top: usize) -> Result<(), Failure> {
        say!(
            "{}: grid {}, block {}",
            self.kernel,
            sizes(self.grid),
            sizes(self.block)
        );
        say!("  with probes in the PTX of {}: {}", self.ptx, self.verdict);
        say!(
            "  {:.1} us, with probes {:.1} us",
            self.plain_us,
            self.probed_us
        );
        for missing in &self.incomplete {
            say!("  not counted: {missing}");
        }
        let of = |site: &SiteReport<'_>| place(site.file, site.source_line, site.line);
        let counted = |site: &SiteReport<'_>| site.memory.filter(|one| one.accesses > 0);
        let memory = self.ranked(counted, |one| one.sectors);
        if !memory.is_empty() {
            say!("  global memory        accesses  sectors each  lines each    used  instruction");
        }
        for (site, memory) in memory.iter().take(top) {
            say!(
                "  {:<18} {:>10} {:>13.2} {:>11.2} {:>6.1}%  {}",
                of(site),
                memory.accesses,
                ratio(memory.sectors, memory.accesses),
                ratio(memory.lines, memory.accesses),
                100.0 * ratio(memory.asked, memory.sectors * SECTOR),
                site.instruction
            );
        }
        let outside = memory.iter().map(|(_, memory)| memory.outside).sum::<u64>();
        if outside > 0 {
            say!("  {outside} lanes reach memory that the recording does not hold");
        }
        for (site, memory) in memory.iter().filter(|(_, one)| one.outside > 0).take(top) {
            say!(
                "    {:<16} {:>10}  {}",
                of(site),
                memory.outside,
                site.instruction
            );
        }
        let counted = |site: &SiteReport<'_>| site.shared.filter(|one| one.accesses > 0);
        let shared = self.ranked(counted, |one| one.rounds);
        if !shared.is_empty() {
            say!("  shared memory        accesses   rounds each   conflicts  instruction");
        }
        for (site, shared) in shared.iter().take(top) {
            say!(
                "  {:<18} {:>10} {:>13.2} {:>11}  {}",
                of(site),
                shared.accesses,
                ratio(shared.rounds, shared.accesses),
                shared.conflicts,
                site.instruction
            );
        }
        let counted = |site: &SiteReport<'_>| site.divergent.filter(|one| *one > 0);
        let blocks = self.ranked(counted, |one| *one);
        if !blocks.is_empty() {
            say!("  divergence              warps     divergent  lanes each  block begins with");
        }
        for (site, divergent) in blocks.iter().take(top) {
            say!(
                "  {:<18} {:>10} {:>13} {:>11.2}  {}",
                of(site),
                site.warps,
                divergent,
                ratio(site.lanes, site.warps),
                site.instruction
            );
        }
        if !self.heat.is_empty() {
            say!("  heat                     bytes        read     written    sectors");
        }
        for area in self.heat.iter().take(top) {
            say!(
                "  {:<18} {:>11} {:>11} {:>11} {:>10}",
                area.name,
                bytes(area.bytes),
                bytes(area.read),
                bytes(area.written),
                area.sectors
            );
        }
        if let Some(verdict) = self.races_verdict {
            say!("  races in shared memory: {verdict}");
        }
        for race in self.races.iter().take(top) {
            let places = race.files.iter().zip(&race.source_lines).zip(&race.lines);
            let places: Vec<String> = places
                .map(|((file, source), line)| place(*file, *source, *line))
                .collect();
            say!(
                "  {}: {} times, {}; first in block {}, byte {}, threads {:?}",
                race.kind,
                race.times,
                places.join(" and "),
                race.block,
                race.byte,
                race.threads
            );
        }
        for own in &self.own {
            let words: Vec<String> = own.words.iter().take(top).map(u64::to_string).collect();
            say!("  {} {}", own.name, words.join(" "));
        }
        Ok(())
    }
}

fn place(file: Option<&str>, source: Option<u32>, line: usize) -> String {
    match (file, source) {
        (Some(file), Some(source)) => {
            format!("{}:{source}", file.rsplit('/').next().unwrap_or(file))
        }
        _ => format!("ptx:{line}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "few digits are shown")]
fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}
