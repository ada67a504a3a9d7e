// SPDX-License-Identifier: MIT OR Apache-2.0
//! Jobs' order: by lot within dependencies and barriers.

use std::collections::VecDeque;

use mali_facts::JobHeader;

/// Jobs read before earlier ones have ended.
const AHEAD: usize = 16;

struct Waiting {
    address: u64,
    index: u64,
    dependencies: [u64; 2],
    barrier: bool,
    /// The job may change the headers after it: none is read before its end.
    last_read: bool,
    overtaken: bool,
}

pub(crate) struct Order {
    waiting: VecDeque<Waiting>,
    next: u64,
    last: u64,
    random: u64,
}

impl Order {
    pub(crate) fn new(head: u64, seed: u64) -> Self {
        Self {
            waiting: VecDeque::new(),
            next: head,
            last: head,
            random: seed | 1,
        }
    }

    /// First job that has not ended, else the last.
    pub(crate) fn first(&self) -> u64 {
        let waits = self.waiting.front().map(|job| job.address);
        waits.unwrap_or(if self.next != 0 { self.next } else { self.last })
    }

    pub(crate) fn is_in_order(&self) -> bool {
        self.waiting.iter().all(|job| !job.overtaken)
    }

    /// An unreadable header is last, and faults at its turn.
    pub(crate) fn read(&mut self, header: impl Fn(u64) -> Option<JobHeader>) {
        while self.next != 0
            && self.waiting.len() < AHEAD
            && !self.waiting.back().is_some_and(|job| job.last_read)
        {
            let address = self.next;
            let (job, next) = match header(address) {
                Some(header) => (
                    Waiting {
                        address,
                        index: header.index(),
                        dependencies: [header.dependency_1(), header.dependency_2()],
                        barrier: header.barrier() != 0,
                        last_read: header.suppress_prefetch() != 0,
                        overtaken: false,
                    },
                    header.next(),
                ),
                None => (
                    Waiting {
                        address,
                        index: 0,
                        dependencies: [0; 2],
                        barrier: true,
                        last_read: true,
                        overtaken: false,
                    },
                    0,
                ),
            };
            self.waiting.push_back(job);
            (self.last, self.next) = (address, next);
        }
    }

    /// Without `any` only the first job may start. `None`: the chain has ended.
    pub(crate) fn take(&mut self, any: bool) -> Option<u64> {
        let may_start = |at: &usize| {
            let Some(job) = self.waiting.get(*at) else {
                return false;
            };
            let before = || self.waiting.iter().take(*at);
            let waits = |index: u64| index != 0 && before().any(|job| job.index == index);
            let waits = job.dependencies.iter().any(|index| waits(*index));
            *at == 0 || any && !job.barrier && !waits
        };
        let able: Vec<usize> = (0..self.waiting.len()).filter(may_start).collect();
        // xorshift64
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let at = *able.get((self.random % able.len().max(1) as u64) as usize)?;
        for job in self.waiting.iter_mut().take(at) {
            job.overtaken = true;
        }
        self.waiting.remove(at).map(|job| job.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(index: u64, dependency: u64, barrier: u64, next: u64) -> JobHeader {
        JobHeader::from_bytes(&[0; JobHeader::SIZE])
            .with("Index", index)
            .with("Dependency 1", dependency)
            .with("Barrier", barrier)
            .with("Next", next)
    }

    fn orders(jobs: &[(u64, u64)]) -> std::collections::BTreeSet<Vec<u64>> {
        let of = |address: u64| {
            let at = address / 64;
            let (dependency, barrier) = *jobs.get(at as usize - 1)?;
            let last = at as usize == jobs.len();
            Some(header(
                at,
                dependency,
                barrier,
                if last { 0 } else { address + 64 },
            ))
        };
        (1..200)
            .map(|seed| {
                let mut order = Order::new(64, seed * 0x9e37_79b9);
                std::iter::from_fn(|| {
                    order.read(of);
                    Some(order.take(true)? / 64)
                })
                .collect()
            })
            .collect()
    }

    #[test]
    fn jobs_without_dependencies_start_in_any_order() {
        assert_eq!(orders(&[(0, 0), (0, 0), (0, 0)]).len(), 6);
    }

    #[test]
    fn dependencies_and_barriers_hold() {
        let chain = orders(&[(0, 0), (1, 0), (2, 0)]);
        assert_eq!(chain, [vec![1, 2, 3]].into());
        // The third waits for two, the fourth for none.
        let all = orders(&[(0, 0), (0, 0), (0, 1), (0, 0)]);
        assert!(all.iter().all(|order| {
            let place = |job: u64| order.iter().position(|it| *it == job);
            place(3) > place(1) && place(3) > place(2)
        }));
        assert!(all.contains(&vec![4, 2, 1, 3]));
    }
}
