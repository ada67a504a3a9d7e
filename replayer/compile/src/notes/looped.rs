// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises an app that does the same several times, such as one inference per picture.

use std::collections::{BTreeMap, BTreeSet};

use gpureplay_trace::note::Direction;

use super::events::Event;

/// The same steps again and again, up to the end of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    /// First step of the last turn.
    pub(super) last: usize,
    /// First step of the first turn.
    pub(super) first: usize,
    /// Turns, at least two.
    pub(super) turns: usize,
}

/// Longest turn that is looked for, in steps.
const MAX_PERIOD: usize = 1 << 14;

/// The shortest turn that is repeated at the end of the steps and that both launches a kernel and moves memory for the host.
pub(super) fn find(events: &[Event]) -> Option<Loop> {
    find_by(events, Event::is_like_but_for_objects)
}

/// The same, where steps of the turns may be of another size.
pub(super) fn find_of_any_size(events: &[Event]) -> Option<Loop> {
    find_by(events, Event::is_like_but_for_sizes)
}

/// The same, by what makes two steps alike.
fn find_by(events: &[Event], alike: fn(&Event, &Event) -> bool) -> Option<Loop> {
    let count = events.len();
    (2..=(count / 2).min(MAX_PERIOD)).find_map(|period| {
        let last = count - period;
        // Cheap first: most periods end here.
        if !alike(&events[count - 1], events.get(last.checked_sub(1)?)?) {
            return None;
        }
        let turn = &events[last..];
        let launches = turn.iter().any(|e| matches!(e, Event::Launch(_)));
        let moves = turn.iter().any(|e| matches!(e, Event::Host(_)));
        let starts = (1..=last / period).map(|turns| last - turns * period);
        let same = |start: &usize| {
            let (earlier, later) = events[*start..].split_at(period);
            are_alike(earlier, &later[..period], alike)
        };
        let turns = 1 + starts.take_while(same).count();
        (launches && moves && turns > 1).then(|| Loop {
            last,
            first: count - period * turns,
            turns,
        })
    })
}

/// Whether two turns do the same, with the same objects or with new ones in the place of some: an app may make its buffers anew in each
/// turn. Layers of a network look like that too, but one layer's result is the next one's input, and nobody reads it.
fn are_alike(earlier: &[Event], later: &[Event], alike: fn(&Event, &Event) -> bool) -> bool {
    let mut pairs: BTreeMap<u32, u32> = BTreeMap::new();
    for (a, b) in earlier.iter().zip(later) {
        if !alike(a, b) {
            return false;
        }
        for (old, new) in a.objects().into_iter().zip(b.objects()) {
            if *pairs.entry(old).or_insert(new) != new {
                return false;
            }
        }
    }
    let new: BTreeSet<u32> = pairs.values().copied().collect();
    let mut replaced = pairs.iter().filter(|(old, new)| old != new).peekable();
    let is_read =
        |event: &Event| matches!(event, Event::Host(host) if host.direction == Direction::Read);
    new.len() == pairs.len()
        && (replaced.peek().is_none() || later.iter().any(is_read))
        && replaced.all(|(old, other)| !new.contains(old) && !pairs.contains_key(other))
}

#[cfg(test)]
mod tests {
    use gpureplay_trace::note::Place;

    use super::super::events::{Given, Host, Launched};
    use super::*;

    fn launch(kernel: &str) -> Event {
        Event::Launch(Launched {
            id: 0,
            kernel: kernel.into(),
            global: [1; 3],
            jobs: 0,
            given: vec![],
            scalars: vec![],
        })
    }

    fn host(direction: Direction, object: u32) -> Event {
        Event::Host(Host {
            direction,
            at: Place { object, offset: 0 },
            size: 4,
            hash: None,
            jobs: 0,
            kept: false,
        })
    }

    #[test]
    fn turns_at_the_end_are_a_loop() {
        let turn = || {
            [
                host(Direction::Write, 0),
                launch("a"),
                launch("b"),
                host(Direction::Read, 1),
            ]
        };
        let mut events = vec![host(Direction::Write, 7), launch("set-up")];
        events.extend(turn());
        assert_eq!(find(&events), None);
        events.extend(turn());
        events.extend(turn());
        let found = find(&events).unwrap();
        assert_eq!((found.first, found.last, found.turns), (2, 10, 3));
        events.push(launch("c"));
        assert_eq!(find(&events), None);
    }

    #[test]
    fn layers_that_are_alike_are_no_loop() {
        let events = [
            host(Direction::Write, 0),
            launch("a"),
            launch("b"),
            launch("a"),
            launch("b"),
        ];
        assert_eq!(find(&events), None);
        assert_eq!(find(&[]), None);
    }

    fn launch_on(kernel: &str, objects: &[u32]) -> Event {
        let given = objects.iter().enumerate().map(|(index, object)| Given {
            object: *object,
            bytes: 0..u64::MAX,
            index,
            name: String::new(),
            type_name: String::new(),
        });
        let Event::Launch(launched) = launch(kernel) else {
            unreachable!()
        };
        Event::Launch(Launched {
            given: given.collect(),
            ..launched
        })
    }

    #[test]
    fn buffers_may_be_new_in_each_turn() {
        let turn = |object| {
            [
                host(Direction::Write, object),
                launch_on("a", &[object, 0, object + 1]),
                host(Direction::Read, object + 1),
            ]
        };
        let mut events = vec![host(Direction::Write, 0)];
        events.extend([10, 20, 30].into_iter().flat_map(turn));
        let found = find(&events).unwrap();
        assert_eq!((found.first, found.last, found.turns), (1, 7, 3));
        // What one turn computes is the next one's input.
        let layer = |object| {
            [
                host(Direction::Write, 100 + object),
                launch_on("a", &[object, 100 + object, object + 1]),
                host(Direction::Read, object + 1),
            ]
        };
        let layers: Vec<Event> = (10..13).flat_map(layer).collect();
        assert_eq!(find(&layers), None);
        // Nobody reads what a turn computes.
        let unread: Vec<Event> = [10, 20, 30]
            .into_iter()
            .flat_map(|object| turn(object).into_iter().take(2))
            .collect();
        assert_eq!(find(&unread), None);
    }
}
