// SPDX-License-Identifier: MIT OR Apache-2.0
//! The OpenCL layer's cost in instructions: a busy host's times would hide it.

use crate::{error::Result, files};

const MOST: f64 = 0.02;

/// In turns, with full caches. The guest's clock counts all processors' instructions; the others are idle.
pub(super) const RUN: &str = r#"set -e
program=${COMMAND//\{s\}/b}
TIMEFORMAT='took %U %S'
$program > /dev/null
for round in 1 2 3; do
	time taskset -c 0 $program > /dev/null
	time taskset -c 0 env OPENCL_LAYERS=/opt/gpureplay/lib/libgpureplay_opencl.so GPUREPLAY_NOTES=/dev/null $program > /dev/null
done
"#;

/// Seconds without and with the layer. The least counts: all else only adds.
fn least(log: &str) -> Option<[f64; 2]> {
    let runs: Vec<f64> = log
        .lines()
        .filter_map(|line| {
            let (user, system) = line.strip_prefix("took ")?.split_once(' ')?;
            Some(user.parse::<f64>().ok()? + system.parse::<f64>().ok()?)
        })
        .collect();
    let (pairs, rest) = runs.as_chunks::<2>();
    let first = pairs.first().filter(|_| rest.is_empty())?;
    Some(pairs.iter().fold(*first, |least, pair| {
        [least[0].min(pair[0]), least[1].min(pair[1])]
    }))
}

pub(super) fn judge(log: &std::path::Path) -> Result<super::Found> {
    let text = files::text(log)?;
    Ok(verdict(&text))
}

fn verdict(log: &str) -> super::Found {
    let [without, with] = least(log).ok_or("the runs were not timed")?;
    if without <= 0.0 {
        return Err("the runs took no time".into());
    }
    let more = with / without - 1.0;
    let text = format!(
        "{without:.2} s without the layer, {with:.2} s with it: {:+.2} %",
        100.0 * more
    );
    if more < MOST { Ok(text) } else { Err(text) }
}

#[cfg(test)]
mod tests {
    use super::verdict;

    #[test]
    fn the_least_of_each_way_counts() {
        let log = "x\ntook 1.0 1.0\ntook 2.0 1.01\ntook 3.0 0.0\ntook 2.0 0.02\n";
        let text = verdict(log).expect("1 %");
        assert!(text.ends_with("+1.00 %"), "{text}");
        assert!(verdict("took 1.0 1.0\ntook 1.0 1.1\n").is_err(), "5 %");
        assert!(verdict("took 1.0 1.0\n").is_err(), "one way only");
        assert!(verdict("took 0.0 0.0\ntook 0.0 0.0\n").is_err(), "nothing");
    }
}
