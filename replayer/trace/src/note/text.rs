// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads and writes a note's line of text.

use core::fmt;
use core::str::{FromStr, SplitAsciiWhitespace};

use super::{
    Argument, Content, Copied, Direction, Filled, Launch, MAX_ARGUMENTS, MAX_SCALAR, Note,
    NoteError, Object, ObjectKind, PREFIX, Place, Transfer, Value,
};

impl Note {
    /// `None` if the text is not of an OpenCL layer.
    ///
    /// # Errors
    /// The text begins as a note and goes on otherwise.
    pub fn parse(text: &str) -> Option<Result<Self, NoteError>> {
        let mut words = Words(text.split_ascii_whitespace());
        (words.0.next()? == PREFIX).then(|| {
            let note = words.note()?;
            match words.0.next() {
                None => Ok(note),
                Some(word) => Err(NoteError::Longer(word.to_owned())),
            }
        })
    }
}

struct Words<'a>(SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn word(&mut self, field: &'static str) -> Result<&'a str, NoteError> {
        self.0.next().ok_or(NoteError::Missing(field))
    }

    fn field(&mut self, field: &'static str) -> Result<&'a str, NoteError> {
        let word = self.word(field)?;
        let value = word.strip_prefix(field).and_then(|w| w.strip_prefix('='));
        value.ok_or_else(|| wrong(field, word))
    }

    fn number<T: FromStr>(&mut self, field: &'static str) -> Result<T, NoteError> {
        number(field, self.field(field)?)
    }

    fn place(&mut self, field: &'static str) -> Result<Place, NoteError> {
        place(field, self.field(field)?)
    }

    fn note(&mut self) -> Result<Note, NoteError> {
        let kind = self.word("kind")?;
        let transfer = |direction| move |words: &mut Self| words.transfer(direction);
        match kind {
            "object" => self.object(),
            "write" => transfer(Direction::Write)(self),
            "read" => transfer(Direction::Read)(self),
            "unchanged" => transfer(Direction::Unchanged)(self),
            "copy" => self.copied(),
            "fill" => self.filled(),
            "launch" => self.launch(),
            "refused" => Ok(Note::Refused {
                launch: self.number("launch")?,
                status: self.number("status")?,
            }),
            "idle" => Ok(Note::Idle {
                queue: self.number("queue")?,
            }),
            "content" => Ok(Note::Content {
                id: self.number("id")?,
                hash: hash(self.field("hash")?)?,
            }),
            "unseen" => Ok(Note::Unseen { call: self.call()? }),
            _ => Err(wrong("kind", kind)),
        }
    }

    fn object(&mut self) -> Result<Note, NoteError> {
        let id = self.number("id")?;
        let kind = match self.field("kind")? {
            "buffer" => ObjectKind::Buffer,
            "image" => ObjectKind::Image,
            "part" => ObjectKind::Part(self.place("of")?),
            other => return Err(wrong("kind", other)),
        };
        let size = self.number("size")?;
        Ok(Note::Object(Object { id, kind, size }))
    }

    /// Earlier layers, which noted only copies of buffers, end the note with the size.
    fn copied(&mut self) -> Result<Note, NoteError> {
        let (from, to) = (self.place("from")?, self.place("to")?);
        let size = self.number("size")?;
        let mut copied = Copied {
            from,
            to,
            size,
            to_size: size,
            dense: true,
            queue: None,
            call: "clEnqueueCopyBuffer".to_owned(),
        };
        if self.goes_on() {
            copied.to_size = self.number("tosize")?;
            copied.dense = self.flag("dense")?;
            (copied.queue, copied.call) = (self.queue()?, self.call()?);
        }
        Ok(Note::Copy(copied))
    }

    fn filled(&mut self) -> Result<Note, NoteError> {
        let mut filled = Filled {
            at: self.place("at")?,
            size: self.number("size")?,
            queue: None,
            call: "clEnqueueFillBuffer".to_owned(),
        };
        if self.goes_on() {
            (filled.queue, filled.call) = (self.queue()?, self.call()?);
        }
        Ok(Note::Fill(filled))
    }

    fn goes_on(&self) -> bool {
        self.0.clone().next().is_some()
    }

    fn queue(&mut self) -> Result<Option<u32>, NoteError> {
        match self.field("queue")? {
            "-" => Ok(None),
            id => number("queue", id).map(Some),
        }
    }

    fn call(&mut self) -> Result<String, NoteError> {
        unescape("call", self.field("call")?)
    }

    fn transfer(&mut self, direction: Direction) -> Result<Note, NoteError> {
        let (at, size) = (self.place("at")?, self.number("size")?);
        let content = match self.field("hash")? {
            "-" => Content::Unseen,
            word => match word.strip_prefix('?') {
                Some(id) => Content::Later(number("hash", id)?),
                None => Content::Hash(hash(word)?),
            },
        };
        let queue = self.queue()?;
        Ok(Note::Transfer(Transfer {
            direction,
            at,
            size,
            content,
            queue,
            complete: self.flag("complete")?,
        }))
    }

    fn flag(&mut self, field: &'static str) -> Result<bool, NoteError> {
        match self.field(field)? {
            "1" => Ok(true),
            "0" => Ok(false),
            other => Err(wrong(field, other)),
        }
    }

    fn launch(&mut self) -> Result<Note, NoteError> {
        let (id, queue) = (self.number("id")?, self.number("queue")?);
        let kernel = unescape("kernel", self.field("kernel")?)?;
        let global = sizes("global", self.field("global")?)?;
        let local = match self.field("local")? {
            "-" => None,
            text => Some(sizes("local", text)?),
        };
        let mut arguments = Vec::new();
        for word in self.0.by_ref() {
            if arguments.len() == MAX_ARGUMENTS {
                return Err(NoteError::Longer(word.to_owned()));
            }
            arguments.push(argument(word)?);
        }
        Ok(Note::Launch(Launch {
            id,
            queue,
            kernel,
            global,
            local,
            arguments,
        }))
    }
}

fn wrong(field: &'static str, word: &str) -> NoteError {
    NoteError::Field {
        field,
        word: word.to_owned(),
    }
}

fn hash(digits: &str) -> Result<u64, NoteError> {
    u64::from_str_radix(digits, 16).map_err(|_| wrong("hash", digits))
}

fn number<T: FromStr>(field: &'static str, text: &str) -> Result<T, NoteError> {
    text.parse().map_err(|_| wrong(field, text))
}

fn place(field: &'static str, text: &str) -> Result<Place, NoteError> {
    let (object, offset) = text.split_once('+').ok_or_else(|| wrong(field, text))?;
    Ok(Place {
        object: number(field, object)?,
        offset: number(field, offset)?,
    })
}

fn sizes(field: &'static str, text: &str) -> Result<[u64; 3], NoteError> {
    let mut out = [0; 3];
    let mut parts = text.split(',');
    for size in &mut out {
        *size = number(field, parts.next().unwrap_or_default())?;
    }
    match parts.next() {
        None => Ok(out),
        Some(_) => Err(wrong(field, text)),
    }
}

/// `NAME:TYPE:VALUE`.
fn argument(word: &str) -> Result<Argument, NoteError> {
    let bad = || wrong("argument", word);
    let mut parts = word.splitn(3, ':');
    let mut part = || parts.next().ok_or_else(bad);
    let (name, type_name, value) = (part()?, part()?, part()?);
    let value = match (value.get(..1), value.get(1..)) {
        (Some("?"), Some("")) => Value::Unknown,
        (Some("o"), Some(id)) => Value::Object(number("argument", id)?),
        (Some("l"), Some(size)) => Value::Local(number("argument", size)?),
        (Some("v"), Some(digits)) if digits.len() <= 2 * MAX_SCALAR => {
            Value::Scalar(bytes(digits).ok_or_else(bad)?)
        }
        _ => return Err(bad()),
    };
    Ok(Argument {
        name: unescape("argument", name)?,
        type_name: unescape("argument", type_name)?,
        value,
    })
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let pair = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    rest.is_empty().then(|| pairs.iter().map(pair).collect())?
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_*.-".contains(&byte)
}

struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            byte if is_plain(byte) => write!(f, "{}", char::from(byte)),
            byte => write!(f, "%{byte:02x}"),
        })
    }
}

struct Queue(Option<u32>);

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(queue) => write!(f, "{queue}"),
            None => f.write_str("-"),
        }
    }
}

fn unescape(field: &'static str, word: &str) -> Result<String, NoteError> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match (*first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digits = [*high, *low];
                let text = core::str::from_utf8(&digits).map_err(|_| wrong(field, word))?;
                out.extend(bytes(text).ok_or_else(|| wrong(field, word))?);
                rest = tail;
            }
            (byte, _) if is_plain(byte) => out.push(byte),
            _ => return Err(wrong(field, word)),
        }
    }
    String::from_utf8(out).map_err(|_| wrong(field, word))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.object, self.offset)
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", Escaped(&self.name), Escaped(&self.type_name))?;
        match &self.value {
            Value::Object(id) => write!(f, "o{id}"),
            Value::Local(size) => write!(f, "l{size}"),
            Value::Scalar(bytes) => {
                f.write_str("v")?;
                let kept = bytes.iter().take(MAX_SCALAR);
                kept.into_iter()
                    .try_for_each(|byte| write!(f, "{byte:02x}"))
            }
            Value::Unknown => f.write_str("?"),
        }
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX} ")?;
        match self {
            Note::Object(Object { id, kind, size }) => {
                write!(f, "object id={id} kind=")?;
                match kind {
                    ObjectKind::Buffer => f.write_str("buffer")?,
                    ObjectKind::Image => f.write_str("image")?,
                    ObjectKind::Part(of) => write!(f, "part of={of}")?,
                }
                write!(f, " size={size}")
            }
            Note::Transfer(transfer) => {
                let word = match transfer.direction {
                    Direction::Write => "write",
                    Direction::Read => "read",
                    Direction::Unchanged => "unchanged",
                };
                write!(f, "{word} at={} size={} hash=", transfer.at, transfer.size)?;
                match transfer.content {
                    Content::Hash(hash) => write!(f, "{hash:016x}")?,
                    Content::Later(id) => write!(f, "?{id}")?,
                    Content::Unseen => f.write_str("-")?,
                }
                write!(
                    f,
                    " queue={} complete={}",
                    Queue(transfer.queue),
                    u8::from(transfer.complete)
                )
            }
            Note::Copy(copied) => write!(
                f,
                "copy from={} to={} size={} tosize={} dense={} queue={} call={}",
                copied.from,
                copied.to,
                copied.size,
                copied.to_size,
                u8::from(copied.dense),
                Queue(copied.queue),
                Escaped(&copied.call)
            ),
            Note::Fill(filled) => write!(
                f,
                "fill at={} size={} queue={} call={}",
                filled.at,
                filled.size,
                Queue(filled.queue),
                Escaped(&filled.call)
            ),
            Note::Launch(launch) => {
                let Launch {
                    id, queue, kernel, ..
                } = launch;
                let [x, y, z] = launch.global;
                write!(
                    f,
                    "launch id={id} queue={queue} kernel={} global={x},{y},{z} local=",
                    Escaped(kernel)
                )?;
                match launch.local {
                    Some([x, y, z]) => write!(f, "{x},{y},{z}")?,
                    None => f.write_str("-")?,
                }
                let mut arguments = launch.arguments.iter();
                arguments.try_for_each(|argument| write!(f, " {argument}"))
            }
            Note::Refused { launch, status } => {
                write!(f, "refused launch={launch} status={status}")
            }
            Note::Idle { queue } => write!(f, "idle queue={queue}"),
            Note::Content { id, hash } => write!(f, "content id={id} hash={hash:016x}"),
            Note::Unseen { call } => write!(f, "unseen call={}", Escaped(call)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::content_hash;

    fn samples() -> Vec<Note> {
        let at = |object, offset| Place { object, offset };
        let argument = |name: &str, type_name: &str, value| Argument {
            name: name.into(),
            type_name: type_name.into(),
            value,
        };
        let transfer = |direction, content, queue, complete| {
            Note::Transfer(Transfer {
                direction,
                at: at(3, 128),
                size: 4096,
                content,
                queue,
                complete,
            })
        };
        let object = |kind| {
            Note::Object(Object {
                id: 7,
                kind,
                size: 64,
            })
        };
        vec![
            object(ObjectKind::Buffer),
            object(ObjectKind::Image),
            object(ObjectKind::Part(at(2, 256))),
            transfer(
                Direction::Write,
                Content::Hash(0x0123_4567_89ab_cdef),
                None,
                true,
            ),
            transfer(Direction::Read, Content::Unseen, Some(1), true),
            transfer(Direction::Read, Content::Later(9), Some(0), false),
            transfer(Direction::Unchanged, Content::Hash(0), Some(2), false),
            Note::Copy(Copied {
                from: at(1, 0),
                to: at(2, 8),
                size: u64::MAX,
                to_size: 0,
                dense: false,
                queue: Some(1),
                call: "clEnqueueCopyBufferToImage".into(),
            }),
            Note::Fill(Filled {
                at: at(0, 1),
                size: 2,
                queue: None,
                call: "clEnqueueFillBuffer".into(),
            }),
            Note::Launch(Launch {
                id: 12,
                queue: 3,
                kernel: "im2col 3x3 ü".into(),
                global: [24, 24, 1],
                local: Some([4, 4, 1]),
                arguments: vec![
                    argument("src", "const float*", Value::Object(3)),
                    argument("", "", Value::Unknown),
                    argument("tmp", "int*", Value::Local(1024)),
                    argument("n", "uint", Value::Scalar(vec![1, 0xff, 0, 0])),
                    argument("e", "t", Value::Scalar(vec![])),
                ],
            }),
            Note::Launch(Launch {
                id: 0,
                queue: 0,
                kernel: String::new(),
                global: [1, 1, 1],
                local: None,
                arguments: vec![],
            }),
            Note::Refused {
                launch: 12,
                status: -5,
            },
            Note::Idle { queue: 3 },
            Note::Content { id: 9, hash: 255 },
            Note::Unseen {
                call: "clSVMAlloc".into(),
            },
        ]
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        for note in samples() {
            let text = note.to_string();
            assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{text}");
            assert_eq!(Note::parse(&text), Some(Ok(note)), "{text}");
        }
    }

    #[test]
    fn other_remarks_are_not_notes() {
        for text in [
            "",
            "recorder: 2 probes",
            "cl1 done launch=1 status=0",
            "cl2x",
        ] {
            assert_eq!(Note::parse(text), None, "{text}");
        }
    }

    #[test]
    fn damaged_notes_are_errors() {
        for text in [
            "cl2",
            "cl2 dance",
            "cl2 refused launch=1",
            "cl2 refused launch=x status=0",
            "cl2 refused launch=4294967296 status=0",
            "cl2 refused launch=1 status=0 more",
            "cl2 write at=1 size=2 hash=0",
            "cl2 write at=1+0 size=2 hash=xyz",
            "cl2 write at=1+0 size=-2 hash=0",
            "cl2 object id=1 kind=boat size=1",
            "cl2 launch id=0 queue=0 kernel=a%2 global=1,1,1 local=-",
            "cl2 launch id=0 queue=0 kernel=a%ff global=1,1,1 local=-",
            "cl2 launch id=0 queue=0 kernel=a global=1,1 local=-",
            "cl2 launch id=0 queue=0 kernel=a global=1,1,1,1 local=-",
            "cl2 launch id=0 queue=- kernel=a global=1,1,1 local=-",
            "cl2 write at=1+0 size=2 hash=0 queue=0",
            "cl2 write at=1+0 size=2 hash=? queue=0 complete=1",
            "cl2 write at=1+0 size=2 hash=0 queue=x complete=1",
            "cl2 write at=1+0 size=2 hash=0 queue=0 complete=2",
            "cl2 launch id=0 queue=0 kernel=a global=1,1,1 local=- a:b",
            "cl2 launch id=0 queue=0 kernel=a global=1,1,1 local=- a:b:v123",
            "cl2 launch id=0 queue=0 kernel=a global=1,1,1 local=- a:b:",
        ] {
            assert!(matches!(Note::parse(text), Some(Err(_))), "{text}");
        }
        let many = " a:b:?".repeat(MAX_ARGUMENTS + 1);
        let text = format!("cl2 launch id=0 queue=0 kernel=a global=1,1,1 local=-{many}");
        assert!(matches!(
            Note::parse(&text),
            Some(Err(NoteError::Longer(_)))
        ));
    }

    #[test]
    fn changed_bytes_never_panic() {
        for note in samples() {
            let text = note.to_string();
            for at in 0..text.len() {
                for byte in [b' ', b'%', b':', b'=', b'0', 0xff] {
                    let mut changed = text.clone().into_bytes();
                    changed[at] = byte;
                    let _ = Note::parse(&String::from_utf8_lossy(&changed));
                }
            }
        }
    }

    #[test]
    fn hashes_see_every_byte_and_the_length() {
        let bytes: Vec<u8> = (0..37).collect();
        let hash = content_hash(&bytes);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x40;
            assert_ne!(content_hash(&changed), hash, "{at}");
        }
        assert_ne!(content_hash(&[0; 8]), content_hash(&[0; 16]));
        assert_ne!(content_hash(&[]), content_hash(&[0]));
    }
}
