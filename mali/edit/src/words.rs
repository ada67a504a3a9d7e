// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether another shader fits a Valhall job.

use gpureplay_jobs::{Job, Valhall, Words};
use mali_facts::valhall::{ComputePayload, ShaderEnvironment, ShaderProgram, register_allocation};
use mali_facts::{Memory, job};
use mali_isa::valhall::Shader;
use mali_jobs::walk::Codes;

use crate::addition::{self, Addition, Writes};
use crate::error::{EditError, Result, gate};
use crate::flow::Flow;
use crate::shader::OF_32;

/// A job may fill registers from here on.
const FIRST: u32 = 48;

pub(crate) struct Start {
    at: u64,
    environment: ShaderEnvironment,
    program: ShaderProgram,
}

impl Start {
    /// A command stream's job has it in registers, which a new shader would have to change.
    ///
    /// # Errors
    /// Such a job, or unreadable descriptors.
    pub(crate) fn of(memory: &dyn Memory, job: &Job, in_stream: bool) -> Result<Self> {
        if in_stream {
            return gate(
                "descriptors",
                "the job is in a command stream, whose registers name the shader".into(),
            );
        }
        let at = job.address + job::PAYLOAD + ComputePayload::SIZE as u64;
        let mut bytes = [0; ShaderEnvironment::SIZE];
        let mut known = memory.read(at, &mut bytes);
        let environment = ShaderEnvironment::from_bytes(&bytes);
        let mut bytes = [0; ShaderProgram::SIZE];
        known &= memory.read(environment.program(), &mut bytes);
        if !known {
            return gate("descriptors", "the job's descriptors cannot be read".into());
        }
        Ok(Self {
            at,
            environment,
            program: ShaderProgram::from_bytes(&bytes),
        })
    }

    pub(crate) fn fits(&self, code: &[u8], valhall: &Valhall) -> Result<Words> {
        let words = match decoded(code) {
            Ok(words) => words,
            Err(error) => return gate("code", format!("the file is no shader: {error}")),
        };
        let flow = Flow::of_words(&words);
        if flow.dynamic {
            return gate(
                "branches",
                "a branch goes where the code does not say".into(),
            );
        }
        let given = valhall.launch.uniform_bytes / 8;
        if u64::from(flow.uniform_slots) > given {
            return gate(
                "uniforms",
                format!(
                    "it reads {} slots of push uniforms, and the job gives {given}",
                    flow.uniform_slots
                ),
            );
        }
        let missing = flow.initial >> FIRST & !self.program.preload();
        if missing != 0 {
            return gate(
                "initial registers",
                format!(
                    "it may read r{} before it writes it, and the job puts nothing there",
                    FIRST + missing.trailing_zeros()
                ),
            );
        }
        let few = self.program.register_allocation() as u32 == register_allocation::THIRTY_TWO;
        if few && flow.named & !OF_32 != 0 {
            let register = (flow.named & !OF_32).trailing_zeros();
            return gate(
                "register allocation",
                format!(
                    "it uses r{register}, and the job gives each thread r0 to r15 and r48 to r63 only"
                ),
            );
        }
        for (uses, bytes, name, what) in [
            (
                flow.thread_storage,
                valhall.launch.storage_bytes[0],
                "thread storage",
                "thread",
            ),
            (
                flow.group_storage,
                valhall.launch.storage_bytes[1],
                "group storage",
                "work group",
            ),
        ] {
            if uses && bytes == 0 {
                return gate(
                    name,
                    format!("it uses storage of its {what}, and the job has none"),
                );
            }
        }
        let (_, tables) = self.environment.resource_list();
        if flow.tables && tables == 0 {
            return gate(
                "resources",
                "it uses buffers, textures or images by number, and the job has no resource table"
                    .into(),
            );
        }
        for (number, instruction) in shader_of(&words).into_iter().enumerate() {
            if let Err(broken) = instruction.check() {
                return gate("opcodes", format!("word {number} breaks a limit: {broken}"));
            }
        }
        Ok(words)
    }

    /// Makes a program after `end`, and points the environment to it: other jobs may share the recorded one.
    pub(crate) fn with(&self, code: &[u8], end: u64) -> Result<(Writes, Addition)> {
        let (addition, code_at, program_at) = addition::code_and_page(code, end);
        let offset = ShaderEnvironment::LAYOUT.offset_of("Shader");
        let Some(offset) = offset else {
            return Err(EditError::Size("an environment names no shader".into()));
        };
        let program = self.program.with("Binary", code_at);
        let low = self.environment.shader() ^ self.environment.program();
        let writes = vec![
            (program_at, program.to_bytes().to_vec()),
            (self.at + offset, (program_at | low).to_le_bytes().to_vec()),
        ];
        Ok((writes, addition))
    }
}

fn shader_of(words: &Words) -> Vec<mali_isa::valhall::Instruction> {
    let shader = Shader::decode(&words.bytes);
    shader.map_or_else(|_| Vec::new(), |shader| shader.instructions().collect())
}

pub(crate) fn decoded(code: &[u8]) -> std::result::Result<Words, String> {
    let memory = |va: u64, to: &mut [u8]| {
        let at = usize::try_from(va).unwrap_or(usize::MAX);
        let from = code.get(at..at.saturating_add(to.len()));
        from.map(|from| to.copy_from_slice(from)).is_some()
    };
    let words = Codes::default().words_at(&memory, 0);
    let words = words.map_err(|error| error.to_string())?;
    Ok(std::sync::Arc::unwrap_or_clone(words))
}
