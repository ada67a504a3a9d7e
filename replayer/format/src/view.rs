// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checked, zero-copy view of a recording.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::action::{Actions, Cursor};
use crate::checksum::{Checksum, checksum};
use crate::codes::{ElementType, Opcode, Section};
use crate::layout::{
    ActionEntry, AxisEntry, FAMILY_MALI, Header, IdentityCheck, MAGIC, MAJOR, PieceEntry, Region,
    SECTIONS, SectionEntry, Segment, TensorEntry,
};

/// Why a file is not a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Where.
    pub section: Section,
    /// What.
    pub fault: Fault,
}

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No magic number.
    NotARecording,
    /// Another major version.
    Version(u16),
    /// Too short or too long.
    Length,
    /// Missing, repeated, out of order, overlapping or with holes.
    Table,
    /// A field or byte must be zero.
    NotZero,
    /// Changed bytes.
    Checksum,
    /// No multiple of the entry size.
    EntrySize,
    /// Not ended, or not printable ASCII.
    Name,
}

/// Recording with correct checksums.
#[derive(Clone, Copy, Debug)]
pub struct Recording<'a> {
    header: &'a Header,
    identity: &'a [IdentityCheck],
    regions: &'a [Region],
    segments: &'a [Segment],
    actions: &'a [ActionEntry],
    tensors: &'a [TensorEntry],
    pieces: &'a [PieceEntry],
    axes: &'a [AxisEntry],
    strings: &'a [u8],
    data: &'a [u8],
}

const fn error(section: Section, fault: Fault) -> ParseError {
    ParseError { section, fault }
}

/// `section` has checked that the bytes are whole entries.
fn entries<'a, T: FromBytes + KnownLayout + Immutable + Unaligned>(
    sections: &Sections<'a>,
    section: Section,
) -> &'a [T] {
    let bytes = sections[section.code() as usize - 1];
    <[T]>::ref_from_bytes(bytes).unwrap_or(&[])
}

type Sections<'a> = [&'a [u8]; SECTIONS];

const ENTRY_SIZES: [u8; SECTIONS] = [
    size_of::<IdentityCheck>() as u8,
    size_of::<Region>() as u8,
    size_of::<Segment>() as u8,
    size_of::<ActionEntry>() as u8,
    size_of::<TensorEntry>() as u8,
    size_of::<PieceEntry>() as u8,
    size_of::<AxisEntry>() as u8,
    1,
    1,
];

fn table(bytes: &[u8]) -> Result<(&Header, &[SectionEntry; SECTIONS]), Fault> {
    let (header, rest) = Header::ref_from_prefix(bytes).map_err(|_| Fault::NotARecording)?;
    if header.magic != MAGIC {
        return Err(Fault::NotARecording);
    }
    if header.major.get() != MAJOR {
        return Err(Fault::Version(header.major.get()));
    }
    let (table, _) =
        <[SectionEntry; SECTIONS]>::ref_from_prefix(rest).map_err(|_| Fault::Length)?;
    if header.file_length.get() != bytes.len() as u64 {
        return Err(Fault::Length);
    }
    let mut unsummed = *header;
    unsummed.checksum.set(0);
    let sum = Checksum::new()
        .update(unsummed.as_bytes())
        .update(table.as_bytes())
        .value();
    if sum != header.checksum.get() {
        return Err(Fault::Checksum);
    }
    if header.section_count.get() as usize != SECTIONS {
        return Err(Fault::Table);
    }
    let for_mali = header.family.get() == FAMILY_MALI || header.unused_cores.get() == 0;
    if header.zero != [0; 18] || !for_mali {
        return Err(Fault::NotZero);
    }
    Ok((header, table))
}

fn section<'a>(
    bytes: &'a [u8],
    start: usize,
    entry: &SectionEntry,
    kind: Section,
) -> Result<&'a [u8], Fault> {
    if entry.kind.get() != kind.code().into() || entry.offset.get() != start as u64 {
        return Err(Fault::Table);
    }
    let length = usize::try_from(entry.length.get()).map_err(|_| Fault::Length)?;
    let padded = length.checked_next_multiple_of(8).ok_or(Fault::Length)?;
    let whole = bytes
        .get(start..)
        .and_then(|rest| rest.get(..padded))
        .ok_or(Fault::Length)?;
    if checksum(whole) != entry.checksum.get() {
        return Err(Fault::Checksum);
    }
    let (body, padding) = whole.split_at_checked(length).ok_or(Fault::Length)?;
    if entry.zero.get() != 0 || padding.iter().any(|&byte| byte != 0) {
        return Err(Fault::NotZero);
    }
    let size = ENTRY_SIZES
        .get(usize::from(kind.code()).wrapping_sub(1))
        .copied()
        .unwrap_or(1);
    if !length.is_multiple_of(size.into()) {
        return Err(Fault::EntrySize);
    }
    if kind == Section::Strings && !names_are_sound(body) {
        return Err(Fault::Name);
    }
    Ok(body)
}

fn names_are_sound(strings: &[u8]) -> bool {
    strings.last().is_none_or(|&byte| byte == 0)
        && strings
            .iter()
            .all(|&byte| byte == 0 || byte.is_ascii_graphic())
}

impl<'a> Recording<'a> {
    /// Finds the sections.
    ///
    /// # Errors
    /// The first damaged section. Every change of a single byte is found.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (header, table) = table(bytes).map_err(|fault| error(Section::Header, fault))?;
        let mut sections = [&[][..]; SECTIONS];
        let mut end = size_of::<Header>() + size_of_val(table);
        for ((entry, found), &kind) in table.iter().zip(&mut sections).zip(&Section::ALL[1..]) {
            *found = section(bytes, end, entry, kind).map_err(|fault| error(kind, fault))?;
            end += found.len().next_multiple_of(8);
        }
        if end != bytes.len() {
            return Err(error(Section::Data, Fault::Length));
        }
        Ok(Self {
            header,
            identity: entries(&sections, Section::Identity),
            regions: entries(&sections, Section::Regions),
            segments: entries(&sections, Section::Segments),
            actions: entries(&sections, Section::Actions),
            tensors: entries(&sections, Section::Tensors),
            pieces: entries(&sections, Section::Pieces),
            axes: entries(&sections, Section::Axes),
            strings: sections[Section::Strings.code() as usize - 1],
            data: sections[Section::Data.code() as usize - 1],
        })
    }

    /// File's header.
    pub const fn header(&self) -> &'a Header {
        self.header
    }

    /// Identity of the recorded GPU: [`Header::gpu_id`].
    pub const fn gpu_id(&self) -> u32 {
        self.header.gpu_id.get()
    }

    /// What the replay's GPU must be.
    pub const fn identity(&self) -> &'a [IdentityCheck] {
        self.identity
    }

    /// GPU memory.
    pub const fn regions(&self) -> &'a [Region] {
        self.regions
    }

    /// Parts of the program.
    pub const fn segments(&self) -> &'a [Segment] {
        self.segments
    }

    /// Entries of all actions; see [`Self::segment_actions`].
    pub const fn action_entries(&self) -> &'a [ActionEntry] {
        self.actions
    }

    /// Named arrays.
    pub const fn tensors(&self) -> &'a [TensorEntry] {
        self.tensors
    }

    /// Pieces of all tensors; see [`Self::pieces`].
    pub const fn piece_entries(&self) -> &'a [PieceEntry] {
        self.pieces
    }

    /// Axes of all pieces; see [`Self::axes`].
    pub const fn axis_entries(&self) -> &'a [AxisEntry] {
        self.axes
    }

    /// Section `data`.
    pub const fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Actions of a segment with named operands.
    pub fn segment_actions(&self, segment: &Segment) -> Actions<'a> {
        Actions::new(self.segment_entries(segment), self.cursor(segment))
    }

    /// A segment's actions; empty if outside the section `actions`.
    pub fn segment_entries(&self, segment: &Segment) -> &'a [ActionEntry] {
        range(
            self.actions,
            segment.first_action.get(),
            segment.actions.get(),
        )
        .unwrap_or(&[])
    }

    /// Actions with an opcode: submits are chains, rearms are jobs.
    pub fn count(&self, segment: &Segment, opcode: Opcode) -> u32 {
        let entries = self.segment_entries(segment).iter();
        entries.filter(|entry| entry.op == opcode.code()).count() as u32
    }

    /// Place of a segment's first upload.
    pub const fn cursor(&self, segment: &Segment) -> Cursor<'a> {
        Cursor::new(self.data, segment.data.get())
    }

    /// A tensor's pieces; `None` if outside the section `pieces`.
    pub fn pieces(&self, tensor: &TensorEntry) -> Option<&'a [PieceEntry]> {
        range(self.pieces, tensor.first_piece.get(), tensor.pieces.get())
    }

    /// A piece's axes; `None` if outside the section `axes`.
    pub fn axes(&self, piece: &PieceEntry) -> Option<&'a [AxisEntry]> {
        range(self.axes, piece.first_axis.get(), piece.axes.get())
    }

    /// Slowest dimension first.
    pub fn shape(&self, tensor: &'a TensorEntry) -> &'a [zerocopy::little_endian::U32] {
        tensor
            .shape
            .get(..tensor.rank.into())
            .unwrap_or(&tensor.shape)
    }

    /// Bytes in C order; `None` for an unknown type or more than 32 bits.
    pub fn tensor_bytes(&self, tensor: &TensorEntry) -> Option<u32> {
        let element = ElementType::from_code(tensor.element.into())?;
        let mut bytes = u64::from(element.size());
        for extent in tensor.shape.iter().take(tensor.rank.into()) {
            bytes = u64::from(extent.get()).wrapping_mul(bytes);
            if bytes > u32::MAX.into() {
                return None;
            }
        }
        Some(bytes as u32)
    }

    /// Names, each ended by a zero byte.
    pub const fn strings(&self) -> &'a [u8] {
        self.strings
    }

    /// Whether there is a non-empty name.
    pub fn has_name(&self, offset: u32) -> bool {
        self.strings
            .get(offset as usize)
            .is_some_and(|&byte| byte != 0)
    }

    /// `None` outside the section `strings`.
    pub fn name_bytes(&self, offset: u32) -> Option<&'a [u8]> {
        let rest = self.strings.get(usize::try_from(offset).ok()?..)?;
        rest.split(|&byte| byte == 0)
            .next()
            .filter(|_| !rest.is_empty())
    }

    /// `""` outside the section `strings`.
    pub fn name(&self, offset: u32) -> &'a str {
        self.name_bytes(offset)
            .and_then(|name| core::str::from_utf8(name).ok())
            .unwrap_or("")
    }

    /// Index and entry of a named tensor.
    pub fn tensor_named(&self, name: &str) -> Option<(u32, &'a TensorEntry)> {
        (0u32..)
            .zip(self.tensors)
            .find(|(_, tensor)| self.name_bytes(tensor.name.get()) == Some(name.as_bytes()))
    }

    /// The region that has all of `va .. va + length`.
    pub fn region_of(&self, va: u64, length: u64) -> Option<&'a Region> {
        let end = va.checked_add(length)?;
        let after = self.regions.partition_point(|region| region.va.get() <= va);
        let region = self.regions.get(after.checked_sub(1)?)?;
        (end <= region.end()).then_some(region)
    }
}

impl Region {
    /// Size in bytes.
    pub const fn bytes(&self) -> u64 {
        self.pages.get() as u64 * crate::PAGE_SIZE as u64
    }

    /// First address after it (saturating).
    pub const fn end(&self) -> u64 {
        self.va.get().saturating_add(self.bytes())
    }
}

fn range<T>(table: &[T], first: u32, count: u32) -> Option<&[T]> {
    let first = usize::try_from(first).ok()?;
    table.get(first..)?.get(..usize::try_from(count).ok()?)
}
