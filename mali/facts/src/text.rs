// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes a chain's descriptors out.

use core::fmt;

use crate::walk::{Found, Problem, Visitor};
use crate::{Architecture, Invocation, JobType};

/// A line per field that is not 0.
pub struct Text<'a> {
    out: &'a mut dyn fmt::Write,
    architecture: Architecture,
    result: fmt::Result,
}

impl<'a> Text<'a> {
    /// Writes to `out` with the architecture's fields.
    pub fn new(out: &'a mut dyn fmt::Write, architecture: Architecture) -> Text<'a> {
        Text {
            out,
            architecture,
            result: Ok(()),
        }
    }

    /// Whether all was written.
    pub fn finish(self) -> fmt::Result {
        self.result
    }

    fn line(&mut self, line: fmt::Arguments<'_>) {
        if self.result.is_ok() {
            self.result = self
                .out
                .write_fmt(line)
                .and_then(|()| self.out.write_char('\n'));
        }
    }

    fn fields(&mut self, found: &Found<'_>) -> fmt::Result {
        for field in found.layout.fields {
            if field.since > self.architecture || field.raw(found.words) == 0 {
                continue;
            }
            write!(self.out, "    {}: ", field.name)?;
            field.format(found.words, self.out)?;
            self.out.write_char('\n')?;
        }
        Ok(())
    }
}

impl Visitor for Text<'_> {
    fn job(&mut self, address: u64, job_type: Option<JobType>) {
        self.line(format_args!(
            "job {address:#x} {}",
            job_type.map_or("unknown", JobType::name)
        ));
    }

    fn descriptor(&mut self, found: &Found<'_>) {
        let (name, address) = (found.layout.name, found.address);
        match found.index {
            Some(index) => self.line(format_args!("  {name} {index} at {address:#x}")),
            None => self.line(format_args!("  {name} at {address:#x}")),
        }
        if found.layout.name == Invocation::LAYOUT.name {
            let words = [found.words[0], found.words[1]];
            if let Some((size, count)) = (Invocation { words }).dimensions() {
                self.line(format_args!(
                    "    work groups of {size:?} threads: {count:?}"
                ));
                return;
            }
        }
        if self.result.is_ok() {
            self.result = self.fields(found);
        }
    }

    fn problem(&mut self, address: u64, problem: &Problem) {
        self.line(format_args!("  ! {address:#x}: {problem}"));
    }
}
