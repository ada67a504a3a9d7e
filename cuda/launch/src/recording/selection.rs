// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is recorded of a program.

use std::str::FromStr;

/// Which launches of each kernel are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The first that can be.
    First,
    /// All.
    All,
    /// One, from 0.
    Number(u64),
    /// One in N.
    Random(u64),
}

impl FromStr for Pick {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "is neither first, all, a number, nor random:N";
        match text {
            "first" => Ok(Self::First),
            "all" => Ok(Self::All),
            _ => match text.strip_prefix("random:") {
                Some(one_in) => one_in
                    .parse()
                    .ok()
                    .filter(|one_in| *one_in > 0)
                    .map(Self::Random)
                    .ok_or(wrong),
                None => text.parse().map(Self::Number).map_err(|_| wrong),
            },
        }
    }
}

/// What a whole run is recorded of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionOf {
    /// `cuProfilerStart` and `cuProfilerStop`.
    Profiler,
    /// A turn of a loop, which is found.
    Turn,
    /// A range of NVTX.
    Nvtx(String),
    /// From after the launch before the first number, to before that of the second; or to the first work after the
    /// launch before it, once the host may know a result.
    Launches(u64, u64),
}

impl FromStr for RegionOf {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "is neither profiler, turn, nvtx:NAME, nor launches=FIRST..END";
        if let Some(name) = text.strip_prefix("nvtx:").filter(|name| !name.is_empty()) {
            return Ok(Self::Nvtx(name.to_owned()));
        }
        match text {
            "profiler" => return Ok(Self::Profiler),
            "turn" => return Ok(Self::Turn),
            _ => {}
        }
        let range = text.strip_prefix("launches=").ok_or(wrong)?;
        let (first, end) = range.split_once("..").ok_or(wrong)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| wrong);
        match (number(first)?, number(end)?) {
            (first, end) if first < end => Ok(Self::Launches(first, end)),
            _ => Err(wrong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Pick, RegionOf};

    #[test]
    fn picks_are_read_and_nonsense_is_not() {
        assert_eq!("first".parse(), Ok(Pick::First));
        assert_eq!("7".parse(), Ok(Pick::Number(7)));
        assert_eq!("random:10".parse(), Ok(Pick::Random(10)));
        for nonsense in ["", "random:0", "random:", "-1", "last"] {
            assert!(nonsense.parse::<Pick>().is_err(), "{nonsense}");
        }
    }

    #[test]
    fn regions_are_read_and_nonsense_is_not() {
        assert_eq!("profiler".parse(), Ok(RegionOf::Profiler));
        assert_eq!("turn".parse(), Ok(RegionOf::Turn));
        assert_eq!("nvtx:a step".parse(), Ok(RegionOf::Nvtx("a step".into())));
        assert_eq!("launches=3..9".parse(), Ok(RegionOf::Launches(3, 9)));
        for nonsense in [
            "",
            "nvtx:",
            "launches=",
            "launches=3",
            "launches=4..4",
            "launches=-1..2",
        ] {
            assert!(nonsense.parse::<RegionOf>().is_err(), "{nonsense}");
        }
    }
}
