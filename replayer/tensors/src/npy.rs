// SPDX-License-Identifier: MIT OR Apache-2.0
//! NumPy's `.npy` files.
//!
//! Reads versions 1.0, 2.0 and 3.0, of either byte and element order; writes 1.0, little-endian and row-major. Headers
//! have exactly `descr`, `fortran_order` and `shape`; no other Python is understood.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::tensor::byte_length;
use crate::{Element, ElementType, Tensor, TensorError};
use gpureplay_host::{shown, write_atomic};

/// Bytes (16 GiB).
pub const MAX_NPY_BYTES: u64 = 16 << 30;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
const ARCHIVE: &[u8] = b"PK\x03\x04";
/// NumPy writes 118 bytes.
const MAX_HEADER: usize = 64 << 10;
/// Magic, version, length and text.
const MAX_PREFIX: usize = 12 + MAX_HEADER;
/// Bytes before the data.
pub const MAX_NPY_PREFIX: u64 = MAX_PREFIX as u64;

/// Why a file is no tensor.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// Opening, reading or writing failed.
    #[error("{}: {source}", shown(path))]
    Io {
        /// File.
        path: PathBuf,
        /// System's error.
        source: std::io::Error,
    },
    /// Not the start of an `.npy` file.
    #[error("not an .npy file: it must start with \\x93NUMPY; numpy.save makes such files")]
    Magic,
    /// Zip archive, as of `numpy.savez`.
    #[error("an archive of several arrays (.npz); save the one that is meant with numpy.save")]
    Archive,
    /// Elements with fields.
    #[error(
        "its elements are structures (a dtype with fields); save one field of them, as numbers"
    )]
    Structured,
    /// Unknown version.
    #[error("version {major}.{minor} of the .npy format is not known; 1.0, 2.0 and 3.0 are")]
    Version {
        /// Found.
        major: u8,
        /// Found.
        minor: u8,
    },
    /// Longer than the file or any sensible header.
    #[error("the header's length of {length} bytes is not possible in a file of {file} bytes")]
    HeaderLength {
        /// Stated.
        length: usize,
        /// The file's length.
        file: usize,
    },
    /// Not an `.npy` file's dictionary.
    #[error("bad .npy header at byte {at}: expected {expected}")]
    Header {
        /// Byte offset in its text.
        at: usize,
        /// Expected.
        expected: &'static str,
    },
    /// Unsupported element type.
    #[error(
        "element type '{descr}' is not supported; expected one of f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1"
    )]
    Descr {
        /// As stated.
        descr: String,
    },
    /// The data do not fill the shape.
    #[error("shape {shape:?} of {} needs {expected} bytes of data, the file has {found}", dtype.name())]
    DataLength {
        /// Element type.
        dtype: ElementType,
        /// As stated.
        shape: Vec<u64>,
        /// Bytes.
        expected: usize,
        /// Bytes.
        found: usize,
    },
    /// More than the shape needs, not read.
    #[error("shape {shape:?} of {} needs {expected} bytes of data, the file has more", dtype.name())]
    MoreData {
        /// Element type.
        dtype: ElementType,
        /// As stated.
        shape: Vec<u64>,
        /// Bytes.
        expected: usize,
    },
    /// Above [`MAX_NPY_BYTES`].
    #[error("larger than the limit of {MAX_NPY_BYTES} bytes")]
    TooLarge,
    /// The caller wants another type or shape.
    #[error("an array of {}{shape:?} is not what is wanted", dtype.name())]
    Unwanted {
        /// Element type.
        dtype: ElementType,
        /// Shape.
        shape: Vec<u64>,
    },
    /// Impossible shape.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An error with the file's name.
    #[error("{}: {source}", shown(path))]
    InFile {
        /// File.
        path: PathBuf,
        /// Cause.
        source: Box<NpyError>,
    },
}

/// Takes memory only for bytes that the file has.
pub fn read_npy(path: &Path) -> Result<Tensor, NpyError> {
    let io = |source| NpyError::Io {
        path: path.to_path_buf(),
        source,
    };
    let file = File::open(path).map_err(io)?;
    let mut bytes = Vec::new();
    // A device or a pipe may have no end.
    let mut start = (&file).take(MAGIC.len() as u64);
    start.read_to_end(&mut bytes).map_err(io)?;
    if bytes == MAGIC {
        let rest = MAX_NPY_BYTES + 1 - MAGIC.len() as u64;
        file.take(rest).read_to_end(&mut bytes).map_err(io)?;
    }
    let parsed = if bytes.len() as u64 > MAX_NPY_BYTES {
        Err(NpyError::TooLarge)
    } else {
        parse_npy(&bytes)
    };
    parsed.map_err(|source| NpyError::InFile {
        path: path.to_path_buf(),
        source: Box::new(source),
    })
}

/// The file appears whole or not at all.
pub fn write_npy(path: &Path, tensor: &Tensor) -> Result<(), NpyError> {
    write_atomic(path, &encode_npy(tensor)).map_err(|source| NpyError::Io {
        path: path.to_path_buf(),
        source,
    })
}

/// Bytes of an `.npy` file.
pub fn encode_npy(tensor: &Tensor) -> Vec<u8> {
    let order = if tensor.dtype().bytes() == 1 {
        '|'
    } else {
        '<'
    };
    let mut shape: Vec<String> = tensor.shape().iter().map(u64::to_string).collect();
    if shape.len() == 1 {
        shape.push(String::new());
    }
    let mut header = format!(
        "{{'descr': '{order}{}', 'fortran_order': False, 'shape': ({}), }}",
        tensor.dtype().npy_code(),
        shape.join(", ").trim_end(),
    );
    // Data start at a multiple of 64 bytes.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.extend(std::iter::repeat_n(
        ' ',
        unpadded.next_multiple_of(64) - unpadded,
    ));
    header.push('\n');

    let mut out = Vec::with_capacity(MAGIC.len() + 4 + header.len() + tensor.bytes().len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&(header.len() as u16).to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(tensor.bytes());
    out
}

/// Reads no more than the header states, and only if `wanted` accepts it.
///
/// # Errors
/// The file is no such file, or [`NpyError::Unwanted`].
pub fn read_npy_if(
    mut file: impl Read,
    wanted: impl FnOnce(ElementType, &[u64]) -> bool,
) -> Result<Tensor, NpyError> {
    let mut bytes = Vec::new();
    let io = |source| NpyError::Io {
        path: PathBuf::new(),
        source,
    };
    let mut read = |length: usize, bytes: &mut Vec<u8>| {
        let read = file.by_ref().take(length as u64).read_to_end(bytes);
        read.map_err(io)
    };
    read(MAGIC.len(), &mut bytes)?;
    if bytes == MAGIC {
        read(MAX_PREFIX - MAGIC.len(), &mut bytes)?;
    }
    let (header, data) = split_header(&bytes)?;
    let (have, expected) = (data.len(), byte_length(header.dtype, &header.shape)?);
    if !wanted(header.dtype, &header.shape) {
        return Err(NpyError::Unwanted {
            dtype: header.dtype,
            shape: header.shape,
        });
    }
    // One byte more shows that there are too many.
    read(expected.saturating_add(1).saturating_sub(have), &mut bytes)?;
    match parse_npy(&bytes) {
        Err(NpyError::DataLength { found, .. }) if found > expected => Err(NpyError::MoreData {
            dtype: header.dtype,
            shape: header.shape,
            expected,
        }),
        parsed => parsed,
    }
}

fn split_header(file: &[u8]) -> Result<(Header, &[u8]), NpyError> {
    if file.starts_with(ARCHIVE) {
        return Err(NpyError::Archive);
    }
    let rest = file.strip_prefix(MAGIC).ok_or(NpyError::Magic)?;
    let (&[major, minor], rest) = rest.split_first_chunk::<2>().ok_or(NpyError::Magic)?;
    let (length, rest) = match (major, minor) {
        (1, 0) => rest
            .split_first_chunk::<2>()
            .map(|(n, rest)| (usize::from(u16::from_le_bytes(*n)), rest)),
        (2 | 3, 0) => rest
            .split_first_chunk::<4>()
            .map(|(n, rest)| (u32::from_le_bytes(*n) as usize, rest)),
        _ => return Err(NpyError::Version { major, minor }),
    }
    .ok_or(NpyError::HeaderLength {
        length: 0,
        file: file.len(),
    })?;
    let header_error = NpyError::HeaderLength {
        length,
        file: file.len(),
    };
    if length > MAX_HEADER {
        return Err(header_error);
    }
    let (header, data) = rest.split_at_checked(length).ok_or(header_error)?;
    Ok((Header::parse(header)?, data))
}

/// Reads the bytes of an `.npy` file.
pub fn parse_npy(file: &[u8]) -> Result<Tensor, NpyError> {
    let (header, data) = split_header(file)?;
    let expected = byte_length(header.dtype, &header.shape)?;
    if data.len() != expected {
        return Err(NpyError::DataLength {
            dtype: header.dtype,
            shape: header.shape,
            expected,
            found: data.len(),
        });
    }
    let mut bytes = if header.fortran_order {
        row_major(data, header.dtype.bytes(), &header.shape)
    } else {
        data.to_vec()
    };
    if header.big_endian {
        for element in bytes.chunks_exact_mut(header.dtype.bytes()) {
            element.reverse();
        }
    }
    Ok(Tensor::new(header.dtype, &header.shape, bytes)?)
}

fn row_major(data: &[u8], size: usize, shape: &[u64]) -> Vec<u8> {
    let count = data.len() / size;
    let mut out = Vec::with_capacity(data.len());
    let mut index = vec![0u64; shape.len()];
    for _ in 0..count {
        let (mut from, mut step) = (0usize, 1usize);
        for (i, extent) in index.iter().zip(shape) {
            from += *i as usize * step;
            step *= *extent as usize;
        }
        out.extend_from_slice(&data[from * size..(from + 1) * size]);
        for (i, extent) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < *extent {
                break;
            }
            *i = 0;
        }
    }
    out
}

struct Header {
    dtype: ElementType,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<u64>,
}

impl Header {
    fn parse(text: &[u8]) -> Result<Header, NpyError> {
        let mut cursor = Cursor { text, at: 0 };
        let (mut descr, mut order, mut shape) = (None, None, None);
        cursor.expect(b'{', "'{'")?;
        loop {
            if cursor.accept(b'}') {
                break;
            }
            let at = cursor.at;
            let key = cursor.string()?;
            cursor.expect(b':', "':'")?;
            match key {
                "descr" if descr.is_none() && cursor.peek() == Some(b'[') => {
                    return Err(NpyError::Structured);
                }
                "descr" if descr.is_none() => descr = Some(cursor.string()?),
                "fortran_order" if order.is_none() => order = Some(cursor.boolean()?),
                "shape" if shape.is_none() => shape = Some(cursor.tuple()?),
                _ => {
                    return Err(NpyError::Header {
                        at,
                        expected: "one each of 'descr', 'fortran_order' and 'shape'",
                    });
                }
            }
            if !cursor.accept(b',') {
                cursor.expect(b'}', "',' or '}'")?;
                break;
            }
        }
        cursor.skip_space();
        if cursor.at != text.len() {
            return Err(cursor.error("nothing after the '}'"));
        }
        let missing = |expected| NpyError::Header {
            at: text.len(),
            expected,
        };
        let descr = descr.ok_or(missing("the key 'descr'"))?;
        let (dtype, big_endian) = parse_descr(descr)?;
        Ok(Header {
            dtype,
            big_endian,
            fortran_order: order.ok_or(missing("the key 'fortran_order'"))?,
            shape: shape.ok_or(missing("the key 'shape'"))?,
        })
    }
}

fn parse_descr(descr: &str) -> Result<(ElementType, bool), NpyError> {
    let bad = || NpyError::Descr {
        descr: descr.to_string(),
    };
    let order = descr.chars().next().ok_or_else(bad)?;
    let code = descr.get(order.len_utf8()..).unwrap_or("");
    let dtype = *ElementType::ALL
        .iter()
        .find(|d| d.npy_code() == code)
        .ok_or_else(bad)?;
    match order {
        '<' | '=' => Ok((dtype, false)),
        '>' => Ok((dtype, true)),
        '|' if dtype.bytes() == 1 => Ok((dtype, false)),
        _ => Err(bad()),
    }
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn error(&self, expected: &'static str) -> NpyError {
        NpyError::Header {
            at: self.at,
            expected,
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn accept(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.accept(byte) {
            Ok(())
        } else {
            Err(self.error(expected))
        }
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        let expected = "a quoted string";
        let quote = if self.accept(b'\'') {
            b'\''
        } else if self.accept(b'"') {
            b'"'
        } else {
            return Err(self.error(expected));
        };
        let start = self.at;
        let length = self.text[start..].iter().position(|b| *b == quote);
        let length = length.ok_or_else(|| self.error("a closing quote"))?;
        self.at = start + length + 1;
        let text = &self.text[start..start + length];
        match core::str::from_utf8(text) {
            Ok(text) if !text.contains('\\') => Ok(text),
            _ => Err(self.error(expected)),
        }
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.skip_space();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("True or False"))
    }

    fn tuple(&mut self) -> Result<Vec<u64>, NpyError> {
        self.expect(b'(', "'(' of the shape")?;
        let mut out = Vec::new();
        loop {
            if self.accept(b')') {
                return Ok(out);
            }
            out.push(self.number()?);
            if out.len() > crate::MAX_RANK {
                return Err(self.error("a shape of at most 6 dimensions"));
            }
            if !self.accept(b',') {
                let plain_number = out.len() == 1;
                self.expect(b')', "',' or ')'")?;
                if plain_number {
                    return Err(self.error("a ',' after the only dimension"));
                }
                return Ok(out);
            }
        }
    }

    fn number(&mut self) -> Result<u64, NpyError> {
        self.skip_space();
        let expected = "a dimension from 0 to 2^63";
        let mut value = None;
        while let Some(digit) = self.text.get(self.at).filter(|b| b.is_ascii_digit()) {
            let next = value
                .unwrap_or(0u64)
                .checked_mul(10)
                .and_then(|v| v.checked_add(u64::from(digit - b'0')))
                .ok_or_else(|| self.error(expected))?;
            value = Some(next);
            self.at += 1;
        }
        // Python 2 wrote long integers with a letter.
        if value.is_some() && self.text.get(self.at) == Some(&b'L') {
            self.at += 1;
        }
        value.ok_or_else(|| self.error(expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend_from_slice(&(header.len() as u16).to_le_bytes());
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(data);
        out
    }

    #[test]
    fn a_header_is_as_long_as_it_may_be() {
        let read = |length: usize| {
            let mut header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }".to_owned();
            header.push_str(&" ".repeat(length - header.len() - 1));
            header.push('\n');
            let length = (header.len() as u32).to_le_bytes();
            parse_npy(&[b"\x93NUMPY\x02\x00", &length[..], header.as_bytes(), &[7]].concat())
        };
        assert_eq!(read(MAX_HEADER).unwrap().bytes(), [7]);
        let error = read(MAX_HEADER + 1).unwrap_err();
        assert!(matches!(error, NpyError::HeaderLength { .. }), "{error}");
    }

    #[test]
    fn every_type_and_rank_round_trips() {
        for d in ElementType::ALL {
            for shape in [&[][..], &[3], &[2, 3], &[2, 0, 5], &[1, 2, 1, 2]] {
                let t = Tensor::from_fn(*d, shape, |i| (i % 2) as f64).unwrap();
                let bytes = encode_npy(&t);
                assert_eq!((bytes.len() - t.bytes().len()) % 64, 0);
                assert_eq!(parse_npy(&bytes).unwrap(), t);
            }
        }
    }

    #[test]
    fn numpy_spelling_of_one_dimension() {
        let t = Tensor::zeros(ElementType::F32, &[5]).unwrap();
        let text = String::from_utf8_lossy(&encode_npy(&t)).into_owned();
        assert!(text.contains("'shape': (5,), }"), "{text}");
    }

    #[test]
    fn big_endian_and_column_major_are_converted() {
        let header = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }";
        let data: Vec<u8> = (0..6i16).flat_map(i16::to_be_bytes).collect();
        let t = parse_npy(&file(header, &data)).unwrap();
        assert_eq!(
            t.values().collect::<Vec<_>>(),
            [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]
        );
    }

    #[test]
    fn bad_files_are_named() {
        let message = |bytes: &[u8]| parse_npy(bytes).unwrap_err().to_string();
        assert!(message(b"hello").contains("not an .npy"));
        assert!(message(b"PK\x03\x04....").contains(".npz"));
        let structured = "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }";
        assert!(message(&file(structured, &[0; 8])).contains("structures"));
        assert!(message(b"\x93NUMPY\x09\x00\x00\x00").contains("version 9.0"));
        assert!(message(b"\x93NUMPY\x02\x00\xff\xff\xff\xff").contains("4294967295"));
        assert!(message(&file("{'descr': 'O'}", &[])).contains("'O'"));
        let ok = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
        assert!(message(&file(ok, &[0; 7])).contains("needs 8 bytes"));
        assert!(message(&file(ok, &[0; 9])).contains("has 9"));
        for bad in [
            "",
            "{",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2), }",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
            "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': '<f4', 'shape': (2,), 'other': 1, 'fortran_order': False}",
        ] {
            assert!(parse_npy(&file(bad, &[0; 8])).is_err(), "{bad}");
        }
        let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 16)}";
        assert!(message(&file(huge, &[])).contains("too large"));
    }

    #[test]
    fn no_more_is_read_than_is_wanted() {
        /// Zeros of any length; counts what is read.
        struct Counted(Vec<u8>, usize);
        impl Read for Counted {
            fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
                let start = self.0.get(self.1..).unwrap_or_default();
                let count = start.len().min(to.len());
                to[..count].copy_from_slice(&start[..count]);
                to[count..].fill(0);
                self.1 += to.len();
                Ok(to.len())
            }
        }
        let endless = |elements: u64| {
            let header =
                format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({elements},), }}\n");
            Counted(file(&header, &[]), 0)
        };
        let read = |elements: u64, wanted: u64| {
            let mut file = endless(elements);
            let fits =
                |dtype: ElementType, shape: &[u64]| dtype == ElementType::U8 && shape == [wanted];
            let error = read_npy_if(&mut file, fits).unwrap_err();
            (error, file.1)
        };
        let (error, bytes) = read(4 << 30, 4096);
        assert!(matches!(error, NpyError::Unwanted { .. }), "{error}");
        assert!(bytes <= MAX_PREFIX, "{bytes}");
        let (error, bytes) = read(1 << 20, 1 << 20);
        assert!(matches!(error, NpyError::MoreData { .. }), "{error}");
        assert!(bytes <= MAX_PREFIX + (1 << 20), "{bytes}");
    }

    #[test]
    fn a_device_without_end_is_no_npy_file() {
        let error = read_npy(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("not an .npy file"), "{error}");
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = encode_npy(&Tensor::zeros(ElementType::F32, &[2, 2]).unwrap());
        for n in 0..whole.len() {
            assert!(parse_npy(&whole[..n]).is_err(), "{n}");
        }
    }
}
