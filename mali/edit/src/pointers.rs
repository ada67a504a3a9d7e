// SPDX-License-Identifier: MIT OR Apache-2.0
//! Maps one recording's memory to another's.

use gpureplay_format::layout::{PieceEntry, Region};
use gpureplay_format::{ElementType, Recording as View, RegionKind};
use gpureplay_library::Recording;

use crate::error::{EditError, Result};

/// Tensor name, or address such as `0xa006000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// In the recording that gives a job.
    pub theirs: String,
    /// In the recording that gets it.
    pub ours: String,
}

impl std::str::FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (theirs, ours) = text
            .split_once('=')
            .filter(|(theirs, ours)| !theirs.is_empty() && !ours.is_empty())
            .ok_or("expected THEIRS=OURS, each a tensor's name or an address such as 0xa006000")?;
        Ok(Self {
            theirs: theirs.into(),
            ours: ours.into(),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u64,
    end: u64,
    to: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pointers {
    spans: Vec<Span>,
    data: Vec<(u64, u64)>,
}

fn wrong<T>(reason: String) -> Result<T> {
    Err(EditError::Gate {
        gate: "pointers",
        reason,
    })
}

fn extent(view: &View<'_>, piece: &PieceEntry, element: u32) -> (u64, u64) {
    let axes = view.axes(piece).unwrap_or_default().iter();
    let steps = axes.map(|axis| {
        u64::from(axis.extent.get().saturating_sub(1)) * u64::from(axis.byte_stride.get())
    });
    let last = steps.fold(0u64, u64::saturating_add);
    let first = piece.va.get();
    let end = first.saturating_add(last).saturating_add(element.into());
    (first, end)
}

type Piece = ((u64, u64), Vec<[u32; 3]>);

struct Placed<'v> {
    name: &'v str,
    pieces: Vec<Piece>,
}

fn placed<'v>(view: &View<'v>) -> Vec<Placed<'v>> {
    let tensors = view.tensors().iter();
    tensors
        .map(|tensor| {
            let element =
                ElementType::from_code(tensor.element.into()).map_or(1, ElementType::size);
            let pieces = view.pieces(tensor).unwrap_or_default().iter();
            Placed {
                name: view.name(tensor.name.get()),
                pieces: pieces
                    .map(|piece| {
                        let axes = view.axes(piece).unwrap_or_default().iter();
                        let shape = axes.map(|axis| {
                            let (elements, bytes) =
                                (axis.element_stride.get(), axis.byte_stride.get());
                            [axis.extent.get(), elements, bytes]
                        });
                        (extent(view, piece, element), shape.collect())
                    })
                    .collect(),
            }
        })
        .collect()
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn is_data(region: &&Region) -> bool {
    region.kind == RegionKind::Data.code()
}

impl Pointers {
    /// Maps data of `theirs` to `ours`.
    ///
    /// # Errors
    /// A pair names what is not there, or tensors of different shape.
    pub(crate) fn between(theirs: &Recording, ours: &Recording, pairs: &[Pair]) -> Result<Self> {
        let (their_view, our_view) = (theirs.verified().recording(), ours.verified().recording());
        let (their_tensors, our_tensors) = (placed(their_view), placed(our_view));
        let data = their_view.regions().iter().filter(is_data);
        let data: Vec<(u64, u64)> = data.map(|region| (region.va.get(), region.end())).collect();
        let mut spans: Vec<Span> = Vec::new();
        for pair in pairs {
            spans.extend(explicit(
                pair,
                &data,
                &their_tensors,
                &our_tensors,
                our_view,
            )?);
        }
        for tensor in &their_tensors {
            if pairs.iter().any(|pair| pair.theirs == tensor.name) {
                continue;
            }
            if let Some(other) = our_tensors.iter().find(|it| it.name == tensor.name) {
                spans.extend(together(tensor, other)?);
            }
        }
        // The same place of a common region, unless a tensor of theirs has gone there.
        let gone = spans.iter().filter(|span| span.to != span.first);
        let gone = gone.map(|span| (span.to, span.to.saturating_add(span.end - span.first)));
        let mut known: Vec<(u64, u64)> = gone.collect();
        known.extend(spans.iter().map(|span| (span.first, span.end)));
        known.sort_unstable();
        for region in their_view.regions().iter().filter(is_data) {
            let same = |other: &Region| {
                (other.va.get(), other.pages.get(), other.kind, other.access)
                    == (
                        region.va.get(),
                        region.pages.get(),
                        region.kind,
                        region.access,
                    )
            };
            if !our_view.regions().iter().any(same) {
                continue;
            }
            let mut at = region.va.get();
            let mut identity = |first: u64, end: u64| {
                if first < end {
                    spans.push(Span {
                        first,
                        end,
                        to: first,
                    });
                }
            };
            for (first, end) in known
                .iter()
                .copied()
                .filter(|(first, end)| *first < region.end() && *end > region.va.get())
            {
                identity(at, first);
                at = at.max(end);
            }
            identity(at, region.end());
        }
        Ok(Self { spans, data })
    }

    /// The user's spans come first.
    fn map(&self, address: u64) -> Option<u64> {
        let span = self
            .spans
            .iter()
            .find(|span| (span.first..span.end).contains(&address))?;
        span.to.checked_add(address - span.first)
    }

    pub(crate) fn covers(&self, address: u64, length: u64) -> std::result::Result<(), u64> {
        let end = address.saturating_add(length);
        let mut at = address;
        while at < end {
            let spans = self.spans.iter();
            let next = spans
                .filter(|span| (span.first..span.end).contains(&at))
                .map(|span| span.end)
                .max();
            at = next.ok_or(at)?;
        }
        Ok(())
    }

    /// Two words, the lower one first, are a pointer if they lead into data.
    ///
    /// # Errors
    /// The other recording lacks a pointer's data.
    pub(crate) fn replace(&self, words: &mut [u8], what: &str) -> Result<()> {
        let mut at = 0;
        while let Some(found) = words
            .get(at..at + 8)
            .and_then(|it| <[u8; 8]>::try_from(it).ok())
        {
            let address = u64::from_le_bytes(found);
            let is_data = |(first, end): &(u64, u64)| (*first..*end).contains(&address);
            if !self.data.iter().any(is_data) {
                at += 4;
                continue;
            }
            let Some(new) = self.map(address) else {
                return wrong(format!(
                    "word {} of {what} points to {address:#x}, for which the recording has no place; say which with --map {address:#x}=TENSOR",
                    at / 4
                ));
            };
            if let Some(to) = words.get_mut(at..at + 8) {
                to.copy_from_slice(&new.to_le_bytes());
            }
            at += 8;
        }
        Ok(())
    }
}

fn together(theirs: &Placed<'_>, ours: &Placed<'_>) -> Result<Vec<Span>> {
    let shapes = |tensor: &Placed<'_>| -> Vec<Vec<[u32; 3]>> {
        tensor
            .pieces
            .iter()
            .map(|(_, shape)| shape.clone())
            .collect()
    };
    if shapes(theirs) != shapes(ours) {
        return wrong(format!(
            "tensor {} does not lie in memory as {} does",
            theirs.name, ours.name
        ));
    }
    let pieces = theirs.pieces.iter().zip(&ours.pieces);
    Ok(pieces
        .map(|(((first, end), _), ((to, _), _))| Span {
            first: *first,
            end: *end,
            to: *to,
        })
        .collect())
}

fn explicit(
    pair: &Pair,
    data: &[(u64, u64)],
    theirs: &[Placed<'_>],
    ours: &[Placed<'_>],
    our_view: &View<'_>,
) -> Result<Vec<Span>> {
    let named =
        |tensors: &'_ [Placed<'_>], name: &str| tensors.iter().position(|it| it.name == name);
    let no = |name: &str, known: &[Placed<'_>]| {
        let known: Vec<&str> = known.iter().map(|it| it.name).collect();
        wrong(format!(
            "--map {}={}: there is no tensor or address {name} in data; tensors are {}",
            pair.theirs,
            pair.ours,
            known.join(", ")
        ))
    };
    let from = named(theirs, &pair.theirs).and_then(|at| theirs.get(at));
    let to = named(ours, &pair.ours).and_then(|at| ours.get(at));
    if let (Some(from), Some(to)) = (from, to) {
        return together(from, to);
    }
    let inside = |extents: &[(u64, u64)], at: u64| {
        extents
            .iter()
            .copied()
            .find(|(first, end)| (*first..*end).contains(&at))
    };
    let first_of = |tensor: &Placed<'_>| tensor.pieces.first().map(|(extent, _)| *extent);
    let (first, end) = match (from.and_then(first_of), address(&pair.theirs)) {
        (Some(extent), _) => extent,
        (None, Some(at)) => match inside(data, at) {
            Some((_, end)) => (at, end),
            None => return no(&pair.theirs, theirs),
        },
        (None, None) => return no(&pair.theirs, theirs),
    };
    let regions = our_view.regions().iter().filter(is_data);
    let regions: Vec<(u64, u64)> = regions
        .map(|region| (region.va.get(), region.end()))
        .collect();
    let (to, to_end) = match (to.and_then(first_of), address(&pair.ours)) {
        (Some(extent), _) => extent,
        (None, Some(at)) => match inside(&regions, at) {
            Some((_, end)) => (at, end),
            None => return no(&pair.ours, ours),
        },
        (None, None) => return no(&pair.ours, ours),
    };
    let length = (end - first).min(to_end - to);
    Ok(vec![Span {
        first,
        end: first + length,
        to,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointers() -> Pointers {
        Pointers {
            spans: vec![
                Span {
                    first: 0x1000,
                    end: 0x1400,
                    to: 0x9000,
                },
                Span {
                    first: 0x1400,
                    end: 0x2000,
                    to: 0x1400,
                },
            ],
            data: vec![(0x1000, 0x3000)],
        }
    }

    #[test]
    fn pointers_are_found_at_each_word() {
        // A float, a pointer at no multiple of 8, a number, another pointer.
        let words = [0x3f80_0000u32, 0x1010, 0, 7, 0x1800, 0, 0x1010];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        pointers().replace(&mut bytes, "uniforms").unwrap();
        let found: Vec<u32> = bytes
            .chunks(4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
            .collect();
        assert_eq!(found, [0x3f80_0000, 0x9010, 0, 7, 0x1800, 0, 0x1010]);
        let mut lost = 0x2fff_u64.to_le_bytes();
        let error = pointers().replace(&mut lost, "uniforms").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("word 0 of uniforms points to 0x2fff"),
            "{error}"
        );
    }

    #[test]
    fn ranges_may_cross_spans() {
        assert_eq!(pointers().covers(0x13f8, 16), Ok(()));
        assert_eq!(pointers().covers(0x1ff8, 16), Err(0x2000));
    }

    #[test]
    fn pairs_have_two_sides() {
        let pair: Pair = "x=0xa000".parse().unwrap();
        assert_eq!((pair.theirs.as_str(), pair.ours.as_str()), ("x", "0xa000"));
        for text in ["", "x", "=y", "x="] {
            assert!(text.parse::<Pair>().is_err(), "{text}");
        }
    }
}
