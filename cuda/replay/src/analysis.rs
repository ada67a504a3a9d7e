// SPDX-License-Identifier: MIT OR Apache-2.0
//! A launch with probes, counted by site and piece.

use gpureplay_cuda_launch::abi::JitOptions;
use gpureplay_cuda_launch::image;
use gpureplay_cuda_launch::probe::{Calls, Instrumented, instrument};

use crate::module::variable_address;
use crate::room::Room;
use crate::{Comparison, Loaded, Mask, ReplayError, Session, Times, Verdict};

/// Counters of 64 bits per site.
pub const COUNTERS: usize = 16;
/// Parts of a piece that heat tells apart.
pub const CELLS: usize = 64;
const MAX_HEAT_BYTES: u64 = 1 << 30;

/// Blocks beyond it have no marks.
const MAX_MARK_BYTES: u64 = 1 << 30;
const MARK_BYTES_PER_WORD: u64 = 32;
/// Bytes of shared memory that the driver keeps at the start, and room for alignment.
const RESERVED: u64 = 2048;
const RUNS: u32 = 3;
const FINDINGS: usize = 4096;

const ACCESS: &str = include_str!("analysis/access.ptx");
const RACES: &str = include_str!("analysis/races.ptx");

/// What to look for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// Lines, sectors, bank conflicts, heat.
    pub accesses: bool,
    /// Executions of basic blocks, with or without lanes elsewhere.
    pub divergence: bool,
    /// Races, and reads before any write.
    pub races: bool,
    /// The user's probes, and the function to call.
    pub own: Option<(&'a str, &'a str)>,
}

/// What is wrong with accesses to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An unordered read and write.
    ReadAndWrite,
    /// Two unordered writes.
    TwoWrites,
    /// A read before any write.
    Unwritten,
}

/// A wrong access to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub fault: Fault,
    /// The seeing site, and the other.
    pub sites: [usize; 2],
    /// How often.
    pub times: u64,
    /// Block of the first, by x, then y, then z.
    pub block: u32,
    /// Its byte, as the kernel addresses it.
    pub byte: u32,
    /// Its threads.
    pub threads: [u32; 2],
}

/// What the probes counted.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The text that ran.
    pub instrumented: Instrumented,
    /// The comparison.
    pub verdict: Verdict,
    /// Without and with probes.
    pub times: [Times; 2],
    /// By site.
    pub counters: Vec<[u64; COUNTERS]>,
    /// Regions, then variables.
    pub pieces: Vec<usize>,
    /// By site and piece: sectors, bytes.
    pub heat: Vec<[u64; 2]>,
    /// By piece: sectors of each part.
    pub cells: Vec<[u64; CELLS]>,
    /// By piece: shift from offset to part.
    pub shifts: Vec<u32>,
    /// The user's variables, in words of 64 bits or the bytes left.
    pub own: Vec<(String, Vec<u8>)>,
    /// Bytes of heat, if left out.
    pub heat_left_out: Option<u64>,
    /// Wrong accesses.
    pub findings: Vec<Finding>,
    /// Blocks with marks.
    pub marked_blocks: u64,
}

fn finding(words: &[u64; 4]) -> Option<Finding> {
    let [key, times, place, threads] = *words;
    #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
    let part = |word: u64, shift: u32| (word >> shift) as u32;
    let fault = match part(key, 32) & 0xff {
        1 => Fault::ReadAndWrite,
        2 => Fault::TwoWrites,
        3 => Fault::Unwritten,
        _ => return None,
    };
    Some(Finding {
        fault,
        sites: [16, 0].map(|shift| (key >> shift & 0xffff) as usize),
        times,
        block: part(place, 32),
        byte: part(place, 0) * 4,
        threads: [16, 0].map(|shift| part(threads, shift) & 0xffff),
    })
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn shift(size: u64) -> u32 {
    (u64::BITS - size.saturating_sub(1).leading_zeros()).saturating_sub(CELLS.ilog2())
}

impl Session {
    /// Launches with probes, compares, and counts.
    ///
    /// # Errors
    /// No room for probes, a refusal, or a failed kernel.
    pub fn analyse(
        &mut self,
        text: &[u8],
        wanted: &Wanted<'_>,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Analysis, ReplayError> {
        let calls = Calls {
            accesses: wanted.accesses,
            blocks: wanted.divergence || wanted.own.is_some(),
            races: wanted.races,
            own: wanted.own.map(|(_, function)| function),
        };
        let mut probes = ACCESS.to_owned();
        if wanted.races {
            probes += RACES;
        }
        if let Some((own, _)) = wanted.own {
            probes += "\n";
            probes += &without_head(own);
        }
        let kernel = self.launch().kernel.clone();
        let instrumented = instrument(text, &kernel, &calls, &probes)?;
        let loaded = self.load(None, JitOptions::default())?;
        let plain = self.time(&loaded, &self.sizes(), RUNS);
        self.unload(&loaded);
        let loaded = self.load(Some(instrumented.text.as_bytes()), JitOptions::default())?;
        let analysed = self.analyse_loaded(&loaded, (plain?, instrumented), wanted, how, mask);
        self.unload(&loaded);
        analysed
    }

    fn analyse_loaded(
        &self,
        loaded: &Loaded,
        (plain, instrumented): (Times, Instrumented),
        wanted: &Wanted<'_>,
        how: &Comparison,
        mask: &Mask,
    ) -> Result<Analysis, ReplayError> {
        let sites = instrumented.sites.len();
        let mut ranges = self.ranges(loaded);
        ranges.sort_unstable();
        let shifts: Vec<u32> = ranges.iter().map(|[_, size, _]| shift(*size)).collect();
        let table: Vec<u64> = ranges
            .iter()
            .zip(&shifts)
            .flat_map(|([start, size, _], shift)| [*start, start + size, u64::from(*shift), 0])
            .collect();
        let heat_bytes = sites as u64 * ranges.len() as u64 * 16;
        let heat_left_out = (heat_bytes > MAX_HEAT_BYTES).then_some(heat_bytes);
        let count = if heat_left_out.is_some() {
            0
        } else {
            ranges.len()
        };
        let counters = Room::new(self.gpu(), sites * COUNTERS * 8)?;
        let regions = Room::new(self.gpu(), table.len() * 8)?;
        self.gpu().upload(regions.address, &bytes_of(&table))?;
        let heat = Room::new(self.gpu(), sites * count * 16)?;
        let cells = Room::new(self.gpu(), count * CELLS * 8)?;
        let found = Room::new(self.gpu(), FINDINGS * 32)?;
        let mut marks = None;
        let mut marked_blocks = 0;
        if wanted.races {
            let sizes = self.sizes();
            let shared = u64::from(loaded.shared(self.gpu())?) + u64::from(sizes.shared) + RESERVED;
            let words = shared / 4;
            let blocks = sizes.grid.iter().map(|count| u64::from(*count));
            let blocks = blocks.fold(1, u64::saturating_mul);
            marked_blocks = blocks.min(MAX_MARK_BYTES / (words * MARK_BYTES_PER_WORD));
            let bytes = usize::try_from(marked_blocks * words * MARK_BYTES_PER_WORD).unwrap_or(0);
            let marks = marks.insert(Room::new(self.gpu(), bytes)?);
            for (name, value) in [
                ("gpureplay_marks", marks.address),
                ("gpureplay_mark_blocks", marked_blocks),
                ("gpureplay_mark_words", words),
                ("gpureplay_found", found.address),
            ] {
                self.set(loaded, name, value)?;
            }
        }
        for (name, value) in [
            ("gpureplay_sites", counters.address),
            ("gpureplay_regions", regions.address),
            ("gpureplay_count", count as u64),
            ("gpureplay_heat", heat.address),
            ("gpureplay_cells", cells.address),
        ] {
            self.set(loaded, name, value)?;
        }
        self.launch_restored(loaded, &self.sizes())?;
        let own = self.own_variables(loaded, wanted)?;
        let verdict = self.compare(loaded, how, mask)?;
        let analysis = Analysis {
            verdict,
            times: [plain, Times::default()],
            counters: counters.read()?.into_iter().take(sites).collect(),
            pieces: ranges
                .iter()
                .take(count)
                .map(|range| range[2] as usize)
                .collect(),
            heat: heat.read()?.into_iter().take(sites * count).collect(),
            cells: cells.read()?.into_iter().take(count).collect(),
            shifts,
            own,
            heat_left_out,
            findings: found.read()?.iter().filter_map(finding).collect(),
            marked_blocks,
            instrumented,
        };
        let probed = self.time(loaded, &self.sizes(), RUNS)?;
        let [plain, _] = analysis.times;
        Ok(Analysis {
            times: [plain, probed],
            ..analysis
        })
    }

    fn set(&self, loaded: &Loaded, name: &str, value: u64) -> Result<(), ReplayError> {
        let address = variable_address(self.gpu(), loaded.module, name, 8)?;
        self.gpu().upload(address, &value.to_le_bytes())
    }

    fn own_variables(
        &self,
        loaded: &Loaded,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<(String, Vec<u8>)>, ReplayError> {
        let Some((text, _)) = wanted.own else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for part in image::parts(text.as_bytes())? {
            for variable in part.contents()?.variables {
                let size = variable.size.unwrap_or(0);
                let address = variable_address(self.gpu(), loaded.module, &variable.name, size)?;
                let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
                self.gpu().download(address, &mut bytes)?;
                all.push((variable.name, bytes));
            }
        }
        Ok(all)
    }
}

fn without_head(text: &str) -> String {
    let is_head = |line: &&str| {
        let line = line.trim_start();
        [".version", ".target", ".address_size"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let lines: Vec<&str> = text.lines().filter(|line| !is_head(line)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{CELLS, Fault, finding, shift, without_head};

    #[test]
    fn cells_are_at_most_as_many_as_there_are() {
        for size in [1u64, 63, 64, 65, 4096, 4097, 1 << 40, (1 << 40) + 1] {
            let last = (size - 1) >> shift(size);
            assert!(last < CELLS as u64, "{size}");
            assert!(size <= CELLS as u64 || last >= CELLS as u64 / 2, "{size}");
        }
    }

    #[test]
    fn a_finding_is_read_as_it_is_written() {
        let key = 1 << 63 | 2 << 32 | 7 << 16 | 9;
        let found = finding(&[key, 5, 3 << 32 | 11, 4 << 16 | 6]).unwrap();
        assert_eq!(
            (found.fault, found.sites, found.times),
            (Fault::TwoWrites, [7, 9], 5)
        );
        assert_eq!((found.block, found.byte, found.threads), (3, 44, [4, 6]));
        assert_eq!(finding(&[0; 4]), None);
    }

    #[test]
    fn a_text_loses_its_head() {
        let text = ".version 7.0\n.target sm_70\n.address_size 64\n.func f () { ret; }\n";
        assert_eq!(without_head(text), ".func f () { ret; }");
    }
}
