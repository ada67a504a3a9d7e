// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `gpureplay` command.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    gpureplay_command::main()
}
