// SPDX-License-Identifier: MIT OR Apache-2.0
//! Damaged files.

use gpureplay_format::Section;
use gpureplay_format::checksum::{Checksum, checksum};
use gpureplay_format::layout::{Header, SECTIONS, SectionEntry};
use zerocopy::FromBytes;

use super::Mutant;
use crate::parts::Parts;

const HEADER: usize = size_of::<Header>();
const ENTRY: usize = size_of::<SectionEntry>();
const TABLE: usize = HEADER + SECTIONS * ENTRY;

fn seal(mut file: Vec<u8>) -> Vec<u8> {
    let mut head = file[..TABLE].to_vec();
    let at = std::mem::offset_of!(Header, checksum);
    head[at..at + 8].fill(0);
    let (header, table) = head.split_at(HEADER);
    let sum = Checksum::new().update(header).update(table).value();
    file[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    file
}

pub(super) fn mutants(parts: &Parts) -> Vec<Mutant> {
    let file = parts.file();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = file.clone();
        change(&mut changed);
        changed
    };
    let sealed = |change: &dyn Fn(&mut Vec<u8>)| seal(with(change));
    let major = std::mem::offset_of!(Header, major);
    let zero = std::mem::offset_of!(Header, zero);
    let count = std::mem::offset_of!(Header, section_count);
    let entry = |index: usize| HEADER + index * ENTRY;
    let of_family = |unused_cores: u32| {
        parts.changed(|parts| {
            (parts.platform.family, parts.platform.unused_cores) = (1, unused_cores);
        })
    };
    let last = file.len() - 1;
    let spoiled = |section: Section, change: &dyn Fn(&mut Vec<u8>)| {
        parts.changed(|parts| change(parts.section(section)))
    };
    let mut mutants = rows![
        "another kind of file", "format-magic" => with(&|f| f[0] = b'X');
        "empty file", "format-magic" => Vec::new();
        "cut inside the header", "format-magic" => file[..HEADER / 2].to_vec();
        "cut inside the table", "format-length" => file[..TABLE - 1].to_vec();
        "truncated by a byte", "format-length" => file[..last].to_vec();
        "truncated by half", "format-length" => file[..last / 2].to_vec();
        "a byte more", "format-length" => with(&|f| f.push(0));
        "version of the past", "format-version" => sealed(&|f| f[major] -= 1);
        "version of the future", "format-version" => sealed(&|f| f[major] += 1);
        "flipped bit in the header", "format-checksum" => with(&|f| f[24] ^= 1 << 7);
        "flipped bit in the table", "format-checksum" => with(&|f| f[TABLE - 1] ^= 1);
        "flipped bit in the first section", "format-checksum" => with(&|f| f[TABLE] ^= 1);
        "flipped bit at the end", "format-checksum" => with(&|f| f[last] ^= 0x80);
        "header field not zero", "format-zero" => sealed(&|f| f[zero] = 1);
        "GPU of another family", "family" => of_family(0);
        "unused cores of another family", "format-zero" => of_family(1);
        "a section too few", "format-table" => sealed(&|f| f[count] -= 1);
        "a section twice", "format-table" => sealed(&|f| { f.copy_within(entry(0)..entry(1), entry(1)); });
        "sections reordered", "format-table" => sealed(&|f| { f[entry(2)..entry(4)].rotate_left(ENTRY); });
        "sections overlap", "format-table" => sealed(&|f| f[entry(3) + 8] ^= 8);
        "section beyond the file", "format-length" => sealed(&|f| { f[entry(8) + 16..entry(8) + 24].fill(0x7f); });
        "section whose end wraps", "format-length" => sealed(&|f| { f[entry(8) + 16..entry(8) + 24].fill(0xff); });
        "table field not zero", "format-zero" => sealed(&|f| f[entry(4) + 4] = 1);
        "half an entry", "format-entry-size" => spoiled(Section::Actions, &|s| s.push(0));
        "name that does not end", "format-name" => spoiled(Section::Strings, &|s| s.truncate(s.len() - 1));
        "name with an escape sequence", "format-name" => spoiled(Section::Strings, &|s| s[0] = 0x1b);
    ];
    mutants.extend(padding(&file));
    mutants
}

/// Checksums are right; strings grow until there is padding.
fn padding(file: &[u8]) -> Option<Mutant> {
    let mut parts = Parts::of(file)?;
    let strings = parts.section(Section::Strings);
    while strings.len() % 8 != 1 {
        strings.extend(b"\0");
    }
    let mut file = parts.file();
    let at = HEADER + (usize::from(Section::Strings.code()) - 1) * ENTRY;
    let entry = SectionEntry::read_from_prefix(&file[at..]).ok()?.0;
    let (start, length) = (entry.offset.get() as usize, entry.length.get() as usize);
    let end = (start + length).next_multiple_of(8);
    file[end - 1] = 1;
    let sum = checksum(&file[start..end]);
    let field = at + std::mem::offset_of!(SectionEntry, checksum);
    file[field..field + 8].copy_from_slice(&sum.to_le_bytes());
    Some(Mutant::new(
        "filling that is not zero",
        "format-zero",
        seal(file),
    ))
}
