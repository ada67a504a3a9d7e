// SPDX-License-Identifier: MIT OR Apache-2.0
//! The report, with members as for Mali recordings.

mod print;

use gpureplay_cuda_launch::probe::{Kind, Site, Space};
use gpureplay_cuda_launch::recording::Launch;
use serde::Serialize;

use crate::command::report::bytes;
use crate::{Analysis, CELLS, COUNTERS, Fault, Finding, Pieces};

/// Bytes that memory moves at least.
const SECTOR: u64 = 32;

/// What the probes counted in one launch.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
pub(crate) struct AnalyseReport<'a> {
    kernel: &'a str,
    gpu: &'a str,
    grid: [u32; 3],
    block: [u32; 3],
    /// Lanes of a warp.
    warp_lanes: u32,
    line_bytes: u32,
    sector_bytes: u64,
    /// What was counted: `lines`, `heat`, `divergence`.
    what: Vec<&'a str>,
    /// Where the PTX is from.
    ptx: &'a str,
    /// What the launch with probes left, compared as ever: `exact`, `within`, `differs` or `inconclusive`.
    verdict: &'static str,
    /// How long the recorded kernel takes, and the one with probes.
    plain_us: f64,
    probed_us: f64,
    /// What was not counted, and why.
    incomplete: Vec<String>,
    /// By place of the PTX.
    sites: Vec<SiteReport<'a>>,
    /// By piece of memory that was reached.
    heat: Vec<AreaReport>,
    /// Of `races`: `clean`, `found` or `incomplete`.
    races_verdict: Option<&'static str>,
    /// Accesses to shared memory that are wrong, by pair of places.
    races: Vec<RaceReport<'a>>,
    /// Variables of your probe's text after the launch.
    own: Vec<OwnReport<'a>>,
}

/// A place where probes counted.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct SiteReport<'a> {
    /// `load`, `store`, `atomic` or `block`.
    kind: &'static str,
    /// `global`, `shared` or `generic`; nothing for a block.
    space: Option<&'static str>,
    function: &'a str,
    /// The instruction that follows.
    instruction: &'a str,
    /// Line of the PTX.
    line: usize,
    file: Option<&'a str>,
    source_line: Option<u32>,
    /// Executions by warps, and lanes of them.
    warps: u64,
    lanes: u64,
    /// Executions with lanes elsewhere or ended.
    divergent: Option<u64>,
    memory: Option<MemoryReport>,
    shared: Option<SharedReport>,
}

/// Accesses to memory of the device.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Default, Serialize)]
struct MemoryReport {
    /// By warps.
    accesses: u64,
    /// Bytes that lanes ask for.
    asked: u64,
    /// Lines of 128 bytes that warps touch.
    lines: u64,
    /// Sectors of 32 bytes that warps touch.
    sectors: u64,
    /// Lanes that reach memory that was not recorded.
    outside: u64,
}

/// Accesses to shared memory.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Default, Serialize)]
struct SharedReport {
    /// By warps.
    accesses: u64,
    /// Bytes that lanes ask for.
    asked: u64,
    /// Rounds that the banks need.
    rounds: u64,
    /// Of these, rounds because of bank conflicts.
    conflicts: u64,
}

/// Accesses to one piece of memory.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct AreaReport {
    /// Its parameters or its variable.
    name: String,
    address: String,
    bytes: u64,
    /// Bytes that lanes ask for.
    read: u64,
    written: u64,
    /// Sectors that warps touch.
    sectors: u64,
    /// Bytes of a cell.
    cell_bytes: u64,
    /// Sectors by cell, up to the last one that is reached.
    cells: Vec<u64>,
}

/// Accesses to shared memory that are wrong.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct RaceReport<'a> {
    /// `read and write`, `two writes` or `read before any write`.
    kind: &'static str,
    /// How often.
    times: u64,
    /// Lines of the PTX: of the access that saw it, and of the other one.
    lines: Vec<usize>,
    files: Vec<Option<&'a str>>,
    source_lines: Vec<Option<u32>>,
    instructions: Vec<&'a str>,
    /// Block, byte of shared memory and threads of the first.
    block: u32,
    byte: u32,
    threads: Vec<u32>,
}

/// A variable of the user's.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Serialize)]
struct OwnReport<'a> {
    name: &'a str,
    /// Words of 64 bits.
    words: Vec<u64>,
}

impl<'a> AnalyseReport<'a> {
    pub(super) fn new(
        launch: &'a Launch,
        from: &'a str,
        what: Vec<&'a str>,
        analysis: &'a Analysis,
    ) -> Self {
        let instrumented = &analysis.instrumented;
        let mut incomplete: Vec<String> = instrumented
            .left_out
            .iter()
            .map(|(name, places)| format!("{name}: {places} places are not followed"))
            .collect();
        if let Some(heat) = analysis.heat_left_out {
            incomplete.push(format!("heat would take {}", bytes(heat)));
        }
        let (races_verdict, races) = races(launch, &what, analysis, &mut incomplete);
        let sites = instrumented.sites.iter().zip(&analysis.counters);
        Self {
            races_verdict,
            races,
            kernel: &launch.kernel,
            gpu: &launch.device.name,
            grid: launch.grid,
            block: launch.block,
            warp_lanes: 32,
            line_bytes: 128,
            sector_bytes: SECTOR,
            ptx: from,
            verdict: analysis.verdict.word(),
            plain_us: analysis.times[0].median(),
            probed_us: analysis.times[1].median(),
            incomplete,
            sites: sites
                .map(|(site, counters)| SiteReport::new(site, counters))
                .collect(),
            heat: if what.contains(&"heat") {
                areas(launch, analysis)
            } else {
                Vec::new()
            },
            what,
            own: analysis
                .own
                .iter()
                .map(|(name, bytes)| OwnReport {
                    name,
                    words: bytes.chunks(8).map(word).collect(),
                })
                .collect(),
        }
    }

    pub(super) fn has_found(&self) -> bool {
        self.races_verdict.is_some_and(|verdict| verdict != "clean")
    }
}

/// Leaves findings out where an access or order is not followed.
fn races<'a>(
    launch: &Launch,
    what: &[&str],
    analysis: &'a Analysis,
    incomplete: &mut Vec<String>,
) -> (Option<&'static str>, Vec<RaceReport<'a>>) {
    if !what.contains(&"races") {
        return (None, Vec::new());
    }
    let instrumented = &analysis.instrumented;
    if let Some(reason) = instrumented.unordered {
        incomplete.push(format!("races: {reason}"));
        return (Some("incomplete"), Vec::new());
    }
    if !instrumented.left_out.is_empty() {
        return (Some("incomplete"), Vec::new());
    }
    let blocks = launch.grid.iter().map(|count| u64::from(*count));
    let blocks = blocks.fold(1, u64::saturating_mul);
    let is_whole = analysis.marked_blocks >= blocks;
    if !is_whole {
        incomplete.push(format!(
            "races of {blocks} blocks: only the first {} were looked at",
            analysis.marked_blocks
        ));
    }
    let sites = &instrumented.sites;
    let one = |finding: &Finding| {
        let count = if finding.fault == Fault::Unwritten {
            1
        } else {
            2
        };
        let pair = finding.sites.iter().take(count);
        let pair: Vec<&Site> = pair.filter_map(|number| sites.get(*number)).collect();
        let file = |site: &&'a Site| site.source.as_ref().map(|(file, _)| file.as_str());
        RaceReport {
            kind: match finding.fault {
                Fault::ReadAndWrite => "read and write",
                Fault::TwoWrites => "two writes",
                Fault::Unwritten => "read before any write",
            },
            times: finding.times,
            lines: pair.iter().map(|site| site.line).collect(),
            files: pair.iter().map(file).collect(),
            source_lines: pair
                .iter()
                .map(|site| site.source.as_ref().map(|(_, line)| *line))
                .collect(),
            instructions: pair.iter().map(|site| site.instruction.as_str()).collect(),
            block: finding.block,
            byte: finding.byte,
            threads: finding.threads.iter().take(count).copied().collect(),
        }
    };
    let mut found: Vec<_> = analysis.findings.iter().map(one).collect();
    found.sort_by_key(|race| std::cmp::Reverse(race.times));
    // A word's marks are its last write and two reads, of whichever bytes.
    let in_parts = |site: &Site| site.bytes < 4 && matches!(site.access, Some((_, Space::Shared)));
    let has_parts = sites.iter().any(in_parts);
    if has_parts {
        incomplete.push(
            "races between accesses of less than 4 bytes: only the last write to a word is remembered"
                .to_owned(),
        );
    }
    let verdict = match (found.is_empty(), is_whole && !has_parts) {
        (false, _) => "found",
        (true, true) => "clean",
        (true, false) => "incomplete",
    };
    (Some(verdict), found)
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

impl<'a> SiteReport<'a> {
    fn new(site: &'a Site, counters: &[u64; COUNTERS]) -> Self {
        let [warps, lanes, ..] = *counters;
        let access = site.access;
        let memory = access.filter(|_| warps > 0).map(|_| MemoryReport {
            accesses: warps,
            asked: counters[4],
            lines: counters[2],
            sectors: counters[3],
            outside: counters[5],
        });
        let shared = access.filter(|_| counters[8] > 0).map(|_| SharedReport {
            accesses: counters[8],
            asked: counters[12],
            rounds: counters[10],
            conflicts: counters[10].saturating_sub(counters[11]),
        });
        Self {
            kind: access.map_or("block", |(kind, _)| kind.word()),
            space: access.map(|(_, space)| space.word()),
            function: &site.function,
            instruction: &site.instruction,
            line: site.line,
            file: site.source.as_ref().map(|(file, _)| file.as_str()),
            source_line: site.source.as_ref().map(|(_, line)| *line),
            warps: warps + if access.is_some() { counters[8] } else { 0 },
            lanes: lanes + if access.is_some() { counters[9] } else { 0 },
            divergent: access.is_none().then_some(counters[2]),
            memory,
            shared,
        }
    }
}

fn areas(launch: &Launch, analysis: &Analysis) -> Vec<AreaReport> {
    let pieces = Pieces::of(launch);
    let count = analysis.pieces.len();
    let mut areas = Vec::new();
    for (index, piece) in analysis.pieces.iter().enumerate() {
        let (mut read, mut written, mut sectors) = (0, 0, 0);
        for (number, site) in analysis.instrumented.sites.iter().enumerate() {
            let Some((kind, _)) = site.access else {
                continue;
            };
            let [touched, bytes] = analysis.heat[number * count + index];
            sectors += touched;
            read += if kind == Kind::Store { 0 } else { bytes };
            written += if kind == Kind::Load { 0 } else { bytes };
        }
        if sectors == 0 {
            continue;
        }
        let held = launch.pieces().nth(*piece);
        let variable = held.and_then(|held| held.owner.variable());
        let parameters = pieces.parameters(*piece);
        let parameters: Vec<String> = parameters.iter().map(usize::to_string).collect();
        let (address, size) = held.map_or((0, 0), |held| (held.address, held.size));
        let mut cells: Vec<u64> = analysis.cells[index].to_vec();
        debug_assert_eq!(cells.len(), CELLS);
        while cells.last() == Some(&0) {
            cells.pop();
        }
        areas.push(AreaReport {
            name: match (variable, parameters.is_empty()) {
                (Some(variable), _) => variable.to_owned(),
                (None, false) => format!("parameter {}", parameters.join(", ")),
                (None, true) => format!("{address:#x}"),
            },
            address: format!("{address:#x}"),
            bytes: size,
            read,
            written,
            sectors,
            cell_bytes: 1 << analysis.shifts[index],
            cells,
        });
    }
    areas.sort_by_key(|area| std::cmp::Reverse(area.sectors));
    areas
}
