// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two recorders' traces of one run, compared.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    io::BufReader,
    path::Path,
};

use gpureplay_trace::{Check, Event, PAGE_SIZE, Phase, Reader};
use mali_facts::registers::{Class, gpu, lookup};

/// A trace without recorder-specific parts.
#[derive(Debug, Default)]
struct Traced {
    identity: BTreeMap<u32, u32>,
    /// Not zero, before the first job.
    settings: BTreeMap<u32, u32>,
    /// Slot and head.
    jobs: Vec<(u8, u64)>,
    /// Before and after each job, by address; numbers stand for contents.
    pages: Vec<[BTreeMap<u64, u64>; 2]>,
    /// Preceding jobs, mapped or not, address, bytes.
    buffers: Vec<(usize, bool, u64, u64)>,
    /// From the OpenCL layer, with preceding jobs.
    notes: Vec<(usize, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) jobs: usize,
    pub(crate) changes: usize,
    pub(crate) empty: usize,
    /// Logged later by the app's library, when a job listed them.
    pub(crate) late: usize,
    /// User space never looked, the GPU never wrote: purgeable, or overlooked.
    pub(crate) given_up: usize,
    /// Beyond a job's start: one thread noted, another submitted.
    pub(crate) moved: usize,
    pub(crate) unexplained: Vec<String>,
}

impl Compared {
    pub(crate) fn agrees(&self, may_give_up: bool) -> bool {
        self.unexplained.is_empty() && self.changes > 0 && (may_give_up || self.given_up == 0)
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} jobs, {} page changes, {} empty pages in one trace only, {} pages logged later, {} pages given up, {} notes beside a job's start, {} unexplained differences",
            self.jobs,
            self.changes,
            self.empty,
            self.late,
            self.given_up,
            self.moved,
            self.unexplained.len()
        )?;
        for text in self.unexplained.iter().take(8) {
            write!(f, "; {text}")?;
        }
        Ok(())
    }
}

pub(crate) fn compare(kernel: &Path, user: &Path) -> Result<Compared, String> {
    Ok(compared(&read(kernel)?, &read(user)?))
}

fn number(bytes: Option<&[u8; PAGE_SIZE]>) -> u64 {
    let Some(bytes) = bytes.filter(|bytes| bytes.iter().any(|byte| *byte != 0)) else {
        return 0;
    };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish().max(1)
}

fn read(path: &Path) -> Result<Traced, String> {
    let wrong = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let mut reader = Reader::new(BufReader::new(file));
    let mut check = Check::new();
    let mut traced = Traced::default();
    let mut before = BTreeMap::new();
    while let Some(record) = reader.next_record().map_err(|error| wrong(&error))? {
        check.observe(&record).map_err(|error| wrong(&error))?;
        let jobs = traced.jobs.len();
        match record.event {
            Event::RegRead { offset, value }
                if lookup(offset).is_some_and(|register| register.class() == Class::Identity) =>
            {
                traced.identity.entry(offset).or_insert(value);
            }
            Event::RegWrite { offset, value }
                if [gpu::JM_CONFIG, gpu::SHADER_CONFIG, gpu::TILER_CONFIG].contains(&offset)
                    && value != 0
                    && jobs == 0 =>
            {
                traced.settings.insert(offset, value);
            }
            Event::Map { va, size, .. } => traced.buffers.push((jobs, true, va, size)),
            Event::Unmap { va, size, .. } => traced.buffers.push((jobs, false, va, size)),
            Event::Page {
                phase: Phase::Before,
                va,
                bytes,
                ..
            } => {
                before.insert(va, number(bytes));
            }
            Event::Page { va, bytes, .. } => {
                if let Some([_, after]) = traced.pages.last_mut() {
                    after.insert(va, number(bytes));
                }
            }
            Event::Submit {
                slot, chain_head, ..
            } => {
                traced.jobs.push((slot, chain_head));
                let before = std::mem::take(&mut before);
                traced.pages.push([before, BTreeMap::new()]);
            }
            Event::Note(text) if text.starts_with("cl") => {
                traced.notes.push((jobs, text.to_owned()));
            }
            _ => {}
        }
    }
    check.finish().map_err(|error| wrong(&error))?;
    Ok(traced)
}

fn compared(kernel: &Traced, user: &Traced) -> Compared {
    let mut found = Compared {
        jobs: user.jobs.len(),
        ..Compared::default()
    };
    let mut differ = |what: String| found.unexplained.push(what);
    for (register, value) in &user.identity {
        match kernel.identity.get(register) {
            Some(other) if other != value => {
                differ(format!("register {register:#x}: {other:#x}, {value:#x}"));
            }
            _ => {}
        }
    }
    if kernel.settings != user.settings {
        differ(format!(
            "settings: {:x?}, {:x?}",
            kernel.settings, user.settings
        ));
    }
    if kernel.jobs != user.jobs {
        differ(format!("jobs: {:x?}, {:x?}", kernel.jobs, user.jobs));
        return found;
    }
    // At the process's end, the kernel's recorder sees its memory freed.
    let alive = |traced: &Traced| -> Vec<(usize, bool, u64, u64)> {
        let buffers = traced.buffers.iter().copied();
        buffers
            .filter(|(jobs, mapped, ..)| *jobs < traced.jobs.len() || *mapped)
            .collect()
    };
    if alive(kernel) != alive(user) {
        differ("buffers differ".into());
    }
    if kernel.notes.len() != user.notes.len() {
        differ("there are more notes in one trace".into());
    }
    let mut moved = 0;
    for ((theirs, text), (ours, same)) in kernel.notes.iter().zip(&user.notes) {
        match (text == same, theirs.abs_diff(*ours)) {
            (true, 0) => {}
            (true, 1) => moved += 1,
            _ => differ(format!("note `{text}` at job {theirs}, `{same}` at {ours}")),
        }
    }
    found.moved = moved;
    let mut held = [BTreeMap::new(), BTreeMap::new()];
    let mut late = BTreeSet::new();
    for (job, (theirs, ours)) in kernel.pages.iter().zip(&user.pages).enumerate() {
        for (phase, (theirs, ours)) in ["before", "after"].iter().zip(theirs.iter().zip(ours)) {
            let [of_kernel, of_user] = &mut held;
            of_kernel.extend(theirs);
            of_user.extend(ours);
            for va in theirs
                .keys()
                .chain(ours.keys().filter(|va| !theirs.contains_key(va)))
            {
                match (of_kernel.get(va), of_user.get(va)) {
                    (Some(a), Some(b)) if a == b => {
                        found.changes += 1;
                        found.late += usize::from(late.remove(va));
                    }
                    // The library logs the app's change when a job lists the page.
                    (Some(_), Some(_)) if *phase == "before" && !ours.contains_key(va) => {
                        late.insert(*va);
                    }
                    (Some(_), Some(_)) => found
                        .unexplained
                        .push(format!("page {va:#x} {phase} job {job}")),
                    _ => {}
                }
            }
        }
    }
    // A later job may have used it.
    let never = |va: &u64| format!("page {va:#x}, whose last change the kernel logged only");
    found.unexplained.extend(late.iter().map(never));
    let [of_kernel, of_user] = &held;
    let is_given_up = |va: u64| {
        let mut buffers = user
            .buffers
            .iter()
            .map(|(.., start, size)| *start..start + size);
        let of_page = buffers.find(|buffer| buffer.contains(&va));
        let mut after = kernel.pages.iter().map(|[_, after]| after);
        of_page.is_some_and(|buffer| of_user.range(buffer).next().is_none())
            && !after.any(|pages| pages.contains_key(&va))
    };
    let only = |a: &BTreeMap<u64, u64>, b: &BTreeMap<u64, u64>| -> Vec<(u64, u64)> {
        let only = a.iter().filter(|(va, _)| !b.contains_key(va));
        only.map(|(va, number)| (*va, *number)).collect()
    };
    for (who, pages) in [
        ("the kernel", only(of_kernel, of_user)),
        ("user space", only(of_user, of_kernel)),
    ] {
        for (va, number) in pages {
            match number {
                0 => found.empty += 1,
                _ if is_given_up(va) => found.given_up += 1,
                _ => found
                    .unexplained
                    .push(format!("page {va:#x} by {who} only")),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_trace::{Driver, Writer};

    fn trace(before: u8, after: u8, head: u64) -> Traced {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut w = Writer::begin(Vec::new(), Driver::Panfrost, true, "panfrost", "6.12").unwrap();
        w.reg_read(gpu::GPU_ID, 0x7212_0000).unwrap();
        w.mapping(true, Some(0), 0, 0x1000, 0x1000).unwrap();
        w.page(0, Phase::Before, 0x1000, &[before; PAGE_SIZE])
            .unwrap();
        w.submit(1, 0, head).unwrap();
        w.page(0, Phase::After, 0x1000, &[after; PAGE_SIZE])
            .unwrap();
        w.complete(1, 1).unwrap();
        std::fs::write(file.path(), w.end().unwrap()).unwrap();
        read(file.path()).unwrap()
    }

    #[test]
    fn each_difference_is_named() {
        let one = trace(1, 2, 0x40);
        let same = compared(&one, &trace(1, 2, 0x40));
        assert_eq!((same.changes, same.unexplained.len()), (2, 0));
        let named = |other: &Traced| compared(&one, other).unexplained;
        assert_eq!(named(&trace(1, 3, 0x40)), ["page 0x1000 after job 0"]);
        assert_eq!(named(&trace(3, 2, 0x40)), ["page 0x1000 before job 0"]);
        let mut kernel = trace(1, 2, 0x40);
        let mut user = trace(1, 2, 0x40);
        let va = 0x1000;
        for traced in [&mut kernel, &mut user] {
            traced.jobs.resize(3, (1, 0x40));
            traced.pages.resize(3, Default::default());
        }
        kernel.pages[1][0].insert(va, 7);
        let two = compared(&kernel, &user);
        assert_eq!((two.late, two.unexplained.len()), (0, 1));
        user.pages[2][0].insert(va, 7);
        let two = compared(&kernel, &user);
        assert_eq!((two.late, two.unexplained.len()), (1, 0));
        user.pages[2][0].insert(va, 8);
        assert!(!compared(&kernel, &user).unexplained.is_empty());
        assert_eq!(named(&trace(1, 2, 0x80)).len(), 1);
        let mut unknown = trace(1, 2, 0x40);
        unknown.pages.iter_mut().flatten().for_each(BTreeMap::clear);
        assert_eq!(named(&unknown), ["page 0x1000 by the kernel only"]);
        let mut given_up = trace(1, 2, 0x40);
        given_up.pages[0][1].clear();
        let given_up = compared(&given_up, &unknown);
        assert_eq!((given_up.given_up, given_up.unexplained.len()), (1, 0));
        let given_up = Compared {
            given_up: 1,
            ..same.clone()
        };
        assert!(same.agrees(false) && given_up.agrees(true) && !given_up.agrees(false));
    }
}
