// SPDX-License-Identifier: MIT OR Apache-2.0
//! Power domains.

use mali_facts::Profile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Shader = 0,
    Tiler = 1,
    L2 = 2,
    Stack = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Ready,
    On,
    Off,
    Transition,
    Active,
}

pub(crate) fn decode(offset: u32) -> Option<(Domain, Function, bool)> {
    let domain = match offset >> 4 & 3 {
        0 => Domain::Shader,
        1 => Domain::Tiler,
        _ => Domain::L2,
    };
    let (domain, function) = match offset & !0xf {
        0x140..=0x160 => (domain, Function::Ready),
        0x180..=0x1A0 => (domain, Function::On),
        0x1C0..=0x1E0 => (domain, Function::Off),
        0x200..=0x220 => (domain, Function::Transition),
        0x240..=0x260 => (domain, Function::Active),
        0xE10 => (Domain::Stack, Function::Ready),
        0xE20 => (Domain::Stack, Function::On),
        0xE30 => (Domain::Stack, Function::Off),
        0xE40 => (Domain::Stack, Function::Transition),
        _ => return None,
    };
    match offset & 0xf {
        0 => Some((domain, function, false)),
        4 => Some((domain, function, true)),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Power {
    present: [u64; 4],
    ready: [u64; 4],
}

impl Power {
    pub(crate) fn new(profile: &Profile) -> Power {
        Power {
            present: [
                profile.shader_present,
                profile.tiler_present,
                profile.l2_present,
                0,
            ],
            ready: [0; 4],
        }
    }

    pub(crate) fn ready(&self, domain: Domain) -> u64 {
        self.ready[domain as usize]
    }

    /// Whether any unit changed. A core or tiler brings the level-2 caches: a G71 told to power its tiler read back
    /// L2_READY.
    pub(crate) fn switch(&mut self, domain: Domain, units: u64, on: bool) -> bool {
        let index = domain as usize;
        let old = self.ready[index];
        let units = units & self.present[index];
        self.ready[index] = if on { old | units } else { old & !units };
        let changed = self.ready[index] != old;
        if changed && on && matches!(domain, Domain::Shader | Domain::Tiler) {
            self.ready[Domain::L2 as usize] = self.present[Domain::L2 as usize];
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mali_facts::registers::{Class, all};

    #[test]
    fn all_power_registers_are_decoded_and_no_others() {
        for register in all() {
            let decoded = decode(register.offset());
            assert_eq!(
                decoded.is_some(),
                register.class() == Class::Power,
                "{register}"
            );
            if let Some((domain, function, high)) = decoded {
                let domain = ["SHADER", "TILER", "L2", "STACK"][domain as usize];
                let function = match function {
                    Function::Ready => "READY",
                    Function::On => "PWRON",
                    Function::Off => "PWROFF",
                    Function::Transition => "PWRTRANS",
                    Function::Active => "PWRACTIVE",
                };
                let half = if high { "HI" } else { "LO" };
                assert_eq!(register.to_string(), format!("{domain}_{function}_{half}"));
            }
        }
    }

    #[test]
    fn only_units_that_exist_change() {
        let mut power = Power::new(Profile::by_name("g52").unwrap());
        assert!(power.switch(Domain::Shader, u64::MAX, true));
        assert_eq!(power.ready(Domain::Shader), 3);
        assert_eq!(power.ready(Domain::L2), 1);
        assert!(!power.switch(Domain::Shader, 3, true));
        assert!(power.switch(Domain::Shader, 1, false));
        assert_eq!(power.ready(Domain::Shader), 2);
        assert!(!power.switch(Domain::Stack, 1, true));
    }
}
