// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises an app that does the same several times, such as one inference per picture.

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
    let count = events.len();
    let repeats = |period: usize| {
        let matches = |at: usize| events[at].is_like(&events[at + period]);
        (0..count - period)
            .rev()
            .take_while(|at| matches(*at))
            .count()
    };
    (2..=(count / 2).min(MAX_PERIOD)).find_map(|period| {
        let last = count - period;
        // Cheap first: most periods end here.
        if !events[count - 1].is_like(events.get(last.checked_sub(1)?)?) {
            return None;
        }
        let turn = &events[last..];
        let launches = turn.iter().any(|e| matches!(e, Event::Launch(_)));
        let moves = turn.iter().any(|e| matches!(e, Event::Host(_)));
        let turns = 1 + repeats(period) / period;
        (launches && moves && turns > 1).then(|| Loop {
            last,
            first: count - period * turns,
            turns,
        })
    })
}

#[cfg(test)]
mod tests {
    use gpureplay_trace::note::{Direction, Place};

    use super::super::events::{Event, Host, Launched};
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
}
