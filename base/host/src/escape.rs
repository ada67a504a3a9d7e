// SPDX-License-Identifier: MIT OR Apache-2.0
//! Strangers' text on a terminal: escapes what moves the cursor, hides or reorders text.
//!
//! Commands print through [`Lines`] only. Escapes are `\u` and four hexadecimal digits per UTF-16 unit, as in JSON.

use std::borrow::Cow;
use std::fmt::{Arguments, Write as _};
use std::io::{self, Write};
use std::path::Path;

/// Unicode 16, categories Cf, Zl, Zp.
const FORMAT: [(char, char); 21] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{fff9}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0001}', '\u{e0001}'),
    ('\u{e0020}', '\u{e007f}'),
    // Reserved for such characters.
    ('\u{e0080}', '\u{e00ff}'),
];

fn is_hidden(character: char) -> bool {
    character.is_control()
        || FORMAT
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&character))
}

/// Escapes control and format characters and line feeds.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, is_hidden)
}

/// [`escaped`], but line feeds stay.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| character != '\n' && is_hidden(character))
}

/// A path, [`escaped`].
pub fn shown(path: &Path) -> String {
    escaped(&path.to_string_lossy()).into_owned()
}

fn escape(text: &str, hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// A stream that escapes text.
///
/// A formatted write (`writeln!`) keeps only a final line feed: no argument can begin a line. Raw bytes keep
/// theirs.
pub struct Lines<W: Write> {
    stream: W,
    line: Vec<u8>,
}

impl<W: Write> Lines<W> {
    /// Nothing is written yet.
    pub fn new(stream: W) -> Self {
        Self {
            stream,
            line: Vec::new(),
        }
    }

    fn write_line(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        self.stream.write_all(escaped_lines(&text).as_bytes())
    }
}

impl<W: Write> Write for Lines<W> {
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

    fn write_fmt(&mut self, arguments: Arguments<'_>) -> io::Result<()> {
        let text = arguments.to_string();
        let (text, end) = match text.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (text.as_str(), ""),
        };
        self.write_all(escaped(text).as_bytes())?;
        self.write_all(end.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_line()?;
        self.stream.flush()
    }
}

impl<W: Write> Drop for Lines<W> {
    fn drop(&mut self) {
        // For errors, flush first.
        let _ = self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_escaped_even_when_written_in_pieces() {
        let mut kept = Vec::new();
        let mut out = Lines::new(&mut kept);
        for piece in "a\x1b[2J\nb\u{202e}c\nrest".as_bytes().chunks(1) {
            out.write_all(piece).unwrap();
        }
        drop(out);
        let text = String::from_utf8(kept).unwrap();
        assert_eq!(text, "a\\u001b[2J\nb\\u202ec\nrest");
    }

    #[test]
    fn no_argument_begins_a_line() {
        let mut kept = Vec::new();
        let mut out = Lines::new(&mut kept);
        let name = "saxpy\nraces: none\n";
        write!(out, "kernel {name}").unwrap();
        writeln!(out, " has {name}").unwrap();
        drop(out);
        let text = String::from_utf8(kept).unwrap();
        let name = "saxpy\\u000araces: none\\u000a";
        assert_eq!(
            text,
            format!("kernel saxpy\\u000araces: none\n has {name}\n")
        );
    }

    #[test]
    fn nothing_that_moves_hides_or_reorders_stays() {
        assert_eq!(
            escaped("a\x1b[2Jb\nc\u{9b}d\x7f"),
            r"a\u001b[2Jb\u000ac\u009bd\u007f"
        );
        assert_eq!(
            escaped("\u{202e}txt.\u{2066}\u{200b}\u{feff}"),
            r"\u202etxt.\u2066\u200b\ufeff"
        );
        // Invisible tags beyond the first 65536 characters.
        assert_eq!(escaped("\u{e0041}"), r"\udb40\udc41");
        assert_eq!(escaped_lines("a\nb\r"), "a\nb\\u000d");
        assert_eq!(shown(Path::new("a\tb")), r"a\u0009b");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in ["", "Ziffer 3 · µs → 5 %", "日本語", "a\\u001b", "עברית"] {
            assert!(matches!(escaped(text), Cow::Borrowed(same) if same == text));
        }
    }
}
