// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of instructions that decode.

use core::fmt;

use crate::valhall::Instruction;
use crate::valhall::source::{Code, Kind};

/// Limit that an instruction breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Bits without a meaning are set.
    Unexplained(u64),
    /// Value without a meaning.
    Reserved(&'static str),
    /// Bits 47:40 say nothing about registers.
    Control(u8),
    /// A group passes the last register.
    Group {
        /// Lowest register.
        first: u8,
        /// Registers.
        count: u8,
    },
    /// 64 bits, not in an even pair.
    Odd(Code),
    /// Pairs of uniforms: more than one, or two for a message.
    UniformPairs(usize),
    /// More than two, of uniforms, constants and special values.
    Words(usize),
    /// Two special values.
    Specials,
    /// Special value that messages cannot read.
    MessageSpecial(&'static str),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Unexplained(bits) => write!(f, "bits without a meaning: {bits:#x}"),
            Broken::Reserved(what) => write!(f, "reserved value of {what}"),
            Broken::Control(bits) => {
                write!(f, "control bits {bits:#x} do not fit the instruction")
            }
            Broken::Group { first, count } => {
                write!(f, "{count} registers from r{first} pass r63")
            }
            Broken::Odd(code) => write!(f, "{code} is no even pair"),
            Broken::UniformPairs(count) => write!(f, "uniforms of {count} pairs"),
            Broken::Words(count) => {
                write!(f, "{count} words of uniforms, constants and special values")
            }
            Broken::Specials => f.write_str("two special values"),
            Broken::MessageSpecial(name) => write!(f, "a message cannot read {name}"),
        }
    }
}

impl core::error::Error for Broken {}

#[derive(Default)]
struct Outside {
    words: [Option<Code>; 8],
    count: usize,
}

impl Outside {
    fn add(&mut self, code: Code) {
        let known = self.words.contains(&Some(code));
        if let Some(free) = self.words.get_mut(self.count).filter(|_| !known) {
            *free = Some(code);
            self.count += 1;
        }
    }

    fn distinct<T: PartialEq + Copy>(&self, of: impl Fn(Code) -> Option<T>) -> usize {
        let key = |place: usize| self.words.get(place).copied().flatten().and_then(&of);
        let first =
            |place: &usize| key(*place).is_some() && !(0..*place).any(|it| key(it) == key(*place));
        (0..self.count).filter(first).count()
    }
}

impl Instruction {
    /// Checks known limits of the hardware.
    ///
    /// # Errors
    /// The first broken limit.
    pub fn check(self) -> Result<(), Broken> {
        self.check_values()?;
        self.check_registers()?;
        self.check_outside()
    }

    pub(crate) fn check_values(self) -> Result<(), Broken> {
        let (row, word) = (self.row(), self.word());
        if self.unexplained() != 0 {
            return Err(Broken::Unexplained(self.unexplained()));
        }
        if self.flow().name().is_none() {
            return Err(Broken::Reserved("flow"));
        }
        if let Some(field) = row.modifiers.iter().find(|field| field.is_reserved(word)) {
            return Err(Broken::Reserved(field.name));
        }
        for source in self.sources() {
            if source.select.is_some() && source.selected().is_none() {
                return Err(Broken::Reserved("a select"));
            }
            if matches!(source.code, Code::Special(it) if it.name().is_none()) {
                return Err(Broken::Reserved("a special value"));
            }
        }
        match self.destination() {
            Some(it) if !it.low && !it.high => Err(Broken::Reserved("a destination")),
            _ => Ok(()),
        }
    }

    fn check_registers(self) -> Result<(), Broken> {
        let (row, word) = (self.row(), self.word());
        let modifiers = row
            .modifiers
            .iter()
            .fold(0, |all, field| all | field.mask());
        let mask = row.registers.control_mask() & !modifiers;
        if (word ^ row.registers.control()) & mask != 0 {
            return Err(Broken::Control((word >> 40) as u8));
        }
        if let Some(it) = self.staging().find(|it| it.first + it.count > 64) {
            return Err(Broken::Group {
                first: it.first,
                count: it.count,
            });
        }
        for source in self.sources().filter(|it| it.kind.is_wide()) {
            let odd = match source.code {
                Code::Register { index, .. } | Code::Uniform(index) => index & 1 == 1,
                Code::Special(special) => special.word == 1,
                Code::Constant(_) => false,
            };
            // A widened part may be of one register.
            let part = source.kind == Kind::I64W && source.selected() != Some("none");
            if odd && !part {
                return Err(Broken::Odd(source.code));
            }
        }
        Ok(())
    }

    /// Uniforms, constants and special values come through the same two words.
    fn check_outside(self) -> Result<(), Broken> {
        let message = self.row().is_message();
        let mut outside = Outside::default();
        for source in self.sources() {
            match source.code {
                Code::Register { .. } => {}
                code => outside.add(code),
            }
            if let Code::Special(special) = source.code
                && message
                && (special.page == 3 || special.name() == Some("warp_id"))
            {
                return Err(Broken::MessageSpecial(special.name().unwrap_or("reserved")));
            }
        }
        let pairs = outside.distinct(|code| match code {
            Code::Uniform(index) => Some(index / 2),
            _ => None,
        });
        let specials = outside.distinct(|code| match code {
            Code::Special(special) => Some(special.entry),
            _ => None,
        });
        let words = outside.count;
        match () {
            () if pairs > 1 + usize::from(message) => Err(Broken::UniformPairs(pairs)),
            () if specials > 1 => Err(Broken::Specials),
            () if words > 2 => Err(Broken::Words(words)),
            () => Ok(()),
        }
    }
}
