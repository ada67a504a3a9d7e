// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counts and times job chains.

use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Chains {
    started: Option<Instant>,
    pub(crate) ended: u64,
    pub(crate) working: Duration,
}

impl Chains {
    pub(crate) fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    pub(crate) fn end(&mut self, succeeded: bool) {
        if let Some(started) = self.started.take()
            && succeeded
        {
            self.ended += 1;
            self.working += started.elapsed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chains_that_succeed_count() {
        let mut chains = Chains::default();
        chains.end(true);
        chains.start();
        chains.end(false);
        assert_eq!((chains.ended, chains.working), (0, Duration::ZERO));
        chains.start();
        std::thread::sleep(Duration::from_millis(2));
        chains.end(true);
        chains.end(true);
        assert_eq!(chains.ended, 1);
        assert!(chains.working >= Duration::from_millis(2));
    }
}
