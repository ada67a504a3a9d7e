// SPDX-License-Identifier: MIT OR Apache-2.0
//! Assembler, for tests and patches.

use core::fmt;

use crate::valhall::field::{Field, Meaning};
use crate::valhall::row::{Registers, Row};
use crate::valhall::source::{CONSTANTS, Kind, SPECIALS};
use crate::valhall::table::Op;
use crate::valhall::values::{self, Values};

/// Why a text is no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssembleError<'t> {
    /// No such instruction.
    Name(&'t str),
    /// A modifier without default is missing here.
    Missing(&'static str, &'t str),
    /// The instruction has no such modifiers.
    Modifiers(&'t str),
    /// This next operand is missing.
    NoOperand(&'static str),
    /// One operand too many.
    Surplus(&'t str),
    /// No valid operand.
    Operand(&'t str),
    /// Uniforms and special values of different pages.
    Pages(u8, u8),
}

impl fmt::Display for AssembleError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AssembleError::Name(text) => write!(f, "no instruction is called {text:?}"),
            AssembleError::Missing(name, text) => write!(f, "{name} is missing before {text:?}"),
            AssembleError::Modifiers(text) => write!(f, "the instruction has no {text:?}"),
            AssembleError::NoOperand(what) => write!(f, "{what} is missing"),
            AssembleError::Surplus(text) => write!(f, "{text:?} is one operand too many"),
            AssembleError::Operand(text) => write!(f, "{text:?} is no operand for its place"),
            AssembleError::Pages(one, other) => {
                write!(
                    f,
                    "values of the pages {one} and {other} in one instruction"
                )
            }
        }
    }
}

impl core::error::Error for AssembleError<'_> {}

/// Encodes text as disassembled.
///
/// # Errors
/// The text names what no instruction word encodes.
pub fn assemble(text: &str) -> Result<u64, AssembleError<'_>> {
    let text = text.trim();
    let (head, operands) = text.split_once(' ').unwrap_or((text, ""));
    let named = |op: &&Op| after(head, op.row().name).is_some();
    let longest = Op::ALL.iter().filter(named);
    let longest = longest.max_by_key(|op| op.row().name.len());
    let row = longest.ok_or(AssembleError::Name(head))?.row();
    let mut rest = &head[row.name.len()..];
    let mut word = row.fixed() | row.registers.control();
    for field in row.modifiers {
        word |= modifier(&mut rest, field)?;
    }
    word |= u64::from(one_of(&mut rest, &values::FLOW, "flow")?) << 59;
    if !rest.is_empty() {
        return Err(AssembleError::Modifiers(rest));
    }
    let mut operands = operands.split(", ").map(str::trim);
    let mut operands = operands.by_ref().filter(|it| !it.is_empty());
    word |= registers(&mut operands, row)?;
    let mut page = None;
    for (byte, kind) in row.sources.iter().enumerate() {
        if *kind != Kind::GAP {
            let text = operands.next();
            let text = text.ok_or(AssembleError::NoOperand("a source"))?;
            word |= source(text, byte, *kind, &mut page)?;
        }
    }
    for field in row.immediates {
        let text = operands.next();
        let text = text.ok_or(AssembleError::NoOperand(field.name))?;
        word |= immediate(text, field).ok_or(AssembleError::Operand(text))?;
    }
    match operands.next() {
        Some(text) => Err(AssembleError::Surplus(text)),
        None => Ok(word | u64::from(page.unwrap_or(0)) << 57),
    }
}

fn after<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let rest = text.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with('.')).then_some(rest)
}

fn modifier<'t>(rest: &mut &'t str, field: &'static Field) -> Result<u64, AssembleError<'t>> {
    let value = match &field.meaning {
        Meaning::Named(values) => one_of(rest, values, field.name)?,
        _ => u32::from(take(rest, field.name)),
    };
    Ok((u64::from(value) << field.at) & field.mask())
}

fn take(rest: &mut &str, name: &str) -> bool {
    let found = rest.strip_prefix('.').and_then(|rest| after(rest, name));
    *rest = found.unwrap_or(rest);
    found.is_some()
}

fn one_of<'t>(
    rest: &mut &'t str,
    values: &'static Values,
    what: &'static str,
) -> Result<u32, AssembleError<'t>> {
    let text = rest.strip_prefix('.').unwrap_or("");
    let default = values.default_name();
    let fits = |(_, name): &(u32, &str)| Some(*name) != default && after(text, name).is_some();
    let longest = values.iter().filter(fits).max_by_key(|it| it.1.len());
    if let Some((value, name)) = longest {
        take(rest, name);
        return Ok(value);
    }
    let mut written = values.iter().filter(|it| Some(it.1) == default);
    let default = written.next().map(|it| it.0);
    default.ok_or(AssembleError::Missing(what, rest))
}

fn registers<'t>(
    operands: &mut impl Iterator<Item = &'t str>,
    row: &'static Row,
) -> Result<u64, AssembleError<'t>> {
    let mut word = 0;
    if row.registers == Registers::Dest {
        let text = operands.next();
        let text = text.ok_or(AssembleError::NoOperand("a destination"))?;
        let (name, halves) = match (text.strip_suffix(".h0"), text.strip_suffix(".h1")) {
            (Some(name), _) => (name, 1),
            (_, Some(name)) => (name, 2),
            _ => (text, 3),
        };
        let register = register(name).ok_or(AssembleError::Operand(text))?;
        word |= (halves << 6 | u64::from(register)) << 40;
    }
    for group in row.registers.groups() {
        let text = operands.next();
        let text = text.ok_or(AssembleError::NoOperand("a group of registers"))?;
        let wrong = AssembleError::Operand(text);
        let names = text.strip_prefix('@').ok_or(wrong)?;
        let (mut first, mut count) = (None, 0u8);
        for name in names.split(':').filter(|_| !names.is_empty()) {
            let register = register(name).ok_or(wrong)?;
            let expected = first.get_or_insert(register).checked_add(count);
            if expected != Some(register) || count == 8 {
                return Err(wrong);
            }
            count += 1;
        }
        let count = count.checked_sub(group.bias).filter(|count| *count < 8);
        word |= u64::from(first.unwrap_or(0)) << group.at;
        word |= u64::from(count.ok_or(wrong)?) << group.count_at;
    }
    Ok(word)
}

fn source<'t>(
    text: &'t str,
    byte: usize,
    kind: Kind,
    page: &mut Option<u8>,
) -> Result<u64, AssembleError<'t>> {
    let wrong = AssembleError::Operand(text);
    let (code, on, mut rest) = code(text).ok_or(wrong)?;
    if let Some(on) = on {
        let before = *page.get_or_insert(on);
        if before != on {
            return Err(AssembleError::Pages(before, on));
        }
    }
    let mut word = u64::from(code) << (8 * byte);
    if let Some((negate, absolute)) = kind.signs(byte) {
        word |= u64::from(take(&mut rest, "neg")) << negate;
        word |= u64::from(take(&mut rest, "abs")) << absolute;
    }
    if let Some((at, bits, values)) = kind.select(byte) {
        let value = one_of(&mut rest, values, "a select")?;
        if u64::from(value) >= 1 << bits {
            return Err(wrong);
        }
        word |= u64::from(value) << at;
    }
    if let Some(at) = kind.complement() {
        word |= u64::from(take(&mut rest, "not")) << at;
    }
    match rest {
        "" => Ok(word),
        rest => Err(AssembleError::Modifiers(rest)),
    }
}

fn code(text: &str) -> Option<(u8, Option<u8>, &str)> {
    for (page, entry, name) in SPECIALS {
        let found = after(text, name);
        let word = |tail: &str| found.and_then(|rest| after(rest, tail));
        if let Some(rest) = word(".w0") {
            return Some((0xe0 | entry << 1, Some(page), rest));
        }
        if let Some(rest) = word(".w1") {
            return Some((0xe1 | entry << 1, Some(page), rest));
        }
    }
    let end = text.find('.').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if let Some(hexadecimal) = name.strip_prefix("0x") {
        let value = u32::from_str_radix(hexadecimal, 16).ok()?;
        let place = CONSTANTS.iter().position(|it| *it == value)?;
        return Some((0xc0 | u8::try_from(place).ok()?, None, rest));
    }
    if let Some(index) = name.strip_prefix('u') {
        let index: u8 = index.parse().ok()?;
        return Some((0x80 | index & 63, Some(index >> 6), rest));
    }
    let (name, last) = name.strip_prefix('^').map_or((name, 0), |it| (it, 0x40));
    Some((register(name)? | last, None, rest))
}

fn register(text: &str) -> Option<u8> {
    let index = text.strip_prefix('r')?;
    index.parse().ok().filter(|index| *index < 64)
}

fn immediate(text: &str, field: &Field) -> Option<u64> {
    let number = match text.strip_prefix('#') {
        Some(number) if field.name == "constant" => number,
        _ => text.strip_prefix(field.name)?.strip_prefix(':')?,
    };
    let value = match number.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    let word = value.checked_shl(field.at.into())? as u64 & field.mask();
    (field.number(word) == value).then_some(word)
}
