// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cubins: ELF files of kernels, their limits (`.nv.info.*`), and variables.
//!
//! Numbers of `.nv.info`: from nvcc 11 to 13, as `cuobjdump -elf` prints.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf::{FileHeader64, STT_FUNC, STT_OBJECT};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use crate::image::bytes::{range, u16_at, u32_at};
use crate::image::tally::{Allowance, Held, MAX_NAMES, Tally, name};
use crate::image::{Contents, ImageError, Kernel, Parameter, Variable};

mod attribute {
    pub(super) const MOST_THREADS: u8 = 0x05;
    pub(super) const REQUIRED_THREADS: u8 = 0x10;
    pub(super) const PARAMETER: u8 = 0x17;
    pub(super) const REGISTERS: u8 = 0x2f;
    pub(super) const PARAMETER_V2: u8 = 0x45;
}

/// The header has a size, and the value follows.
const SIZED: u8 = 4;
pub(super) const KERNEL: u8 = 0x10;
/// In bytes: several sections bear a kernel's name.
const MAX_SECTION_NAMES: usize = 4 * MAX_NAMES;

pub(crate) fn contents(cubin: &[u8], allowance: &mut Allowance) -> Result<Contents, ImageError> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(cubin)?;
    let sections = header.sections(endian, cubin)?;
    let symbols = sections.symbols(endian, cubin, object::elf::SHT_SYMTAB)?;

    let mut by_name: HashMap<&[u8], &[u8]> = HashMap::new();
    let mut shared: HashMap<&[u8], u64> = HashMap::new();
    let mut of_variables = Vec::with_capacity(sections.len());
    let mut names = Tally::new("bytes of names of sections", MAX_SECTION_NAMES);
    for section in sections.iter() {
        let name = name(sections.section_name(endian, section)?)?;
        names.take(name.len())?;
        allowance.entry(name.len())?;
        of_variables.push(name.starts_with(b".nv.global") || name == b".nv.constant3");
        if name.starts_with(b".nv.info") {
            by_name.insert(name, section.data(endian, cubin)?);
        } else if let Some(kernel) = name.strip_prefix(b".nv.shared.") {
            shared.insert(kernel, section.sh_size(endian));
        }
    }

    let mut registers = HashMap::new();
    if let Some(info) = by_name.get(b".nv.info".as_slice()) {
        for attribute in attributes(info) {
            let (number, value) = attribute?;
            if number == attribute::REGISTERS {
                registers.insert(u32_at(value, 0)? as usize, u32_at(value, 4)?);
            }
        }
    }

    let mut contents = Contents::default();
    let mut held = Held::new(allowance);
    // Honest cubins' sections do not overlap.
    let mut described = Tally::new("bytes that describe kernels", cubin.len());
    for (index, symbol) in symbols.enumerate() {
        if symbol.st_type() == STT_FUNC && symbol.st_other().0 & KERNEL != 0 {
            let name = symbol.name(endian, symbols.strings())?;
            held.name(name)?;
            let mut kernel = Kernel {
                name: String::from_utf8_lossy(name).into_owned(),
                registers: registers.get(&index.0).copied(),
                shared: shared.get(name).copied().unwrap_or(0),
                ..Kernel::default()
            };
            if let Some(info) = by_name.get([b".nv.info.", name].concat().as_slice()) {
                described.take(info.len())?;
                describe(&mut kernel, info, &mut held)?;
            }
            held.kernel(&kernel)?;
            contents.kernels.push(kernel);
        } else if symbol.st_type() == STT_OBJECT
            && symbol.st_size(endian) > 0
            && let Some(section) = symbols.symbol_section(endian, symbol, index)?
        {
            sections.section(section)?;
            if of_variables.get(section.0).copied().unwrap_or(false) {
                let name = symbol.name(endian, symbols.strings())?;
                held.name(name)?;
                held.variable()?;
                contents.variables.push(Variable {
                    name: String::from_utf8_lossy(name).into_owned(),
                    size: Some(symbol.st_size(endian)),
                });
            }
        }
    }
    contents.variables.sort();
    Ok(contents)
}

/// Values inside attributes' headers are left empty.
pub(super) fn attributes(info: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), ImageError>> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        if offset >= info.len() {
            return None;
        }
        let mut next = || {
            let header = range(info, offset, 4)?;
            let size = if header[0] == SIZED {
                usize::from(u16_at(header, 2)?)
            } else {
                0
            };
            let value = range(info, offset + 4, size)?;
            offset += 4 + size;
            Ok((header[1], value))
        };
        let result = next();
        if result.is_err() {
            offset = info.len();
        }
        Some(result)
    })
}

fn describe(kernel: &mut Kernel, info: &[u8], held: &mut Held<'_>) -> Result<(), ImageError> {
    let mut parameters: Vec<(u16, Parameter)> = Vec::new();
    for attribute in attributes(info) {
        let (number, value) = attribute?;
        let three =
            || Ok::<_, ImageError>([u32_at(value, 0)?, u32_at(value, 4)?, u32_at(value, 8)?]);
        match number {
            attribute::MOST_THREADS => kernel.most_threads = Some(three()?),
            attribute::REQUIRED_THREADS => kernel.required_threads = Some(three()?),
            attribute::PARAMETER | attribute::PARAMETER_V2 => {
                let size = if number == attribute::PARAMETER {
                    (u32_at(value, 8)? >> 18) as usize
                } else {
                    usize::from(u16_at(value, 8)?)
                };
                let offset = usize::from(u16_at(value, 6)?);
                held.parameter(parameters.len())?;
                parameters.push((u16_at(value, 4)?, Parameter { offset, size }));
            }
            _ => {}
        }
    }
    parameters.sort_by_key(|(index, _)| *index);
    kernel.parameters = parameters
        .into_iter()
        .map(|(_, parameter)| parameter)
        .collect();
    Ok(())
}
