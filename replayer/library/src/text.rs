// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names and numbers as people read them.

use std::time::Duration;

use gpureplay_format::layout::TensorEntry;
use gpureplay_format::{ElementType, Recording, TensorKind};
use mali_drive::names;

/// `JS1_HEAD_NEXT_LO`, or the offset of an unnamed register.
pub fn register(offset: u32) -> String {
    names::register(offset).map_or_else(
        || format!("register {offset:#06x}"),
        |name| name.to_string(),
    )
}

/// A file may state a million dimensions.
const MAX_EXTENTS: usize = 16;

/// Type and shape as `f32[64,64]`.
pub fn typed_shape(element: ElementType, shape: &[u64]) -> String {
    let extents = shape.iter().take(MAX_EXTENTS).map(u64::to_string);
    let extents = extents.collect::<Vec<_>>().join(",");
    match shape.len() {
        0..=MAX_EXTENTS => format!("{}[{extents}]", element.name()),
        rank => format!("{}[{extents},… {rank} dimensions]", element.name()),
    }
}

/// Element type of a verified tensor.
pub fn element_of(tensor: &TensorEntry) -> ElementType {
    ElementType::from_code(tensor.element.into()).unwrap_or(ElementType::U8)
}

/// Kind of a verified tensor.
pub fn kind_of(tensor: &TensorEntry) -> TensorKind {
    TensorKind::from_code(tensor.kind.into()).unwrap_or(TensorKind::Intermediate)
}

/// Shape of a tensor.
pub fn shape_of(_recording: &Recording<'_>, tensor: &TensorEntry) -> Vec<u64> {
    let rank = usize::from(tensor.rank).min(tensor.shape.len());
    tensor.shape[..rank]
        .iter()
        .map(|extent| extent.get().into())
        .collect()
}

/// Type and shape of a tensor as `f32[64,64]`.
pub fn tensor_type(recording: &Recording<'_>, tensor: &TensorEntry) -> String {
    typed_shape(element_of(tensor), &shape_of(recording, tensor))
}

/// `1.2 MB`, decimal units.
pub fn bytes(count: u64) -> String {
    let mut value = count as f64;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if value < 1000.0 || unit == "GB" {
            let digits = if unit == "bytes" || value >= 100.0 {
                0
            } else {
                1
            };
            return format!("{value:.digits$} {unit}");
        }
        value /= 1000.0;
    }
    String::new()
}

/// `41 ms`, three digits at most.
pub fn duration(time: Duration) -> String {
    let mut value = time.as_secs_f64() * 1e6;
    for unit in ["µs", "ms"] {
        if value < 1000.0 {
            let digits = if value < 10.0 { 1 } else { 0 };
            return format!("{value:.digits$} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} s")
}

/// Seconds as [`duration`]; an invalid time is none.
pub fn seconds(seconds: f64) -> String {
    duration(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// `1 job`, `2 jobs`.
pub fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_as_short_as_a_line() {
        let shape = |rank| typed_shape(ElementType::F32, &vec![1; rank]);
        assert_eq!(shape(2), "f32[1,1]");
        assert_eq!(shape(16), format!("f32[{}1]", "1,".repeat(15)));
        assert_eq!(
            shape(17),
            format!("f32[{}… 17 dimensions]", "1,".repeat(16))
        );
        assert!(shape(2_000_000).len() < 80);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(bytes(0), "0 bytes");
        assert_eq!(bytes(1234), "1.2 kB");
        assert_eq!(bytes(700_000_000), "700 MB");
        assert_eq!(duration(Duration::from_micros(900)), "900 µs");
        assert_eq!(duration(Duration::from_micros(1500)), "1.5 ms");
        assert_eq!(duration(Duration::from_millis(41)), "41 ms");
        assert_eq!(duration(Duration::from_millis(12_340)), "12.3 s");
        assert_eq!(count(1, "job"), "1 job");
    }

    #[test]
    fn registers_have_names() {
        assert_eq!(register(0), "GPU_ID");
        assert_eq!(register(0x18e0), "JS1_COMMAND_NEXT");
        assert_eq!(register(0x3ffc), "register 0x3ffc");
    }
}
