// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU: options, parameters, maps.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use gpureplay_memory::Mapped;
use mali_model::driven::{DrivenGpu, DrivenStreams, Map, Rights, TIMESTAMP_FREQUENCY};
use mali_model::{Level, Log, Options};
use mali_uapi::panfrost::parameter;
use mali_uapi::panthor::TimestampInfo;

use crate::faults::tell;
use crate::object::Object;

/// Clauses per chain: about three minutes. The kernel's watchdog gives a GPU half a second.
const WORK_LIMIT: u64 = 1 << 32;

pub(crate) type Machine = DrivenGpu<Mapped>;
pub(crate) type StreamMachine = DrivenStreams<Mapped>;

/// By GPU address.
pub(crate) type Mappings = Vec<(u64, Arc<Object>)>;

struct Faults;

impl Log for Faults {
    fn level(&self) -> Level {
        Level::Error
    }

    fn write(&self, level: Level, message: fmt::Arguments<'_>) {
        tell(format_args!("{level}: {message}"));
    }
}

pub(crate) fn options() -> Options {
    Options {
        work_limit: Some(WORK_LIMIT),
        log: Arc::new(Faults),
        ..Options::default()
    }
}

/// panfrost's: all may be written.
pub(crate) fn maps(mappings: &Mappings) -> impl Iterator<Item = Map> {
    mappings.iter().map(|(va, object)| Map {
        va: *va,
        address: object.address,
        size: object.size,
        rights: Rights {
            write: true,
            execute: object.executable,
        },
    })
}

/// By number in `drm_panfrost_param`.
pub(crate) fn parameter(gpu: &mut Machine, which: u32) -> Option<u64> {
    match which {
        parameter::TIMESTAMP_FREQUENCY => Some(TIMESTAMP_FREQUENCY),
        parameter::SELECTED_COHERENCY => Some(parameter::COHERENT),
        _ => parameter::answer(which, |register| gpu.read32(register)),
    }
}

pub(crate) fn timestamp_info(gpu: &StreamMachine) -> TimestampInfo {
    TimestampInfo {
        frequency: TIMESTAMP_FREQUENCY,
        current: gpu.timestamp(),
        offset: 0,
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}
