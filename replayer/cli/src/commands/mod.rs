// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subcommands.

pub(crate) mod analyse;
pub(crate) mod bench;
pub(crate) mod compile;
pub(crate) mod diff;
pub(crate) mod disasm;
pub(crate) mod doctor;
pub(crate) mod dump;
pub(crate) mod extract;
pub(crate) mod generate;
pub(crate) mod import;
pub(crate) mod info;
pub(crate) mod jobs;
pub(crate) mod keygen;
pub(crate) mod link;
pub(crate) mod node;
pub(crate) mod pack;
pub(crate) mod patch;
pub(crate) mod record;
pub(crate) mod retarget;
pub(crate) mod run;
pub(crate) mod sign;
pub(crate) mod tag;
pub(crate) mod tune;
pub(crate) mod unpack;
pub(crate) mod verify;
