// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay disasm` without a recording.

use std::io::Write;

use gpureplay_library::shown;
use mali_jobs::streams;
use mali_jobs::walk::Codes;
use mali_model::Product;

use super::{Disasm, Found, Report, ShaderReport, Shown, describe};
use crate::Result;
use crate::common::edited;
use crate::common::failure::{Failure, Outcome};
use crate::common::terminal;

impl Disasm {
    pub(super) fn file(&self) -> Result {
        let of_recordings = self.job.is_some()
            || self.shader.is_some()
            || self.jobs.chosen()
            || self.save.is_some()
            || self.annotate.is_some();
        if of_recordings {
            return Err(Failure::Usage(format!(
                "{}: --jobs, --shader, --save and --annotate are about recordings, and this is a shader's code",
                shown(&self.recording)
            )));
        }
        let file = edited::read_shader(&self.recording)?;
        if self.streams {
            let mut out = terminal::buffered_stdout();
            for line in streams::text(&file.bytes).to_string().lines() {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
            return Ok(Outcome::Done);
        }
        let beside = file.interface.as_ref().map(|it| it.gpu.as_str());
        let given = self.gpu.as_ref().map(|gpu| gpu.profile);
        let profile = given.or_else(|| Product::by_name(beside?).map(Product::profile));
        let read = |at: u64, to: &mut [u8]| {
            let rest = usize::try_from(at).ok().and_then(|at| file.bytes.get(at..));
            let found = rest.and_then(|rest| rest.get(..to.len()));
            found.inspect(|found| to.copy_from_slice(found)).is_some()
        };
        let mut codes = Codes::default();
        let shader = match profile.is_none_or(|profile| profile.architecture.has_clauses()) {
            true => codes
                .at(&read, 0)
                .map(|code| described(Shown::Clauses(&code))),
            false => codes
                .words_at(&read, 0)
                .map(|words| described(Shown::Words(&words))),
        };
        let shader = shader.map_err(|error| {
            Failure::Recording(format!("{}: is no shader: {error}", shown(&self.recording)))
        })?;
        let named = given.map(|profile| profile.name).or(beside);
        self.show(&Report {
            recording: self.recording.display().to_string(),
            gpu: named.unwrap_or("unknown GPU").to_owned(),
            jobs: 0,
            shaders: vec![shader],
        })?;
        Ok(Outcome::Done)
    }
}

fn described(code: Shown<'_>) -> ShaderReport {
    let found = Found {
        address: 0,
        jobs: Vec::new(),
        code: Ok(code),
    };
    describe(&found, None)
}
