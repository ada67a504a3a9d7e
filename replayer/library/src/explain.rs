// SPDX-License-Identifier: MIT OR Apache-2.0
//! Error texts.

use gpureplay_core::{DeviceError, ErrorKind, NO_ACTION, ReplayError, Rule, UsedUp, Violation};
use gpureplay_format::layout::{MAJOR, Segment};
use gpureplay_format::{Fault, ParseError, Recording, RegionKind, Section};
use mali_drive::{ends, names};

use crate::text::{duration, register};
use crate::unfinished::Unfinished;

/// Why a file is unsound.
pub fn parse_error(error: &ParseError) -> String {
    let section = error.section.name();
    match error.fault {
        Fault::NotARecording => "not a recording (it does not start with GPUREPLY)".into(),
        Fault::Version(version) if version > MAJOR => format!(
            "made for version {version} of the format, this program reads version {MAJOR}; use a newer gpureplay"
        ),
        Fault::Version(version) => format!(
            "made in version {version} of the format, this program reads version {MAJOR} only; \
             rebuild it with the command in its manifest.toml, from a raw trace (gpureplay compile), \
             or from the original's files (gpureplay import)"
        ),
        Fault::Length => {
            format!(
                "section {section}: its length does not fit the file's; the file is truncated or has grown"
            )
        }
        Fault::Table => {
            format!("section {section}: sections are missing, repeated or out of order")
        }
        Fault::NotZero => format!("section {section}: bytes that must be zero are not"),
        Fault::Checksum => {
            format!(
                "section {section}: the checksum is wrong, the file was changed; fetch or record it again"
            )
        }
        Fault::EntrySize => {
            format!("section {section}: its length is not a whole number of entries")
        }
        Fault::Name => format!("section {section}: a name is not printable ASCII"),
    }
}

/// Which rule a recording breaks.
pub fn violation(violation: &Violation) -> String {
    let value = match violation.rule {
        Rule::RegisterWrite | Rule::IdentityRegister => register(violation.value as u32),
        Rule::BoundedWait => format!("{} µs", violation.value),
        Rule::TotalTime => format!("{} µs in total", violation.value),
        Rule::TotalBytes => format!("{} bytes in total", violation.value),
        _ => format!("{:#x}", violation.value),
    };
    format!(
        "rule {} broken by entry {} of section {} ({value}): {}",
        violation.rule.name(),
        violation.index,
        violation.section.name(),
        violation.rule.meaning().trim()
    )
}

/// What went wrong in a replay, and where. `unfinished` is for errors that name no job.
pub fn replay_error(
    recording: &Recording<'_>,
    error: &ReplayError,
    unfinished: Option<Unfinished>,
) -> String {
    let text = place(recording, error) + &kind(recording, &error.kind);
    let nameless = matches!(
        error.kind,
        ErrorKind::MmuFault { .. } | ErrorKind::GpuFault { .. }
    );
    match unfinished.filter(|_| nameless) {
        Some(job) => format!(
            "{text}; job {:#x} ({} of {} in its chain) did not end",
            job.address, job.number, job.jobs
        ),
        None => text,
    }
}

/// The job that exceeded a run's work limit, and advice.
pub fn used_up(recording: &Recording<'_>, error: &ReplayError, used_up: &UsedUp) -> String {
    let UsedUp { job, slot, limit } = used_up;
    format!(
        "{}job {job:#x} on slot {slot} needs more work than the limit of {limit} clauses for all jobs together; its shader or its chain may never end; if the recording is to be trusted and only large, allow more: --limit-work N, with N more than {limit}",
        place(recording, error),
    )
}

fn place(recording: &Recording<'_>, error: &ReplayError) -> String {
    match segment_of(recording, error.action) {
        Some(segment) => format!(
            "action {} (segment {}, after {} of its chains): ",
            error.action,
            recording.name(segment.name.get()),
            error.submits
        ),
        None => String::new(),
    }
}

/// An error of the secure world, with names instead of the numbers of rules and sections.
pub fn secure(error: &gpureplay_linux::optee::Error) -> String {
    use gpureplay_linux::optee::Error as E;
    let named = match *error {
        E::NotAllowed { status: 1, code } => {
            Section::from_code(code).map(|section| format!("section {} is damaged", section.name()))
        }
        E::NotAllowed { code, .. } => Rule::ALL.get(code as usize).map(|rule| {
            let demands = rule.meaning().trim();
            format!("rule {} is broken: {demands}", rule.name())
        }),
        E::Gpu { code } | E::Tensors { code } => code
            .checked_sub(1)
            .and_then(|code| BARE_CODES.get(code as usize))
            .map(|text| (*text).to_owned()),
        _ => None,
    };
    match named {
        Some(named) => format!("{error}: {named}"),
        None => error.to_string(),
    }
}

/// From 1; see `conclude` in `replayer/devices/bare/src/c.rs`.
const BARE_CODES: [&str; 14] = [
    "the device failed: its memory does not suffice, or the GPU does not reset",
    "it is not the GPU that was recorded",
    "the recording uses addresses that this GPU does not translate",
    "this GPU has no such job slot",
    "shader cores or level-2 cache got no power",
    "a job chain did not end in time",
    "a job failed",
    "a slot reported success, but a job was not done",
    "MMU fault",
    "the GPU reported a fault",
    "a tensor was not given a value",
    "a tensor was given a value of another size",
    "the recording has no such segment",
    "the engine met something that the verifier should have refused; please report this recording",
];

fn segment_of<'a>(recording: &Recording<'a>, action: u32) -> Option<&'a Segment> {
    recording.segments().iter().find(|segment| {
        let first = segment.first_action.get();
        action != NO_ACTION && action >= first && action - first < segment.actions.get()
    })
}

fn kind(recording: &Recording<'_>, kind: &ErrorKind) -> String {
    let tensor_name = |index: u32| {
        let tensor = recording.tensors().get(index as usize);
        tensor.map_or("", |tensor| recording.name(tensor.name.get()))
    };
    let time = |us: u32| duration(std::time::Duration::from_micros(us.into()));
    match *kind {
        ErrorKind::Device(error) => device(error),
        ErrorKind::Identity { register: offset, mask, expected, found } => format!(
            "{} is {found:#x} (under mask {mask:#x}), but the recording is for {expected:#x}: it was made on another GPU; choose a device of the same kind",
            register(offset)
        ),
        ErrorKind::AddressRange(bits) => format!(
            "the recording uses addresses beyond the {bits} bits that this GPU translates"
        ),
        ErrorKind::NoSuchSlot(slot) => format!("this GPU has no job slot {slot}"),
        ErrorKind::NoPower { register: offset, expected, found } => {
            let name = register(offset);
            format!("shader cores or level-2 cache got no power: {name} did not become {expected:#x}, it is {found:#x}")
        }
        ErrorKind::JobTimeout { slot, status, tail, timeout_us } => format!(
            "the chain on slot {slot} did not end within {}: job {tail:#x} is {}",
            time(timeout_us),
            names::job_status(status)
        ),
        ErrorKind::JobFault { slot, status, tail, fault_address } => {
            if status == ends::DONE {
                return format!(
                    "the GPU reports a failure of job {tail:#x} on slot {slot}, whose status is DONE"
                );
            }
            let meaning = names::meaning(status).unwrap_or("");
            let status = names::job_status(status);
            let at = match fault_address {
                0 => String::new(),
                address => format!(" at {}", address_text(recording, address)),
            };
            format!("job {tail:#x} on slot {slot} failed with {status}{at}. {meaning}")
        }
        ErrorKind::JobNotDone { header, status } => format!(
            "the slot reports success, but job {header:#x} is {} instead of DONE",
            names::job_status(status)
        ),
        ErrorKind::MmuFault { status, address } => format!(
            "MMU fault: {} at {}",
            names::fault_status(status),
            address_text(recording, address)
        ),
        ErrorKind::GpuFault { status, address } => {
            format!("the GPU reports fault {status:#x} at physical address {address:#x}")
        }
        ErrorKind::Unbound { tensor } => {
            format!("tensor {} was not given a value", tensor_name(tensor))
        }
        ErrorKind::TensorSize { tensor, expected, found } => {
            format!("tensor {} has {expected} bytes, but {found} were given", tensor_name(tensor))
        }
        ErrorKind::NoSuchSegment(index) => format!("the recording has no run segment {index}"),
        ErrorKind::Internal => {
            "the engine met something that the verifier should have refused; please report this recording".into()
        }
    }
}

fn device(error: DeviceError) -> String {
    use gpureplay_linux::nano::TAKEN_AWAY;
    use gpureplay_linux::{panfrost, panthor};

    match error {
        DeviceError::OutOfMemory => "the device has not enough memory for the recording".into(),
        DeviceError::NotMapped(va) => format!("nothing is mapped at {va:#x}"),
        DeviceError::ResetFailed => {
            "the GPU does not come back from a reset, neither soft nor hard; power-cycle it".into()
        }
        DeviceError::AddressSpaceStuck => "the GPU's MMU does not finish a command".into(),
        DeviceError::Refused(TAKEN_AWAY) => "the driver took the GPU away: the machine slept, or another process waited for the GPU too long; run again".into(),
        DeviceError::Refused(code) => match panfrost::refusal(code).or_else(|| panthor::refusal(code)) {
            Some(text) => text.into(),
            None if code > 0 => {
                format!("the driver refused: {}", std::io::Error::from_raw_os_error(code))
            }
            None => format!("the device refused (code {code})"),
        },
    }
}

/// An address, and the recording's facts of it.
pub fn address_text(recording: &Recording<'_>, va: u64) -> String {
    let Some(region) = recording.region_of(va, 1) else {
        return format!("{va:#x} (in no region of the recording)");
    };
    let kind = RegionKind::from_code(region.kind.into()).map_or("unknown", RegionKind::name);
    format!(
        "{va:#x} ({kind} region {:#x}..{:#x})",
        region.va.get(),
        region.end()
    )
}

#[cfg(test)]
mod tests {
    use gpureplay_linux::optee::Error as E;

    use super::*;

    fn names(header: &str, array: &str) -> Vec<String> {
        let (_, after) = header.split_once(&format!("{array}[] = {{")).unwrap();
        let (inside, _) = after.split_once("};").unwrap();
        let quoted = inside.split('"').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    }

    #[test]
    fn a_gpu_that_was_taken_away_is_said_to_be() {
        let taken = device(DeviceError::Refused(gpureplay_linux::nano::TAKEN_AWAY));
        assert!(taken.contains("took the GPU away"), "{taken}");
        assert!(device(DeviceError::Refused(0)).contains("code 0"));
        let refused = device(DeviceError::Refused(5));
        assert!(refused.contains("Input/output error"), "{refused}");
    }

    #[test]
    fn the_client_in_c_knows_the_same_names() {
        let header = include_str!("../../devices/optee/client/gpureplay_names.h");
        let rules: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names(header, "gpureplay_rules"), rules);
        let sections: Vec<&str> = Section::ALL.iter().map(|section| section.name()).collect();
        assert_eq!(names(header, "gpureplay_sections"), sections);
        // The codes are indices of these lists.
        assert!(
            Section::ALL
                .iter()
                .zip(0..)
                .all(|(section, code)| section.code() == code)
        );
        assert!(
            Rule::ALL
                .iter()
                .zip(0..)
                .all(|(rule, code)| *rule as u8 == code)
        );
    }

    #[test]
    fn refusals_of_the_secure_world_have_names() {
        let rule = secure(&E::NotAllowed {
            status: 2,
            code: Rule::WriteXorExecute as u32,
        });
        assert!(
            rule.contains("rule write-xor-execute is broken: No region"),
            "{rule}"
        );
        let damaged = secure(&E::NotAllowed {
            status: 1,
            code: Section::Data.code().into(),
        });
        assert!(damaged.contains("section data is damaged"), "{damaged}");
        let unknown = secure(&E::NotAllowed {
            status: 2,
            code: 999,
        });
        assert!(unknown.ends_with("(status 2, code 999)"), "{unknown}");
        let failed = secure(&E::Gpu { code: 6 });
        assert!(
            failed.contains("a job chain did not end in time"),
            "{failed}"
        );
        let missing = secure(&E::Tensors { code: 11 });
        assert!(missing.contains("not given a value"), "{missing}");
    }
}
