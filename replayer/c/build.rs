// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the shared library after its interface version, which programs ask for.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgpureplay.so.0");
}
