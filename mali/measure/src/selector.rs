// SPDX-License-Identifier: MIT OR Apache-2.0
//! Selects jobs: `3`, `3..7`, `/regex/`, `kernel:NAME`, `hash:98aa`, `layer:conv2`, and lists.

use std::fmt;
use std::str::FromStr;

use gpureplay_library::manifest::{MOST_NAME, beginning};
use gpureplay_library::selection;
use regex_lite::Regex;

use crate::table::{Job, Jobs};

const MAX_TEXT: usize = 4096;

pub(crate) const GRAMMAR: &str = "3, 3..7 (both ends included), 18.., /regular expression/ (of names or hashes), kernel:NAME, hash:98aa, layer:conv2, layer:2..4, or several of these with commas";

/// Why a text selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// No text.
    #[error("no jobs are named; expected {GRAMMAR}")]
    Empty,
    /// Part without meaning.
    #[error("'{item}': {reason}; expected {GRAMMAR}")]
    Form {
        /// Part.
        item: String,
        /// Cause.
        reason: String,
    },
    /// Part that fits no job.
    #[error("'{item}' selects no job: {reason}; `gpureplay jobs` lists them")]
    Nothing {
        /// Part.
        item: String,
        /// Alternatives.
        reason: String,
    },
}

#[derive(Clone, Debug)]
enum Item {
    /// Both ends included.
    Numbers(usize, usize),
    /// Of the kernel's name, or without one the hash.
    Matching(Regex),
    Kernel(String),
    Hash(String),
    Layer(String),
}

/// Which jobs are meant. Each part must fit a job; a job counts once.
#[derive(Clone, Debug)]
pub struct Selector {
    items: Vec<(String, Item)>,
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<&str> = self.items.iter().map(|(text, _)| text.as_str()).collect();
        f.write_str(&items.join(","))
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Err(SelectorError::Empty);
        }
        if text.len() > MAX_TEXT {
            return Err(SelectorError::Form {
                item: text.chars().take(16).collect::<String>() + "…",
                reason: format!("longer than {MAX_TEXT} bytes"),
            });
        }
        let items = split(text).into_iter().map(|item| {
            let wrong = |reason: String| SelectorError::Form {
                item: item.to_owned(),
                reason,
            };
            Ok((item.to_owned(), parse(item).map_err(wrong)?))
        });
        let items = items.collect::<Result<_, _>>()?;
        Ok(Self { items })
    }
}

/// A regular expression may have commas.
fn split(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let (mut start, mut inside, mut escaped) = (0, false, false);
    for (at, letter) in text.char_indices() {
        let begins = text.get(start..at).is_some_and(|it| it.trim().is_empty());
        match letter {
            '/' if begins && !inside => inside = true,
            '/' if inside && !escaped => inside = false,
            ',' if !inside => {
                items.push(text.get(start..at).unwrap_or_default().trim());
                start = at + 1;
            }
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    items.push(text.get(start..).unwrap_or_default().trim());
    items
}

fn parse(item: &str) -> Result<Item, String> {
    if let Some(rest) = item.strip_prefix('/') {
        let pattern = rest.strip_suffix('/').filter(|it| !it.is_empty());
        let pattern = pattern.ok_or("a regular expression stands between two slashes")?;
        let regex = Regex::new(&pattern.replace("\\/", "/"));
        return Ok(Item::Matching(regex.map_err(|error| error.to_string())?));
    }
    let named = |rest: &str| match rest {
        "" => Err("a name is missing".to_owned()),
        name => Ok(name.to_owned()),
    };
    match item.split_once(':') {
        Some(("kernel", name)) => Ok(Item::Kernel(named(name)?)),
        Some(("layer", range)) => Ok(Item::Layer(named(range)?)),
        Some(("hash", digits)) => {
            let digits = digits.strip_prefix("0x").unwrap_or(digits).to_lowercase();
            let sound = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            match digits.len() {
                1..=16 if sound => Ok(Item::Hash(digits)),
                _ => Err("a hash has 1 to 16 hexadecimal digits".into()),
            }
        }
        Some((kind, _)) => Err(format!("there is nothing called {kind}:")),
        None => numbers(item),
    }
}

fn numbers(item: &str) -> Result<Item, String> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| format!("'{text}' is not the number of a job"))
    };
    let (first, last) = match item.split_once("..") {
        None => return number(item).map(|at| Item::Numbers(at, at)),
        Some(("", "")) => return Err("a range has at least one end".into()),
        Some((first, "")) => (number(first)?, usize::MAX),
        Some(("", last)) => (0, number(last)?),
        Some((first, last)) => (number(first)?, number(last)?),
    };
    match first <= last {
        true => Ok(Item::Numbers(first, last)),
        false => Err("the last job comes before the first".into()),
    }
}

impl Selector {
    /// Numbers of jobs, ascending; at least one.
    ///
    /// # Errors
    /// A part fits no job.
    pub fn select(&self, jobs: &Jobs) -> Result<Vec<usize>, SelectorError> {
        let mut chosen = vec![false; jobs.jobs.len()];
        for (text, item) in &self.items {
            let mut any = false;
            let layers = match item {
                Item::Layer(range) => {
                    Some(selection::range(&jobs.layers, range).map_err(|error| {
                        SelectorError::Nothing {
                            item: text.clone(),
                            reason: error.to_string(),
                        }
                    })?)
                }
                _ => None,
            };
            for (job, chosen) in jobs.jobs.iter().zip(&mut chosen) {
                let fits = match item {
                    Item::Numbers(first, last) => (*first..=*last).contains(&job.index),
                    Item::Matching(regex) => regex.is_match(&job.title()),
                    // A manifest cuts long names.
                    Item::Kernel(name) => job.name.as_deref() == Some(beginning(name, MOST_NAME)),
                    Item::Hash(digits) => hash(job).is_some_and(|hash| hash.starts_with(digits)),
                    Item::Layer(_) => {
                        let layer = jobs.chains.get(job.chain).and_then(|chain| chain.layer);
                        layer.is_some_and(|at| layers.as_ref().is_some_and(|it| it.contains(&at)))
                    }
                };
                *chosen |= fits;
                any |= fits;
            }
            // Only an open range may end beyond the last job.
            let beyond = match item {
                Item::Numbers(_, usize::MAX) => false,
                Item::Numbers(_, last) => *last >= jobs.jobs.len(),
                _ => false,
            };
            if !any || beyond {
                return Err(SelectorError::Nothing {
                    item: text.clone(),
                    reason: reason(item, jobs),
                });
            }
        }
        let numbered = chosen.iter().enumerate();
        Ok(numbered.filter_map(|(at, &it)| it.then_some(at)).collect())
    }
}

fn hash(job: &Job) -> Option<String> {
    Some(format!("{:016x}", job.hash()?))
}

fn reason(item: &Item, jobs: &Jobs) -> String {
    match item {
        Item::Kernel(_) => {
            let mut names: Vec<&str> = jobs
                .jobs
                .iter()
                .filter_map(|job| job.name.as_deref())
                .collect();
            names.sort_unstable();
            names.dedup();
            match names.is_empty() {
                true => "the manifest names no kernel".into(),
                false => format!("kernels are {}", names.join(", ")),
            }
        }
        Item::Matching(_) => "no name and no hash matches".into(),
        Item::Hash(_) => "no shader has such a hash".into(),
        Item::Layer(_) => "the layer has no jobs".into(),
        Item::Numbers(..) => jobs.known(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpureplay_library::Recording;

    fn jobs(name: &str) -> Jobs {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../recordings/");
        Jobs::of(&Recording::open(folder.to_owned() + name).unwrap()).unwrap()
    }

    #[test]
    fn jobs_are_selected() {
        let digits = jobs("digits-g52");
        let select = |text: &str| text.parse::<Selector>()?.select(&digits);
        assert_eq!(digits.jobs.len(), 20);
        for (text, expected) in [
            ("3", vec![3]),
            ("3..5", vec![3, 4, 5]),
            ("18..", vec![18, 19]),
            ("..1", vec![0, 1]),
            ("5,3..4,3", vec![3, 4, 5]),
            (" 5 , 3", vec![3, 5]),
            ("hash:98aa", vec![0, 2, 4]),
            ("hash:0x98AA41d10308b369", vec![0, 2, 4]),
            ("/^reshape_to_columns$/", vec![0, 2, 4]),
            ("/^reshape.{1,2}to_/,19", vec![0, 2, 4, 19]),
        ] {
            assert_eq!(select(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn layers_and_names_are_selected() {
        let lenet = jobs("lenet-g52");
        let select = |text: &str| text.parse::<Selector>()?.select(&lenet);
        let all: Vec<usize> = (1..=lenet.layers.len())
            .flat_map(|layer| select(&format!("layer:{layer}")).unwrap())
            .collect();
        assert_eq!(select("layer:1..").unwrap(), all);
        assert_eq!(all.last(), Some(&19));
        let first = &lenet.layers[0];
        assert_eq!(
            select(&format!("layer:{}", first.name)).unwrap().len(),
            first.jobs as usize
        );
        let gemm = jobs("acl-gemm-g52");
        let name = gemm.jobs[2].title();
        let by_name = format!("kernel:{name}").parse::<Selector>().unwrap();
        assert!(by_name.select(&gemm).unwrap().contains(&2));
    }

    #[test]
    fn a_kernel_without_a_name_matches_by_its_hash() {
        let jobs = jobs("saxpy-kbase-g52");
        let only = jobs.jobs.iter().find(|job| hash(job).is_some()).unwrap();
        assert_eq!((only.name.as_ref(), Some(only.title())), (None, hash(only)));
        let digits = &only.title()[..6];
        let selector: Selector = format!("/^{digits}/").parse().unwrap();
        assert!(selector.select(&jobs).unwrap().contains(&only.index));
    }

    #[test]
    fn what_selects_nothing_is_an_error() {
        let digits = jobs("digits-g52");
        for text in [
            "20",
            "19..20",
            "kernel:none",
            "hash:ffffffff",
            "layer:none",
            "/xyz/",
            "3,20",
        ] {
            let error = text.parse::<Selector>().unwrap().select(&digits);
            assert!(
                matches!(error, Err(SelectorError::Nothing { .. })),
                "{text}"
            );
        }
        for text in [
            "", " ", ",", "3,", "..", "7..3", "-1", "3-4", "/", "//", "/(/", "hash:", "hash:xyz",
            "kernel:", "layer:", "name:x", "1e3",
        ] {
            assert!(text.parse::<Selector>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_comma_in_a_regular_expression_is_its_own() {
        assert_eq!(split("/a{1,2}/,3"), ["/a{1,2}/", "3"]);
        assert_eq!(split(r"/a\/,b/,3"), [r"/a\/,b/", "3"]);
        assert_eq!(split("kernel:a/b,3"), ["kernel:a/b", "3"]);
    }
}
