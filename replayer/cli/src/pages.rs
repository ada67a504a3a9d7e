// SPDX-License-Identifier: MIT OR Apache-2.0
//! All commands in the documents parse.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::error::ErrorKind;

const ENDS: [&str; 6] = [";", "&&", "|", ">", "&", "2>"];

fn pages(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("directory").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(&path, into);
        } else if name.ends_with(".md") {
            into.push(path);
        }
    }
}

/// Blocks with joined lines, and inline code.
fn code(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocks, mut pieces, mut fenced, mut open) =
        (Vec::new(), Vec::new(), false, None::<String>);
    for line in page.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") {
            let line = format!("{} {}", open.take().unwrap_or_default(), line.trim());
            match line.strip_suffix('\\') {
                Some(start) => open = Some(start.to_owned()),
                None => blocks.push(line.trim().to_owned()),
            }
        } else {
            pieces.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    (blocks, pieces)
}

/// Without the remark after the command.
fn words(line: &str) -> Vec<String> {
    let line = line.split("   ").next().unwrap_or_default();
    let line = line.split(" # ").next().unwrap_or_default();
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for letter in line.chars() {
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            (' ', None) => words.push(std::mem::take(&mut word)),
            (';', None) => words.extend([std::mem::take(&mut word), ";".into()]),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn commands(line: &str) -> Vec<Vec<String>> {
    let words = words(line);
    let starts = (0..words.len()).filter(|at| {
        let before = at.checked_sub(1).map(|at| words[at].as_str());
        words[*at] == "gpureplay"
            && before.is_none_or(|before| {
                ENDS.contains(&before) || ["--", "sudo", "ncu"].contains(&before)
            })
    });
    let end = |word: &&String| !ENDS.contains(&word.as_str());
    starts
        .map(|at| words[at..].iter().take_while(end).cloned().collect())
        .collect()
}

/// Why a command is refused; of a part, only unknown words are wrong.
fn refusal(words: &[String], part: bool) -> Option<String> {
    let part = part
        || words
            .iter()
            .any(|word| word.contains('…') || word.contains("..."));
    let handed = words.iter().map(std::ffi::OsString::from).collect();
    let handed = crate::hand_on::to_cuda_on(handed, false);
    let error = crate::command().try_get_matches_from(handed).err()?;
    let wrong = match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => false,
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand => true,
        _ => !part,
    };
    // A word in capitals stands for a command.
    let named = |word: &String| word.chars().all(|letter| letter.is_ascii_uppercase());
    let stands = words.get(1).is_some_and(named);
    (wrong && !stands).then(|| error.to_string())
}

#[test]
fn commands_of_the_pages_are_taken() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    pages(&top, &mut files);
    let (mut seen, mut wrong) = (0, Vec::new());
    for file in files {
        let (blocks, pieces) = code(&fs::read_to_string(&file).expect("page"));
        let whole = blocks.iter().map(|line| (line, false));
        for (line, part) in whole.chain(pieces.iter().map(|line| (line, true))) {
            for command in commands(line) {
                seen += 1;
                if let Some(why) = refusal(&command, part) {
                    wrong.push(format!("{}: {}\n{why}", file.display(), command.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150, "{seen} commands");
}

#[test]
fn a_command_that_is_not_there_is_seen() {
    let refused = |line: &str| {
        let found = commands(line);
        found
            .iter()
            .filter_map(|words| refusal(words, false))
            .count()
    };
    assert_eq!(refused("gpureplay run REC --input 'a b.npy'   a remark"), 0);
    assert_eq!(refused("sudo gpureplay doctor; gpureplay ron REC"), 1);
    assert_eq!(refused("gpureplay run REC --nowhere && ls"), 1);
    assert_eq!(refused("gpureplay run --top 3"), 1);
    assert_eq!(refused("./app gpureplay nothing"), 0);
    let (blocks, pieces) = code("a `b` c\n\n    d \\\n      e\n\n```sh\nf\n```\n");
    assert_eq!(
        (blocks, pieces),
        (vec!["d  e".into(), "f".into()], vec!["b".into()])
    );
}
