// SPDX-License-Identifier: MIT OR Apache-2.0
//! Text as in `docs/reference/isa.md`, mostly Mesa's.

use crate::clause::{Clause, ClauseHeader, FlowControl, FlushToZero, Operand, Tuple};
use crate::fau::{Fau, Relative};
use crate::info::{OpInfo, Unit};
use crate::instruction::Instruction;
use crate::names::Modifier;
use crate::registers::{Destination, Part};
use crate::shader::{Shader, Target};
use core::fmt::{self, Display, Formatter, Write};

/// `None`: the modifier is the whole operation's.
fn source_of(modifier: Modifier) -> Option<usize> {
    Some(match modifier {
        Modifier::Abs0 | Modifier::Neg0 | Modifier::Lanes0 | Modifier::Sign0 => 0,
        Modifier::Abs1 | Modifier::Neg1 | Modifier::Lanes1 | Modifier::Sign1 | Modifier::Not1 => 1,
        Modifier::Abs2 | Modifier::Neg2 | Modifier::Lanes2 => 2,
        Modifier::Lanes3 => 3,
        _ => return None,
    })
}

fn modifiers(
    f: &mut Formatter<'_>,
    instruction: &Instruction,
    source: Option<usize>,
) -> fmt::Result {
    for (info, value) in instruction
        .op
        .info()
        .modifiers
        .iter()
        .zip(instruction.modifiers)
    {
        if source_of(info.modifier) == source && info.default != Some(value) {
            let name = info
                .modifier
                .options()
                .get(usize::from(value))
                .copied()
                .unwrap_or("?");
            if !name.is_empty() {
                write!(f, ".{name}")?;
            }
        }
    }
    Ok(())
}

impl Display for Fau {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Fau::Zero => f.write_str("#0"),
            Fau::LaneId => f.write_str("lane_id"),
            Fau::WarpId => f.write_str("warp_id"),
            Fau::CoreId => f.write_str("core_id"),
            Fau::FramebufferSize => f.write_str("framebuffer_size"),
            Fau::AtestDatum => f.write_str("atest_datum"),
            Fau::SamplePositions => f.write_str("sample_positions"),
            Fau::Blend(n) => write!(f, "blend_descriptor_{n}"),
            Fau::Uniform(n) => write!(f, "u{n}"),
            Fau::Constant {
                value,
                relative: Relative::None,
                ..
            } => write!(f, "{value:#018x}"),
            Fau::Constant {
                value, relative, ..
            } => write!(f, "{value:#018x}{{{relative:?}}}"),
            Fau::Missing(n) => write!(f, "missing_constant_{n}"),
            Fau::Reserved(n) => write!(f, "reserved_{n:#x}"),
        }
    }
}

fn fau_word(f: &mut Formatter<'_>, fau: Fau, high: bool, origin: Option<u32>) -> fmt::Result {
    let Fau::Constant {
        value, relative, ..
    } = fau
    else {
        return match fau {
            Fau::Uniform(_) => write!(f, "{fau}.w{}", u8::from(high)),
            _ => write!(f, "{fau}.{}", if high { 'y' } else { 'x' }),
        };
    };
    let word = if high {
        (value >> 32) as u32
    } else {
        value as u32
    };
    let offset = i64::from(((word << 4) as i32) >> 4);
    match (relative, origin) {
        (Relative::None, _) => constant(f, word),
        (Relative::High, _) if !high => constant(f, word),
        (Relative::Whole, _) => write!(f, "{word:#010x}{{whole}}"),
        (_, Some(origin)) if (i64::from(origin) + offset) % 16 == 0 => {
            write!(f, "clause_{}", (i64::from(origin) + offset) / 16)
        }
        _ => write!(f, "clause{offset:+}"),
    }
}

fn constant(f: &mut Formatter<'_>, word: u32) -> fmt::Result {
    write!(f, "{word:#010x}")?;
    let size = f32::from_bits(word & 0x7fff_ffff);
    if (1e-9..1e12).contains(&size) {
        write!(f, " /* {:?} */", f32::from_bits(word))
    } else {
        Ok(())
    }
}

fn operand(f: &mut Formatter<'_>, operand: Operand, origin: Option<u32>) -> fmt::Result {
    match operand {
        Operand::Register(n) => write!(f, "r{n}"),
        Operand::Pair(n) => write!(f, "[r{n} r{}]", u16::from(n) + 1),
        Operand::Zero => f.write_str("#0"),
        Operand::Stage => f.write_char('t'),
        Operand::FauLow(fau) => fau_word(f, fau, false, origin),
        Operand::FauHigh(fau) => fau_word(f, fau, true, origin),
        Operand::FauWide(fau) => write!(f, "[{fau}]"),
        Operand::T0 => f.write_str("t0"),
        Operand::T1 => f.write_str("t1"),
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        operand(f, *self, None)
    }
}

impl Display for Destination {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Full => write!(f, "r{}", self.register),
            Part::Low => write!(f, "r{}.h0", self.register),
            Part::High => write!(f, "r{}.h1", self.register),
            Part::Pair => write!(f, "[r{} r{}]", self.register, u16::from(self.register) + 1),
        }
    }
}

fn name(f: &mut Formatter<'_>, info: &OpInfo, instruction: &Instruction) -> fmt::Result {
    write!(f, "{}{}", info.unit.mark(), info.name)?;
    modifiers(f, instruction, None)
}

fn immediates(f: &mut Formatter<'_>, instruction: &Instruction) -> fmt::Result {
    for (info, value) in instruction
        .op
        .info()
        .immediates
        .iter()
        .zip(instruction.immediates)
    {
        write!(f, ", {}:{value}", info.name)?;
    }
    Ok(())
}

/// Outside its tuple, an instruction shows its sources as selectors.
impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        name(f, self.op.info(), self)?;
        for (index, source) in self.sources().iter().enumerate() {
            write!(f, "{} {source:?}", if index == 0 { "" } else { "," })?;
            modifiers(f, self, Some(index))?;
        }
        immediates(f, self)
    }
}

/// Instruction in its place.
pub struct InstructionText<'a> {
    /// Its tuple.
    pub tuple: &'a Tuple,
    /// Its unit.
    pub unit: Unit,
    /// First staging register of the clause.
    pub staging_register: u8,
    /// Bytes in the shader, for branch targets.
    pub origin: Option<u32>,
}

impl Display for InstructionText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let instruction = self.tuple.instruction(self.unit);
        let info = instruction.op.info();
        name(f, info, instruction)?;
        f.write_char(' ')?;
        if let Some(destination) = self.tuple.destination(self.unit) {
            write!(f, "{destination}:")?;
        }
        f.write_str(if self.unit == Unit::Fma { "t0" } else { "t1" })?;
        for (index, source) in instruction.sources().iter().enumerate() {
            f.write_str(", ")?;
            match self.tuple.operand(self.unit, *source) {
                Some(value) => operand(f, value, self.origin)?,
                None => f.write_str("nothing")?,
            }
            modifiers(f, instruction, Some(index))?;
        }
        immediates(f, instruction)?;
        if info.staging.is_some() {
            write!(f, ", @r{}", self.staging_register)?;
        }
        Ok(())
    }
}

impl Display for ClauseHeader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "ds({})", self.dependency_slot)?;
        if self.staging_barrier {
            f.write_str(" osrb")?;
        }
        f.write_str(match self.flow_control {
            FlowControl::End => " eos",
            FlowControl::ReconvergeByPc => " nbb br_pc",
            FlowControl::Reconverge => " nbb r_uncond",
            FlowControl::Continue => " nbb",
            FlowControl::BackToBackByPc => " bb br_pc",
            FlowControl::BackToBack => " bb",
            FlowControl::WriteElisionByPc => " we br_pc",
            FlowControl::WriteElision => " we",
        })?;
        if self.suppress_infinity {
            f.write_str(" si")?;
        }
        if self.suppress_nan {
            f.write_str(" sn")?;
        }
        match self.flush_to_zero {
            FlushToZero::None => {}
            FlushToZero::Dx11 => f.write_str(" ftz_dx11")?,
            FlushToZero::Always => f.write_str(" ftz")?,
            FlushToZero::Abrupt => f.write_str(" ftz_abrupt")?,
        }
        if self.float_exceptions != 0 {
            write!(f, " fpe({})", self.float_exceptions)?;
        }
        if let Some(message) = self.message {
            write!(f, " {}", message.name())?;
        }
        if self.terminate_discarded {
            f.write_str(" td")?;
        }
        if self.next_clause_prefetch {
            f.write_str(" ncph")?;
        }
        if let Some(message) = self.next_message {
            write!(f, " next_{}", message.name())?;
        }
        if self.dependency_wait != 0 {
            let mut separator = " dwb(";
            for slot in (0..8).filter(|slot| self.dependency_wait >> slot & 1 == 1) {
                write!(f, "{separator}{slot}")?;
                separator = ", ";
            }
            f.write_char(')')?;
        }
        Ok(())
    }
}

/// At a place in its shader.
pub struct ClauseText<'a> {
    /// Clause.
    pub clause: &'a Clause,
    /// Byte offset in the shader.
    pub offset: u32,
}

impl Display for ClauseText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "clause_{}:\n{}\n{{",
            self.offset / 16,
            self.clause.header
        )?;
        let staging_register = self.clause.header.staging_register;
        for tuple in &self.clause.tuples {
            for unit in [Unit::Fma, Unit::Add] {
                let text = InstructionText {
                    tuple,
                    unit,
                    staging_register,
                    origin: Some(self.offset),
                };
                writeln!(f, "    {text}")?;
            }
        }
        f.write_str("}\n")
    }
}

impl Display for Shader {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut end = 0;
        for (number, placed) in self.clauses.iter().enumerate() {
            if placed.offset != end {
                writeln!(f, "# not reached: {end:#x} to {:#x}", placed.offset)?;
            }
            end = placed.offset + placed.size;
            write!(
                f,
                "{}{}",
                if number == 0 { "" } else { "\n" },
                ClauseText {
                    clause: &placed.clause,
                    offset: placed.offset
                }
            )?;
            if placed
                .clause
                .branch()
                .is_some_and(|branch| branch.target == Target::Dynamic)
            {
                writeln!(
                    f,
                    "# the branch goes to an address that is known only at run time"
                )?;
            }
        }
        Ok(())
    }
}
