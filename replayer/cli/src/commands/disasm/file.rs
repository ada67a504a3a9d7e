// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay disasm` without a recording.

use std::io::Write;

use gpureplay_edit::ShaderFile;
use gpureplay_jobs::Code;
use gpureplay_library::shown;
use mali_facts::Product;
use mali_isa::{DecodeError, Shader, WORD_BYTES};

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
            for line in mali_valhall::streams::text(&file.bytes).to_string().lines() {
                writeln!(out, "{line}")?;
            }
            out.flush()?;
            return Ok(Outcome::Done);
        }
        let beside = file.interface.as_ref().map(|it| it.gpu.as_str());
        let given = self.gpu.as_ref().map(|gpu| gpu.profile);
        let profile = given.or_else(|| Product::by_name(beside?).map(Product::profile));
        let shader = match profile.is_none_or(|profile| profile.architecture.has_clauses()) {
            true => bifrost(&file),
            false => valhall(&file),
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

fn bifrost(file: &ShaderFile) -> std::result::Result<ShaderReport, String> {
    let word = |offset: u32| {
        let at = offset as usize;
        let word = file.bytes.get(at..at.saturating_add(WORD_BYTES));
        let word = word.and_then(|it| it.try_into().ok());
        word.ok_or(DecodeError::Truncated { offset: at })
    };
    let (shader, identity) = Shader::identify(word).map_err(|error| error.to_string())?;
    let code = Code {
        address: 0,
        shader,
        identity,
        bytes: file.bytes.clone(),
    };
    let found = Found {
        address: 0,
        jobs: Vec::new(),
        code: Ok(Shown::Clauses(&code)),
    };
    Ok(describe(&found, None))
}

fn valhall(file: &ShaderFile) -> std::result::Result<ShaderReport, String> {
    let shader = mali_valhall::Shader::decode(&file.bytes).map_err(|error| error.to_string())?;
    Ok(ShaderReport {
        address: "0x0".into(),
        jobs: Vec::new(),
        hash: Some(format!("{:016x}", shader.hash())),
        bytes: Some(shader.bytes().len() as u64),
        clauses: None,
        instructions: Some(shader.words() as usize),
        text: Some(shader.to_string()),
        error: None,
    })
}
