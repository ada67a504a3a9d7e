// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that the command prints: standard output, reports, and notes on standard error.
//!
//! Text of recordings, manifests and file names cannot move the cursor, begin or reorder a line: all goes through the library's `Lines`.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use gpureplay_library::escaped;
use serde::Serialize;

use crate::Result;
use crate::common::failure::Failure;

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

/// A stream on which text is escaped.
pub(crate) type Lines = gpureplay_library::Lines<Printed>;

/// A stream that notes that something was written to it.
pub(crate) struct Printed(Box<dyn Write>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        PRINTED.fetch_or(!bytes.is_empty(), Ordering::Relaxed);
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn lines(stream: impl Write + 'static) -> Lines {
    Lines::new(Printed(Box::new(stream)))
}

/// Standard output, for what a command is asked for.
pub(crate) fn stdout() -> Lines {
    lines(gpureplay_host::output())
}

/// As [`stdout`] for much text; the caller flushes it, to hear of errors.
pub(crate) fn buffered_stdout() -> Lines {
    lines(io::BufWriter::new(gpureplay_host::output()))
}

/// A document of a report, in lines.
///
/// # Errors
/// It cannot be written.
pub(crate) fn json(out: &mut impl Write, report: &(impl Serialize + ?Sized)) -> Result<()> {
    let text =
        serde_json::to_string_pretty(report).map_err(|error| Failure::Output(error.to_string()))?;
    Ok(out.write_all((text + "\n").as_bytes())?)
}

/// What a command did: on standard output, on standard error where a result takes standard output, nowhere with `--quiet`.
pub(crate) fn report(output_is_taken: bool) -> Lines {
    match (is_quiet(), output_is_taken) {
        (true, _) => lines(io::sink()),
        (false, true) => lines(io::stderr().lock()),
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
    // This error cannot be reported anywhere.
    let _ = writeln!(io::stderr(), "gpureplay: {}", escaped(&text.to_string()));
}
