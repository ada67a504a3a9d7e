// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orders a graph's nodes.

use std::collections::{BTreeSet, HashMap};

/// Stable; none for cycles or edges without a node.
pub(crate) fn topological(nodes: &[u64], edges: &[(u64, u64)]) -> Option<Vec<u64>> {
    let number: HashMap<u64, usize> = nodes
        .iter()
        .enumerate()
        .map(|(number, node)| (*node, number))
        .collect();
    let mut waits = vec![0usize; nodes.len()];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (from, to) in edges {
        let (from, to) = (*number.get(from)?, *number.get(to)?);
        next[from].push(to);
        waits[to] += 1;
    }
    let mut ready: BTreeSet<usize> = (0..nodes.len())
        .filter(|number| waits[*number] == 0)
        .collect();
    let mut ordered = Vec::with_capacity(nodes.len());
    while let Some(number) = ready.pop_first() {
        ordered.push(nodes[number]);
        for to in &next[number] {
            waits[*to] -= 1;
            if waits[*to] == 0 {
                ready.insert(*to);
            }
        }
    }
    (ordered.len() == nodes.len()).then_some(ordered)
}

#[cfg(test)]
mod tests {
    use super::topological;

    #[test]
    fn nodes_come_after_those_they_wait_for() {
        let edges = [(30, 10), (10, 20), (30, 20), (40, 30)];
        let order = topological(&[10, 20, 30, 40, 50], &edges);
        assert_eq!(order, Some(vec![40, 30, 10, 20, 50]));
        // Graphs have several edges for several ports.
        let twice = topological(&[1, 2], &[(2, 1), (2, 1)]);
        assert_eq!(twice, Some(vec![2, 1]));
    }

    #[test]
    fn cycles_and_strangers_are_told() {
        assert_eq!(topological(&[1, 2], &[(1, 2), (2, 1)]), None);
        assert_eq!(topological(&[1, 2], &[(1, 3)]), None);
        assert_eq!(topological(&[], &[]), Some(vec![]));
    }
}
