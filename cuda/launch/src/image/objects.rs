// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether kernels use textures or surfaces, whose handles look like numbers.
//!
//! Operation codes: `nvdisasm` for sm_75 to sm_120.

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};

use crate::image::{ImageError, MemberKind, parts_for};

/// Bytes, since sm_70.
const INSTRUCTION: usize = 16;
/// In the first word; other bits place operands.
const OPERATION: u16 = 0x1ff;
/// TEX, TLD4, TLD, TXD: handle in a uniform register or constant, and in a register.
const TEXTURES: [u16; 8] = [0x160, 0x161, 0x163, 0x164, 0x166, 0x167, 0x16c, 0x16d];
/// SULD, SUST.
const SURFACES: [u16; 4] = [0x199, 0x19a, 0x19d, 0x19e];

/// What a kernel's code uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// It reads textures.
    pub textures: bool,
    /// It reads or writes surfaces.
    pub surfaces: bool,
}

/// What the code from [`select`](crate::image::select) uses, without called functions; from sm_70.
///
/// # Errors
/// As [`select`](crate::image::select).
pub fn objects(image: &[u8], kernel: &str, capability: u32) -> Result<Objects, ImageError> {
    for part in parts_for(image, capability)? {
        let bytes = part.bytes()?;
        let found = match part.kind {
            MemberKind::Cubin => of_code(&bytes, kernel)?,
            MemberKind::Ptx => of_text(&bytes, kernel),
            MemberKind::Other => None,
        };
        if let Some(found) = found {
            return Ok(found);
        }
    }
    Ok(Objects::default())
}

fn of_code(cubin: &[u8], kernel: &str) -> Result<Option<Objects>, ImageError> {
    let endian = LittleEndian;
    let header = FileHeader64::<LittleEndian>::parse(cubin)?;
    let sections = header.sections(endian, cubin)?;
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
        if name.strip_prefix(b".text.") != Some(kernel.as_bytes()) {
            continue;
        }
        let instructions = section.data(endian, cubin)?.as_chunks::<INSTRUCTION>().0;
        let uses = |codes: &[u16]| {
            instructions.iter().any(|instruction| {
                codes.contains(&(u16::from_le_bytes([instruction[0], instruction[1]]) & OPERATION))
            })
        };
        return Ok(Some(Objects {
            textures: uses(&TEXTURES),
            surfaces: uses(&SURFACES),
        }));
    }
    Ok(None)
}

fn of_text(text: &[u8], kernel: &str) -> Option<Objects> {
    let text = String::from_utf8_lossy(text);
    let mut entries = text.split(".entry");
    entries.next();
    let body = entries.find_map(|entry| {
        let rest = entry.trim_start().strip_prefix(kernel)?;
        rest.starts_with([' ', '\t', '\r', '\n', '(', '{'])
            .then_some(rest)
    })?;
    let uses = |operations: &[&str]| {
        body.split_whitespace().any(|word| {
            operations
                .iter()
                .any(|operation| word.starts_with(operation))
        })
    };
    Some(Objects {
        textures: uses(&["tex.", "tld4."]),
        surfaces: uses(&["suld.", "sust.", "sured."]),
    })
}

#[cfg(test)]
mod tests {
    use super::{Objects, of_text};

    #[test]
    fn texts_are_looked_at_kernel_by_kernel() {
        let text = b".version 8.0\n.visible .entry one(\n.param .u64 p)\n{\n\ttex.1d.v4.f32.s32 {%f1}, [%rd1, {%r1}];\n ret;\n}\n\
            .visible .entry one_more() { ret; }\n.visible .entry two() {\n@%p1 sust.b.1d.b32.trap [%rd2, {%r1}], {%r2};\n}";
        let found = |kernel| of_text(text, kernel).map(|found| (found.textures, found.surfaces));
        assert_eq!(found("one"), Some((true, false)));
        assert_eq!(found("one_more"), Some((false, false)));
        assert_eq!(found("two"), Some((false, true)));
        assert_eq!(found("on"), None);
        assert_eq!(of_text(b"", "one"), None::<Objects>);
    }
}
