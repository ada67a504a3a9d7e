// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gpureplay compile`: a raw trace becomes a recording.

use std::io::BufReader;
use std::path::{Path, PathBuf};

use clap::Args;
use gpureplay_compile::{Capture, Role, differential};
use gpureplay_library::values::read_any;

use crate::common::failure::{Failure, Outcome};
use crate::common::new_recording::{Choices, NamedFile, Product, stage};
use gpureplay_library::shown;

use crate::{Result, text};

const EXAMPLES: &str = "\
Examples:
  gpureplay compile raw.trace --input a=a.npy --input b=b.npy --output out=out.npy -o recordings/gemm
  gpureplay compile raw.trace --input x=x.npy --output y=y.npy --weights weights/ --external-weights -o recordings/net
  gpureplay compile raw.trace --input a=a.npy --output out=out.npy -o recordings/gemm \\
      --second raw2.trace --second-input a=a2.npy --second-output out=out2.npy

The files are those that the app read and wrote while it was recorded. Their elements are found in GPU memory by their
bit patterns, so they should differ from each other: `gpureplay tag` makes such files.";

/// Turn a recorder's raw trace into a recording
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Compile {
    /// The raw trace, from `gpureplay record --raw` or `cat /dev/gpureplay`
    trace: PathBuf,
    #[command(flatten)]
    choices: Choices,
    /// Directory of the recording; its last part is the recording's name
    #[arg(short, long, value_name = "DIR")]
    output_directory: PathBuf,
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
        let files = self.choices.read_files()?;
        let capture = read_trace(&self.trace)?;
        let mut product = Product::build(&capture, &files, &self.choices, &self.command)?;
        if let Some(second) = &self.second {
            product.checked = Some(self.compare(&capture, &product, second)?);
        }
        product.write(&self.output_directory, &self.choices, &self.trace)?;
        product.report(&self.output_directory, self.json)?;
        Ok(Outcome::Done)
    }

    /// Compares with the second run, and adds its files as a second case.
    fn compare(&self, first: &Capture, product: &Product, second: &Path) -> Result<String> {
        let trace = read_trace(second)?;
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
            files.push((given.name.clone(), read_any(&given.path)?));
        }
        for tensor in product
            .compiled
            .tensors
            .iter()
            .filter(|t| t.role == Role::Input)
        {
            if !files.iter().any(|(name, _)| *name == tensor.name) {
                return Err(Failure::Usage(format!(
                    "--second needs the file that the second run read: --second-input {}=FILE",
                    tensor.name
                )));
            }
        }
        stage("comparing the two runs");
        let agreement = differential::compare(first, &product.compiled.tensors, &trace, &files)
            .map_err(|error| Failure::Recording(format!("{}: {error}", shown(&second))))?;
        let renamed = match agreement.renamed_addresses {
            0 => String::new(),
            count => format!(
                ", {} because buffers were allocated elsewhere",
                plural(count)
            ),
        };
        Ok(format!(
            "{} that the app wrote are the same in a second run with other inputs, {} differ and belong to tensors{renamed}",
            text::bytes(agreement.same_bytes),
            text::bytes(agreement.explained_bytes)
        ))
    }
}

/// `1 address differs`, `2 addresses differ`.
fn plural(count: u64) -> String {
    match count {
        1 => "1 address differs".into(),
        count => format!("{count} addresses differ"),
    }
}

/// Reads a trace file.
pub(crate) fn read_trace(path: &Path) -> Result<Capture> {
    stage("reading the trace");
    let wrong = |error: String| Failure::Recording(format!("{}: {error}", shown(&path)));
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::Input(format!("{}: {error}", shown(&path))))?;
    Capture::read(BufReader::new(file)).map_err(|error| wrong(error.to_string()))
}
