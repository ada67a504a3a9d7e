// SPDX-License-Identifier: MIT OR Apache-2.0
//! A replay that goes on after each error: memory is filled and work run once more, until some runs in a row are right.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;

use gpureplay_core::{Family, Options, Session, Verified, Workspace};
use gpureplay_linux::Stock;

use crate::Values;

/// Right runs in a row at the end.
const RUNS: u32 = 5;

/// Runs until enough runs in a row are right: says each of them on standard output, and each error on standard error, by one write.
///
/// # Errors
/// The device cannot be opened, or an output differs.
pub(crate) fn test<F: Family>(
    mut gpu: Stock,
    verified: Verified<'_, F>,
    values: &mut Values,
    expected: &BTreeMap<u32, Vec<u8>>,
) -> Result<String, Box<dyn Error>> {
    let mut workspace = Box::new(Workspace::new());
    let mut session = Session::new(&mut gpu, verified, &mut workspace, Options::default());
    let mut right = 0;
    while right < RUNS {
        for output in values.found.values_mut() {
            output.fill(0xa5);
        }
        match session.run(values) {
            Ok(()) if values.found == *expected => {
                right += 1;
                std::io::stdout().write_all(b"right\n")?;
            }
            Ok(()) => return Err("an output differs".into()),
            Err(error) => {
                right = 0;
                std::io::stderr().write_all(format!("{error:?}\n").as_bytes())?;
            }
        }
    }
    session.close().map_err(|error| format!("{error:?}"))?;
    Ok(format!("{RUNS} runs agree"))
}
