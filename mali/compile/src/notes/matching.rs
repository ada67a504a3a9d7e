// SPDX-License-Identifier: MIT OR Apache-2.0
//! Matches launches and chains if only one way exists.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Launches of one queue run in order.
    pub(super) queue: u32,
    /// `None` beyond 64 bits.
    pub(super) items: Option<u64>,
    pub(super) within: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    Chains(Range<usize>),
    Nothing,
    Several,
    TooMany,
}

/// Pairs of a launch and a chain.
const MAX_TRIED: usize = 1 << 24;

/// `items`: per chain, 0 for chains that compute nothing. `places`: what is left of [`ALL_PLACES`].
pub(super) fn find(wanted: &[Wanted], items: &[u64], places: &mut usize) -> Vec<Matched> {
    if wanted.len().saturating_mul(items.len()) > MAX_TRIED {
        return vec![Matched::TooMany; wanted.len()];
    }
    let mut queues: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (launch, wanted) in wanted.iter().enumerate() {
        queues.entry(wanted.queue).or_default().push(launch);
    }
    let lists: Vec<Vec<usize>> = queues.into_values().collect();
    let items = Items::new(items);
    match lists.len() {
        0 | 1 => in_order(wanted, &items),
        queues => {
            let most = (MAX_PLACES.min(*places) / queues).min(MAX_STATES);
            let (found, states) = interleaved(wanted, &items, &lists, most);
            *places = places.saturating_sub(states.saturating_mul(queues));
            found
        }
    }
}

/// Prefix sums of the chains' work-items: one more than chains.
struct Items {
    sums: Vec<u128>,
}

impl Items {
    fn new(items: &[u64]) -> Self {
        let mut sum = 0;
        let mut sums = vec![0];
        sums.extend(items.iter().map(|more| {
            sum += u128::from(*more);
            sum
        }));
        Self { sums }
    }

    fn chains(&self) -> usize {
        self.sums.len() - 1
    }

    fn wanted_sum(&self, wanted: &Wanted, first: usize) -> Option<u128> {
        let needed = u128::from(wanted.items.filter(|needed| *needed > 0)?);
        let before = self.sums.get(first)?;
        let computes = self.sums.get(first + 1)? > before;
        (computes && wanted.within.contains(&first)).then_some(before + needed)
    }

    fn run(&self, wanted: &Wanted, first: usize) -> Option<Range<usize>> {
        let sum = self.wanted_sum(wanted, first)?;
        self.up_to(
            wanted,
            first,
            self.sums.partition_point(|before| *before < sum),
            sum,
        )
    }

    /// Runs of all first chains, the last one first: ends only go back, so one pass finds all.
    fn runs(&self, wanted: &Wanted) -> impl Iterator<Item = Option<Range<usize>>> {
        let mut end = self.sums.len();
        (0..self.chains()).rev().map(move |first| {
            let sum = self.wanted_sum(wanted, first)?;
            while self.sums.get(end - 1).is_some_and(|before| *before >= sum) {
                end -= 1;
            }
            self.up_to(wanted, first, end, sum)
        })
    }

    fn up_to(&self, wanted: &Wanted, first: usize, end: usize, sum: u128) -> Option<Range<usize>> {
        let fits = end <= wanted.within.end && self.sums.get(end) == Some(&sum);
        fits.then_some(first..end)
    }
}

/// Matches one queue: as many launches as possible get chains. Two ways from opposite ends agree where there is no
/// choice.
fn in_order(wanted: &[Wanted], items: &Items) -> Vec<Matched> {
    let (rows, chains) = (wanted.len(), items.chains());
    let columns = chains + 1;
    // Launches matched from the row and column on.
    let mut best = vec![0u32; (rows + 1) * columns];
    let at = |launch: usize, chain: usize| launch * columns + chain;
    for launch in (0..rows).rev() {
        best[at(launch, chains)] = best[at(launch + 1, chains)];
        for (chain, run) in (0..chains).rev().zip(items.runs(&wanted[launch])) {
            let mut most = best[at(launch + 1, chain)].max(best[at(launch, chain + 1)]);
            if let Some(run) = run {
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
            let taken = items
                .run(&wanted[launch], chain)
                .filter(|run| 1 + best[at(launch + 1, run.end)] == most);
            let later = chain < chains && best[at(launch, chain + 1)] == most;
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

/// Ways to a state: their number, at most two, and the last step of one.
#[derive(Clone, Debug)]
struct Ways {
    count: u8,
    /// First chain, and its queue; `None` for a runtime chain.
    step: (usize, Option<usize>),
}

/// Of several queues at once.
const MAX_STATES: usize = 1 << 16;
/// Queue places in all states: each state has one per queue.
const MAX_PLACES: usize = 1 << 20;
/// For a whole trace, in which queues may be idle again and again. If only one way exists, a chain has few states.
pub(super) const ALL_PLACES: usize = 1 << 24;

/// Every launch must have its chains, in one way only. Also returns the states followed, at most `most` + 1.
fn interleaved(
    wanted: &[Wanted],
    items: &Items,
    lists: &[Vec<usize>],
    most: usize,
) -> (Vec<Matched>, usize) {
    let mut states: Vec<BTreeMap<Vec<usize>, Ways>> = vec![BTreeMap::new(); items.chains() + 1];
    let start = Ways {
        count: 1,
        step: (0, None),
    };
    states[0].insert(vec![0; lists.len()], start);
    let mut total = 1;
    for chain in 0..items.chains() {
        for (done, ways) in states[chain].clone() {
            let mut go = |end: usize, done: Vec<usize>, queue| {
                let step = (chain, queue);
                let there = states[end].entry(done).or_insert_with(|| {
                    total += 1;
                    Ways { count: 0, step }
                });
                there.count = there.count.saturating_add(ways.count).min(2);
                total
            };
            let mut total = go(chain + 1, done.clone(), None);
            for (queue, list) in lists.iter().enumerate() {
                let next = list.get(done[queue]).map(|launch| &wanted[*launch]);
                if let Some(run) = next.and_then(|next| items.run(next, chain)) {
                    let mut done = done.clone();
                    done[queue] += 1;
                    total = go(run.end, done, Some(queue));
                }
                if total > most {
                    return (vec![Matched::TooMany; wanted.len()], total);
                }
            }
        }
    }
    let (mut chain, mut done) = (
        items.chains(),
        lists.iter().map(Vec::len).collect::<Vec<_>>(),
    );
    match states[chain].get(&done).map(|ways| ways.count) {
        None => return (vec![Matched::Nothing; wanted.len()], total),
        Some(1) => {}
        Some(_) => return (vec![Matched::Several; wanted.len()], total),
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
    (out, total)
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
        find(&launches(list, items.len()), items, &mut ALL_PLACES.clone())
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
        assert_eq!(
            found(&[(0, 64), (0, 300)], &[0, 64, 7, 100, 100, 100]),
            [chain(1), Matched::Chains(3..6)]
        );
    }

    #[test]
    fn what_could_be_another_is_not_named() {
        // A runtime chain that looks like a launch.
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
        let found = find(&early, &[64, 64, 128], &mut 0);
        assert_eq!(found, [chain(1), chain(2)]);
    }

    fn one_by_one(wanted: &Wanted, items: &[u64], first: usize) -> Option<Range<usize>> {
        let needed = wanted.items?;
        if !wanted.within.contains(&first) || *items.get(first)? == 0 {
            return None;
        }
        let mut sum = 0u64;
        let end = wanted.within.end.min(items.len());
        for (chain, more) in items.iter().enumerate().take(end).skip(first) {
            sum = sum.saturating_add(*more);
            if sum >= needed {
                return (sum == needed).then_some(first..chain + 1);
            }
        }
        None
    }

    #[test]
    fn runs_are_those_that_are_found_one_by_one() {
        let lists: [&[u64]; 5] = [
            &[],
            &[0, 0, 3, 0, 2, 1, 0, 0, 4, 1, 1, 0],
            &[1; 9],
            &[u64::MAX - 1, 1, 0, 5],
            &[5, 0, 0],
        ];
        for items in lists {
            let summed = Items::new(items);
            for needed in (0..12).chain([u64::MAX - 1]).map(Some).chain([None]) {
                for within in [0..items.len(), 0..3, 2..6, 1..1, 3..40] {
                    let wanted = Wanted {
                        queue: 0,
                        items: needed,
                        within,
                    };
                    let expected: Vec<_> = (0..items.len())
                        .map(|first| one_by_one(&wanted, items, first))
                        .collect();
                    let found = (0..items.len()).map(|first| summed.run(&wanted, first));
                    assert_eq!(found.collect::<Vec<_>>(), expected, "{items:?} {wanted:?}");
                    let mut found: Vec<_> = summed.runs(&wanted).collect();
                    found.reverse();
                    assert_eq!(found, expected, "{items:?} {wanted:?}");
                    assert_eq!(summed.run(&wanted, items.len()), None);
                }
            }
        }
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
        let many: Vec<(u32, u64)> = (0..4000).map(|at| (at, 8)).collect();
        assert_eq!(found(&many, &[8; 4000])[0], Matched::TooMany);
    }

    #[test]
    fn queues_that_are_idle_again_and_again_have_a_limit_in_all() {
        let queues = launches(&[(3, 64), (5, 32)], 2);
        // States: one before the first chain, two before the second, four after it. Each has a place for both queues.
        let mut places = 30;
        for left in [16, 2] {
            let found = find(&queues, &[64, 32], &mut places);
            assert_eq!((found, places), (vec![chain(0), chain(1)], left));
        }
        assert_eq!(find(&queues, &[64, 32], &mut places)[0], Matched::TooMany);
    }
}
