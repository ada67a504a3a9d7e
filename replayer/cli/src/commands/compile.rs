// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay compile`: a raw trace becomes a recording.

use std::collections::HashSet;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_compile::plan::tensor_kind;
use gpureplay_compile::{Capture, Role, differential};
use gpureplay_tensors::{Form, Tensor};

use crate::common::failure::{Failure, Outcome};
use crate::common::named_file::NamedFile;
use crate::common::new_recording::Product;
use crate::common::recording_choices::{Choices, read_typed};
use crate::common::terminal::{self, stage};
use crate::common::user_tensors::suggestion;
use gpureplay_library::shown;

use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay compile raw.trace --reads a=a.npy --reads b=b.npy --writes out=out.npy -o recordings/gemm
  gpureplay compile raw.trace --reads x=x.npy --writes y=y.npy --weights weights/ --external-weights -o recordings/net
  gpureplay compile raw.trace --reads a=a.npy --writes out=out.npy -o recordings/gemm \\
      --second raw2.trace --second-input a=a2.npy --second-output out=out2.npy

A trace with notes of OpenCL calls (`gpureplay record` makes them) needs no files: what the app wrote and read are its tensors.
  gpureplay compile raw.trace --second raw2.trace -o recordings/net --name im2col.src_ptr=image --tensor image=f32[1,224,224,3]
For an app with state (training, a recurrent network), record at least two steps. What a step leaves for the next one is found.
  gpureplay compile steps.trace --second steps2.trace -o recordings/train --name move.weight=fc.weight

The files are those that the app read and wrote while it was recorded. Their elements are found in GPU memory by their
bit patterns, so they should differ from each other: `gpureplay record --make-input` makes such files.";

/// Turn a raw trace into a recording
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compile {
    /// The raw trace, from `gpureplay record --raw` or `cat /dev/gpureplay`
    trace: PathBuf,
    #[command(flatten)]
    choices: Choices,
    /// Print names, types and shapes of the tensors, to be changed and given to --tensors; write no recording
    #[arg(long)]
    suggest: bool,
    /// A trace of the same app with other inputs: everything that differs must be explained by the tensors
    #[arg(long, value_name = "TRACE")]
    second: Option<PathBuf>,
    /// An input or weight of the second trace
    #[arg(long, value_name = "NAME=FILE", requires = "second")]
    second_input: Vec<NamedFile>,
    /// An output of the second trace
    #[arg(long, value_name = "NAME=FILE", requires = "second")]
    second_output: Vec<NamedFile>,
    /// The command that makes this recording, for the manifest
    #[arg(long, value_name = "TEXT", default_value = "")]
    command: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Compile {
    pub(crate) fn execute(&self) -> Result {
        let directory = self.choices.directory()?;
        if directory.is_none() && !self.suggest {
            return Err(Failure::Usage(
                "say where the recording goes: --output DIR".into(),
            ));
        }
        let files = self.choices.read_files()?;
        let capture = read_trace(&self.trace)?;
        let second = self.second.as_deref().map(read_trace).transpose()?;
        let (mut product, capture, second) =
            Product::build(capture, second, &files, &self.choices, &self.command)?;
        if self.suggest {
            let tensors = product.compiled.tensors.iter().map(|tensor| {
                let form = Form {
                    dtype: tensor.layout.dtype,
                    shape: tensor.shape.clone(),
                };
                (tensor_kind(tensor.role).name(), tensor.name.as_str(), form)
            });
            terminal::stdout().write_all(suggestion(tensors).as_bytes())?;
            return Ok(Outcome::Done);
        }
        if let Some((second, path)) = second.as_ref().zip(self.second.as_deref()) {
            let files = self.second_files(&product)?;
            product.checked = Some(compare((&capture, second, path), &product, &files)?);
        }
        if let Some(directory) = directory {
            product.write(directory, &self.choices, &self.trace)?;
            product.report(directory, self.json)?;
        }
        Ok(Outcome::Done)
    }

    fn second_files(&self, product: &Product) -> Result<Vec<(String, Tensor)>> {
        let mut files = Vec::new();
        for given in self.second_input.iter().chain(&self.second_output) {
            if !product
                .compiled
                .tensors
                .iter()
                .any(|t| t.name == given.name)
            {
                return Err(Failure::Usage(format!(
                    "{}: the first trace has no tensor of this name",
                    given.name
                )));
            }
            files.push((given.name.clone(), read_typed(&given.path)?));
        }
        let mut known: HashSet<String> = files.iter().map(|(name, _)| name.clone()).collect();
        for (name, tensor) in &product.noted.second {
            if known.insert(name.clone()) {
                files.push((name.clone(), tensor.clone()));
            }
        }
        for tensor in product
            .compiled
            .tensors
            .iter()
            .filter(|t| t.role == Role::Input)
        {
            if !known.contains(&tensor.name) {
                return Err(Failure::Usage(format!(
                    "--second needs the file that the second run read: --second-input {}=FILE",
                    tensor.name
                )));
            }
        }
        Ok(files)
    }
}

pub(crate) fn compare(
    (first, second, path): (&Capture, &Capture, &Path),
    product: &Product,
    files: &[(String, Tensor)],
) -> Result<String> {
    stage("comparing the two runs");
    let (tensors, earlier) = (&product.compiled.tensors, &product.noted.earlier);
    let agreement =
        differential::compare(first, tensors, second, files, earlier).map_err(|error| {
            // Notes that gave no tensor may be why.
            let mut text = product.noted.remarks.join("; ");
            if !text.is_empty() {
                text.push_str("; ");
            }
            Failure::Runs(format!("{text}{}: {error}", shown(path)))
        })?;
    let renamed = match agreement.renamed_addresses {
        0 => String::new(),
        count => format!(
            ", {} because buffers were allocated elsewhere",
            differing_addresses(count)
        ),
    };
    Ok(format!(
        "{} that the app wrote are the same in a second run with other inputs, {} differ and belong to tensors{renamed}",
        text::bytes(agreement.same_bytes),
        text::bytes(agreement.explained_bytes)
    ))
}

fn differing_addresses(count: u64) -> String {
    match count {
        1 => "1 address differs".into(),
        count => format!("{count} addresses differ"),
    }
}

pub(crate) fn read_trace(path: &Path) -> Result<Capture> {
    stage("reading the trace");
    let wrong = |error: String| Failure::Recording(format!("{}: {error}", shown(path)));
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::Input(format!("{}: {error}", shown(path))))?;
    Capture::read(BufReader::new(file)).map_err(|error| wrong(error.to_string()))
}
