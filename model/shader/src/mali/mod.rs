// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that names Mali: both instruction sets, descriptors, drawing.

pub(crate) mod bifrost;
pub(crate) mod dispatch;
mod family;
pub mod image;
pub(crate) mod operations;
mod resources;
pub(crate) mod run;
pub(crate) mod stage;
mod state;
pub(crate) mod valhall;

use mali_isa::Message;

/// Names of messages, by number in a clause header.
const MESSAGES: [&str; 16] = {
    let (mut names, mut at) = ([""; 16], 0);
    while at < Message::ALL.len() {
        let message = Message::ALL[at];
        names[message.number() as usize] = message.name();
        at += 1;
    }
    names
};
