// SPDX-License-Identifier: MIT OR Apache-2.0
//! Standard output, even where it is missing.

use std::io::{self, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Rust's runtime opened /dev/null instead, which loses results.
pub fn output_was_closed() {
    CLOSED.store(true, Ordering::Relaxed);
}

/// Writing fails if the process started without.
pub fn output() -> Output {
    Output(match CLOSED.load(Ordering::Relaxed) {
        true => None,
        false => Some(io::stdout().lock()),
    })
}

/// Standard output, locked; see [`output`].
pub struct Output(Option<StdoutLock<'static>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(out) => out.write(bytes),
            None if bytes.is_empty() => Ok(0),
            None => Err(Errno::EBADF.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), Write::flush)
    }
}
