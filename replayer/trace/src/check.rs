// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules that make a trace complete.

use crate::{ErrorCode, Event, Record};

/// Why a trace may be incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Records are missing, or doubled.
    #[error("record {found} follows record {}: {} missing", expected.wrapping_sub(1), found.wrapping_sub(*expected))]
    Gap {
        /// Sequence number.
        expected: u64,
        /// Sequence number.
        found: u64,
    },
    /// An ERROR record of the recorder.
    #[error("the recorder reports at record {sequence}: {code} {detail:#x}")]
    Reported {
        /// The ERROR record's.
        sequence: u64,
        /// Why.
        code: ErrorCode,
        /// Depends on the code.
        detail: u64,
    },
    /// Second BEGIN.
    #[error("record {sequence} is a second BEGIN: two traces were joined")]
    SecondBegin {
        /// The record's.
        sequence: u64,
    },
    /// Something after END.
    #[error("record {sequence} follows END")]
    AfterEnd {
        /// The record's.
        sequence: u64,
    },
    /// END does not count what was read.
    #[error("END counts {stated} records, {read} were read")]
    Count {
        /// By END.
        stated: u64,
        /// By this check.
        read: u64,
    },
    /// No END.
    #[error("the trace has no END: the recording was cut off after record {last}")]
    NoEnd {
        /// Last record's number.
        last: u64,
    },
}

/// Checks record after record.
#[derive(Clone, Debug, Default)]
pub struct Check {
    next: u64,
    ended: bool,
}

impl Check {
    /// Check at a trace's start.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks the next record. Goes on after a problem, so that a dump can show all.
    pub fn observe(&mut self, record: &Record<'_>) -> Result<(), Problem> {
        let sequence = record.sequence;
        let expected = std::mem::replace(&mut self.next, sequence.wrapping_add(1));
        // A second process writes its ERROR without knowing the last record's number.
        let foreign = matches!(
            record.event,
            Event::Error {
                code: ErrorCode::Process,
                ..
            }
        );
        if sequence != expected && !foreign {
            return Err(Problem::Gap {
                expected,
                found: sequence,
            });
        }
        if self.ended && !foreign {
            return Err(Problem::AfterEnd { sequence });
        }
        match record.event {
            Event::Begin(_) if sequence != 0 => Err(Problem::SecondBegin { sequence }),
            Event::Error { code, detail } => Err(Problem::Reported {
                sequence,
                code,
                detail,
            }),
            Event::End { records, .. } => {
                self.ended = true;
                if records == sequence {
                    Ok(())
                } else {
                    Err(Problem::Count {
                        stated: records,
                        read: sequence,
                    })
                }
            }
            _ => Ok(()),
        }
    }

    /// Call at the end of the stream.
    pub fn finish(&self) -> Result<(), Problem> {
        if self.ended {
            Ok(())
        } else {
            Err(Problem::NoEnd {
                last: self.next.wrapping_sub(1),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Driver, Reader, Writer};

    fn problems(trace: &[u8]) -> Vec<Problem> {
        let mut reader = Reader::new(trace);
        let mut check = Check::new();
        let mut out = vec![];
        while let Some(record) = reader.next_record().unwrap() {
            out.extend(check.observe(&record).err());
        }
        out.extend(check.finish().err());
        out
    }

    fn start() -> Writer<Vec<u8>> {
        Writer::begin(Vec::new(), Driver::Panfrost, false, "panfrost", "6.12").unwrap()
    }

    #[test]
    fn a_complete_trace_has_no_problem() {
        let mut w = start();
        w.reg_write(0x30, 1).unwrap();
        assert_eq!(problems(&w.end().unwrap()), []);
    }

    #[test]
    fn a_second_process_is_reported_wherever_its_error_stands() {
        let mut w = start();
        w.reg_write(0x30, 1).unwrap();
        let whole = w.end().unwrap();
        let mut foreign = start();
        foreign.error(ErrorCode::Process, 77).unwrap();
        let foreign = &foreign.end().unwrap()[120..160];
        let reported = Problem::Reported {
            sequence: 1,
            code: ErrorCode::Process,
            detail: 77,
        };
        for at in [120, 152, whole.len()] {
            let trace = [&whole[..at], foreign, &whole[at..]].concat();
            assert_eq!(problems(&trace)[0], reported, "{at}");
        }
    }

    #[test]
    fn gaps_errors_and_missing_ends_are_found() {
        let mut w = start();
        w.reg_write(0x30, 1).unwrap();
        w.error(ErrorCode::LogFull, 5).unwrap();
        let trace = w.end().unwrap();
        assert_eq!(
            problems(&trace),
            [Problem::Reported {
                sequence: 2,
                code: ErrorCode::LogFull,
                detail: 5
            }]
        );

        // Without record 1 (120 bytes of BEGIN, then 32 bytes).
        let gap = [&trace[..120], &trace[152..]].concat();
        assert_eq!(
            problems(&gap)[0],
            Problem::Gap {
                expected: 1,
                found: 2
            }
        );
        assert_eq!(problems(&trace[..152]), [Problem::NoEnd { last: 1 }]);
        let twice = [trace.as_slice(), trace.as_slice()].concat();
        assert!(problems(&twice).len() > 1);
    }
}
