// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask words`: texts follow docs/words.toml.

mod comments;
mod strings;

use std::{collections::BTreeMap, process::ExitCode};

use clap::Args;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde::Deserialize;

use crate::{
    error::{Error, Result},
    files,
    repository::{git, root},
};

const SUBJECT_CHARACTERS: usize = 72;
const README_ROWS: usize = 8;

/// Checks the words of pages, help, messages and commit subjects, by docs/words.toml.
#[derive(Args)]
#[command(
    after_help = "Example:\n  cargo xtask words\n\nEnds with 1 if a rule is broken; each case is printed with its place."
)]
pub(crate) struct Words {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Style {
    subjects_after: String,
    sentence: usize,
    total: usize,
    comments: usize,
    pages: BTreeMap<String, usize>,
    phrases: BTreeMap<String, String>,
}

impl Words {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let path = root().join("docs/words.toml");
        let text = files::text(&path)?;
        let style: Style = toml::from_str(&text).map_err(|error| {
            Error::fell_short(
                format!("reading {}: {error}", path.display()),
                "write subjects_after, sentence, total, comments, pages and phrases",
            )
        })?;
        let (mut found, mut all) = (Vec::new(), 0);
        for (page, most) in &style.pages {
            let text = files::text(root().join(page))?;
            all += Prose::read(&text).words();
            found.extend(
                style
                    .complaints(&text, *most, (page == "README.md").then_some(README_ROWS))
                    .into_iter()
                    .map(|complaint| format!("{page}: {complaint}")),
            );
        }
        if all > style.total {
            found.push(format!("{all} words in all pages, at most {}", style.total));
        }
        let sources = git(&["ls-files", "*.rs"])?;
        let (mut texts, mut comments) = (0, 0);
        for source in &sources {
            let text = files::text(root().join(source))?;
            comments += comments::comment_words(&text);
            if !is_for_users(source) {
                continue;
            }
            for (line, said) in strings::said(&text) {
                texts += 1;
                let wrong = style.block(&said).into_iter();
                found.extend(wrong.map(|complaint| format!("{source}:{line}: {complaint}")));
            }
        }
        if comments > style.comments {
            found.push(format!(
                "{comments} words in comments of Rust, at most {}",
                style.comments
            ));
        }
        let subjects = style.subjects()?;
        found.extend(subjects.iter().filter_map(|line| {
            let (commit, subject) = line.split_once(' ').unwrap_or((line, ""));
            subject_fault(subject).map(|fault| format!("commit {commit}: {fault}: {subject}"))
        }));
        for complaint in &found {
            eprintln!("{complaint}");
        }
        if !found.is_empty() {
            return Err(Error::fell_short(
                format!("{} rules of docs/words.toml", found.len()),
                "change the text, or the page's target with a reason",
            ));
        }
        println!(
            "{} pages of {all} words, {texts} texts of programs and {} commit subjects are in plain words; comments have {comments}",
            style.pages.len(),
            subjects.len()
        );
        Ok(ExitCode::SUCCESS)
    }
}

impl Style {
    /// Without merges; none in a clone that lacks the commit `subjects_after`.
    fn subjects(&self) -> Result<Vec<String>> {
        let range = format!("{}..HEAD", self.subjects_after);
        let known = format!("{}^{{commit}}", self.subjects_after);
        if git(&["cat-file", "-e", &known]).is_err() {
            println!(
                "commit subjects are not checked: this clone has no {}",
                self.subjects_after
            );
            return Ok(Vec::new());
        }
        git(&["log", "--no-merges", "--format=%h %s", &range])
    }

    fn complaints(&self, text: &str, most: usize, rows: Option<usize>) -> Vec<String> {
        let page = Prose::read(text);
        let mut found = Vec::new();
        let count = page.words();
        if count > most {
            found.push(format!("{count} words, at most {most}"));
        }
        if let Some(rows) = rows.filter(|rows| page.longest_table > *rows) {
            found.push(format!(
                "a table of {} rows, at most {rows}",
                page.longest_table
            ));
        }
        found.extend(page.blocks.iter().flat_map(|block| self.block(block)));
        found
    }

    fn block(&self, block: &str) -> Vec<String> {
        let long = sentences(block).filter(|sentence| words(sentence) > self.sentence);
        let mut found: Vec<String> = long
            .map(|sentence| {
                format!(
                    "{} words, at most {}: {sentence}",
                    words(sentence),
                    self.sentence
                )
            })
            .collect();
        let lower = format!(" {} ", block.to_lowercase());
        for (phrase, instead) in &self.phrases {
            if has_whole_words(&lower, phrase) {
                found.push(format!("`{phrase}`; write {instead}: {block}"));
            }
        }
        found
    }
}

fn is_for_users(path: &str) -> bool {
    let mut parts = path.split('/');
    !path.starts_with("tools/")
        && !path.starts_with("fuzz/")
        && parts.all(|part| !matches!(part, "tests" | "tests.rs" | "examples" | "benches"))
}

fn has_whole_words(text: &str, phrase: &str) -> bool {
    let letter = |place: Option<char>| place.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        !letter(text[..at].chars().next_back()) && !letter(text[at + phrase.len()..].chars().next())
    })
}

struct Prose {
    blocks: Vec<String>,
    longest_table: usize,
}

impl Prose {
    fn words(&self) -> usize {
        self.blocks.iter().map(|block| words(block)).sum()
    }

    fn read(text: &str) -> Self {
        let mut page = Self {
            blocks: Vec::new(),
            longest_table: 0,
        };
        let (mut block, mut code, mut rows) = (String::new(), false, 0);
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => code = true,
                Event::End(TagEnd::CodeBlock) => code = false,
                Event::Start(Tag::Table(_)) => rows = 0,
                Event::End(TagEnd::TableRow) => {
                    rows += 1;
                    page.longest_table = page.longest_table.max(rows);
                }
                Event::Text(words) if !code => block.push_str(&words),
                Event::Code(words) => block.push_str(&words),
                Event::SoftBreak | Event::HardBreak => block.push(' '),
                Event::Start(Tag::Item)
                | Event::End(
                    TagEnd::Paragraph | TagEnd::Item | TagEnd::Heading(_) | TagEnd::TableCell,
                ) => {
                    if !block.trim().is_empty() {
                        page.blocks.push(block.trim().to_string());
                    }
                    block.clear();
                }
                _ => {}
            }
        }
        page
    }
}

fn words(text: &str) -> usize {
    text.split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count()
}

fn sentences(block: &str) -> impl Iterator<Item = &str> {
    block
        .split_inclusive([' '])
        .scan((0, 0), |(from, at), word| {
            *at += word.len();
            let ends = word.trim_end().ends_with(['.', ':', '?', '!', ';']) || *at == block.len();
            Some(ends.then(|| block[std::mem::replace(from, *at)..*at].trim()))
        })
        .flatten()
}

fn subject_fault(subject: &str) -> Option<&'static str> {
    if subject.chars().count() > SUBJECT_CHARACTERS {
        return Some("more than 72 characters");
    }
    let Some((area, rest)) = subject.split_once(": ") else {
        return Some("no `area: imperative`");
    };
    let plain = |letter: char| letter.is_alphanumeric() || " ,-_/.".contains(letter);
    if area.is_empty() || !area.chars().all(plain) || rest.is_empty() {
        return Some("no `area: imperative`");
    }
    rest.ends_with('.').then_some("a full stop at its end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style() -> Style {
        Style {
            subjects_after: String::new(),
            sentence: 5,
            total: 100,
            comments: 100,
            pages: BTreeMap::new(),
            phrases: BTreeMap::from([("nobody".into(), "a noun".into())]),
        }
    }

    #[test]
    fn long_sentences_pages_and_tables_and_bad_phrases_are_named() {
        let text = "# One\n\nShort one. This sentence has many more words than five.\n\n- Nobody reads.\n\n```\ncode code code code\n```\n\n| a | b |\n| - | - |\n| c | d |\n| e | f |\n";
        assert_eq!(
            style().complaints(text, 3, Some(1)),
            [
                "19 words, at most 3",
                "a table of 2 rows, at most 1",
                "8 words, at most 5: This sentence has many more words than five.",
                "`nobody`; write a noun: Nobody reads.",
            ]
        );
        assert!(
            style()
                .complaints("One two. Three four.", 4, None)
                .is_empty()
        );
    }

    #[test]
    fn a_phrase_is_whole_words() {
        assert!(has_whole_words(" by nobody, ever ", "nobody"));
        assert!(!has_whole_words(" nobodys ", "nobody"));
    }

    #[test]
    fn subjects_have_an_area_and_an_end() {
        assert_eq!(subject_fault("link: check shared pages once"), None);
        assert_eq!(
            subject_fault("Chains are checked once"),
            Some("no `area: imperative`")
        );
        assert_eq!(
            subject_fault("link: check."),
            Some("a full stop at its end")
        );
        assert_eq!(
            subject_fault(&format!("a: {}", "b".repeat(72))),
            Some("more than 72 characters")
        );
    }
}
