// SPDX-License-Identifier: MIT OR Apache-2.0
//! A cubin without some kernels; the rest moves together.
//!
//! Symbols keep their numbers, which attributes and relocations use; removed ones become empty.

use std::collections::{HashMap, HashSet};

use object::elf::{SHT_NOBITS, SHT_NULL, SHT_REL, SHT_RELA, SHT_SYMTAB, STT_FUNC};

use crate::image::ImageError;
use crate::image::bytes::{range, size, u16_at, u32_at, u64_at};
use crate::image::cubin::{KERNEL, attributes};

const KERNEL_SECTIONS: [&[u8]; 13] = [
    b".text.",
    b".nv.info.",
    b".nv.constant0.",
    b".nv.constant2.",
    b".nv.constant3.",
    b".nv.shared.",
    b".nv.local.",
    b".rel.text.",
    b".rela.text.",
    b".rel.nv.constant0.",
    b".rela.nv.constant0.",
    b".rel.nv.constant2.",
    b".rela.nv.constant2.",
];
/// Prefixes of sections whose `sh_info` is a section's number; older cubins lack the flag.
const LINKED: [&[u8]; 6] = [
    b".nv.info.",
    b".nv.constant0.",
    b".nv.constant2.",
    b".nv.constant3.",
    b".nv.shared.",
    b".nv.local.",
];
/// Attributes of all kernels (stack sizes, registers): values begin with a symbol's number.
const OF_SYMBOLS: [u8; 4] = [0x11, 0x12, 0x23, 0x2f];
/// In bytes, of headers and a symbol.
const FILE: usize = 64;
const SECTION: usize = 64;
const SEGMENT: usize = 56;
const SYMBOL: usize = 24;
const SHN_LORESERVE: u16 = 0xff00;
const SHF_ALLOC: u64 = 2;
const SHF_WRITE: u64 = 1;
const SHF_EXECINSTR: u64 = 4;
const SHF_INFO_LINK: u64 = 0x40;
const PT_PHDR: u32 = 6;

struct Section<'a> {
    name: &'a [u8],
    kind: u32,
    flags: u64,
    offset: usize,
    size: usize,
    link: usize,
    info: u32,
    align: usize,
    head: &'a [u8],
    bytes: Vec<u8>,
}

fn text(bytes: &[u8], offset: usize) -> Result<&[u8], ImageError> {
    let rest = bytes.get(offset..).ok_or(ImageError::CutOff { offset })?;
    let end = rest.iter().position(|byte| *byte == 0);
    Ok(&rest[..end.ok_or(ImageError::CutOff { offset })?])
}

fn sections(cubin: &[u8]) -> Result<Vec<Section<'_>>, ImageError> {
    let (table, count) = (size(u64_at(cubin, 40)?)?, usize::from(u16_at(cubin, 60)?));
    let head = |number: usize| range(cubin, table + number * SECTION, SECTION);
    let names = head(usize::from(u16_at(cubin, 62)?))?;
    let names = range(cubin, size(u64_at(names, 24)?)?, size(u64_at(names, 32)?)?)?;
    let mut all = Vec::with_capacity(count);
    for number in 0..count {
        let head = head(number)?;
        let kind = u32_at(head, 4)?;
        let (offset, length) = (size(u64_at(head, 24)?)?, size(u64_at(head, 32)?)?);
        let is_there = ![SHT_NULL, SHT_NOBITS].map(|kind| kind.0).contains(&kind);
        let bytes = if is_there { length } else { 0 };
        all.push(Section {
            name: text(names, u32_at(head, 0)? as usize)?,
            kind,
            flags: u64_at(head, 8)?,
            offset,
            size: length,
            link: u32_at(head, 40)? as usize,
            info: u32_at(head, 44)?,
            align: size(u64_at(head, 48)?)?.clamp(1, 1 << 12),
            head,
            bytes: range(cubin, if is_there { offset } else { 0 }, bytes)?.to_vec(),
        });
    }
    Ok(all)
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) -> Result<(), ImageError> {
    let place = bytes.get_mut(at..at + value.len());
    place
        .ok_or(ImageError::CutOff { offset: at })?
        .copy_from_slice(value);
    Ok(())
}

/// Removes other kernels; other functions and all variables stay.
pub(super) fn cut(cubin: &[u8], kernels: &HashSet<&str>) -> Result<Vec<u8>, ImageError> {
    let mut sections = sections(cubin)?;
    let damaged = ImageError::Header { offset: 0 };
    let table = sections.iter().position(|one| one.kind == SHT_SYMTAB.0);
    let table = table.ok_or(damaged.clone())?;
    let names = sections[table].link;
    let texts = sections.get(names).ok_or(damaged.clone())?.bytes.clone();
    let symbols = sections[table].bytes.clone();
    let symbols: Vec<&[u8]> = symbols.chunks_exact(SYMBOL).collect();
    let mut others = HashSet::new();
    for symbol in &symbols {
        if symbol[4] & 15 == STT_FUNC.0 && symbol[5] & KERNEL != 0 {
            let name = text(&texts, u32_at(symbol, 0)? as usize)?;
            if !std::str::from_utf8(name).is_ok_and(|name| kernels.contains(name)) {
                others.insert(name);
            }
        }
    }
    let goes = |section: &Section<'_>| {
        let owner = KERNEL_SECTIONS
            .iter()
            .find_map(|begin| section.name.strip_prefix(*begin));
        owner.is_some_and(|owner| others.contains(owner))
            || section.name.starts_with(b".debug")
            || section.name.starts_with(b".rel.debug")
            || section.name.starts_with(b".rela.debug")
    };
    let gone: Vec<bool> = sections.iter().map(goes).collect();
    let mut numbers = vec![0u16; sections.len()];
    let mut next = 0;
    for (number, gone) in numbers.iter_mut().zip(&gone) {
        if !gone {
            *number = next;
            next += 1;
        }
    }
    let moved = |number: usize| numbers.get(number).copied().unwrap_or(0);

    let mut dead = HashSet::new();
    let mut table_bytes = std::mem::take(&mut sections[table].bytes);
    let mut used = vec![false; texts.len()];
    for (number, symbol) in symbols.iter().enumerate() {
        let section = u16_at(symbol, 6)?;
        let at = number * SYMBOL;
        if (1..SHN_LORESERVE).contains(&section) {
            if gone.get(usize::from(section)).copied().unwrap_or(true) {
                dead.insert(u32::try_from(number).unwrap_or(u32::MAX));
                let mut empty = [0; SYMBOL];
                empty[5] = 1;
                put(&mut table_bytes, at, &empty)?;
                continue;
            }
            put(
                &mut table_bytes,
                at + 6,
                &moved(usize::from(section)).to_le_bytes(),
            )?;
        }
        let name = u32_at(symbol, 0)? as usize;
        let end = name + text(&texts, name)?.len();
        used[name..=end].fill(true);
    }
    sections[table].bytes = table_bytes;
    if names != usize::from(u16_at(cubin, 62)?) {
        let kept = texts.iter().zip(used);
        sections[names].bytes = kept
            .map(|(byte, used)| if used { *byte } else { 0 })
            .collect();
    }
    for section in &mut sections {
        let bytes = &section.bytes;
        match section.kind {
            kind if kind == SHT_RELA.0 => section.bytes = without_dead(bytes, 24, 12, &dead)?,
            kind if kind == SHT_REL.0 => section.bytes = without_dead(bytes, 16, 12, &dead)?,
            _ if section.name == b".nv.info" => section.bytes = described(bytes, &dead)?,
            _ if section.name == b".nv.callgraph" => {
                let callers = without_dead(bytes, 8, 0, &dead)?;
                section.bytes = without_dead(&callers, 8, 4, &dead)?;
            }
            _ => {}
        }
    }
    written(cubin, &sections, &gone, moved)
}

fn without_dead(
    bytes: &[u8],
    entry: usize,
    number_at: usize,
    dead: &HashSet<u32>,
) -> Result<Vec<u8>, ImageError> {
    let mut kept = Vec::with_capacity(bytes.len());
    for entry in bytes.chunks_exact(entry) {
        if !dead.contains(&u32_at(entry, number_at)?) {
            kept.extend(entry);
        }
    }
    Ok(kept)
}

fn described(info: &[u8], dead: &HashSet<u32>) -> Result<Vec<u8>, ImageError> {
    let mut kept = Vec::with_capacity(info.len());
    let mut at = 0;
    for attribute in attributes(info) {
        let (number, value) = attribute?;
        let end = at + 4 + value.len();
        let of_dead =
            OF_SYMBOLS.contains(&number) && value.len() >= 4 && dead.contains(&u32_at(value, 0)?);
        if !of_dead {
            kept.extend(range(info, at, end - at)?);
        }
        at = end;
    }
    Ok(kept)
}

fn written(
    cubin: &[u8],
    sections: &[Section<'_>],
    gone: &[bool],
    moved: impl Fn(usize) -> u16,
) -> Result<Vec<u8>, ImageError> {
    let mut out = range(cubin, 0, FILE)?.to_vec();
    let mut heads = Vec::new();
    let mut places = HashMap::new();
    let staying = sections
        .iter()
        .enumerate()
        .filter(|(number, _)| !gone[*number]);
    for (number, section) in staying {
        let mut head = section.head.to_vec();
        out.resize(out.len().next_multiple_of(section.align), 0);
        places.insert(number, out.len());
        let is_linked = section.kind != SHT_SYMTAB.0
            && (section.kind == SHT_REL.0
                || section.kind == SHT_RELA.0
                || section.flags & SHF_INFO_LINK != 0
                || LINKED.iter().any(|begin| section.name.starts_with(begin)));
        if section.kind != SHT_NULL.0 {
            put(&mut head, 24, &(out.len() as u64).to_le_bytes())?;
            if section.kind != SHT_NOBITS.0 {
                put(&mut head, 32, &(section.bytes.len() as u64).to_le_bytes())?;
            }
        }
        put(&mut head, 40, &u32::from(moved(section.link)).to_le_bytes())?;
        if is_linked {
            let to = u32::from(moved(section.info as usize));
            put(&mut head, 44, &to.to_le_bytes())?;
        }
        out.extend(&section.bytes);
        heads.push(head);
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let (table, count) = (out.len(), heads.len());
    out.extend(heads.concat());
    let (old, segments) = (size(u64_at(cubin, 32)?)?, usize::from(u16_at(cubin, 56)?));
    let new = out.len();
    for number in 0..segments {
        let mut head = range(cubin, old + number * SEGMENT, SEGMENT)?.to_vec();
        let (offset, length) = (size(u64_at(&head, 8)?)?, size(u64_at(&head, 32)?)?);
        let whole = segments * SEGMENT;
        let [begin, in_file, in_memory] = if u32_at(&head, 0)? == PT_PHDR || offset == old {
            [new, whole, whole]
        } else {
            let flags = u32_at(&head, 4)?;
            let inside = |(number, _): &(&usize, &usize)| {
                let section = &sections[**number];
                (offset..=offset + length).contains(&section.offset)
                    && section.flags & SHF_ALLOC != 0
                    && section.size > 0
                    && (section.flags & SHF_EXECINSTR != 0) == (flags & 1 != 0)
                    && (section.flags & SHF_WRITE != 0) == (flags & 2 != 0)
            };
            let inside: Vec<_> = places.iter().filter(inside).collect();
            match inside.iter().map(|(_, place)| **place).min() {
                None => [new, 0, 0],
                Some(begin) => {
                    let ends = inside
                        .iter()
                        .map(|(number, place)| **place + sections[**number].bytes.len());
                    let end = ends.max().unwrap_or(begin);
                    let rest = inside.iter().map(|(number, _)| &sections[**number]);
                    let rest = rest.filter(|section| section.kind == SHT_NOBITS.0);
                    let rest: usize = rest.map(|section| section.size).sum();
                    [begin, end - begin, end - begin + rest]
                }
            }
        };
        for (at, value) in [(8, begin), (32, in_file), (40, in_memory)] {
            put(&mut head, at, &(value as u64).to_le_bytes())?;
        }
        out.extend(head);
    }
    put(
        &mut out,
        32,
        &(if segments > 0 { new as u64 } else { 0 }).to_le_bytes(),
    )?;
    put(&mut out, 40, &(table as u64).to_le_bytes())?;
    put(
        &mut out,
        60,
        &u16::try_from(count).unwrap_or(0).to_le_bytes(),
    )?;
    let names = usize::from(u16_at(cubin, 62)?);
    put(&mut out, 62, &moved(names).to_le_bytes())?;
    Ok(out)
}
