// SPDX-License-Identifier: MIT OR Apache-2.0
//! A replay that goes on after an error: the device is opened, memory filled and work run once more, and then all must be right.

use std::collections::BTreeMap;
use std::error::Error;

use gpureplay_core::{Family, Options, Session, Verified, Workspace};
use gpureplay_linux::Stock;

use crate::Values;

/// Runs of one session.
const RUNS: u32 = 3;

/// Opens, fills and runs; whatever fails is done a second time, and told on standard error.
///
/// # Errors
/// Two steps failed, or an output differs.
pub(crate) fn test<F: Family>(
    open: impl Fn() -> Result<Stock, Box<dyn Error>>,
    verified: Verified<'_, F>,
    values: &mut Values,
    expected: &BTreeMap<u32, Vec<u8>>,
) -> Result<String, Box<dyn Error>> {
    let mut failed: Vec<String> = Vec::new();
    let mut note = |what: &str, error: String| {
        failed.push(format!("{what}: {error}"));
        match failed.len() {
            1 => Ok(()),
            _ => Err(failed.join("; ")),
        }
    };
    let mut gpu = loop {
        match open() {
            Ok(gpu) => break gpu,
            Err(error) => note("open", error.to_string())?,
        }
    };
    let mut workspace = Box::new(Workspace::new());
    let mut session = Session::new(&mut gpu, verified, &mut workspace, Options::default());
    for run in 0..RUNS {
        loop {
            for output in values.found.values_mut() {
                output.fill(0xa5);
            }
            match session.run(values) {
                Ok(()) => break,
                Err(error) => note(&format!("run {run}"), format!("{error:?}"))?,
            }
        }
        if values.found != *expected {
            return Err(format!("run {run}: an output differs").into());
        }
    }
    session.close().map_err(|error| format!("{error:?}"))?;
    for error in failed {
        eprintln!("{error}");
    }
    Ok(format!("{RUNS} runs agree"))
}
