// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which analyses are wanted.

use std::str::FromStr;

/// Set of analyses, from text such as `heat,lines`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct What {
    /// Executions and lanes.
    pub counts: bool,
    /// Where warps part.
    pub divergence: bool,
    /// Memory read and written, by line.
    pub heat: bool,
    /// Used bytes of touched lines.
    pub lines: bool,
    /// Unordered accesses to a byte.
    pub races: bool,
    /// Reads of uninitialised memory.
    pub uninit: bool,
    /// Accesses outside tensors.
    pub outside: bool,
}

/// A word that is no analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no analysis `{0}`; there are: {known}", known = What::NAMES.join(", "))]
pub struct UnknownAnalysis(String);

impl What {
    /// In the order of reports.
    pub const NAMES: [&'static str; 7] = [
        "counts",
        "divergence",
        "heat",
        "lines",
        "races",
        "uninit",
        "out-of-tensor",
    ];

    fn flags(&mut self) -> [&mut bool; 7] {
        [
            &mut self.counts,
            &mut self.divergence,
            &mut self.heat,
            &mut self.lines,
            &mut self.races,
            &mut self.uninit,
            &mut self.outside,
        ]
    }

    /// All analyses.
    pub fn all() -> What {
        let mut all = What::default();
        all.flags().into_iter().for_each(|flag| *flag = true);
        all
    }

    /// Names of those in the set.
    pub fn names(mut self) -> Vec<&'static str> {
        let flags = self.flags().into_iter();
        let named = flags.zip(Self::NAMES).filter(|(flag, _)| **flag);
        named.map(|(_, name)| name).collect()
    }

    pub(crate) fn clauses(self) -> bool {
        self.counts || self.divergence
    }

    pub(crate) fn accesses(self) -> bool {
        self.heat || self.lines || self.races || self.uninit || self.outside
    }
}

impl FromStr for What {
    type Err = UnknownAnalysis;

    fn from_str(text: &str) -> Result<What, UnknownAnalysis> {
        let mut what = What::default();
        for word in text.split(',') {
            let word = word.trim();
            if word == "all" {
                return Ok(What::all());
            }
            let named = What::NAMES.iter().position(|&name| name == word);
            match named.and_then(|at| what.flags().into_iter().nth(at)) {
                Some(flag) => *flag = true,
                None => return Err(UnknownAnalysis(word.into())),
            }
        }
        Ok(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_there_and_back() {
        let what: What = "lines, heat".parse().unwrap();
        assert_eq!(what.names(), ["heat", "lines"]);
        assert_eq!(What::NAMES.join(",").parse(), Ok(What::all()));
        assert_eq!("all".parse(), Ok(What::all()));
        let error = "heat,speed".parse::<What>().unwrap_err();
        assert!(error.to_string().contains("no analysis `speed`"), "{error}");
        assert!("".parse::<What>().is_err(), "nothing is no analysis");
    }
}
