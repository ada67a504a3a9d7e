// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `gpureplay` command.
#![deny(unsafe_code)]

mod before;

fn main() -> std::process::ExitCode {
    if before::output_was_closed() {
        gpureplay_host::output_was_closed();
    }
    gpureplay_command::main()
}
