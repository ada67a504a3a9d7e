// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cubins: ELF files with kernels, their parameters and limits (`.nv.info.*`), and variables.
//!
//! Attribute numbers of `.nv.info` were seen in cubins of nvcc 11 to 13 and agree with what `cuobjdump -elf` prints.

use std::collections::HashMap;

use object::LittleEndian;
use object::elf::{FileHeader64, STT_FUNC, STT_OBJECT};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use crate::bytes::{range, u16_at, u32_at};
use crate::{Contents, ImageError, Kernel, Parameter, Variable};

/// Attributes of `.nv.info`.
mod attribute {
    pub(super) const MOST_THREADS: u8 = 0x05;
    pub(super) const REQUIRED_THREADS: u8 = 0x10;
    pub(super) const PARAMETER: u8 = 0x17;
    pub(super) const REGISTERS: u8 = 0x2f;
    pub(super) const PARAMETER_V2: u8 = 0x45;
}

/// The value of an attribute follows it, and its size is in the attribute's header.
const SIZED: u8 = 4;
/// Bit of `st_other` that marks a kernel.
const KERNEL: u8 = 0x10;
/// Parameters that a kernel may have: one for each byte.
const MAX_PARAMETERS: usize = 32_764;

pub(crate) fn contents(cubin: &[u8]) -> Result<Contents, ImageError> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(cubin)?;
    let sections = header.sections(endian, cubin)?;
    let symbols = sections.symbols(endian, cubin, object::elf::SHT_SYMTAB)?;

    let mut by_name: HashMap<&[u8], &[u8]> = HashMap::new();
    let mut shared: HashMap<&[u8], u64> = HashMap::new();
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
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
    for (index, symbol) in symbols.enumerate() {
        let name = symbol.name(endian, symbols.strings())?;
        let text = || String::from_utf8_lossy(name).into_owned();
        if symbol.st_type() == STT_FUNC && symbol.st_other().0 & KERNEL != 0 {
            let mut kernel = Kernel {
                name: text(),
                registers: registers.get(&index.0).copied(),
                shared: shared.get(name).copied().unwrap_or(0),
                ..Kernel::default()
            };
            if let Some(info) = by_name.get([b".nv.info.", name].concat().as_slice()) {
                describe(&mut kernel, info)?;
            }
            contents.kernels.push(kernel);
        } else if symbol.st_type() == STT_OBJECT
            && symbol.st_size(endian) > 0
            && let Some(section) = symbols.symbol_section(endian, symbol, index)?
        {
            let section = sections.section_name(endian, sections.section(section)?)?;
            if section.starts_with(b".nv.global") || section == b".nv.constant3" {
                contents.variables.push(Variable {
                    name: text(),
                    size: Some(symbol.st_size(endian)),
                });
            }
        }
    }
    contents.variables.sort();
    Ok(contents)
}

/// Number and value of each attribute; the value is empty where it is in the header.
fn attributes(info: &[u8]) -> impl Iterator<Item = Result<(u8, &[u8]), ImageError>> {
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

fn describe(kernel: &mut Kernel, info: &[u8]) -> Result<(), ImageError> {
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
                parameters.push((u16_at(value, 4)?, Parameter { offset, size }));
                if parameters.len() > MAX_PARAMETERS {
                    return Err(ImageError::TooLarge {
                        size: parameters.len() as u64,
                    });
                }
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
