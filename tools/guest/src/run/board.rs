// SPDX-License-Identifier: MIT OR Apache-2.0
//! What boards have and QEMU lacks, by a device tree.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use mali_facts::StreamGpu;

use super::{driver::Driver, machine::tool};
use crate::{
    build::step::logged,
    error::Result,
    files,
    folder::{Folder, copy_dir},
};

/// The GPU's node, `GPU` in the commands below.
const GPU: &str = "/gpu@10000000";
/// Loads modules that report to the model, then a driver.
const START: &str = include_str!("board.sh");
/// The whole machine is marked coherent: leaving the word out is not enough.
const NON_COHERENT: &[&str] = &["-d GPU dma-coherent", "-tx GPU dma-noncoherent"];
const POWER_DOMAIN: &[&str] = &[
    "-c /gpu-power",
    "-ts /gpu-power compatible gpureplay,test-power-domain",
    "-tx /gpu-power #power-domain-cells 0",
    "-tx /gpu-power phandle 7001",
    "-tx GPU power-domains 7001",
];
const STREAMS: &[&str] = &[
    "-ts GPU compatible rockchip,rk3588-mali arm,mali-valhall-csf",
    "-tx GPU reg 0 10000000 0 200000",
    "-ts GPU clock-names core",
];
const SUPPLY: &[&str] = &[
    "-c /gpu-supply",
    "-ts /gpu-supply compatible regulator-fixed",
    "-ts /gpu-supply regulator-name gpu",
    "-tu /gpu-supply regulator-min-microvolt 800000",
    "-tu /gpu-supply regulator-max-microvolt 800000",
    "-tx /gpu-supply phandle 7002",
    "-cp /gpu-points/opp-400000000 /gpu-points/opp-800000000",
    "-ts /gpu-points compatible operating-points-v2",
    "-tx /gpu-points phandle 7003",
    // 400 and 800 MHz, in two words.
    "-tx /gpu-points/opp-400000000 opp-hz 0 17d78400",
    "-tu /gpu-points/opp-400000000 opp-microvolt 800000",
    "-tx /gpu-points/opp-800000000 opp-hz 0 2faf0800",
    "-tu /gpu-points/opp-800000000 opp-microvolt 800000",
    "-tx GPU operating-points-v2 7003",
    "-tu GPU #cooling-cells 2",
    "-tx GPU mali-supply 7002",
];

/// Comes first, as `fdtput` inserts nodes.
const DISABLED: &[&str] = &[
    "-c /gpu-disabled",
    "-ts /gpu-disabled compatible arm,mali-bifrost",
    "-ts /gpu-disabled status disabled",
];

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Board {
    pub(crate) non_coherent: bool,
    pub(crate) power_domain: bool,
    pub(crate) streams: bool,
    pub(crate) disabled_first: bool,
}

impl Board {
    pub(crate) fn has_modules(self) -> bool {
        self.non_coherent || self.power_domain
    }

    pub(super) fn with_gpu(self, name: &str) -> Board {
        Board {
            streams: StreamGpu::by_name(name).is_some(),
            ..self
        }
    }

    fn is_plain(self) -> bool {
        !self.has_modules() && !self.streams
    }

    pub(super) fn files(self, folder: &Folder, host: &Path) -> Result<()> {
        if !self.streams {
            return Ok(());
        }
        let to = host.join("streams");
        match folder.guest.join("streams") {
            // The disk has no modules for other kernels.
            modules if modules.is_dir() => copy_dir(&modules, &to)?,
            _ => {
                files::create_dir(&to)?;
                let modules = folder.guest.join("kernel/usr/lib/modules");
                let name = "fixed.ko.xz";
                let supply = modules.join(folder.stock_kernel()?);
                files::copy(
                    supply.join("kernel/drivers/regulator").join(name),
                    to.join(name),
                )?;
                files::write(to.join("order"), name)?;
            }
        }
        let firmware = host.join("mali_csffw.bin");
        files::write(&firmware, mali_facts::firmware::file())
    }

    /// `None` if the guest's own tree is right.
    pub(super) fn tree(self, folder: &Folder, cpu: &str, to: &Path) -> Result<Option<PathBuf>> {
        if self.is_plain() && !self.disabled_first {
            return Ok(None);
        }
        let path = to.join("board.dtb");
        files::copy(folder.boot(&format!("{cpu}.dtb")), &path)?;
        let changes = [
            (self.non_coherent, NON_COHERENT),
            (self.power_domain, POWER_DOMAIN),
            (self.power_domain || self.streams, SUPPLY),
            (self.streams, STREAMS),
            (self.disabled_first, DISABLED),
        ];
        let chosen = changes.iter().filter(|(wanted, _)| *wanted);
        for words in chosen.flat_map(|(_, changes)| *changes) {
            let words = words.replace("GPU", GPU);
            let (option, rest) = words.split_once(' ').unwrap_or((&words, ""));
            let mut change = Command::new("env");
            tool(&mut change, &folder.guest, "fdtput");
            change.arg(option).arg(&path).args(rest.split(' '));
            logged(&mut change, "device tree", &to.join("fdtput.log"))?;
        }
        Ok(Some(path))
    }

    pub(super) fn model_options(self) -> Vec<&'static str> {
        let non_coherent = self.non_coherent.then_some("--non-coherent");
        let power_domain = self.power_domain.then_some("--power-domain");
        non_coherent.into_iter().chain(power_domain).collect()
    }

    /// A command that loads the driver, so the guest's init must not; `None` for a plain machine.
    pub(super) fn start(self, driver: Driver) -> Option<Vec<String>> {
        let caches = if self.non_coherent {
            "gpureplay_caches"
        } else {
            ""
        };
        let power = if self.power_domain {
            "fixed gpureplay_power"
        } else {
            ""
        };
        let modules = format!("{power} {caches}");
        let driver = match (driver, self.streams) {
            (Driver::Stock, true) => "panthor",
            _ => driver.name(),
        };
        let words = ["bash", "-c", START, "start", driver, &modules];
        (!self.is_plain()).then(|| words.map(String::from).into())
    }
}
