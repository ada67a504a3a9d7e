// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sample of Debian's piglit on the model.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use gpureplay_task::{checks::End, output};
use serde::Deserialize;

use super::Here;
use crate::{
    error::{Error, Result},
    repository::root,
};

const UNPACK: &str = r#"set -e -o pipefail
apt-get -qq -o APT::Sandbox::User=root download piglit
dpkg-deb --fsys-tarfile piglit_*.deb | tar -x -C "$1" --strip-components=5 --wildcards '*/piglit/bin/cl-*' '*/piglit/lib/libpiglitutil*' \
	'*/piglit/tests/cl/*' '*/piglit/tests/cl.xml.gz' '*/piglit/generated_tests/cl/*'
"#;

const WHOLE: &str = "tests/cl.xml.gz";

/// Mesa fills images by drawing, which streams refuse.
const DRAWN: &str = "api@clenqueuefillimage";

#[derive(Deserialize)]
struct Ended {
    name: String,
    result: String,
    detail: String,
}

pub(super) fn sample(here: &Here, gpu: &str) -> Result<End> {
    let tests = match tests() {
        Ok(tests) => tests,
        Err(error) => return Ok(End::Skipped(format!("no piglit: {error}"))),
    };
    let recipe = root().join("tools/guest/piglit");
    let prefix = format!("{} node --gpu {gpu} --", here.command.display());
    let mut runner = Command::new("/usr/bin/python3");
    runner
        .arg(recipe.join("runner.py"))
        .arg("--root")
        .arg(tests);
    runner.arg("--names").arg(recipe.join("ci.txt"));
    runner.args(["--jobs", "2", "--timeout", "300", "--prefix", &prefix]);
    let printed = output(&mut runner)?;
    let ended = printed
        .lines()
        .filter_map(|line| serde_json::from_str::<Ended>(line).ok());
    // A test's later result counts.
    let last: std::collections::BTreeMap<String, Ended> =
        ended.map(|test| (test.name.clone(), test)).collect();
    let count = |word: &str| last.values().filter(|test| test.result == word).count();
    let (passed, skipped) = (count("pass"), count("skip"));
    let wrong = last
        .values()
        .filter(|test| !["pass", "skip"].contains(&test.result.as_str()))
        .filter(|test| {
            let refused = (DRAWN, "fail", super::STREAMS);
            (test.name.as_str(), test.result.as_str(), gpu) != refused
        });
    let wrong: Vec<String> = wrong
        .map(|test| format!("{} ({}): {}", test.name, test.result, test.detail))
        .collect();
    let names = fs::read_to_string(recipe.join("ci.txt")).unwrap_or_default();
    match wrong.is_empty() && passed * 20 > names.lines().count() * 19 {
        true => Ok(End::Passed(format!(
            "{passed} passed, {skipped} need what this GPU lacks"
        ))),
        false => Err(Error::fell_short(
            format!("{passed} of piglit's tests passed, which"),
            wrong.join("; "),
        )),
    }
}

fn tests() -> Result<PathBuf> {
    let installed = Path::new("/usr/lib")
        .join(format!("{}-linux-gnu", env::consts::ARCH))
        .join("piglit");
    match installed.join(WHOLE).exists() {
        true => Ok(installed),
        false => super::unpacked("piglit", WHOLE, UNPACK),
    }
}
