// SPDX-License-Identifier: MIT OR Apache-2.0
//! Old names do the same as new ones.

use std::fs;
use std::path::PathBuf;

use crate::start::{Ended, ran_in};
use crate::user_files::Copy;

/// Old, new, and whether times or random numbers make files differ.
const LINES: &[(&str, &str, bool)] = &[
    (
        "bench rec --runs 2 --quiet --export-json t.json",
        "bench rec --runs 2 --quiet -o t.json",
        true,
    ),
    ("keygen --quiet me", "keygen --quiet -o me", true),
    (
        "jobs rec --html page.html --quiet",
        "analyse rec -o page.html --quiet",
        true,
    ),
    (
        "analyse rec --html page.html --quiet",
        "analyse rec -o page.html --quiet",
        true,
    ),
    ("disasm rec --job 0", "disasm rec --jobs 0", false),
    ("dump rec", "info rec --actions", false),
    (
        "dump rec --all --jobs 0",
        "info rec --actions --bytes --jobs 0",
        false,
    ),
    (
        "dump rec --unverified",
        "info rec --actions --unverified",
        false,
    ),
    (
        "tag --shape 24,40 --dtype f16 --seed 2 a.npy",
        "record --make-input a.npy --shape 24,40 --dtype f16 --seed 2",
        false,
    ),
    ("completions bash", "generate completions bash", false),
    ("manual -o man", "generate man -o man", false),
    ("manual --markdown", "generate markdown", false),
    (
        "tune rec --job 0 --local 10 --inputs 1 --runs 0 --csv t.csv",
        "tune rec --jobs 0 --local 10 --trials 1 --runs 0 --table t.csv",
        false,
    ),
    (
        "patch rec --job 0 --local 10 --inputs 1",
        "patch rec --jobs 0 --local 10 --trials 1",
        false,
    ),
    (
        "link rec --most-jobs 2 -o new",
        "link rec --max-jobs 2 -o new",
        false,
    ),
    ("link rec --apart -o new", "link rec --split -o new", false),
    (
        "compile none --input a=x.npy --output b=y.npy --output-directory new",
        "compile none --reads a=x.npy --writes b=y.npy -o new",
        false,
    ),
    (
        "retarget rec --gpu g31 --inputs 1 -o new",
        "retarget rec --gpu g31 --trials 1 -o new",
        false,
    ),
    (
        "import none -d x.toml -w rec",
        "import none --description x.toml --weights rec",
        false,
    ),
];

#[test]
fn old_names_do_what_the_new_ones_do() {
    for (old, new, random) in LINES {
        let outcome = |words: &str| {
            let copy = Copy::of("saxpy-g52");
            for name in ["x.npy", "y.npy"] {
                fs::copy(copy.at("rec/inputs/x.npy"), copy.at(name)).unwrap();
            }
            let (code, out, error) = ran_in(copy.folder(), words);
            let within = |path: PathBuf| {
                let path = path.strip_prefix(copy.folder()).unwrap();
                path.to_owned()
            };
            let files = copy.contents().into_iter().map(|(path, bytes)| {
                let made = path.ends_with("new/manifest.toml");
                let bytes = (!random && !made).then_some(bytes);
                (within(path), bytes)
            });
            (code, out, error, files.collect::<Vec<_>>())
        };
        let (old, new) = (outcome(old), outcome(new));
        assert_eq!(old.0, new.0, "{}{}", old.2, new.2);
        assert!(old.0 != 2, "{}", old.2);
        assert_eq!((old.1, old.2, old.3), (new.1, new.2, new.3));
    }
}

#[test]
fn output_is_a_directory_or_by_its_old_meaning_a_file_with_a_name() {
    let copy = Copy::of("saxpy-g52");
    let ran = |words: &str| ran_in(copy.folder(), words);
    ran("compile none -o one -o two").ended(2, "one directory");
    ran("compile none --output out=out.npy").ended(2, "say where the recording goes");
    ran("jobs rec -o x.png").ended(2, ".csv or .json");
    ran("analyse rec -o none/x.html").ended(6, "does not exist");
    let (code, out, error) = ran("jobs rec -o x.csv");
    assert!(code == 0 && out.is_empty(), "{error}");
    let (_, shown, _) = ran("jobs rec --csv --static");
    let file = fs::read_to_string(copy.at("x.csv")).unwrap();
    assert_eq!(file.lines().next(), shown.lines().next());
    ran("jobs rec --peak-bytes 1e9").ended(2, "for a page");
}
