// SPDX-License-Identifier: MIT OR Apache-2.0
//! After announced writes, all that the app has mapped is looked at before a job, not only what it lists.
//!
//! The compiler looks for a note's memory before the queue's next job, whether that uses it or not.

use std::collections::BTreeSet;

use gpureplay_trace::note::{Direction, Note};

#[derive(Debug, Default)]
pub(crate) struct Announced {
    /// A layer notes launches; else any write may come without a note.
    noted: bool,
    busy: BTreeSet<u32>,
    /// The next job, of this queue or of any, comes after all writes.
    next: Option<Option<u32>>,
    /// Some write comes before an unknown job, until all queues are idle.
    some: bool,
    unseen: bool,
}

impl Announced {
    pub(crate) fn note(&mut self, text: &str) {
        let Some(note) = Note::parse(text) else {
            return;
        };
        match note {
            Ok(Note::Launch(launch)) => {
                self.noted = true;
                self.busy.insert(launch.queue);
                self.some |= matches!(self.next, Some(Some(queue)) if queue != launch.queue);
            }
            Ok(Note::Transfer(transfer)) if transfer.direction != Direction::Read => {
                let queue = transfer.queue.filter(|_| !transfer.complete);
                self.some |= queue.is_some() && !self.busy.is_empty();
                let earlier = self.next.flatten();
                self.some |= earlier.zip(queue).is_some_and(|(a, b)| a != b);
                self.next = Some(queue.or(earlier));
            }
            Ok(Note::Copy(_) | Note::Fill(_)) => self.some = true,
            Ok(Note::Idle { queue }) => {
                self.busy.remove(&queue);
                if self.busy.is_empty() && std::mem::take(&mut self.some) {
                    self.next = Some(None);
                }
            }
            Ok(
                Note::Object(_) | Note::Transfer(_) | Note::Refused { .. } | Note::Content { .. },
            ) => {}
            Ok(Note::Unseen { .. }) | Err(_) => self.unseen = true,
        }
    }

    /// Whether to look at what the job does not list; the next launch is no longer announced.
    pub(crate) fn before_job(&mut self) -> bool {
        let next = self.next.take().is_some();
        next || self.some || self.unseen || !self.noted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(script: &[&str]) -> Vec<bool> {
        let mut announced = Announced::default();
        let mut looks = Vec::new();
        for line in script {
            match *line {
                "job" => looks.push(announced.before_job()),
                note => announced.note(&format!("cl2 {note}")),
            }
        }
        looks
    }

    const LAUNCH: &str = "launch id=0 queue=0 kernel=k global=1,1,1 local=-";
    const OTHER: &str = "launch id=1 queue=1 kernel=k global=1,1,1 local=-";
    const WRITE: &str = "write at=0+0 size=4 hash=1 queue=0 complete=0";
    const DONE: &str = "write at=0+0 size=4 hash=1 queue=0 complete=1";
    const READ: &str = "read at=0+0 size=4 hash=1 queue=0 complete=1";
    const IDLE: &str = "idle queue=0";

    #[test]
    fn a_write_on_an_idle_queue_comes_before_the_next_job() {
        let script = ["job", WRITE, LAUNCH, "job", "job", READ, IDLE, "job"];
        assert_eq!(looks(&script), [true, true, false, false]);
        let script = [LAUNCH, "job", DONE, LAUNCH, "job", "job"];
        assert_eq!(looks(&script), [false, true, false]);
        assert_eq!(looks(&[LAUNCH, WRITE, DONE, WRITE, "job"]), [true]);
    }

    #[test]
    fn a_write_behind_launches_comes_at_any_moment_until_the_queues_are_idle() {
        let script = [
            LAUNCH, "job", WRITE, "job", LAUNCH, "job", IDLE, "job", "job",
        ];
        assert_eq!(looks(&script), [false, true, true, true, false]);
        let fill = "fill at=0+0 size=4 queue=0 call=clEnqueueFillBuffer";
        let script = [LAUNCH, "job", fill, "job", "job", IDLE, "job", "job"];
        assert_eq!(looks(&script), [false, true, true, true, false]);
    }

    #[test]
    fn a_job_of_another_queue_may_come_before_the_write() {
        let script = [
            WRITE,
            OTHER,
            "job",
            LAUNCH,
            "job",
            IDLE,
            "job",
            "idle queue=1",
        ];
        assert_eq!(looks(&script), [true, true, true]);
    }

    #[test]
    fn who_does_not_note_everything_is_looked_at_always() {
        assert_eq!(looks(&["job", "job", WRITE, "job", "job"]), [true; 4]);
        let script = [LAUNCH, "job", "unseen call=clSVMAlloc", "job", IDLE, "job"];
        assert_eq!(looks(&script), [false, true, true]);
    }
}
