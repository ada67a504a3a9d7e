// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cubin with only some of its kernels: the code of the others becomes zero, and compresses to nothing. Places of sections stay.

use std::cmp::Reverse;
use std::collections::HashSet;

use object::LittleEndian;
use object::elf::{FileHeader64, SHT_NOBITS, STT_FUNC};
use object::read::elf::{FileHeader, SectionHeader, Sym};

use crate::image::cubin::KERNEL;
use crate::image::{ImageError, MemberKind, usable};

/// What the section of a kernel's code begins with; its name follows.
const CODE: &[u8] = b".text.";

/// The cubin that the driver takes from an image for some kernels on a GPU of a compute capability (`sm_90`: 90), without the code of
/// all other kernels. Nothing if the kernels lie in several parts, or in a PTX text.
///
/// # Errors
/// If a part that was looked at is damaged.
pub fn reduced(
    image: &[u8],
    kernels: &HashSet<&str>,
    capability: u32,
) -> Result<Option<Vec<u8>>, ImageError> {
    let mut parts = usable(image, capability)?;
    parts.sort_by_key(|part| (part.kind != MemberKind::Cubin, Reverse(part.capability)));
    for part in parts {
        let contents = part.contents()?;
        let found = contents.kernels.iter().map(|kernel| &*kernel.name);
        let found = found.filter(|name| kernels.contains(name)).count();
        if found > 0 {
            let is_whole = found == kernels.len() && part.kind == MemberKind::Cubin;
            return match is_whole {
                true => without_others(part.bytes()?.into_owned(), kernels).map(Some),
                false => Ok(None),
            };
        }
    }
    Ok(None)
}

fn without_others(mut cubin: Vec<u8>, kernels: &HashSet<&str>) -> Result<Vec<u8>, ImageError> {
    let endian = LittleEndian;
    let mut zeros = Vec::new();
    {
        let header = FileHeader64::<LittleEndian>::parse(cubin.as_slice())?;
        let sections = header.sections(endian, cubin.as_slice())?;
        let symbols = sections.symbols(endian, cubin.as_slice(), object::elf::SHT_SYMTAB)?;
        let mut others: HashSet<&[u8]> = HashSet::new();
        for symbol in symbols.iter() {
            if symbol.st_type() == STT_FUNC && symbol.st_other().0 & KERNEL != 0 {
                let name = symbol.name(endian, symbols.strings())?;
                if !std::str::from_utf8(name).is_ok_and(|name| kernels.contains(name)) {
                    others.insert(name);
                }
            }
        }
        for section in sections.iter() {
            let name = sections.section_name(endian, section)?;
            let kernel = name.strip_prefix(CODE);
            if kernel.is_some_and(|kernel| others.contains(kernel))
                && section.sh_type(endian) != SHT_NOBITS
            {
                let begin = usize::try_from(section.sh_offset(endian)).unwrap_or(usize::MAX);
                let size = usize::try_from(section.sh_size(endian)).unwrap_or(usize::MAX);
                zeros.push(begin..begin.saturating_add(size));
            }
        }
    }
    for range in zeros {
        if let Some(bytes) = cubin.get_mut(range) {
            bytes.fill(0);
        }
    }
    Ok(cubin)
}
