// SPDX-License-Identifier: MIT OR Apache-2.0
//! `gr_io_history`: one register access per line, `nanoseconds since the last,R|W,0xOFFSET,VALUE`.

use mali_facts::registers::gpu::GPU_ID;

use crate::diagnosis::MAX_DIAGNOSED;
use crate::{Diagnosis, ReadError};

/// Whether a register was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// By the driver.
    Read,
    /// By the driver.
    Write,
}

/// Register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Since the first access.
    pub time_ns: u64,
    /// Read or written.
    pub direction: Direction,
    /// Offset in bytes.
    pub register: u32,
    /// Value.
    pub value: u32,
}

/// All register accesses, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Accesses.
    pub accesses: Vec<Access>,
}

impl History {
    /// Malformed lines are left out and diagnosed.
    pub(crate) fn parse(
        bytes: &[u8],
        diagnoses: &mut Vec<Diagnosis>,
    ) -> Result<History, ReadError> {
        let mut accesses = Vec::new();
        let mut time_ns = 0u64;
        let mut malformed = 0;
        for (index, line) in bytes.split(|&b| b == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            match parse_line(line) {
                Some((delta, direction, register, value)) => {
                    time_ns = time_ns.saturating_add(delta);
                    accesses.push(Access {
                        time_ns,
                        direction,
                        register,
                        value,
                    });
                }
                None => {
                    malformed += 1;
                    if malformed <= MAX_DIAGNOSED {
                        let start = line.get(..60).unwrap_or(line);
                        diagnoses.push(Diagnosis::HistoryLine {
                            line: index + 1,
                            text: String::from_utf8_lossy(start).into_owned(),
                        });
                    }
                }
            }
        }
        if accesses.is_empty() {
            return Err(ReadError::Unusable {
                file: "gr_io_history",
                reason: "no line is a register access (TIME,R|W,0xOFFSET,VALUE)".into(),
            });
        }
        Ok(History { accesses })
    }

    /// What GPU_ID read.
    pub fn gpu_id(&self) -> Option<u32> {
        self.first_read(GPU_ID)
    }

    /// First value read from a register.
    pub fn first_read(&self, register: u32) -> Option<u32> {
        let read = |a: &&Access| a.direction == Direction::Read && a.register == register;
        self.accesses.iter().find(read).map(|a| a.value)
    }

    /// Values written to a register, in order.
    pub fn writes(&self, register: u32) -> impl Iterator<Item = u32> + '_ {
        self.accesses
            .iter()
            .filter(move |a| a.direction == Direction::Write && a.register == register)
            .map(|a| a.value)
    }

    /// CSV: nanoseconds since the first access, `R` or `W`, register, value.
    pub fn to_csv(&self) -> String {
        use std::fmt::Write as _;
        let mut out = String::from("time_ns,access,register,value\n");
        for a in &self.accesses {
            let direction = match a.direction {
                Direction::Read => 'R',
                Direction::Write => 'W',
            };
            let _ = writeln!(
                out,
                "{},{direction},{:#06x},{:#010x}",
                a.time_ns, a.register, a.value
            );
        }
        out
    }
}

fn parse_line(line: &[u8]) -> Option<(u64, Direction, u32, u32)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut fields = text.split(',').map(str::trim);
    let delta = fields.next()?.parse().ok()?;
    let direction = match fields.next()? {
        "R" => Direction::Read,
        "W" => Direction::Write,
        _ => return None,
    };
    let mut hex = || {
        let field = fields.next()?;
        u32::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (register, value) = (hex()?, hex()?);
    fields.next().is_none().then_some(())?;
    Some((delta, direction, register, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_defects_named() {
        let mut d = Vec::new();
        let text =
            b"0,R,0x00000000,60a00002\n521,W,0x18c0,b8f5b040\nxyz\n5,R,0x4,1,2\n\n7,R,0x4,12";
        let h = History::parse(text, &mut d).unwrap();
        assert_eq!(h.accesses.len(), 3);
        assert_eq!(h.accesses[2].time_ns, 528);
        assert_eq!(h.first_read(4), Some(0x12));
        assert_eq!(h.writes(0x18c0).collect::<Vec<_>>(), [0xb8f5_b040]);
        let names: Vec<_> = d.iter().map(Diagnosis::name).collect();
        assert_eq!(names, ["history-line", "history-line"]);
        assert!(h.to_csv().ends_with("528,R,0x0004,0x00000012\n"));
        assert!(History::parse(b"\xff\n", &mut d).is_err());
    }
}
