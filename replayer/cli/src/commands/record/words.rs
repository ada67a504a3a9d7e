// SPDX-License-Identifier: MIT OR Apache-2.0
//! One app or two on a command line.

/// Cuts at a `--`; of several, the second app must begin as the first.
pub(super) fn pairs(words: &[String]) -> Vec<[&[String]; 2]> {
    let cuts = words.iter().enumerate();
    let cuts: Vec<usize> = cuts
        .filter(|(_, word)| *word == "--")
        .map(|(at, _)| at)
        .collect();
    let pair = |at: &usize| {
        let (first, second) = (words.get(..*at)?, words.get(at + 1..)?);
        let alike = cuts.len() == 1 || first.first() == second.first();
        (alike && !first.is_empty() && !second.is_empty()).then_some([first, second])
    };
    cuts.iter().filter_map(pair).collect()
}

pub(super) fn shell_quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./=:,+@%".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_quoted("--input"), "--input");
        assert_eq!(shell_quoted("a b"), "'a b'");
        assert_eq!(shell_quoted("it's"), r"'it'\''s'");
        assert_eq!(shell_quoted(""), "''");
    }

    #[test]
    fn two_apps_are_told_apart_although_they_have_dashes() {
        let cut = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let text = |pair: [&[String]; 2]| pair.map(|words| words.join(" "));
            pairs(&words).into_iter().map(text).collect::<Vec<_>>()
        };
        let pair = |first: &str, second: &str| [first.to_owned(), second.to_owned()];
        assert_eq!(cut("a 1 -- b 2"), [pair("a 1", "b 2")]);
        assert_eq!(
            cut("gegl a -- blur -- gegl b -- blur"),
            [pair("gegl a -- blur", "gegl b -- blur")]
        );
        for none in ["a 1", "a 1 --", "-- a", "a -- b -- c"] {
            assert!(cut(none).is_empty(), "{none}");
        }
        assert_eq!(cut("a -- a -- a").len(), 2);
    }
}
