// SPDX-License-Identifier: MIT OR Apache-2.0
//! Before `main`: Rust's runtime replaces a closed standard output by /dev/null.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

use nix::fcntl::{FcntlArg, fcntl};

static CLOSED: AtomicBool = AtomicBool::new(false);

pub(crate) fn output_was_closed() -> bool {
    CLOSED.load(Ordering::Relaxed)
}

extern "C" fn look() {
    let found = fcntl(std::io::stdout(), FcntlArg::F_GETFD);
    CLOSED.store(found.is_err(), Ordering::Relaxed);
}

// SAFETY: the C library calls what this section points at once, on the main thread, before `main`; a C function without parameters may be called
// with more arguments. It only asks for flags of a descriptor and sets a static.
#[unsafe(link_section = ".init_array")]
#[used]
static LOOK: extern "C" fn() = look;
