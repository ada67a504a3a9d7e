// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changed recordings: replays end, with words.

use std::{
    fs,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use fastrand::Rng;

use super::{
    AT_A_TIME, Bench, Found,
    crew::some_at_a_time,
    programs::{build_one_of_ours, nvcc},
};
use crate::{
    error::{Error, Result},
    files,
};

const EACH: u64 = 60;
/// Seconds; a recorded replay takes less than two.
const PATIENCE: &str = "60";
const NUMBERS: [&str; 9] = [
    "0",
    "1",
    "3",
    "4095",
    "65536",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "-1",
];
const PANIC_CODE: i32 = 101;

#[derive(Clone, Copy)]
enum Change {
    Number,
    Word,
    /// The line is gone, or there twice.
    Line,
    Byte,
    /// The file is cut off.
    End,
}

const CHANGES: [(Change, &str); 5] = [
    (Change::Number, "a number of a manifest"),
    (Change::Word, "a digit of a word in a manifest"),
    (Change::Line, "a line of a manifest is gone, or there twice"),
    (Change::Byte, "a byte of any file"),
    (Change::End, "the end of any file is missing"),
];

enum End {
    Refused(String),
    Right,
    Bad(String),
}

pub(super) fn hostile(bench: &Bench) -> Found {
    build_one_of_ours(bench, "tunable.cu", "tunable")?;
    nvcc(bench, "region.cu", "region", &[])?;
    files::create_dir(bench.work.path().join("seed1"))?;
    let recordings = [
        (
            "record -o kernel --max-per-kernel 1 --kernel ^plane$ -- ./tunable",
            "kernel",
            "#0",
        ),
        ("record --run -o whole -- ./region 1 seed1", "whole", ""),
    ];
    let mut text = String::from(
        "| Recording | What is changed | Changed recordings | Refused, or failed with a reason | As recorded | Ended badly | For example |\n| --- | --- | --: | --: | --: | --: | --- |\n",
    );
    let mut bad = 0;
    for (words, name, which) in recordings {
        let (ran, said) = bench.start(words)?;
        if !ran {
            eprintln!("{words}: {said}");
            bad += 1;
            continue;
        }
        let files = files_of(&bench.work.path().join(name))?;
        if !matches!(one(bench, (name, which), &files, None)?, End::Right) {
            eprintln!("{name}: a copy does not replay");
            bad += 1;
        }
        for (kind, (change, what)) in (0_u64..).zip(CHANGES) {
            let numbers = Vec::from_iter(kind * EACH..(kind + 1) * EACH);
            let ends = some_at_a_time(AT_A_TIME, &numbers, |&number| {
                one(bench, (name, which), &files, Some((change, number)))
            });
            let (mut reasons, mut right, mut wrong) = (Vec::new(), 0, 0);
            for (number, end) in numbers.iter().zip(ends) {
                match end? {
                    End::Refused(why) => reasons.push(why),
                    End::Right => right += 1,
                    End::Bad(said) => {
                        eprintln!("{name}, {what}, {number}: {said}");
                        wrong += 1;
                    }
                }
            }
            let refused = reasons.len();
            let example = reasons.first().map_or("", String::as_str).replace('|', "/");
            let row = format!(
                "| {name} | {what} | {EACH} | {refused} | {right} | {wrong} | {example} |\n"
            );
            eprint!("{row}");
            text += &row;
            bad += wrong;
        }
        let (right, said) = bench.start(&format!("run {name}{which}"))?;
        if !right {
            eprintln!("{name}, unchanged: {said}");
        }
        bad += usize::from(!right);
    }
    text += "\nThe recordings as they were still replay right after all of these.\n";
    Ok((text, bad))
}

fn one(
    bench: &Bench,
    (name, which): (&str, &str),
    files: &[PathBuf],
    change: Option<(Change, u64)>,
) -> Result<End> {
    let number = change.map_or(0, |(_, number)| number);
    let mut random = Rng::with_seed(number);
    let from = bench.work.path().join(name);
    let to = format!("{name}-{number}");
    let copy = bench.work.path().join(&to);
    let of_any = matches!(change, Some((Change::Byte | Change::End, _)));
    let choice: Vec<&PathBuf> = files
        .iter()
        .filter(|file| of_any || file.extension().is_some_and(|it| it == "toml"))
        .collect();
    let changed = random.choice(&choice).copied();
    for file in files {
        let target = copy.join(file.strip_prefix(&from).unwrap_or(file));
        let above = target.parent().unwrap_or(&copy);
        files::create_dir(above)?;
        if let Some((change, _)) = change
            && changed == Some(file)
        {
            let bytes = files::read(file)?;
            files::write(&target, with(bytes, change, &mut random))?;
        } else {
            fs::hard_link(file, &target).map_err(Error::io("link", &target))?;
        }
    }
    let mut limited = Command::new("timeout");
    limited
        .current_dir(bench.work.path())
        .args(["-s", "KILL", PATIENCE])
        .arg(&bench.command);
    let run = limited.args(["run", &format!("{to}{which}")]).output();
    let run = run.map_err(Error::start("timeout"))?;
    let mut said = String::from_utf8_lossy(&run.stdout).into_owned();
    said += &String::from_utf8_lossy(&run.stderr);
    let _ = fs::remove_dir_all(&copy);
    let why = match (run.status.code(), run.status.signal()) {
        (Some(0), _) => return Ok(End::Right),
        (Some(PANIC_CODE), _) => "it panicked",
        // A shell's signals; 137 is the time limit's.
        (Some(128..) | None, _) => "a signal ended it, or its time",
        _ if said.contains("panicked at") => "it panicked",
        _ if said.trim().is_empty() => "it said nothing",
        _ => {
            let line = said.lines().find(|line| line.starts_with("gpureplay: "));
            let why = line.map_or_else(|| said.trim().replace('\n', ";"), str::to_owned);
            return Ok(End::Refused(why));
        }
    };
    let changed = changed.map(|file| file.display().to_string());
    Ok(End::Bad(format!(
        "{why}; {}: {}",
        changed.unwrap_or_default(),
        said.trim()
    )))
}

fn with(mut bytes: Vec<u8>, change: Change, random: &mut Rng) -> Vec<u8> {
    match change {
        Change::Byte => {
            if let Some(byte) = random.choice(&mut bytes) {
                *byte ^= 1 << random.u8(..8);
            }
        }
        Change::End => bytes.truncate(random.usize(..bytes.len().max(1))),
        Change::Number | Change::Word | Change::Line => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return in_text(&text, change, random).into_bytes();
        }
    }
    bytes
}

fn in_text(text: &str, change: Change, random: &mut Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let fits = |line: &String| match change {
        Change::Number => place(line, false).is_some(),
        Change::Word => place(line, true).is_some(),
        _ => true,
    };
    let places: Vec<usize> = (0..lines.len()).filter(|&at| fits(&lines[at])).collect();
    let Some(&at) = random.choice(&places) else {
        return text.to_owned();
    };
    match change {
        Change::Line if random.bool() => drop(lines.remove(at)),
        Change::Line => lines.insert(at, lines[at].clone()),
        _ => {
            let is_word = matches!(change, Change::Word);
            if let Some((begin, end)) = place(&lines[at], is_word) {
                let new = if is_word {
                    random.u8(..10).to_string()
                } else {
                    random.choice(NUMBERS).unwrap_or("0").to_owned()
                };
                let end = if is_word { begin + 1 } else { end };
                lines[at].replace_range(begin..end, &new);
            }
        }
    }
    lines.join("\n") + "\n"
}

fn place(line: &str, in_quotes: bool) -> Option<(usize, usize)> {
    let value = line.find(['=', '['])? + 1;
    let begin = line[value..].find(|it: char| it.is_ascii_digit())? + value;
    let is_quoted = line[..begin].matches('"').count() % 2 == 1;
    let length = line[begin..].find(|it: char| !it.is_ascii_digit());
    let end = length.map_or(line.len(), |length| begin + length);
    (is_quoted == in_quotes).then_some((begin, end))
}

fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in files::entries(folder)? {
        if path.is_dir() {
            files.extend(files_of(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_changes_and_is_the_same_again() {
        let text = "size = 4096\nbase = \"0x7f00\"\ngrid = [1, 2, 3]\n";
        for (kind, (change, what)) in (0..).zip(CHANGES) {
            let changed = |seed| with(text.into(), change, &mut Rng::with_seed(seed));
            let seeds = kind * EACH..(kind + 1) * EACH;
            assert!(
                seeds.clone().any(|seed| changed(seed) != text.as_bytes()),
                "{what}"
            );
            assert!(
                seeds.clone().all(|seed| changed(seed) == changed(seed)),
                "{what}"
            );
        }
    }

    #[test]
    fn numbers_and_quoted_words_are_told_apart() {
        assert_eq!(place("size = 4096", false), Some((7, 11)));
        assert_eq!(place("size = 4096", true), None);
        assert_eq!(place("base = \"0x7f00\"", true), Some((8, 9)));
        assert_eq!(place("[[region]]", false), None);
    }
}
