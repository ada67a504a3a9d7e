// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mali's shader cores, on the engine of [`gpureplay_shader`].
//!
//! Errors are hardware's faults.

#![forbid(unsafe_code)]

#[macro_use]
extern crate gpureplay_shader;

mod bifrost;
mod dispatch;
mod family;
pub mod image;
mod operations;
mod resources;
mod run;
mod stage;
mod state;
mod valhall;

use mali_isa::Message;

pub use bifrost::absent::{Absence, absence};
pub use dispatch::{Dispatch, Subnormals};
pub use run::{analyse, draw, run};
pub use stage::{
    AttributeTable, Fragments, GUARD_BAND, Lookup, Packets, Preload, Stage, Tile, Triangle,
    Vertices,
};

const MESSAGES: [&str; 16] = {
    let (mut names, mut at) = ([""; 16], 0);
    while at < Message::ALL.len() {
        let message = Message::ALL[at];
        names[message.number() as usize] = message.name();
        at += 1;
    }
    names
};
