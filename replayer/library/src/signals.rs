// SPDX-License-Identifier: MIT OR Apache-2.0
//! Holds back ending signals.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise};
use nix::sys::signalfd::{SfdFlags, SignalFd};

const ENDING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
];

/// Holds SIGHUP, SIGINT, SIGQUIT and SIGTERM back in this thread until dropped.
///
/// A session does this during each call on such a device, and resets the GPU before a signal has its effect.
/// Between calls no chain runs. Start other threads while signals are held back, or hold them back there too.
///
/// Through /dev/mem the GPU writes to this process's pages. If the process ended while a chain runs, the kernel
/// would give these pages to others. Drivers and the model need no such care.
#[derive(Debug)]
pub struct HeldSignals {
    before: Option<SigSet>,
    taken: Option<Signal>,
}

impl HeldSignals {
    /// Holds signals back if `needed`; see [`crate::Device::writes_to_process`].
    pub fn if_needed(needed: bool) -> Self {
        let hold = || {
            let ending: SigSet = ENDING.into_iter().collect();
            ending.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok()
        };
        Self {
            before: needed.then(hold).flatten(),
            taken: None,
        }
    }

    /// Takes a waiting signal from the kernel; dropping raises it again.
    pub(crate) fn is_signal_waiting(&mut self) -> bool {
        if self.before.is_some() && self.taken.is_none() {
            let ending: SigSet = ENDING.into_iter().collect();
            let waiting =
                SignalFd::with_flags(&ending, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
                    .and_then(|waiting| waiting.read_signal());
            let number = waiting.ok().flatten().map(|info| info.ssi_signo);
            self.taken = number.and_then(|number| Signal::try_from(number.cast_signed()).ok());
        }
        self.taken.is_some()
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // The set came from the kernel.
            let _ = before.thread_set_mask();
        }
        if let Some(signal) = self.taken {
            // Raising an existing signal does not fail.
            let _ = raise(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn blocked() -> Vec<bool> {
        let mask = SigSet::thread_get_mask().unwrap();
        ENDING.map(|signal| mask.contains(signal)).to_vec()
    }

    #[test]
    fn signals_wait_for_a_gpu_that_writes_to_pages_of_the_process() {
        let before = blocked();
        {
            let _held = HeldSignals::if_needed(true);
            for signal in ENDING {
                raise(signal).unwrap();
                let only: SigSet = [signal].into_iter().collect();
                assert_eq!(only.wait().unwrap(), signal);
            }
        }
        assert_eq!(blocked(), before);
        let _held = HeldSignals::if_needed(false);
        assert_eq!(blocked(), before);
    }
}
