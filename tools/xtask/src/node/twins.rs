// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernels of equal code keep their names.

use std::{fs, path::Path};

use gpureplay_task::output;
use serde::Deserialize;

use super::Here;
use crate::{
    error::{Error, Result},
    files,
};

const COUNT: usize = 256;

/// Records two kernels by their names, then again with another second name. Both are given tensors only, of equal size.
const SCRIPT: &str = r#"set -e
for second in beta gamma; do
	gpureplay record $RECORD --twice -o recording-$second --name alpha.src=in --name $second.dst=out \
		-- twins alpha $second a.bin a.out -- twins alpha $second b.bin b.out
done
gpureplay node --gpu $1 -- twins alpha beta c.bin live.bin
"#;

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
struct Job {
    name: String,
    kernel: String,
}

pub(super) fn all(here: &Here, gpu: &str) -> Result<std::result::Result<(), String>> {
    let work = here.work.as_path();
    for (name, start) in [("a", 3), ("b", 12), ("c", 40)] {
        files::write(
            work.join(name).with_extension("bin"),
            bytes(&numbers(start)),
        )?;
    }
    output(&mut here.script(SCRIPT, &[gpu], gpu))?;
    for second in ["beta", "gamma"] {
        let found = jobs(here, &work.join(format!("recording-{second}")))?;
        if let Err(reason) = named(&found.jobs, second) {
            return Ok(Err(reason));
        }
    }
    let mut run = here.gpureplay();
    run.args(["run", "--force", "recording-gamma"]);
    output(run.args(["--input=in=c.bin", "--output=out=replayed.bin"]))?;
    Ok(compare(work))
}

fn jobs(here: &Here, recording: &Path) -> Result<Jobs> {
    let mut list = here.gpureplay();
    let text = output(list.args(["jobs", "--static", "--json"]).arg(recording))?;
    serde_json::from_str(&text).map_err(|error| Error::Usage(format!("jobs: {error}")))
}

fn named(jobs: &[Job], second: &str) -> std::result::Result<(), String> {
    match jobs {
        [one, other]
            if one.name == "alpha" && other.name == second && one.kernel == other.kernel =>
        {
            Ok(())
        }
        _ => {
            let all = jobs
                .iter()
                .map(|job| format!("{} {}", job.name, job.kernel));
            Err(format!(
                "jobs are {}; expected alpha and {second} of equal code",
                all.collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

fn compare(work: &Path) -> std::result::Result<(), String> {
    let read = |name: &str| fs::read(work.join(name)).map_err(|error| format!("{name}: {error}"));
    let [one, other] = ["beta", "gamma"].map(|name| format!("recording-{name}"));
    let file = |folder: &str| read(&format!("{folder}/recording.gpr"));
    let (before, after) = (file(&one)?, file(&other)?);
    if before != after {
        let same = before.iter().zip(&after).take_while(|(a, b)| a == b);
        return Err(format!(
            "another name makes another recording: {} and {} bytes, alike up to byte {}",
            before.len(),
            after.len(),
            same.count()
        ));
    }
    let manifest = |folder: &str| {
        let text = read(&format!("{folder}/manifest.toml"))?;
        String::from_utf8(text).map_err(|error| format!("{folder}: {error}"))
    };
    let renamed = manifest(&one)?.replace("beta", "gamma");
    if renamed != manifest(&other)? {
        return Err("another name makes another manifest".into());
    }
    let step = |x: f32| x * x + 1.0;
    let expected: Vec<f32> = numbers(40).into_iter().map(|x| step(step(x))).collect();
    for name in ["replayed.bin", "live.bin"] {
        if read(name)? != bytes(&expected) {
            return Err(format!("{name} is not what the CPU computes"));
        }
    }
    Ok(())
}

/// Exact after two squarings.
fn numbers(start: usize) -> Vec<f32> {
    let number = |i: usize| ((i * 7 + start) % 61) as f32 / 8.0 - 30.0 / 8.0;
    (0..COUNT).map(number).collect()
}

fn bytes(values: &[f32]) -> Vec<u8> {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    bytes.collect()
}

#[cfg(test)]
mod tests {
    use super::{Job, named};

    #[test]
    fn equal_code_under_two_names_is_wanted() {
        let job = |name: &str, kernel: &str| Job {
            name: name.into(),
            kernel: kernel.into(),
        };
        assert!(named(&[job("alpha", "1"), job("beta", "1")], "beta").is_ok());
        for wrong in [
            [job("alpha", "1"), job("alpha", "1")],
            [job("beta", "1"), job("alpha", "1")],
            [job("alpha", "1"), job("beta", "2")],
        ] {
            assert!(named(&wrong, "beta").is_err());
        }
        assert!(named(&[job("alpha", "1")], "beta").is_err());
    }
}
