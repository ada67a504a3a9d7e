// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that the command prints: standard output, reports, and notes on standard error.
//!
//! Text of recordings, manifests and file names cannot move the cursor or reorder a line: every line goes through the library's one
//! escape function.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use gpureplay_library::{escaped, escaped_lines};

/// `--quiet`: only errors and what was asked for by name are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether anything was printed that is no error.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// Whether anything was printed that is no error: a second JSON document behind a first one would be none.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

/// Leaves reports and notes out from now on.
pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Whether reports and notes are left out.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// A stream on which each line is escaped.
pub(crate) struct Lines {
    stream: Box<dyn Write>,
    /// What follows the last line feed.
    line: Vec<u8>,
}

impl Lines {
    fn new(stream: Box<dyn Write>) -> Self {
        Self {
            stream,
            line: Vec::new(),
        }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        PRINTED.fetch_or(!line.is_empty(), Ordering::Relaxed);
        let text = String::from_utf8_lossy(&line);
        self.stream.write_all(escaped_lines(&text).as_bytes())
    }
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if bytes.contains(&b'\n') {
            let rest = self.line.iter().rposition(|&byte| byte == b'\n');
            let rest = self.line.split_off(rest.map_or(0, |at| at + 1));
            self.write_line()?;
            self.line = rest;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_line()?;
        self.stream.flush()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // Whoever cares about an error has flushed.
        let _ = self.flush();
    }
}

/// Standard output, for what a command is asked for.
pub(crate) fn stdout() -> Lines {
    Lines::new(Box::new(io::stdout().lock()))
}

/// As [`stdout`] for much text; the caller flushes it, to hear of errors.
pub(crate) fn buffered_stdout() -> Lines {
    Lines::new(Box::new(io::BufWriter::new(io::stdout().lock())))
}

/// What a command did: on standard output, on standard error where a result takes standard output, nowhere with `--quiet`.
pub(crate) fn report(output_is_taken: bool) -> Lines {
    match (is_quiet(), output_is_taken) {
        (true, _) => Lines::new(Box::new(io::sink())),
        (false, true) => Lines::new(Box::new(io::stderr().lock())),
        (false, false) => stdout(),
    }
}

/// One line on standard error that is no error.
pub(crate) fn note(text: impl Display) {
    if !is_quiet() {
        error(text);
    }
}

/// Says on a terminal what takes time.
pub(crate) fn stage(what: &str) {
    if std::io::stderr().is_terminal() {
        note(what);
    }
}

/// One line on standard error.
pub(crate) fn error(text: impl Display) {
    eprintln!("gpureplay: {}", escaped(&text.to_string()));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_escaped_even_when_written_in_pieces() {
        let kept = Kept::default();
        let mut out = Lines::new(Box::new(kept.clone()));
        for piece in "a\x1b[2J\nb\u{202e}c\nrest".as_bytes().chunks(1) {
            out.write_all(piece).unwrap();
        }
        drop(out);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "a\\u001b[2J\nb\\u202ec\nrest");
    }
}
