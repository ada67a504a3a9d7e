// SPDX-License-Identifier: MIT OR Apache-2.0
//! All output. Foreign text cannot move the cursor or begin a line: it goes through the library's `Lines`.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use gpureplay_library::escaped;
use serde::Serialize;

use crate::Result;
use crate::common::failure::Failure;

/// Prints only errors and what was asked for by name.
static QUIET: AtomicBool = AtomicBool::new(false);

static PRINTED: AtomicBool = AtomicBool::new(false);

/// A JSON error must not follow another document.
pub(crate) fn has_printed() -> bool {
    PRINTED.load(Ordering::Relaxed)
}

pub(crate) fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

pub(crate) type Lines = gpureplay_library::Lines<Printed>;

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

pub(crate) fn stdout() -> Lines {
    lines(gpureplay_host::output())
}

/// Flush it, to hear of errors.
pub(crate) fn buffered_stdout() -> Lines {
    lines(io::BufWriter::new(gpureplay_host::output()))
}

pub(crate) fn json(out: &mut impl Write, report: &(impl Serialize + ?Sized)) -> Result<()> {
    let text =
        serde_json::to_string_pretty(report).map_err(|error| Failure::Output(error.to_string()))?;
    Ok(out.write_all((text + "\n").as_bytes())?)
}

pub(crate) fn report(output_is_taken: bool) -> Lines {
    match (is_quiet(), output_is_taken) {
        (true, _) => lines(io::sink()),
        (false, true) => lines(io::stderr().lock()),
        (false, false) => stdout(),
    }
}

pub(crate) fn note(text: impl Display) {
    if !is_quiet() {
        error(text);
    }
}

pub(crate) fn stage(what: &str) {
    if std::io::stderr().is_terminal() {
        note(what);
    }
}

pub(crate) fn error(text: impl Display) {
    // This error cannot be reported.
    let _ = writeln!(io::stderr(), "gpureplay: {}", escaped(&text.to_string()));
}
