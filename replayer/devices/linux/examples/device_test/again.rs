// SPDX-License-Identifier: MIT OR Apache-2.0
//! Retries until enough runs are right.

use std::error::Error;
use std::io::Write as _;

use gpureplay_core::{Family, Options, Session, Verified, Workspace};
use gpureplay_linux::Stock;

use crate::Values;

const RUNS: u32 = 5;

/// Each right run is one write to standard output, each error one to standard error: `sweep` counts them.
pub(crate) fn test<F: Family>(
    mut gpu: Stock,
    verified: Verified<'_, F>,
    values: &mut Values,
) -> Result<String, Box<dyn Error>> {
    let mut workspace = Box::new(Workspace::new());
    let mut session = Session::new(&mut gpu, verified, &mut workspace, Options::default());
    let mut right = 0;
    while right < RUNS {
        for output in values.found.values_mut() {
            output.fill(0xa5);
        }
        match session.run(values) {
            Ok(()) if values.found == values.expected => {
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
