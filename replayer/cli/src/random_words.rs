// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random command lines: understood, or refused with a message.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use clap::{Command, FromArgMatches};
use fastrand::Rng;

use super::{Arguments, command, hand_on, replay};

/// Of each command.
const LINES: usize = 400;
/// What options and arguments take, and what not.
const VALUES: [&str; 34] = [
    "",
    "-",
    "--",
    "x",
    "0",
    "-1",
    "1",
    "7.5",
    "1e9",
    "18446744073709551616",
    "0x10",
    "1..3",
    "3..1",
    "..",
    "a=b",
    "a=",
    "=",
    "x=y.npy",
    "x#y",
    "#",
    "@",
    "lost-write@7",
    "job-fault@",
    "random:3",
    "random:0",
    "first",
    "all",
    "model:g52",
    "nano:shared",
    "8,8,1",
    "1,,1",
    "../..",
    "/dev/null",
    "é\u{301}",
];

/// Words that lead to each command.
fn paths(command: &Command, before: &[String], all: &mut Vec<Vec<String>>) {
    all.push(before.to_vec());
    for inner in command.get_subcommands() {
        let path = [before, &[inner.get_name().to_owned()]].concat();
        paths(inner, &path, all);
    }
}

/// The options of a command, and two that it lacks.
fn options(command: &Command) -> Vec<String> {
    let own = command.get_arguments().flat_map(|argument| {
        let long = argument.get_long().map(|name| format!("--{name}"));
        long.into_iter()
            .chain(argument.get_short().map(|letter| format!("-{letter}")))
    });
    own.chain(["--nothing".to_owned(), "-Z".to_owned()])
        .collect()
}

fn value(random: &mut Rng) -> Vec<u8> {
    match random.usize(..8) {
        0 => (0..random.usize(..12)).map(|_| random.u8(1..)).collect(),
        1 => vec![random.u8(b' '..b'~'); random.usize(..400)],
        _ => VALUES[random.usize(..VALUES.len())].into(),
    }
}

fn line(random: &mut Rng, path: &[String], options: &[String]) -> Vec<OsString> {
    let mut words: Vec<Vec<u8>> = vec![b"gpureplay".to_vec()];
    words.extend(path.iter().map(|word| word.clone().into_bytes()));
    for _ in 0..random.usize(..7) {
        let option = options[random.usize(..options.len())].as_bytes();
        words.push(match random.u8(..4) {
            0 => option.to_vec(),
            1 => [option, b"=", &value(random)].concat(),
            _ => value(random),
        });
    }
    words.into_iter().map(OsString::from_vec).collect()
}

/// As `parsed`, with a command made once.
fn among(built: &mut Command, words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let matches = built.try_get_matches_from_mut(hand_on::to_cuda(words))?;
    Arguments::from_arg_matches(&matches)
}

#[test]
fn random_command_lines_are_understood_or_refused_with_a_message() {
    let all = command();
    let mut found = Vec::new();
    paths(&all, &[], &mut found);
    assert!(found.len() > 40, "{found:?}");
    let mut built = command();
    let mut random = Rng::with_seed(35);
    let (mut understood, mut refused) = (0, 0);
    for path in found {
        let inner = path
            .iter()
            .try_fold(&all, |at, name| at.find_subcommand(name));
        let options = options(inner.unwrap());
        for _ in 0..LINES {
            let words = line(&mut random, &path, &options);
            let among = among(&mut built, words.clone());
            if path == ["run"] && words.get(2).is_none_or(|word| word != "help") {
                assert_eq!(replay(&words).is_some(), among.is_ok(), "{words:?}");
            }
            match among {
                Ok(_) => understood += 1,
                Err(error) => {
                    assert!(!error.to_string().trim().is_empty(), "{words:?}");
                    refused += 1;
                }
            }
        }
    }
    assert!(understood > 50 && refused > 50, "{understood} {refused}");
}
