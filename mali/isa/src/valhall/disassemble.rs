// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text of an instruction, in the spelling of Mesa's disassembler.

use core::fmt::{self, Display, Formatter};

use crate::valhall::field::Meaning;
use crate::valhall::source::{CONSTANTS, Code, Operand, Special};
use crate::valhall::values::{self, Values};
use crate::valhall::{Destination, Instruction, Staging};

impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (row, word) = (self.row(), self.word());
        f.write_str(row.name)?;
        for field in row.modifiers {
            match &field.meaning {
                Meaning::Named(values) => suffix(f, values, field.read(word))?,
                _ if field.read(word) != 0 => write!(f, ".{}", field.name)?,
                _ => {}
            }
        }
        suffix(f, &values::FLOW, (word >> 59 & 15) as u32)?;
        let mut separator = " ";
        let mut operand = |f: &mut Formatter<'_>, text: &dyn Display| {
            let before = core::mem::replace(&mut separator, ", ");
            write!(f, "{before}{text}")
        };
        if let Some(destination) = self.destination() {
            operand(f, &destination)?;
        }
        for group in self.staging() {
            operand(f, &group)?;
        }
        for source in self.sources() {
            operand(f, &source)?;
        }
        for field in row.immediates {
            let (name, number) = (field.name, field.number(word));
            let name: &dyn Display = match name {
                "constant" => &"#",
                _ => &format_args!("{name}:"),
            };
            match field.meaning {
                Meaning::Signed => operand(f, &format_args!("{name}{number}"))?,
                _ => operand(f, &format_args!("{name}0x{number:X}"))?,
            }
        }
        Ok(())
    }
}

fn suffix(f: &mut Formatter<'_>, values: &Values, value: u32) -> fmt::Result {
    match values.name(value) {
        name if name.is_some() && name == values.default_name() => Ok(()),
        name => write!(f, ".{}", name.unwrap_or("reserved")),
    }
}

impl Display for Destination {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let half = match (self.low, self.high) {
            (true, true) => "",
            (true, false) => ".h0",
            (false, _) => ".h1",
        };
        write!(f, "r{}{half}", self.register)
    }
}

impl Display for Staging {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut before = "@";
        for index in 0..self.count {
            write!(f, "{before}r{}", self.first + index)?;
            before = ":";
        }
        match self.count {
            0 => f.write_str(before),
            _ => Ok(()),
        }
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code)?;
        for (is, name) in [(self.negate, ".neg"), (self.absolute, ".abs")] {
            if is {
                f.write_str(name)?;
            }
        }
        if let Some((value, values)) = self.select {
            suffix(f, values, value.into())?;
        }
        match self.complement {
            true => f.write_str(".not"),
            false => Ok(()),
        }
    }
}

impl Display for Code {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match *self {
            Code::Register { index, last } => write!(f, "{}r{index}", if last { "^" } else { "" }),
            Code::Uniform(index) => write!(f, "u{index}"),
            Code::Constant(index) => write!(f, "0x{:X}", CONSTANTS[usize::from(index & 31)]),
            Code::Special(special) => special.fmt(f),
        }
    }
}

impl Display for Special {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let name = match self.page {
            2 => "reserved_page2",
            _ => self.name().unwrap_or("reserved"),
        };
        write!(f, "{name}.w{}", self.word)
    }
}
