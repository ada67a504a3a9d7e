// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory as the last turn left it.

use super::RunSession;
use crate::ReplayError;

const PAGE_BYTES: usize = 4096;

/// Bytes at a recorded address.
pub type Range = (u64, Vec<u8>);

impl RunSession {
    pub(super) fn memory(&self) -> Result<Vec<Vec<u8>>, ReplayError> {
        let read = |address, size: u64| {
            let size = usize::try_from(size)
                .map_err(|_| ReplayError::Impossible("memory is larger than memory"))?;
            let mut bytes = vec![0; size];
            self.gpu.download(address, &mut bytes)?;
            Ok(bytes)
        };
        let memory = self.run.memory.iter();
        memory
            .map(|memory| read(memory.address, memory.size))
            .collect()
    }

    /// Memory and variables that earlier runs changed, by pages.
    ///
    /// # Errors
    /// Memory holds variables' addresses, which differ between processes; the driver refuses.
    pub fn state(&self) -> Result<Vec<Range>, ReplayError> {
        self.without_addresses()?;
        let mut changed = Vec::new();
        let mut keep = |address: u64, now: &[u8], before: &[u8]| {
            let mut at = 0;
            while at < now.len() {
                let same = |at: usize| {
                    let end = (at + PAGE_BYTES).min(now.len());
                    before.get(at..end).map_or_else(
                        || now[at..end].iter().all(|byte| *byte == 0),
                        |before| before == &now[at..end],
                    )
                };
                let begin = at;
                while at < now.len() && !same(at) {
                    at += PAGE_BYTES;
                }
                if at > begin {
                    let end = at.min(now.len());
                    changed.push((address + begin as u64, now[begin..end].to_vec()));
                }
                at = at.max(begin + PAGE_BYTES);
            }
        };
        let now = self.memory()?;
        self.source
            .each(&self.run, self.images.moves(), |number, before| {
                keep(self.run.memory[number].address, &now[number], before);
                Ok(())
            })?;
        for (memory, now) in self.run.memory.iter().zip(&now) {
            if memory.contents.is_none() {
                keep(memory.address, now, &[]);
            }
        }
        for (variable, (placed, before)) in self.run.variables.iter().zip(self.images.variables()) {
            let mut now = vec![0; before.len()];
            self.gpu.download(placed, &mut now)?;
            keep(variable.address, &now, before);
        }
        Ok(changed)
    }

    /// Restores memory, then sets these ranges.
    ///
    /// # Errors
    /// A range outside memory, or the driver refuses.
    pub fn set_state(&self, state: &[Range]) -> Result<(), ReplayError> {
        self.without_addresses()?;
        let memory = self.run.memory.iter().map(|one| (one.address, one.size));
        let variables = self.run.variables.iter().map(|one| (one.address, one.size));
        let all: Vec<(u64, u64)> = memory.chain(variables).collect();
        for (address, bytes) in state {
            let end = address.checked_add(bytes.len() as u64);
            let inside = |(start, size): &(u64, u64)| {
                address >= start && end.is_some_and(|end| end <= start + size)
            };
            if !all.iter().any(inside) {
                return Err(ReplayError::Impossible(
                    "the state has memory that the run does not have",
                ));
            }
        }
        self.restore()?;
        for (address, bytes) in state {
            let to = self.images.moves().moved(*address).unwrap_or(*address);
            self.gpu.upload(to, bytes)?;
        }
        self.gpu.synchronize()
    }

    pub(super) fn without_addresses(&self) -> Result<(), ReplayError> {
        match self.rewritten {
            0 => Ok(()),
            _ => Err(ReplayError::Impossible(
                "memory holds addresses of variables, which differ from process to process: its state cannot be kept",
            )),
        }
    }
}
