// SPDX-License-Identifier: MIT OR Apache-2.0
//! The library calls its own exported functions, never a preloaded library's.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic-functions");
}
