// SPDX-License-Identifier: MIT OR Apache-2.0
//! `guest cc`: compiles a user's program.

use std::{env, path::Path, process::ExitCode};

use clap::Args;

use super::payload;
use crate::{
    error::{Error, Result},
    folder::Folder,
};

/// Compiles a C or C++ program for the guest, with its headers and libraries.
///
/// Arguments are those of gcc (g++ for C++). Files lie below the current directory or its git tree.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  cargo xtask guest cc app.c -o app -lOpenCL\n  \
                        cargo xtask guest cc -O2 net.cpp -o net -larm_compute_graph -larm_compute\n\n\
                        Ends with the compiler's exit code."
)]
pub(crate) struct Cc {
    /// Arguments of the compiler.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<String>,
}

const CPP: [&str; 4] = ["cc", "cpp", "cxx", "C"];

impl Cc {
    pub(crate) fn execute(self) -> Result<ExitCode> {
        let folder = Folder::find()?;
        folder.require_built()?;
        let here = env::current_dir().map_err(Error::io("find", "the current directory"))?;
        let status = payload::in_root(&folder)
            .current_dir(here)
            .arg(compiler(&self.arguments))
            .arg("--sysroot=/guest/userland")
            .args(&self.arguments)
            .status()
            .map_err(Error::start("the build root's compiler"))?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(ExitCode::from(code.unwrap_or(1)))
    }
}

fn compiler(arguments: &[String]) -> &'static str {
    let is_cpp = |argument: &String| {
        let ending = Path::new(argument).extension();
        ending.is_some_and(|ending| CPP.iter().any(|cpp| ending == *cpp))
    };
    if arguments.iter().any(is_cpp) {
        "aarch64-linux-gnu-g++"
    } else {
        "aarch64-linux-gnu-gcc"
    }
}

#[cfg(test)]
mod tests {
    use super::compiler;

    #[test]
    fn sources_choose_the_compiler() {
        let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        assert_eq!(
            compiler(&words("a.c -o a.out -lm")),
            "aarch64-linux-gnu-gcc"
        );
        assert_eq!(compiler(&words("-O2 a.cpp -o a")), "aarch64-linux-gnu-g++");
    }
}
