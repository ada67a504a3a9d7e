// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fields and layouts of descriptors.
//!
//! Descriptors are 32-bit little-endian words. `descriptors!` turns [`Field`]s into a type with getters and a
//! [`Layout`].

use core::fmt;

use crate::{Architecture, PixelFormat};

/// Meaning of a field's bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Number.
    Unsigned,
    /// Two's complement.
    Signed,
    /// Shown in hexadecimal.
    Hex,
    /// Flag.
    Bool,
    /// GPU virtual; 0 for none.
    Address,
    /// Without its low bits.
    ShiftedAddress(u32),
    /// Stored less one.
    MinusOne,
    /// Exponent of two.
    PowerOfTwo,
    /// 8 fraction bits.
    Fixed8,
    /// Signed, with 8 fraction bits.
    SignedFixed8,
    /// IEEE single.
    Float,
    /// One of these.
    Enum(&'static [(u32, &'static str)]),
    /// Four 3-bit selectors.
    Swizzle,
    /// A 22-bit pixel format.
    PixelFormat,
}

/// A descriptor's field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Field {
    /// Name in words.
    pub name: &'static str,
    /// First word.
    pub word: usize,
    /// Lowest bit in that word.
    pub bit: u32,
    /// 1 to 64; beyond `32 - bit` in the next word.
    pub width: u32,
    /// Kind.
    pub kind: Kind,
    /// Oldest architecture.
    pub since: Architecture,
}

impl Field {
    /// The bits as stored.
    #[inline]
    pub fn raw(&self, words: &[u32]) -> u64 {
        let word = |index: usize| u128::from(words.get(index).copied().unwrap_or(0));
        let bits = word(self.word) | word(self.word + 1) << 32 | word(self.word + 2) << 64;
        (bits >> self.bit) as u64 & (u64::MAX >> (64 - self.width))
    }

    /// Value, decoded by kind.
    #[inline]
    pub fn value(&self, words: &[u32]) -> u64 {
        let raw = self.raw(words);
        match self.kind {
            Kind::MinusOne => raw + 1,
            Kind::ShiftedAddress(shift) => raw << shift,
            Kind::PowerOfTwo => 1u64.checked_shl(raw as u32).unwrap_or(0),
            Kind::Signed | Kind::SignedFixed8 => {
                let unused = 64 - self.width;
                ((raw << unused) as i64 >> unused) as u64
            }
            _ => raw,
        }
    }

    /// Surplus bits are dropped.
    pub fn store(&self, words: &mut [u32], raw: u64) {
        let mask = u128::from(u64::MAX >> (64 - self.width)) << self.bit;
        let bits = u128::from(raw) << self.bit & mask;
        for (index, word) in words.iter_mut().skip(self.word).take(3).enumerate() {
            let shift = 32 * index as u32;
            *word = *word & !((mask >> shift) as u32) | (bits >> shift) as u32;
        }
    }

    /// Writes the value for people.
    pub fn format(&self, words: &[u32], f: &mut dyn fmt::Write) -> fmt::Result {
        let value = self.value(words);
        match self.kind {
            Kind::Unsigned | Kind::MinusOne | Kind::PowerOfTwo => write!(f, "{value}"),
            Kind::Signed => write!(f, "{}", value as i64),
            Kind::Hex | Kind::Address | Kind::ShiftedAddress(_) => write!(f, "{value:#x}"),
            Kind::Bool => write!(f, "{}", value != 0),
            Kind::Fixed8 => write!(f, "{}", value as f64 / 256.0),
            Kind::SignedFixed8 => write!(f, "{}", value as i64 as f64 / 256.0),
            Kind::Float => write!(f, "{}", f32::from_bits(value as u32)),
            Kind::Enum(names) => match names.iter().find(|(code, _)| u64::from(*code) == value) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "reserved value {value}"),
            },
            Kind::Swizzle => {
                for component in 0..4 {
                    let letter = ["R", "G", "B", "A", "0", "1", "?", "?"]
                        [(value >> (3 * component) & 7) as usize];
                    f.write_str(letter)?;
                }
                Ok(())
            }
            Kind::PixelFormat => write!(f, "{}", PixelFormat(value as u32)),
        }
    }
}

/// Shape of a descriptor.
#[derive(Debug)]
pub struct Layout {
    /// Name in words.
    pub name: &'static str,
    /// In 32-bit words.
    pub words: usize,
    /// By position.
    pub fields: &'static [Field],
}

impl Layout {
    /// By name; in constants, a wrong name does not compile.
    pub const fn find(&self, name: &str) -> Option<&Field> {
        let mut index = 0;
        while index < self.fields.len() {
            if is_same(self.fields[index].name, name) {
                return Some(&self.fields[index]);
            }
            index += 1;
        }
        None
    }

    /// Bytes to a field of whole words; `None`: no such field.
    pub const fn offset_of(&self, name: &str) -> Option<u64> {
        match self.find(name) {
            Some(Field {
                word,
                bit: 0,
                width: 32 | 64,
                ..
            }) => Some(4 * *word as u64),
            _ => None,
        }
    }
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut index = 0;
    while index < a.len() && index < b.len() && a[index] == b[index] {
        index += 1;
    }
    index == a.len() && index == b.len()
}

macro_rules! descriptors {
    ($(
        $(#[$doc:meta])*
        $type:ident = $title:literal, $words:literal words {
            $($(#[$field_doc:meta])* $field:ident = $name:literal, $word:literal : $bit:literal, $width:literal,
              $kind:expr $(, since $since:ident)?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $type {
            /// As in memory.
            pub words: [u32; $words],
        }

        impl $type {
            /// Fields and size.
            pub const LAYOUT: &'static $crate::field::Layout = &$crate::field::Layout {
                name: $title,
                words: $words,
                fields: &[$($crate::field::Field {
                    name: $name, word: $word, bit: $bit, width: $width, kind: $kind,
                    since: $crate::field::since!($($since)?),
                }),*],
            };

            /// In bytes.
            pub const SIZE: usize = 4 * $words;

            /// Descriptor from its bytes.
            #[inline]
            pub fn from_bytes(bytes: &[u8; 4 * $words]) -> Self {
                let mut words = [0; $words];
                for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
                    *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
                Self { words }
            }

            /// Its bytes as in memory.
            pub fn to_bytes(&self) -> [u8; 4 * $words] {
                let mut bytes = [0; 4 * $words];
                for (bytes, word) in bytes.chunks_exact_mut(4).zip(&self.words) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                bytes
            }

            /// With other bits in the field of this name; else unchanged.
            #[must_use]
            pub fn with(mut self, name: &str, raw: u64) -> Self {
                if let Some(field) = Self::LAYOUT.find(name) {
                    field.store(&mut self.words, raw);
                }
                self
            }

            $($(#[$field_doc])*
            #[doc = concat!($name, ": word ", $word, ", bit ", $bit, ", ", $width, " bits.")]
            #[inline]
            pub fn $field(&self) -> u64 {
                const FIELD: $crate::field::Field = $crate::field::Field {
                    name: $name, word: $word, bit: $bit, width: $width, kind: $kind,
                    since: $crate::Architecture::V6,
                };
                FIELD.value(&self.words)
            })*
        }
    )*};
}
pub(crate) use descriptors;

/// A constant per value, and names for [`Kind::Enum`].
macro_rules! encodings {
    ($($(#[$doc:meta])* $module:ident { $($name:ident = $value:literal, $text:literal;)* })*) => {$(
        $(#[$doc])*
        pub mod $module {
            $(#[doc = $text] pub const $name: u32 = $value;)*
            /// All values with their names.
            pub const NAMES: &[(u32, &str)] = &[$(($value, $text)),*];
        }
    )*};
}
pub(crate) use encodings;

macro_rules! since {
    () => {
        $crate::Architecture::V6
    };
    ($since:ident) => {
        $crate::Architecture::$since
    };
}
pub(crate) use since;

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;
    fn layouts() -> impl Iterator<Item = &'static &'static Layout> {
        crate::LAYOUTS.iter().chain(crate::valhall::LAYOUTS)
    }

    #[test]
    fn fields_lie_inside_and_do_not_overlap() {
        for layout in layouts() {
            let mut used = vec![false; layout.words * 32];
            for field in layout.fields {
                assert!(
                    (1..=64).contains(&field.width),
                    "{} {}",
                    layout.name,
                    field.name
                );
                let start = field.word * 32 + field.bit as usize;
                for bit in &mut used[start..start + field.width as usize] {
                    assert!(
                        !*bit,
                        "{}: {} overlaps another field",
                        layout.name, field.name
                    );
                    *bit = true;
                }
            }
        }
    }

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(crate::Draw::LAYOUT.offset_of("State"), Some(56));
        assert_eq!(
            crate::Draw::LAYOUT.offset_of("Four components per vertex"),
            None
        );
        assert_eq!(
            crate::JobHeader::LAYOUT
                .find("Type")
                .map(|f| (f.bit, f.width)),
            Some((1, 7))
        );
        assert!(
            crate::Draw::LAYOUT.find("Stat").is_none()
                && crate::Draw::LAYOUT.find("States").is_none()
        );
        for layout in layouts() {
            for (index, field) in layout.fields.iter().enumerate() {
                assert_eq!(
                    layout.find(field.name),
                    Some(&layout.fields[index]),
                    "{}: two fields {}",
                    layout.name,
                    field.name
                );
            }
        }
    }

    #[test]
    fn every_field_holds_what_is_stored_and_nothing_else_changes() {
        for layout in layouts() {
            for field in layout.fields {
                for (background, raw) in [
                    (0, u64::MAX),
                    (u32::MAX, 0),
                    (0x5a5a_5a5a, 0x1234_5678_9abc_def1),
                ] {
                    let mut words = vec![background; layout.words];
                    field.store(&mut words, raw);
                    let kept = raw & (u64::MAX >> (64 - field.width));
                    assert_eq!(field.raw(&words), kept, "{} {}", layout.name, field.name);
                    field.store(&mut words, field.raw(&vec![background; layout.words]));
                    assert!(
                        words.iter().all(|word| *word == background),
                        "{}",
                        field.name
                    );
                }
            }
        }
        let header = crate::JobHeader { words: [7; 8] }.with("Next", 0x1_2345_6780);
        assert_eq!((header.next(), header.words[5]), (0x1_2345_6780, 7));
        assert_eq!(crate::JobHeader::from_bytes(&header.to_bytes()), header);
    }

    #[test]
    fn values_are_decoded_by_kind() {
        let field = |word, bit, width, kind| Field {
            name: "",
            word,
            bit,
            width,
            kind,
            since: Architecture::V6,
        };
        let words = [0x8000_0001, 0xffff_ffff, 0x0000_00f0];
        for (field, value) in [
            (field(0, 0, 1, Kind::Bool), 1),
            (field(0, 31, 33, Kind::Hex), 0x1_ffff_ffff),
            (field(1, 4, 36, Kind::Unsigned), 0xf_0fff_ffff),
            (field(2, 4, 4, Kind::MinusOne), 16),
            (field(2, 4, 4, Kind::Signed), u64::MAX),
            (field(2, 4, 2, Kind::PowerOfTwo), 8),
            (field(2, 4, 4, Kind::ShiftedAddress(6)), 15 << 6),
            (field(9, 0, 32, Kind::Hex), 0),
        ] {
            assert_eq!(field.value(&words), value, "{field:?}");
        }
    }
}
