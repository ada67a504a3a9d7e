// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises repetition, such as one inference per picture.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gpureplay_trace::note::Direction;

use super::events::{Event, Shape};

/// Repeated up to the end of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) last: usize,
    pub(super) first: usize,
    /// At least two.
    pub(super) turns: usize,
}

/// Steps of a turn.
const MAX_PERIOD: usize = 1 << 14;

/// Steps, counted by [`Event::work`]; beyond that, no turn is found. A turn of 10,000 steps may be repeated 1,000
/// times.
const MAX_COMPARED: usize = 1 << 24;
/// Periods tried, or numbers of steps compared, at the cost of one compared step.
const CHEAP: usize = 64;

/// A turn launches a kernel and moves memory for the host.
pub(super) fn find(events: &[Event]) -> Option<Loop> {
    Turns::new(events, true).find(events.len())
}

pub(super) struct Turns<'a> {
    events: &'a [Event],
    first_alike: Vec<usize>,
    last_launch_and_move: Vec<Option<(usize, usize)>>,
    work_sums: Vec<usize>,
    left: usize,
}

impl<'a> Turns<'a> {
    pub(super) fn new(events: &'a [Event], sizes: bool) -> Self {
        let mut known: HashMap<Shape<'_>, usize> = HashMap::new();
        let shapes = events.iter().enumerate();
        let alike = shapes.map(|(step, event)| *known.entry(event.shape(sizes)).or_insert(step));
        let (mut launch, mut moved) = (None, None);
        let both = events.iter().enumerate().map(|(step, event)| {
            match event {
                Event::Launch(_) => launch = Some(step),
                Event::Host(_) => moved = Some(step),
                Event::Moved(_) => {}
            }
            launch.zip(moved)
        });
        let mut work_sums = vec![0];
        work_sums.extend(events.iter().scan(0, |sum, event| {
            *sum += event.work();
            Some(*sum)
        }));
        Self {
            events,
            first_alike: alike.collect(),
            last_launch_and_move: both.collect(),
            work_sums,
            left: MAX_COMPARED,
        }
    }

    pub(super) fn find(&mut self, count: usize) -> Option<Loop> {
        let end = count.checked_sub(1)?;
        let (launch, moved) = *self.last_launch_and_move.get(end)?.as_ref()?;
        let least = count - launch.min(moved);
        let most = (count / 2).min(MAX_PERIOD);
        self.spend(most / CHEAP)?;
        (least.max(2)..=most).find_map(|period| {
            let last = count - period;
            if self.first_alike[end] != self.first_alike[last.checked_sub(1)?] {
                return None;
            }
            let starts = (1..=last / period).map(|turns| last - turns * period);
            let mut turns = 1;
            for start in starts {
                if !self.repeats(start, period) {
                    break;
                }
                turns += 1;
            }
            (turns > 1).then(|| Loop {
                last,
                first: count - period * turns,
                turns,
            })
        })
    }

    fn repeats(&mut self, start: usize, period: usize) -> bool {
        let (middle, end) = (start + period, start + 2 * period);
        if self.spend(period / CHEAP).is_none()
            || self.first_alike[start..middle] != self.first_alike[middle..end]
        {
            return false;
        }
        let (earlier, later) = (&self.events[start..middle], &self.events[middle..end]);
        let work = self.work_sums[end] - self.work_sums[middle];
        self.spend(work).is_some() && are_alike(earlier, later)
    }

    fn spend(&mut self, steps: usize) -> Option<()> {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// Whether two turns do the same, with the same objects or new ones: an app may make buffers in each turn. Layers look
/// like that too, but one layer's result is the next one's input, and the app does not read it.
fn are_alike(earlier: &[Event], later: &[Event]) -> bool {
    let mut pairs: BTreeMap<u32, u32> = BTreeMap::new();
    for (a, b) in earlier.iter().zip(later) {
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
    fn steps_are_compared_up_to_a_limit() {
        // Turns of any even length are alike but for the objects of their last step.
        let turn = [host(Direction::Write, 0), launch_on("a", &[0])];
        let mut events: Vec<Event> = (0..2 * MAX_PERIOD).flat_map(|_| turn.clone()).collect();
        events.pop();
        events.push(launch_on("a", &[1]));
        let mut turns = Turns::new(&events, true);
        assert_eq!(turns.find(events.len()), None);
        assert_eq!(turns.left, 0);
        let compared = |objects: u32| {
            let objects: Vec<u32> = (0..objects).collect();
            let turn = [host(Direction::Read, 0), launch_on("a", &objects)];
            let events = vec![turn; 100].concat();
            let mut turns = Turns::new(&events, true);
            assert_eq!(turns.find(events.len()).map(|found| found.turns), Some(100));
            MAX_COMPARED - turns.left
        };
        assert!(compared(255) > 30 * compared(1));
        let events: Vec<Event> = (0..100).map(|_| launch("a")).collect();
        let mut turns = Turns::new(&events, true);
        assert_eq!((turns.find(100), turns.left), (None, MAX_COMPARED));
        let mut events: Vec<Event> = vec![launch("a"); MAX_PERIOD - 1];
        events.push(host(Direction::Read, 0));
        let events = vec![events; 20].concat();
        let found = find(&events).unwrap();
        assert_eq!((found.first, found.turns), (0, 20));
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
        let layer = |object| {
            [
                host(Direction::Write, 100 + object),
                launch_on("a", &[object, 100 + object, object + 1]),
                host(Direction::Read, object + 1),
            ]
        };
        let layers: Vec<Event> = (10..13).flat_map(layer).collect();
        assert_eq!(find(&layers), None);
        let unread: Vec<Event> = [10, 20, 30]
            .into_iter()
            .flat_map(|object| turn(object).into_iter().take(2))
            .collect();
        assert_eq!(find(&unread), None);
    }
}
