// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tuple's 35-bit register block: its reads, the previous tuple's writes.

/// Part of a register that a result fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// All 32 bits.
    Full,
    /// Bits 0-15.
    Low,
    /// Bits 16-31.
    High,
    /// 64 bits: the register and the next (64-bit tuples).
    Pair,
}

/// Where a result goes, besides t, t0, t1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// 0-63; the lower of a pair.
    pub register: u8,
    /// Which bits.
    pub part: Part,
}

/// 35 bits as encoded.
///
/// | bits | field |
/// |---|---|
/// | 0-7 | FAU index |
/// | 8-13 | slot 3: register written |
/// | 14-19 | slot 2: register read or written |
/// | 20-24 | port 0 |
/// | 25-30 | port 1 |
/// | 31-34 | control |
///
/// In a clause of 64-bit tuples the fields are `FAU 8, A 5, B 5, port 0 4, port 1 5, control 8` and name pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegisterBlock(pub u64);

/// Reads of the tuple and writes of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RegisterUse {
    /// Read by ports 0, 1 and 2.
    pub ports: [Option<u8>; 3],
    /// Of the previous tuple's FMA result.
    pub fma: Option<Destination>,
    /// Of the previous tuple's ADD result.
    pub add: Option<Destination>,
}

impl RegisterBlock {
    /// FAU index.
    pub const fn fau_index(self) -> u8 {
        self.0 as u8
    }

    const fn field(self, start: u32, size: u32) -> u8 {
        ((self.0 >> start) & ((1 << size) - 1)) as u8
    }

    /// Block of a normal tuple; `first` of a clause. `Err` with a reserved mode.
    pub fn narrow(self, first: bool) -> Result<RegisterUse, u8> {
        let (slot3, slot2) = (self.field(8, 6), self.field(14, 6));
        let (port0, port1, control) = (self.field(20, 5), self.field(25, 6), self.field(31, 4));
        let mut used = RegisterUse::default();
        let control = if control == 0 {
            // One port: the control bits move into port 1's field and port 0 gets a sixth bit.
            if port1 & 2 == 0 {
                used.ports[0] = Some(port0 | (port1 & 1) << 5);
            }
            port1 >> 2
        } else if port0 <= port1 {
            (used.ports[0], used.ports[1]) = (Some(port0), Some(port1));
            control
        } else {
            (used.ports[0], used.ports[1]) = (Some(63 - port0), Some(63 - port1));
            control
        };
        let mode = if first {
            (control & 7) | (control & 8) << 1
        } else {
            control + if slot2 == slot3 { 16 } else { 0 }
        };
        let write = |register, part| Some(Destination { register, part });
        const PARTS: [Part; 3] = [Part::Low, Part::High, Part::Full];
        const TWINS: [Part; 3] = [Part::Full, Part::Low, Part::High];
        match mode {
            1..=6 | 20 => used.ports[2] = Some(slot2),
            _ => {}
        }
        match mode {
            1..=3 => used.fma = write(slot3, PARTS[usize::from(mode - 1)]),
            4..=6 => used.add = write(slot3, PARTS[usize::from(mode - 4)]),
            7..=15 => {
                used.fma = write(slot2, PARTS[usize::from((mode - 7) / 3)]);
                used.add = write(slot3, PARTS[usize::from((mode - 7) % 3)]);
            }
            16 | 20 | 27 => {}
            17..=19 => used.fma = write(slot3, TWINS[usize::from(mode - 17)]),
            21..=23 => used.add = write(slot3, TWINS[usize::from(mode - 21)]),
            24 => (used.fma, used.add) = (write(slot2, Part::Low), write(slot3, Part::High)),
            26 => (used.fma, used.add) = (write(slot2, Part::High), write(slot3, Part::Low)),
            other => return Err(other),
        }
        Ok(used)
    }

    /// Block of a 64-bit tuple. `Err` with a reserved control.
    ///
    /// Control 0xfa: slot A is read as source 2 and pair B is written. 0xfb: slot A is written (B = 6) or nothing
    /// is (B = 7). 0xff: as 0xfb, but only port 0 is read, from pairs 16-31. Two ports are in ascending order; the
    /// meaning of a descending order is unknown.
    pub fn wide(self) -> Result<RegisterUse, u8> {
        let (a, b) = (self.field(8, 5), self.field(13, 5));
        let (port0, port1, control) = (self.field(18, 4), self.field(22, 5), self.field(27, 8));
        let low = |pair: u8| Some(pair * 2);
        let write = |pair: u8| {
            Some(Destination {
                register: pair * 2,
                part: Part::Pair,
            })
        };
        let mut used = RegisterUse::default();
        match control {
            0xfa | 0xfb if port0 <= port1 => used.ports = [low(port0), low(port1), None],
            0xff if port1 == 12 => used.ports[0] = low(port0 + 16),
            other => return Err(other),
        }
        match (control, b) {
            (0xfa, _) => (used.ports[2], used.fma) = (low(a), write(b)),
            (_, 6) => used.fma = write(a),
            (_, 7) => {}
            _ => return Err(control),
        }
        Ok(used)
    }
}
