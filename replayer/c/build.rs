// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names the shared library after the version of its interface, which programs then ask for when they start.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libgpureplay.so.0");
}
