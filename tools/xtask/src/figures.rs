// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask figures`: draws `figs/*.svg` from the Graphviz sources beside them.

use std::process::{Command, ExitCode};

use crate::{
    error::{Error, Result},
    repository::root,
};

/// Draws every figure again. Needs Graphviz (`apt install graphviz`).
pub(crate) fn draw() -> Result<ExitCode> {
    let dir = root().join("figs");
    let entries = std::fs::read_dir(&dir).map_err(Error::io("read", &dir))?;
    for entry in entries {
        let source = entry.map_err(Error::io("read", &dir))?.path();
        if source
            .extension()
            .is_none_or(|extension| extension != "dot")
        {
            continue;
        }
        let status = Command::new("dot")
            .arg("-Tsvg")
            .arg(&source)
            .arg("-o")
            .arg(source.with_extension("svg"))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(status) => {
                return Err(Error::Failed {
                    what: format!("dot {}", source.display()),
                    status,
                    log: String::new(),
                });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing {
                    what: "the program dot".into(),
                    remedy: "apt install graphviz".into(),
                });
            }
            Err(source) => {
                return Err(Error::Start {
                    program: "dot".into(),
                    source,
                });
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
