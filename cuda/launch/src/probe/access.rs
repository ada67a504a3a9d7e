// SPDX-License-Identifier: MIT OR Apache-2.0
//! Instructions that access memory.

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Both at once.
    Atomic,
}

impl Kind {
    /// One word for reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic",
        }
    }

    /// Number that probes get.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Load => 0,
            Self::Store => 1,
            Self::Atomic => 2,
        }
    }
}

/// The memory that an access names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Of the device.
    Global,
    /// Of the block.
    Shared,
    /// The address decides.
    Generic,
}

impl Space {
    /// One word for reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Shared => "shared",
            Self::Generic => "generic",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access<'a> {
    pub(super) kind: Kind,
    pub(super) space: Space,
    pub(super) bytes: u32,
    /// Register, variable or number.
    pub(super) base: &'a str,
    /// Added bytes, as written.
    pub(super) offset: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    Access(Access<'a>),
    /// Not followed: its name.
    LeftOut(&'a str),
    /// Ignored (parameters, constants, the stack), or none.
    Nothing,
}

const LEFT_OUT: [&str; 18] = [
    "cp.async",
    "cp.reduce",
    "ldmatrix",
    "stmatrix",
    "wmma.load",
    "wmma.store",
    "wgmma.mma_async",
    "mbarrier",
    "multimem",
    "tex.",
    "tld4.",
    "tensormap.",
    "clusterlaunchcontrol.",
    "suld",
    "sust",
    "sured",
    "tcgen05",
    "st.async",
];

pub(super) fn predicate(instruction: &str) -> (Option<&str>, &str) {
    let Some(rest) = instruction.strip_prefix('@') else {
        return (None, instruction);
    };
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    (Some(&rest[..end]), rest[end..].trim_start())
}

pub(super) fn name(instruction: &str) -> &str {
    let end = instruction.find(|c: char| c.is_whitespace() || matches!(c, '{' | '['));
    &instruction[..end.unwrap_or(instruction.len())]
}

pub(super) fn access(instruction: &str) -> Found<'_> {
    let whole = name(instruction);
    if let Some(known) = LEFT_OUT.iter().find(|known| whole.starts_with(**known)) {
        return Found::LeftOut(known.trim_end_matches('.'));
    }
    let mut words = whole.split('.');
    let kind = match words.next() {
        Some("ld" | "ldu") => Kind::Load,
        Some("st") => Kind::Store,
        Some("atom" | "red") => Kind::Atomic,
        _ => return Found::Nothing,
    };
    let mut space = Space::Generic;
    let (mut bits, mut count) = (0, 1);
    for word in words {
        match word {
            "global" => space = Space::Global,
            "shared" | "shared::cta" => space = Space::Shared,
            // Another block's memory.
            "shared::cluster" | "async" | "bulk" => return Found::LeftOut("shared::cluster"),
            "local" | "const" => return Found::Nothing,
            _ if word.starts_with("param") => return Found::Nothing,
            "v2" => count = 2,
            "v4" => count = 4,
            "v8" => count = 8,
            _ => bits = bits_of(word).unwrap_or(bits),
        }
    }
    let operand = instruction
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let Some((operand, _)) = operand.filter(|_| bits >= 8) else {
        return Found::LeftOut("an access without an address or type");
    };
    let (base, offset) = operand.split_once('+').unwrap_or((operand, "0"));
    Found::Access(Access {
        kind,
        space,
        bytes: bits / 8 * count,
        base: base.trim(),
        offset: offset.trim(),
    })
}

/// Bits of a type: `f32`, `u8`, `b128`, `f16x2`.
fn bits_of(word: &str) -> Option<u32> {
    let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = &word[..word.len() - digits.len()];
    if !matches!(letters, "b" | "u" | "s" | "f" | "bf") {
        return None;
    }
    let (bits, count) = digits.split_once('x').unwrap_or((digits, "1"));
    let (bits, count): (u32, u32) = (bits.parse().ok()?, count.parse().ok()?);
    let bits = bits.checked_mul(count)?;
    matches!(bits, 8 | 16 | 32 | 64 | 128).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::{Access, Found, Kind, Space, access, predicate};

    #[test]
    fn accesses_say_kind_space_and_bytes() {
        for (text, kind, space, bytes, base, offset) in [
            (
                "ld.global.nc.v4.f32 {%f1,%f2,%f3,%f4}, [%rd4+16]",
                Kind::Load,
                Space::Global,
                16,
                "%rd4",
                "16",
            ),
            (
                "st.shared.u8 [%r4+-1], %rs1",
                Kind::Store,
                Space::Shared,
                1,
                "%r4",
                "-1",
            ),
            (
                "st.volatile.shared::cta.f64 [tile+8], %fd1",
                Kind::Store,
                Space::Shared,
                8,
                "tile",
                "8",
            ),
            (
                "ld.b64 %rd1, [ %rd2 ]",
                Kind::Load,
                Space::Generic,
                8,
                "%rd2",
                "0",
            ),
            (
                "atom.global.add.noftz.f16x2 %r1, [%rd1], %r2",
                Kind::Atomic,
                Space::Global,
                4,
                "%rd1",
                "0",
            ),
            (
                "red.relaxed.gpu.global.add.u64 [%rd1], 1",
                Kind::Atomic,
                Space::Global,
                8,
                "%rd1",
                "0",
            ),
            (
                "ld.relaxed.gpu.global.L1::no_allocate.L2::cache_hint.v2.b32 {%r1, %r2}, [%rd1], %rd9",
                Kind::Load,
                Space::Global,
                8,
                "%rd1",
                "0",
            ),
        ] {
            let found = Access {
                kind,
                space,
                bytes,
                base,
                offset,
            };
            assert_eq!(access(text), Found::Access(found), "{text}");
        }
        for nothing in [
            "ld.param.u64 %rd1, [p]",
            "st.local.u32 [%rd1], 1",
            "add.s32 %r1, %r2, 3",
            "ret",
        ] {
            assert_eq!(access(nothing), Found::Nothing, "{nothing}");
        }
        assert_eq!(
            access("cp.async.ca.shared.global [%r1], [%rd2], 16"),
            Found::LeftOut("cp.async")
        );
        for other in [
            "tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}]",
            "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd1",
            "clusterlaunchcontrol.try_cancel.async.b128 [%r1], [%r2]",
        ] {
            assert!(matches!(access(other), Found::LeftOut(_)), "{other}");
        }
        assert!(matches!(access("ld.global [x]"), Found::LeftOut(_)));
    }

    #[test]
    fn predicates_are_split_off() {
        assert_eq!(predicate("@!%p1 ld.x"), (Some("!%p1"), "ld.x"));
        assert_eq!(predicate("ld.x"), (None, "ld.x"));
        assert_eq!(predicate("@p"), (Some("p"), ""));
    }
}
