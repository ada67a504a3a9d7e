// SPDX-License-Identifier: MIT OR Apache-2.0
//! The device's interrupt pin: level-triggered, carried by an eventfd that masks itself when it fires.

use std::os::fd::OwnedFd;

use crate::protocol::{errno, irq};

/// State of the pin.
#[derive(Debug, Default)]
pub(crate) struct Intx {
    trigger: Option<OwnedFd>,
    masked: bool,
    level: bool,
    fired: u64,
}

impl Intx {
    /// SET_IRQS. Errors are the number to answer.
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
                self.masked = false;
            }
            irq::ACTION_TRIGGER if none && count == 0 => self.trigger = None,
            irq::ACTION_TRIGGER if none => {
                self.fire();
                return Ok(());
            }
            irq::ACTION_MASK if none => self.masked = true,
            irq::ACTION_UNMASK if none => self.masked = false,
            // Masking by eventfd is for accelerators that take interrupts without QEMU; QEMU does without it.
            _ => return Err(errno::EINVAL),
        }
        self.update();
        Ok(())
    }

    /// Sets the level; fires when it is high and the pin is not masked.
    pub(crate) fn set_level(&mut self, level: bool) {
        self.level = level;
        self.update();
    }

    /// Whether the pin is asserted.
    pub(crate) fn level(&self) -> bool {
        self.level
    }

    /// How often the pin fired.
    pub(crate) fn fired(&self) -> u64 {
        self.fired
    }

    /// Device reset: the level drops, the connection stays.
    pub(crate) fn reset(&mut self) {
        self.level = false;
        self.masked = false;
    }

    fn update(&mut self) {
        if self.level && !self.masked {
            self.fire();
        }
    }

    fn fire(&mut self) {
        if let Some(trigger) = &self.trigger {
            self.masked = true;
            self.fired += 1;
            // Fails only when the counter is full, and then the client has much to read anyway.
            let _ = rustix::io::write(trigger, &1u64.to_ne_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    const TRIGGER: u32 = irq::ACTION_TRIGGER | irq::DATA_EVENTFD;
    const UNMASK: u32 = irq::ACTION_UNMASK | irq::DATA_NONE;

    /// Times the pin has fired since the last call.
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
