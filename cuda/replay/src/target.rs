// SPDX-License-Identifier: MIT OR Apache-2.0
//! `DIR#K`: a launch of a recording; `DIR#runK`: a whole run.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;

use gpureplay_cuda_launch::recording::{Launch, Part, Recording};
use gpureplay_sign::Pack;

use crate::failure::Failure;

/// Bytes that tell a pack.
const BEGIN: u64 = 64;
const MAX_PACK_BYTES: u64 = 1 << 32;

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) folder: PathBuf,
    pub(crate) number: Option<u32>,
    is_run: bool,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.rsplit_once('#') {
            Some((folder, number)) => {
                let (digits, is_run) = match number.strip_prefix("run") {
                    Some(digits) => (digits, true),
                    None => (number, false),
                };
                let number = digits
                    .parse()
                    .map_err(|_| format!("{number:?} is no number of a launch or of a run"))?;
                Ok(Self {
                    folder: folder.into(),
                    number: Some(number),
                    is_run,
                })
            }
            None => Ok(Self {
                folder: text.into(),
                number: None,
                is_run: false,
            }),
        }
    }
}

impl Target {
    pub(crate) fn recording(&self) -> Result<Recording, Failure> {
        Ok(Recording::open(&self.folder)?)
    }

    pub(crate) fn packed(&self) -> Option<Recording> {
        let mut file = File::open(&self.folder).ok()?;
        if !file.metadata().ok()?.is_file() {
            return None;
        }
        let mut bytes = Vec::new();
        file.by_ref().take(BEGIN).read_to_end(&mut bytes).ok()?;
        if !Pack::is_pack(&bytes) {
            return None;
        }
        file.take(MAX_PACK_BYTES).read_to_end(&mut bytes).ok()?;
        Recording::of_pack(&bytes)
    }

    /// The only run, without launches, needs no number.
    pub(crate) fn run(&self, recording: &Recording) -> Result<Option<u32>, Failure> {
        if let Some(number) = self.number {
            return Ok(self.is_run.then_some(number));
        }
        let runs = recording.runs()?;
        if runs.is_empty() || !recording.numbers()?.is_empty() {
            return Ok(None);
        }
        match runs.as_slice() {
            [number] => Ok(Some(*number)),
            numbers => Err(Failure::Usage(format!(
                "{} holds {} runs; say which one: {}#runK",
                self.folder.display(),
                numbers.len(),
                self.folder.display()
            ))),
        }
    }

    pub(crate) fn whole(&self, recording: &Recording, who: &str) -> Result<u32, Failure> {
        let refused = || Failure::Usage(format!("{who} takes a whole run: DIR#runK"));
        self.run(recording)?.ok_or_else(refused)
    }

    pub(crate) fn parts(&self, recording: &Recording) -> Result<Vec<(Part, u32)>, Failure> {
        if let Some(number) = self.number {
            let part = if self.is_run { Part::Run } else { Part::Launch };
            return Ok(vec![(part, number)]);
        }
        let launches = recording.numbers()?.into_iter();
        let runs = recording.runs()?.into_iter();
        Ok(launches
            .map(|number| (Part::Launch, number))
            .chain(runs.map(|number| (Part::Run, number)))
            .collect())
    }

    fn launches_only(&self) -> Result<(), Failure> {
        if self.is_run {
            return Err(Failure::Usage(
                "a whole run is meant; this command takes launches: DIR#K".into(),
            ));
        }
        Ok(())
    }

    pub(crate) fn one(&self, recording: &Recording) -> Result<u32, Failure> {
        self.launches_only()?;
        if let Some(number) = self.number {
            return Ok(number);
        }
        match recording.numbers()?.as_slice() {
            [number] => Ok(*number),
            numbers => Err(Failure::Usage(format!(
                "{} holds {} launches; say which one: {}#K",
                self.folder.display(),
                numbers.len(),
                self.folder.display()
            ))),
        }
    }

    pub(crate) fn numbers(&self, recording: &Recording) -> Result<Vec<u32>, Failure> {
        self.launches_only()?;
        Ok(match self.number {
            Some(number) => vec![number],
            None => recording.numbers()?,
        })
    }

    pub(crate) fn launches(&self, recording: &Recording) -> Result<Vec<(u32, Launch)>, Failure> {
        let numbers = self.numbers(recording)?;
        numbers
            .into_iter()
            .map(|number| Ok((number, recording.launch(number)?)))
            .collect()
    }
}

pub(crate) fn sizes(text: &str) -> Result<[u32; 3], String> {
    let mut sizes = [1; 3];
    for (index, part) in text.split(',').enumerate() {
        let size = part
            .trim()
            .parse()
            .map_err(|_| format!("{part:?} is no size"))?;
        *sizes
            .get_mut(index)
            .ok_or("there are three dimensions at most")? = size;
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::{Target, sizes};

    #[test]
    fn a_launch_of_a_recording_is_named() {
        let target: Target = "a#b/c#12".parse().unwrap();
        assert_eq!(
            (target.folder.to_str(), target.number),
            (Some("a#b/c"), Some(12))
        );
        assert_eq!("dir".parse::<Target>().unwrap().number, None);
        assert!("dir#x".parse::<Target>().is_err());
        let run: Target = "dir#run3".parse().unwrap();
        assert_eq!(
            (run.number, run.is_run, target.is_run),
            (Some(3), true, false)
        );
        assert!("dir#run".parse::<Target>().is_err());
    }

    #[test]
    fn sizes_have_up_to_three_dimensions() {
        assert_eq!(sizes("8"), Ok([8, 1, 1]));
        assert_eq!(sizes("8,4,2"), Ok([8, 4, 2]));
        assert!(sizes("8,4,2,1").is_err());
        assert!(sizes("8,x").is_err());
        assert!(sizes("-1").is_err());
    }
}
