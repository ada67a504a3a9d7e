// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensors that calls show, against those that files show.

use std::{collections::BTreeSet, fmt, path::Path, process::Command};

use super::{Recording, tensors::tensors};
use crate::{build::step::logged, error::Result};

type Place = (String, String, u64, u64);

impl Recording<'_> {
    /// Compiles without the app's files; returns tensors, or differing ones.
    ///
    /// Right differences in 8-bit networks: computed multipliers and shifts appear as weights; of a bias's buffer the
    /// file has the beginning.
    pub(crate) fn compare_noted(
        &self,
        program: &Path,
        recording: &Path,
    ) -> Result<std::result::Result<Noted, String>> {
        let noted = self.work.join("noted");
        let mut compile = Command::new(program);
        compile
            .current_dir(self.work)
            .args(["compile", "trace", "--second", "trace2", "--force", "-o"])
            .arg(&noted);
        let log = self.folder.local.join("log/noted.log");
        logged(&mut compile, "compiling without files", &log)?;
        let (noted, tagged) = (places(program, &noted)?, places(program, recording)?);
        Ok(compare(&noted, &tagged))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) tensors: usize,
    pub(crate) computed: usize,
    pub(crate) padded: usize,
}

impl fmt::Display for Noted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Noted {
            tensors,
            computed,
            padded,
        } = self;
        write!(f, "{tensors}")?;
        match (computed, padded) {
            (0, 0) => Ok(()),
            _ => write!(
                f,
                ", of them {computed} that the library computed and {padded} with the rest of their buffers"
            ),
        }
    }
}

fn compare(
    noted: &BTreeSet<Place>,
    tagged: &BTreeSet<Place>,
) -> std::result::Result<Noted, String> {
    let in_bytes = tagged
        .iter()
        .any(|(kind, element, ..)| kind == "input" && element == "u8");
    let mut only_tagged: BTreeSet<&Place> = tagged.difference(noted).collect();
    let (mut computed, mut padded) = (0, 0);
    let mut differing = Vec::new();
    for place @ (kind, element, elements, address) in noted.difference(tagged) {
        let there = tagged.iter().find(|(.., other)| other == address);
        let is_weight = in_bytes && kind == "weight";
        match there {
            None if is_weight => computed += 1,
            Some(there)
                if is_weight && (&there.0, &there.1) == (kind, element) && there.2 < *elements =>
            {
                only_tagged.remove(there);
                padded += 1;
            }
            _ => differing.push(said(place, "calls")),
        }
    }
    differing.extend(only_tagged.into_iter().map(|place| said(place, "files")));
    match differing.is_empty() {
        true => Ok(Noted {
            tensors: noted.len(),
            computed,
            padded,
        }),
        false => Err(differing.join(", ")),
    }
}

fn said((kind, element, elements, address): &Place, who: &str) -> String {
    format!("{kind} {element}[{elements}] at {address:#x} by {who} only")
}

fn places(program: &Path, recording: &Path) -> Result<BTreeSet<Place>> {
    let places = tensors(program, recording)?.into_iter();
    let places = places.filter_map(|tensor| {
        let elements = tensor.shape.iter().product();
        let is_part = tensor.kind == "intermediate";
        (!is_part).then_some((tensor.kind, tensor.element, elements, tensor.address))
    });
    Ok(places.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(places: &[(&str, &str, u64, u64)]) -> BTreeSet<Place> {
        places
            .iter()
            .map(|&(kind, element, elements, address)| {
                (kind.to_owned(), element.to_owned(), elements, address)
            })
            .collect()
    }

    #[test]
    fn only_a_network_in_bytes_may_show_more() {
        let files = |element| {
            set(&[
                ("input", element, 16, 0x1000),
                ("weight", "i32", 32, 0x2000),
            ])
        };
        let calls = |element| {
            set(&[
                ("input", element, 16, 0x1000),
                ("weight", "i32", 64, 0x2000),
                ("weight", "u8", 4, 0x3000),
            ])
        };
        let right = Noted {
            tensors: 3,
            computed: 1,
            padded: 1,
        };
        assert_eq!(compare(&calls("u8"), &files("u8")), Ok(right));
        assert_eq!(
            compare(&calls("f32"), &files("f32")),
            Err(
                "weight i32[64] at 0x2000 by calls only, weight u8[4] at 0x3000 by calls only, \
                 weight i32[32] at 0x2000 by files only"
                    .to_owned()
            )
        );
        let other = set(&[("input", "u8", 16, 0x1000), ("weight", "u8", 64, 0x2000)]);
        assert!(compare(&other, &files("u8")).is_err());
    }
}
