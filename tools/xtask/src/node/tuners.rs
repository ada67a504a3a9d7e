// SPDX-License-Identifier: MIT OR Apache-2.0
//! CLBlast's tuners on the model.

use std::path::Path;

use gpureplay_task::{checks::End, output};

use super::{Here, unpacked};
use crate::error::{Error, Result};

const UNPACK: &str = r#"set -e
apt-get -qq -o APT::Sandbox::User=root download clblast-utils
dpkg-deb -x clblast-utils_*.deb root
cp -a root/usr/bin/clblast_tuner_* "$1"
"#;

/// Without bounds checks, sizes are multiples of the largest work group's part. Of many variants a random fraction is
/// tried.
const TUNERS: [(&str, &str); 12] = [
    ("copy_fast", "-m 256 -n 256"),
    ("copy_pad", "-m 256 -n 256"),
    ("invert", "-n 64"),
    ("transpose_fast", "-m 256 -n 256"),
    ("transpose_pad", "-m 256 -n 256"),
    ("xaxpy", "-n 16384"),
    (
        "xconvgemm",
        "-channels 4 -height 8 -width 8 -num_kernels 8 -batch_count 1 -fraction 32",
    ),
    ("xdot", "-n 16384"),
    ("xgemm", "-m 128 -n 128 -k 128 -fraction 512"),
    ("xgemm_direct", "-m 64 -n 64 -k 64 -fraction 256"),
    ("xgemv", "-m 1024 -n 1024 -fraction 4"),
    ("xger", "-m 256 -n 256 -fraction 4"),
];

pub(super) fn all(here: &Here, gpu: &str) -> Vec<(&'static str, Result<End>)> {
    let tuners = unpacked("clblast-tuners", "clblast_tuner_xgemv", UNPACK);
    let end = |&(name, sizes): &(&'static str, &str)| {
        let end = match &tuners {
            Ok(folder) => run(here, gpu, folder, name, sizes),
            Err(error) => Ok(End::Skipped(format!("no clblast-utils: {error}"))),
        };
        (name, end)
    };
    TUNERS.iter().map(end).collect()
}

fn run(here: &Here, gpu: &str, folder: &Path, name: &str, sizes: &str) -> Result<End> {
    let tuner = folder.join(format!("clblast_tuner_{name}"));
    let mut command = here.gpureplay();
    command.args(["node", "--gpu", gpu, "--"]).arg(tuner);
    command.args(sizes.split(' ')).args(["-runs", "1"]);
    let printed = output(&mut command)?;
    match judge(&printed) {
        Ok(variants) => Ok(End::Passed(format!("{variants} variants"))),
        Err(remedy) => Err(Error::fell_short(format!("the tuner {name}"), remedy)),
    }
}

fn judge(printed: &str) -> std::result::Result<usize, String> {
    let variant = |line: &&str| {
        let number = line.strip_prefix('|').and_then(|it| it.split('|').next());
        number.is_some_and(|it| it.trim().parse::<u32>().is_ok())
    };
    let variants: Vec<&str> = printed.lines().filter(variant).collect();
    let wrong = variants.iter().find(|it| !it.contains("results match"));
    match (wrong, variants.len()) {
        (Some(line), _) => Err(line.to_string()),
        (None, 0) => Err("no variant ran".into()),
        (None, count) => Ok(count),
    }
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn every_variant_must_match() {
        let of = |number: u32, status: &str| {
            format!(
                "|   {number} |    48 |  128    1 |   OK    3 ms | 2.42 ms | 0.0 | {status} |\n"
            )
        };
        let head = "|   ID | total |  param |  status |\n|  ref |   - |  reference OK |\n";
        let right = of(1, "results match");
        assert_eq!(judge(&format!("{head}{right}{right}")), Ok(2));
        for wrong in ["L2 error 6.39e-01", "error code -5"] {
            assert!(judge(&format!("{head}{right}{}", of(2, wrong))).is_err());
        }
        assert_eq!(judge(head), Err("no variant ran".into()));
    }
}
