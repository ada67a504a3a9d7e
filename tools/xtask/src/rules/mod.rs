// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules over the crates: layers, reasons, no circles.

mod circles;
mod layers;
mod reasons;

use crate::{
    error::{Error, Result},
    repository::root,
    workspace::crates,
};
pub(crate) use layers::top;
pub(crate) use reasons::Reasons;

pub(crate) fn check() -> Result<()> {
    let crates = crates()?;
    let mut complaints = layers::forbidden(&crates);
    complaints.extend(circles::found(&crates)?);
    complaints.extend(Reasons::read(&root())?.complaints(&crates));
    if complaints.is_empty() {
        return Ok(());
    }
    Err(Error::fell_short(
        "the order of the crates",
        complaints.join("; "),
    ))
}

#[test]
fn the_crates_keep_the_rules() {
    check().expect("rules");
}
