// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linked chains on all devices.

use std::{collections::BTreeMap, path::Path, process::Command};

use crate::{
    build::{payload, step::logged},
    devices::expect,
    error::Result,
    files,
    firmware::checks,
    folder::Folder,
    run::{
        driver::Driver,
        session::{self, Checked, Options},
    },
};

const SCRIPT: &str = include_str!("linked.sh");
const RECORDING: &str = "digits-g52";
const JOBS: u32 = 12;
const LAYERS: u32 = 7;
const FORMS: [(&str, &str); 3] = [
    ("apart", "--apart"),
    ("layers", "--max-jobs=64"),
    ("whole", "--whole"),
];
const DEVICES: [&str; 3] = ["devmem", "nano", "nano:shared"];
const RUNS: u32 = 20;
/// Per run of one chain: the interrupt line may still be up.
const MOST_INTERRUPTS: u32 = 2;

type Counts = BTreeMap<(String, String, u32), (u32, u32)>;

pub(super) fn one_submission(folder: &Folder) -> Result<()> {
    payload::nano_driver(folder)?;
    let share = files::temporary()?;
    expect(folder, RECORDING, share.path())?;
    for (form, option) in FORMS {
        make(folder, option, &share.path().join(form))?;
    }
    let words = |list: &[&str]| list.join(" ");
    let options = Options {
        environment: vec![
            ("RECORDING".into(), RECORDING.into()),
            ("FORMS".into(), words(&FORMS.map(|(form, _)| form))),
            ("DEVICES".into(), words(&DEVICES)),
            ("RUNS".into(), (RUNS + 1).to_string()),
        ],
        ..Options::sharing(Driver::None, share.path())
    };
    let outcome = session::script(folder, &options, SCRIPT)?;
    let said = outcome.said();
    let seen = outcome.clean().and_then(|()| judge(&counts(&said)));
    if let Err(reason) = seen {
        return Err(format!("{reason}: {}", said.trim()).into());
    }
    checks::submits_once(folder, &share.path().join("whole"))
}

fn make(folder: &Folder, option: &str, to: &Path) -> Result<()> {
    let mut link = Command::new(payload::host_command(folder));
    link.arg("link")
        .arg(folder.repository.join("recordings").join(RECORDING))
        .arg(option)
        .arg("-o")
        .arg(to);
    logged(&mut link, "linking", &folder.local.join("log/link.log"))
}

/// Lines `counted FORM DEVICE RUNS SUBMISSIONS INTERRUPTS`.
fn counts(said: &str) -> Counts {
    let line = |line: &str| {
        let words: Vec<&str> = line.strip_prefix("counted ")?.split(' ').collect();
        let &[form, device, runs, submissions, interrupts] = words.as_slice() else {
            return None;
        };
        let key = (form.to_owned(), device.to_owned(), runs.parse().ok()?);
        Some((key, (submissions.parse().ok()?, interrupts.parse().ok()?)))
    };
    said.lines().filter_map(line).collect()
}

fn judge(counts: &Counts) -> Checked {
    for device in DEVICES {
        for (form, _) in FORMS {
            let of = |runs| {
                let key = (form.to_owned(), device.to_owned(), runs);
                counts
                    .get(&key)
                    .ok_or_else(|| format!("nothing is said of {runs} runs of {form} on {device}"))
            };
            let (few, many) = (of(1)?, of(1 + RUNS)?);
            let interrupts = many.1.saturating_sub(few.1);
            let submissions = match form {
                "apart" => JOBS,
                "layers" => LAYERS,
                _ => 1,
            };
            // /dev/mem polls. Elsewhere some runs find their chain done before the interrupt.
            let polls = device == "devmem";
            let enough = match form {
                "apart" => interrupts > RUNS * MOST_INTERRUPTS,
                "whole" => (RUNS / 2..=RUNS * MOST_INTERRUPTS).contains(&interrupts),
                _ => true,
            };
            if (few.0, many.0) != (submissions, submissions) || !(polls || enough) {
                return Err(format!(
                    "{RUNS} runs of {form} on {device}: {} submissions each, {interrupts} interrupts",
                    many.0
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(change: (&str, &str)) -> String {
        let mut said = String::new();
        for device in DEVICES {
            for (form, chains) in [("apart", JOBS), ("layers", LAYERS), ("whole", 1)] {
                for runs in [1, 1 + RUNS] {
                    let interrupts = if device == "devmem" {
                        0
                    } else {
                        1 + runs * chains
                    };
                    said += &format!("counted {form} {device} {runs} {chains} {interrupts}\n");
                }
            }
        }
        assert!(said.contains(change.0), "{said}");
        said.replacen(change.0, change.1, 1)
    }

    #[test]
    fn too_many_submissions_or_interrupts_are_seen() {
        assert_eq!(judge(&counts(&said(("", "")))), Ok(()));
        for change in [
            ("whole nano 21 1 22", "whole nano 21 2 22"),
            ("whole nano 21 1 22", "whole nano 21 1 63"),
            ("whole nano 21 1 22", "whole nano 21 1 2"),
            ("whole devmem 21 1 0", "whole devmem 21 7 0"),
            ("apart nano 21 12 253", "apart nano 21 12 22"),
            ("counted whole nano:shared 21", "counted"),
        ] {
            assert!(judge(&counts(&said(change))).is_err(), "{change:?}");
        }
    }
}
