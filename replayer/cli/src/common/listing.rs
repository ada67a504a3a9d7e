// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is shown of a recording.

use std::borrow::Cow;
use std::io::Write;

use clap::Args;
use gpureplay_format::Recording;
use gpureplay_format::layout::TensorEntry;
use gpureplay_library::Files;
use gpureplay_library::host_rules::MAX_NAME;

use crate::Result;
use crate::common::failure::Failure;

const MAX_ENTRIES: usize = 1000;
/// Actions shown of an unsound recording, whose segments may overlap.
const MAX_ACTIONS: usize = 1 << 16;

/// Whether a recording that breaks rules is shown anyway.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Unverified {
    /// Show a recording even if it breaks rules, for finding out why: at most 1000 entries of each table, names cut at 255 bytes
    #[arg(long)]
    unverified: bool,
}

impl Unverified {
    pub(crate) fn list(self, files: &Files) -> Result<Listing<'_>> {
        let view = files.view()?;
        let (recording, unsound) = match files.verify(&view) {
            Ok(_) => (view, None),
            Err(error) if self.unverified => {
                (files.parse()?, Some(Failure::from(error).to_string()))
            }
            Err(error) => return Err(error.into()),
        };
        let bound = |most: usize| unsound.as_ref().map_or(usize::MAX, |_| most);
        Ok(Listing {
            recording,
            entries: bound(MAX_ENTRIES),
            actions_left: bound(MAX_ACTIONS),
            unsound,
        })
    }
}

pub(crate) struct Listing<'a> {
    pub(crate) recording: Recording<'a>,
    pub(crate) unsound: Option<String>,
    entries: usize,
    actions_left: usize,
}

impl<'a> Listing<'a> {
    pub(crate) fn of<T>(&self, table: &'a [T]) -> &'a [T] {
        table.get(..self.entries).unwrap_or(table)
    }

    pub(crate) fn take_actions(&mut self, count: usize) -> usize {
        let taken = count.min(self.actions_left);
        if self.unsound.is_some() {
            self.actions_left -= taken;
        }
        taken
    }

    pub(crate) fn name(&self, offset: u32) -> Cow<'a, str> {
        let strings = self.recording.strings().get(offset as usize..);
        let name = strings.unwrap_or_default();
        let name = name.get(..=MAX_NAME).unwrap_or(name);
        let text = |bytes: &'a [u8]| str::from_utf8(bytes).unwrap_or_default();
        match name.iter().position(|&byte| byte == 0) {
            Some(end) => text(&name[..end]).into(),
            None => format!("{}…", text(&name[..name.len().min(MAX_NAME)])).into(),
        }
    }

    pub(crate) fn tensor(&self, index: u32) -> Cow<'a, str> {
        let tensor: Option<&TensorEntry> = self.recording.tensors().get(index as usize);
        tensor.map_or("(no such tensor)".into(), |tensor| {
            self.name(tensor.name.get())
        })
    }

    pub(crate) fn left_out<T>(&self, out: &mut impl Write, table: &'a [T]) -> Result<()> {
        if let Some(more @ 1..) = table.len().checked_sub(self.entries) {
            writeln!(out, "  … and {more} more")?;
        }
        Ok(())
    }
}
