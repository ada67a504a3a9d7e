// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vfio-user protocol of QEMU (client) and a device (server).
//!
//! A message's 16-byte header has the size of header and body. Both ends share the host's byte order. Sources: the
//! vfio-user specification in QEMU's documentation, Linux's `vfio.h`.

pub(crate) const HEADER_SIZE: usize = 16;

/// Of one access, by our capabilities.
pub(crate) const MAXIMUM_DATA: usize = 1 << 20;

/// The largest: a region write.
pub(crate) const MAXIMUM_MESSAGE: usize = HEADER_SIZE + 16 + MAXIMUM_DATA;

const FLAG_TYPE: u32 = 0xf;
const FLAG_REPLY: u32 = 1;
const FLAG_NO_REPLY: u32 = 1 << 4;
const FLAG_ERROR: u32 = 1 << 5;

pub(crate) mod errno {
    pub(crate) const EIO: u32 = 5;
    pub(crate) const EINVAL: u32 = 22;
    pub(crate) const EOPNOTSUPP: u32 = 95;
}

pub(crate) mod region {
    pub(crate) const BAR0: u32 = 0;
    pub(crate) const CONFIG: u32 = 7;
    pub(crate) const COUNT: u32 = 9;
}

pub(crate) mod irq {
    pub(crate) const INTX: u32 = 0;
    pub(crate) const COUNT: u32 = 5;
    /// By eventfd, maskable, masks itself when it fires.
    pub(crate) const INTX_FLAGS: u32 = 0b111;
    pub(crate) const DATA_NONE: u32 = 1 << 0;
    pub(crate) const DATA_EVENTFD: u32 = 1 << 2;
    pub(crate) const ACTION_MASK: u32 = 1 << 3;
    pub(crate) const ACTION_UNMASK: u32 = 1 << 4;
    pub(crate) const ACTION_TRIGGER: u32 = 1 << 5;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) id: u16,
    pub(crate) command: u16,
    pub(crate) size: u32,
    pub(crate) flags: u32,
}

impl Header {
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_SIZE]) -> Header {
        let [id0, id1, c0, c1, s0, s1, s2, s3, f0, f1, f2, f3, ..] = *bytes;
        Header {
            id: u16::from_ne_bytes([id0, id1]),
            command: u16::from_ne_bytes([c0, c1]),
            size: u32::from_ne_bytes([s0, s1, s2, s3]),
            flags: u32::from_ne_bytes([f0, f1, f2, f3]),
        }
    }

    pub(crate) fn is_command(&self) -> bool {
        self.flags & FLAG_TYPE == 0
    }

    pub(crate) fn wants_reply(&self) -> bool {
        self.flags & FLAG_NO_REPLY == 0
    }

    pub(crate) fn reply(&self, body: &[u8]) -> Vec<u8> {
        self.answer(FLAG_REPLY, 0, body)
    }

    pub(crate) fn error(&self, errno: u32) -> Vec<u8> {
        self.answer(FLAG_REPLY | FLAG_ERROR, errno, &[])
    }

    fn answer(&self, flags: u32, error: u32, body: &[u8]) -> Vec<u8> {
        let mut message = Vec::with_capacity(HEADER_SIZE + body.len());
        message.extend(self.id.to_ne_bytes());
        message.extend(self.command.to_ne_bytes());
        message.extend(((HEADER_SIZE + body.len()) as u32).to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(error.to_ne_bytes());
        message.extend(body);
        message
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("the body has {length} bytes, {needed} are needed")]
    Short {
        /// Bytes.
        length: usize,
        /// Bytes.
        needed: usize,
    },
    #[error("version {major}.{minor} is not supported")]
    Version { major: u16, minor: u16 },
    #[error("a region access of {count} bytes with {data} bytes of data")]
    Data {
        /// Bytes announced.
        count: u32,
        /// Bytes carried.
        data: usize,
    },
    #[error("command {0} is not supported")]
    Command(u16),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Version,
    DmaMap {
        writable: bool,
        offset: u64,
        address: u64,
        size: u64,
    },
    DmaUnmap {
        all: bool,
        flags: u32,
        address: u64,
        size: u64,
    },
    DeviceInfo,
    RegionInfo {
        index: u32,
    },
    IrqInfo {
        index: u32,
    },
    SetIrqs {
        flags: u32,
        index: u32,
        start: u32,
        count: u32,
    },
    RegionRead {
        offset: u64,
        region: u32,
        count: u32,
    },
    RegionWrite {
        offset: u64,
        region: u32,
        data: &'a [u8],
    },
    Reset,
}

/// The length was checked.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn word(&self, offset: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[offset..offset + 4]);
        u32::from_ne_bytes(bytes)
    }

    fn long(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[offset..offset + 8]);
        u64::from_ne_bytes(bytes)
    }
}

impl<'a> Command<'a> {
    pub(crate) fn decode(command: u16, body: &'a [u8]) -> Result<Command<'a>, Malformed> {
        let needed = match command {
            1 => 4,
            2 => 32,
            3 => 24,
            4 => 16,
            5 => 32,
            7 => 16,
            8 => 20,
            9 | 10 => 16,
            13 => 0,
            other => return Err(Malformed::Command(other)),
        };
        if body.len() < needed {
            return Err(Malformed::Short {
                length: body.len(),
                needed,
            });
        }
        let fields = Body(body);
        Ok(match command {
            1 => {
                let word = fields.word(0).to_ne_bytes();
                let major = u16::from_ne_bytes([word[0], word[1]]);
                let minor = u16::from_ne_bytes([word[2], word[3]]);
                if major != 0 {
                    return Err(Malformed::Version { major, minor });
                }
                Command::Version
            }
            2 => Command::DmaMap {
                writable: fields.word(4) & 2 != 0,
                offset: fields.long(8),
                address: fields.long(16),
                size: fields.long(24),
            },
            3 => Command::DmaUnmap {
                all: fields.word(4) & 4 != 0,
                flags: fields.word(4),
                address: fields.long(8),
                size: fields.long(16),
            },
            4 => Command::DeviceInfo,
            5 => Command::RegionInfo {
                index: fields.word(8),
            },
            7 => Command::IrqInfo {
                index: fields.word(8),
            },
            8 => Command::SetIrqs {
                flags: fields.word(4),
                index: fields.word(8),
                start: fields.word(12),
                count: fields.word(16),
            },
            9 => {
                let count = fields.word(12);
                if count as usize > MAXIMUM_DATA {
                    return Err(Malformed::Data { count, data: 0 });
                }
                Command::RegionRead {
                    offset: fields.long(0),
                    region: fields.word(8),
                    count,
                }
            }
            10 => {
                let (count, data) = (fields.word(12), &body[16..]);
                if count as usize != data.len() {
                    return Err(Malformed::Data {
                        count,
                        data: data.len(),
                    });
                }
                Command::RegionWrite {
                    offset: fields.long(0),
                    region: fields.word(8),
                    data,
                }
            }
            _ => Command::Reset,
        })
    }
}

#[derive(Default)]
pub(crate) struct Reply(pub(crate) Vec<u8>);

impl Reply {
    pub(crate) fn word(mut self, value: u32) -> Reply {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn long(mut self, value: u64) -> Reply {
        self.0.extend(value.to_ne_bytes());
        self
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Reply {
        self.0.extend(value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn commands_are_decoded() {
        let mut write = words(&[0x30, 0, 0, 4]);
        write.extend([1, 0, 0, 0]);
        for (number, body, expected) in [
            (1, words(&[1 << 16]), Command::Version),
            (
                2,
                words(&[32, 3, 0x1000, 0, 0x4000_0000, 0, 0, 1]),
                Command::DmaMap {
                    writable: true,
                    offset: 0x1000,
                    address: 0x4000_0000,
                    size: 1 << 32,
                },
            ),
            (
                3,
                words(&[24, 4, 0, 0, 0, 0]),
                Command::DmaUnmap {
                    all: true,
                    flags: 4,
                    address: 0,
                    size: 0,
                },
            ),
            (
                5,
                words(&[32, 0, 7, 0, 0, 0, 0, 0]),
                Command::RegionInfo { index: 7 },
            ),
            (
                8,
                words(&[20, 0x24, 0, 0, 1]),
                Command::SetIrqs {
                    flags: 0x24,
                    index: 0,
                    start: 0,
                    count: 1,
                },
            ),
            (
                9,
                words(&[4, 0, 0, 8]),
                Command::RegionRead {
                    offset: 4,
                    region: 0,
                    count: 8,
                },
            ),
            (
                10,
                write.clone(),
                Command::RegionWrite {
                    offset: 0x30,
                    region: 0,
                    data: &[1, 0, 0, 0],
                },
            ),
            (13, vec![], Command::Reset),
        ] {
            assert_eq!(Command::decode(number, &body), Ok(expected));
        }
    }

    #[test]
    fn bodies_that_do_not_fit_are_refused() {
        for (number, body) in [
            (1, words(&[])),
            (1, words(&[1])),
            (2, words(&[0; 7])),
            (3, words(&[0; 5])),
            (6, words(&[0; 8])),
            (8, words(&[0; 4])),
            (9, words(&[0, 0, 0, MAXIMUM_DATA as u32 + 1])),
            (10, words(&[0, 0, 0, 8, 1])),
            (10, words(&[0, 0, 0, u32::MAX])),
            (14, words(&[0; 8])),
            (u16::MAX, vec![]),
        ] {
            assert!(Command::decode(number, &body).is_err(), "{number} {body:?}");
        }
    }

    #[test]
    fn replies_carry_id_and_size() {
        let mut bytes = [0; HEADER_SIZE];
        bytes[..12].copy_from_slice(&[7, 0, 9, 0, 32, 0, 0, 0, 0, 0, 0, 0]);
        let header = Header::from_bytes(&bytes);
        assert!(header.is_command() && header.wants_reply());
        let reply = header.reply(&[1, 2, 3, 4]);
        assert_eq!(
            reply,
            [7, 0, 9, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]
        );
        assert_eq!(header.error(22)[8..], [0x21, 0, 0, 0, 22, 0, 0, 0]);
    }
}
