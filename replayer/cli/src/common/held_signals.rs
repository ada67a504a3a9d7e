// SPDX-License-Identifier: MIT OR Apache-2.0
//! Signals that would end the command are held back while it drives a GPU from user space.

use gpureplay_library::device::Choice;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Signals that end a process and can be held back.
const ENDING: [Signal; 4] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
];

/// Holds [`ENDING`] back until it is dropped, which must be after the device: then they have their effect.
///
/// Through /dev/mem the GPU writes to pages of this very process. If the process ended while a chain runs, the kernel would give these
/// pages to others. A driver resets the GPU first, and the model needs no such care, so nothing is held back for them.
pub(crate) struct Held {
    before: Option<SigSet>,
}

impl Held {
    pub(crate) fn while_using(device: &Choice) -> Self {
        let before = match device {
            Choice::DevMem(_) => {
                let ending: SigSet = ENDING.into_iter().collect();
                ending.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok()
            }
            Choice::Model(_) | Choice::Nano(_) => None,
        };
        Self { before }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // The set came from the kernel, so it takes it back.
            let _ = before.thread_set_mask();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use nix::sys::signal::raise;

    use super::*;

    fn blocked() -> Vec<bool> {
        let mask = SigSet::thread_get_mask().unwrap();
        ENDING.map(|signal| mask.contains(signal)).to_vec()
    }

    #[test]
    fn signals_wait_for_a_gpu_that_writes_to_pages_of_the_process() {
        let before = blocked();
        {
            let _held = Held::while_using(&Choice::DevMem(None));
            // Each would end this process.
            for signal in ENDING {
                raise(signal).unwrap();
                let only: SigSet = [signal].into_iter().collect();
                assert_eq!(only.wait().unwrap(), signal);
            }
        }
        assert_eq!(blocked(), before);
        let _held = Held::while_using(&Choice::Model(None));
        assert_eq!(blocked(), before);
    }
}
