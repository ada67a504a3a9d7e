// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches and chains, matched by order and size, as far as there is one way to do it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What a launch's chains must be.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Launches of one queue run in their order.
    pub(super) queue: u32,
    /// Work-items of all its chains; `None` if that exceeds 64 bits.
    pub(super) items: Option<u64>,
    /// Where its chains may be.
    pub(super) within: Range<usize>,
}

/// What was found for a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    /// Its chains.
    Chains(Range<usize>),
    /// None of its size.
    Nothing,
    /// More than one way.
    Several,
    /// There are too many launches and chains to try.
    TooMany,
}

/// Most pairs of a launch and a chain that are tried.
const MAX_TRIED: usize = 1 << 24;

/// Finds the chains of each launch; `items` has the work-items of each chain, 0 for chains that compute nothing.
pub(super) fn find(wanted: &[Wanted], items: &[u64]) -> Vec<Matched> {
    if wanted.len().saturating_mul(items.len()) > MAX_TRIED {
        return vec![Matched::TooMany; wanted.len()];
    }
    let queues: BTreeSet<u32> = wanted.iter().map(|wanted| wanted.queue).collect();
    match queues.len() {
        0 | 1 => in_order(wanted, items),
        _ => interleaved(wanted, items, &queues),
    }
}

/// The chains of a launch if `first` is the first of them.
fn run(wanted: &Wanted, items: &[u64], first: usize) -> Option<Range<usize>> {
    let needed = wanted.items?;
    if !wanted.within.contains(&first) || *items.get(first)? == 0 {
        return None;
    }
    let mut sum = 0u64;
    let end = wanted.within.end.min(items.len());
    for (chain, more) in items.iter().enumerate().take(end).skip(first) {
        sum = sum.saturating_add(*more);
        if sum == needed {
            return Some(first..chain + 1);
        }
        if sum > needed {
            return None;
        }
    }
    None
}

/// One queue: as many launches as possible have their chains. Two ways to do that, from opposite ends, agree where there is no choice.
fn in_order(wanted: &[Wanted], items: &[u64]) -> Vec<Matched> {
    let (rows, columns) = (wanted.len(), items.len() + 1);
    // How many launches from the row's on find chains from the column's on.
    let mut best = vec![0u32; (rows + 1) * columns];
    let at = |launch: usize, chain: usize| launch * columns + chain;
    for launch in (0..rows).rev() {
        for chain in (0..columns).rev() {
            let mut most = best[at(launch + 1, chain)];
            if chain < items.len() {
                most = most.max(best[at(launch, chain + 1)]);
            }
            if let Some(run) = run(&wanted[launch], items, chain) {
                most = most.max(1 + best[at(launch + 1, run.end)]);
            }
            best[at(launch, chain)] = most;
        }
    }
    let walk = |eager: bool| -> Vec<Option<Range<usize>>> {
        let mut out = vec![None; rows];
        let (mut launch, mut chain) = (0, 0);
        while launch < rows {
            let most = best[at(launch, chain)];
            let taken = run(&wanted[launch], items, chain)
                .filter(|run| 1 + best[at(launch + 1, run.end)] == most);
            let later = chain < items.len() && best[at(launch, chain + 1)] == most;
            let without = best[at(launch + 1, chain)] == most;
            match (taken, eager) {
                (Some(run), true) => {
                    chain = run.end;
                    out[launch] = Some(run);
                    launch += 1;
                }
                (_, false) if without => launch += 1,
                (_, _) if later => chain += 1,
                (Some(run), false) => {
                    chain = run.end;
                    out[launch] = Some(run);
                    launch += 1;
                }
                (None, _) => launch += 1,
            }
        }
        out
    };
    let pairs = walk(true).into_iter().zip(walk(false));
    let matched = pairs.map(|pair| match pair {
        (Some(one), Some(other)) if one == other => Matched::Chains(one),
        (None, None) => Matched::Nothing,
        _ => Matched::Several,
    });
    matched.collect()
}

/// Ways to come to a state: how many, two at most, and the last step of one of them.
#[derive(Clone, Debug)]
struct Ways {
    count: u8,
    /// First chain of the step, and the queue that it belongs to; `None` for a chain of the runtime.
    step: (usize, Option<usize>),
}

/// Most states of several queues that are followed.
const MAX_STATES: usize = 1 << 16;

/// Several queues at work at once: every launch must have its chains, in one way only.
fn interleaved(wanted: &[Wanted], items: &[u64], queues: &BTreeSet<u32>) -> Vec<Matched> {
    let of_queue = |queue: &u32| -> Vec<usize> {
        let launches = 0..wanted.len();
        launches.filter(|at| wanted[*at].queue == *queue).collect()
    };
    let lists: Vec<Vec<usize>> = queues.iter().map(of_queue).collect();
    // By chain: how far each queue is.
    let mut states: Vec<BTreeMap<Vec<usize>, Ways>> = vec![BTreeMap::new(); items.len() + 1];
    let start = Ways {
        count: 1,
        step: (0, None),
    };
    states[0].insert(vec![0; lists.len()], start);
    let mut total = 0;
    for chain in 0..items.len() {
        for (done, ways) in states[chain].clone() {
            total += 1;
            if total > MAX_STATES {
                return vec![Matched::TooMany; wanted.len()];
            }
            let mut go = |end: usize, done: Vec<usize>, queue| {
                let step = (chain, queue);
                let there = states[end].entry(done).or_insert(Ways { count: 0, step });
                there.count = there.count.saturating_add(ways.count).min(2);
            };
            go(chain + 1, done.clone(), None);
            for (queue, list) in lists.iter().enumerate() {
                let next = list.get(done[queue]).map(|launch| &wanted[*launch]);
                if let Some(run) = next.and_then(|next| run(next, items, chain)) {
                    let mut done = done.clone();
                    done[queue] += 1;
                    go(run.end, done, Some(queue));
                }
            }
        }
    }
    let (mut chain, mut done) = (items.len(), lists.iter().map(Vec::len).collect::<Vec<_>>());
    match states[chain].get(&done).map(|ways| ways.count) {
        None => return vec![Matched::Nothing; wanted.len()],
        Some(1) => {}
        Some(_) => return vec![Matched::Several; wanted.len()],
    }
    let mut out = vec![Matched::Nothing; wanted.len()];
    while let Some(ways) = states[chain].get(&done).filter(|_| chain > 0) {
        let (first, queue) = ways.step;
        if let Some(queue) = queue {
            done[queue] -= 1;
            out[lists[queue][done[queue]]] = Matched::Chains(first..chain);
        }
        chain = first;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launches(list: &[(u32, u64)], chains: usize) -> Vec<Wanted> {
        let wanted = |(queue, items): &(u32, u64)| Wanted {
            queue: *queue,
            items: Some(*items),
            within: 0..chains,
        };
        list.iter().map(wanted).collect()
    }

    fn found(list: &[(u32, u64)], items: &[u64]) -> Vec<Matched> {
        find(&launches(list, items.len()), items)
    }

    fn chain(at: usize) -> Matched {
        Matched::Chains(at..at + 1)
    }

    #[test]
    fn order_and_size_tell() {
        let queue = [(0, 64), (0, 64), (0, 128), (0, 64)];
        assert_eq!(
            found(&queue, &[64, 64, 128, 64]),
            [chain(0), chain(1), chain(2), chain(3)]
        );
        // A chain of the runtime that computes nothing, one of another size, and a launch of three chains.
        assert_eq!(
            found(&[(0, 64), (0, 300)], &[0, 64, 7, 100, 100, 100]),
            [chain(1), Matched::Chains(3..6)]
        );
    }

    #[test]
    fn what_could_be_another_is_not_named() {
        // A chain of the runtime that looks like a launch.
        assert_eq!(
            found(&[(0, 64), (0, 128)], &[64, 64, 128]),
            [Matched::Several, chain(2)]
        );
        // A launch without a chain that looks like its neighbour.
        assert_eq!(
            found(&[(0, 64), (0, 64), (0, 9)], &[64, 9]),
            [Matched::Several, Matched::Several, chain(1)]
        );
        assert_eq!(
            found(&[(0, 64), (0, 65), (0, 9)], &[64, 9]),
            [chain(0), Matched::Nothing, chain(1)]
        );
        assert_eq!(found(&[(0, 64)], &[]), [Matched::Nothing]);
        let mut early = launches(&[(0, 64), (0, 128)], 3);
        early[0].within = 1..3;
        assert_eq!(find(&early, &[64, 64, 128]), [chain(1), chain(2)]);
    }

    #[test]
    fn queues_are_merged_if_there_is_one_way() {
        assert_eq!(
            found(&[(3, 64), (3, 128), (5, 256), (5, 32)], &[64, 256, 32, 128]),
            [chain(0), chain(3), chain(1), chain(2)]
        );
        assert_eq!(
            found(&[(3, 64), (5, 64)], &[64, 64]),
            [Matched::Several, Matched::Several]
        );
        assert_eq!(
            found(&[(3, 64), (5, 32)], &[64, 33]),
            [Matched::Nothing, Matched::Nothing]
        );
        let many: Vec<(u32, u64)> = (0..32).map(|at| (at, 8)).collect();
        assert_eq!(found(&many, &[8; 32])[31], Matched::TooMany);
    }
}
