// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers on the command line, with helpful errors.

use std::str::FromStr;

use gpureplay_library::manifest::is_tolerance;

pub(crate) fn whole_number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| "expected a whole number from 0 on that is not too large".into())
}

pub(crate) fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if is_tolerance(number) => Ok(number),
        _ => Err("expected a number from 0 on, such as 1e-4".into()),
    }
}

pub(crate) fn positive_number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("expected a whole number from 1 to {}", u32::MAX)),
    }
}
