// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers in reports.

use std::fmt;

use serde::{Serialize, Serializer};

/// A number of a result.
///
/// Text: the shortest for this single-precision number, with an exponent instead of many zeros. JSON: a number, or
/// the strings `"NaN"`, `"Infinity"` and `"-Infinity"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl Number {
    pub(crate) const fn name(self) -> &'static str {
        if self.0.is_nan() {
            "NaN"
        } else if self.0 == f64::INFINITY {
            "Infinity"
        } else if self.0 == f64::NEG_INFINITY {
            "-Infinity"
        } else {
            ""
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let single = self.0 as f32;
        match self.0.abs() {
            _ if !self.0.is_finite() => f.write_str(self.name()),
            // Beyond single precision.
            _ if single.is_infinite() || (single == 0.0) != (self.0 == 0.0) => {
                write!(f, "{:e}", self.0)
            }
            size if size != 0.0 && !(1e-4..1e7).contains(&size) => write!(f, "{single:e}"),
            _ => write!(f, "{single}"),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.is_finite() {
            true => serializer.serialize_f64(self.0),
            false => serializer.serialize_str(self.name()),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Number {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "A number, or the name of a value that JSON has no number for.",
            "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Number;

    #[test]
    fn numbers_are_short_and_plain() {
        let text = |value: f64| Number(value).to_string();
        // Not 23 digits after the point.
        assert_eq!(text(f64::from(2.330_892e-9_f32)), "2.330892e-9");
        assert_eq!(text(f64::from(0.1_f32)), "0.1");
        assert_eq!(
            (text(0.0), text(-3.0), text(1e9)),
            ("0".into(), "-3".into(), "1e9".into())
        );
        assert_eq!(
            (text(1e300), text(1e-300)),
            ("1e300".into(), "1e-300".into())
        );
        assert_eq!(
            (text(f64::NAN), text(f64::NEG_INFINITY)),
            ("NaN".into(), "-Infinity".into())
        );
    }
}
