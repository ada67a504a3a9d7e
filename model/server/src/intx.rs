// SPDX-License-Identifier: MIT OR Apache-2.0
//! The interrupt pin: level-triggered, an eventfd that masks itself when it fires.
//!
//! QEMU raises the guest's line on reading the eventfd, and lowers it when the guest accesses the device. A late read
//! would raise it for nothing; a driver that has suspended the GPU accesses nothing, and the line stays up ("irq 18:
//! nobody cared"). So an unread event is taken back when the level drops.

use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::protocol::{errno, irq};

#[derive(Debug, Default)]
pub(crate) struct Intx {
    trigger: Option<OwnedFd>,
    masked: bool,
    /// The last event may be unread.
    signalled: bool,
    level: bool,
    fired: u64,
}

impl Intx {
    /// Errors are the number to answer.
    pub(crate) fn set(
        &mut self,
        flags: u32,
        start: u32,
        count: u32,
        fds: Vec<OwnedFd>,
    ) -> Result<(), u32> {
        if start != 0 || count > 1 {
            return Err(errno::EINVAL);
        }
        let (eventfd, none) = (flags & irq::DATA_EVENTFD != 0, flags & irq::DATA_NONE != 0);
        match flags & (irq::ACTION_MASK | irq::ACTION_UNMASK | irq::ACTION_TRIGGER) {
            irq::ACTION_TRIGGER if eventfd => {
                self.trigger = fds.into_iter().next();
                self.mask(false);
            }
            irq::ACTION_TRIGGER if none && count == 0 => self.trigger = None,
            irq::ACTION_TRIGGER if none => {
                self.fire();
                return Ok(());
            }
            irq::ACTION_MASK if none => self.mask(true),
            irq::ACTION_UNMASK if none => self.mask(false),
            // That is for accelerators without QEMU.
            _ => return Err(errno::EINVAL),
        }
        self.update();
        Ok(())
    }

    pub(crate) fn set_level(&mut self, level: bool) {
        self.level = level;
        self.update();
    }

    pub(crate) fn level(&self) -> bool {
        self.level
    }

    pub(crate) fn fired(&self) -> u64 {
        self.fired
    }

    /// The connection stays.
    pub(crate) fn reset(&mut self) {
        self.set_level(false);
        self.mask(false);
    }

    fn mask(&mut self, masked: bool) {
        self.masked = masked;
        self.signalled = false;
    }

    fn update(&mut self) {
        if self.level && !self.masked {
            self.fire();
            self.signalled = self.masked;
        } else if !self.level && self.signalled {
            self.take_back();
        }
    }

    /// Unmasks the pin, as the client does not after an event taken back.
    fn take_back(&mut self) {
        let Some(trigger) = &self.trigger else { return };
        // A blocking read would wait for an event.
        if !fcntl_getfl(trigger).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK)) {
            return;
        }
        if rustix::io::read(trigger, &mut [0; 8]).is_ok_and(|length| length == 8) {
            self.mask(false);
            self.fired = self.fired.saturating_sub(1);
        }
    }

    fn fire(&mut self) {
        if let Some(trigger) = &self.trigger {
            self.masked = true;
            self.fired += 1;
            // A full eventfd needs no further event.
            let mut ready = [PollFd::new(trigger, PollFlags::OUT)];
            if poll(&mut ready, Some(&Timespec::default())).is_ok_and(|count| count == 1) {
                let _ = rustix::io::write(trigger, &1u64.to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    const TRIGGER: u32 = irq::ACTION_TRIGGER | irq::DATA_EVENTFD;
    const UNMASK: u32 = irq::ACTION_UNMASK | irq::DATA_NONE;

    fn count(fd: &OwnedFd) -> u64 {
        let mut bytes = [0; 8];
        match rustix::io::read(fd, &mut bytes) {
            Ok(_) => u64::from_ne_bytes(bytes),
            Err(_) => 0,
        }
    }

    #[test]
    fn the_pin_fires_once_until_unmasked_and_again_while_high() {
        let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let mut pin = Intx::default();
        pin.set_level(true);
        pin.set(TRIGGER, 0, 1, vec![fd.try_clone().unwrap()])
            .unwrap();
        assert_eq!(count(&fd), 1, "connecting while high fires");
        pin.set_level(true);
        pin.set_level(false);
        pin.set_level(true);
        assert_eq!(count(&fd), 0, "masked since it fired");
        pin.set(UNMASK, 0, 1, vec![]).unwrap();
        assert_eq!(count(&fd), 1, "still high");
        pin.set_level(false);
        pin.set(UNMASK, 0, 1, vec![]).unwrap();
        assert_eq!(count(&fd), 0);
        pin.set_level(true);
        assert_eq!(count(&fd), 1);
        assert_eq!(pin.fired(), 3);
    }

    #[test]
    fn an_event_that_nobody_has_read_is_taken_back_when_the_level_drops() {
        let fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
        let mut pin = Intx::default();
        pin.set(TRIGGER, 0, 1, vec![fd.try_clone().unwrap()])
            .unwrap();
        pin.set_level(true);
        pin.set_level(false);
        assert_eq!((count(&fd), pin.fired()), (0, 0));
        pin.set_level(true);
        assert_eq!(count(&fd), 1, "the client has nothing to unmask");
        pin.set_level(false);
        pin.set_level(true);
        assert_eq!(count(&fd), 0, "it has read that one and not unmasked");
        pin.set_level(false);
        pin.set(UNMASK, 0, 1, vec![]).unwrap();
        pin.set_level(true);
        pin.reset();
        assert_eq!((count(&fd), pin.fired()), (0, 1));
    }

    #[test]
    fn a_descriptor_that_blocks_is_not_read() {
        let fd = eventfd(0, EventfdFlags::empty()).unwrap();
        let mut pin = Intx::default();
        pin.set(TRIGGER, 0, 1, vec![fd.try_clone().unwrap()])
            .unwrap();
        pin.set_level(true);
        pin.set_level(false);
        assert_eq!(count(&fd), 1);
    }

    #[test]
    fn bad_requests_are_refused() {
        let mut pin = Intx::default();
        for (flags, start, count) in [
            (TRIGGER, 1, 1),
            (TRIGGER, 0, 2),
            (irq::ACTION_UNMASK | irq::DATA_EVENTFD, 0, 1),
            (irq::ACTION_MASK | irq::ACTION_UNMASK | irq::DATA_NONE, 0, 1),
            (0, 0, 0),
        ] {
            assert_eq!(
                pin.set(flags, start, count, vec![]),
                Err(errno::EINVAL),
                "{flags:#x}"
            );
        }
        pin.set(irq::ACTION_TRIGGER | irq::DATA_NONE, 0, 0, vec![])
            .unwrap();
        pin.set(TRIGGER, 0, 1, vec![]).unwrap();
        pin.set_level(true);
        assert_eq!(pin.fired(), 0, "no eventfd came along");
    }
}
