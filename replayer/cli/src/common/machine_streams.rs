// SPDX-License-Identifier: MIT OR Apache-2.0
//! Needs of command streams.

use std::path::Path;

use gpureplay_linux::error::OpenError;
use gpureplay_linux::machine::Finding;
use gpureplay_linux::panthor;
use mali_drive::{identify, names};

pub(crate) const PANTHOR: &str = "panthor";
/// Below the root; files may be compressed.
const FIRMWARE: &str = "lib/firmware/arm/mali";
const JOB_MANAGER_ONLY: [&str; 2] = ["nano driver", "/dev/mem"];

pub(crate) fn findings(root: &Path, compatible: &[String]) -> Option<Vec<Finding>> {
    let family = compatible
        .iter()
        .find(|name| *name == "arm,mali-valhall-csf")?;
    let mut findings = vec![Finding {
        subject: "GPU in the device tree",
        good: true,
        found: format!("{family}: it takes command streams"),
        cure: None,
    }];
    findings.push(firmware(root));
    findings.push(render_node(root));
    findings.extend(JOB_MANAGER_ONLY.map(|subject| Finding {
        subject,
        good: false,
        found: "for GPUs with a job manager only".into(),
        cure: Some("use --device panthor".into()),
    }));
    Some(findings)
}

fn firmware(root: &Path) -> Finding {
    let folders = std::fs::read_dir(root.join(FIRMWARE));
    let mut files = folders.into_iter().flatten().flatten().flat_map(|folder| {
        let files = std::fs::read_dir(folder.path());
        files.into_iter().flatten().flatten().map(|it| it.path())
    });
    let file = files.find(|path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("mali_csffw.bin")
    });
    Finding {
        subject: "firmware of the GPU",
        good: file.is_some(),
        found: match &file {
            Some(path) => path.display().to_string(),
            None => format!("no mali_csffw.bin below /{FIRMWARE}"),
        },
        cure: file.is_none().then(|| {
            "apt install firmware-misc-nonfree (Debian's component non-free-firmware), then: rmmod panthor; modprobe panthor"
                .into()
        }),
    }
}

fn render_node(root: &Path) -> Finding {
    let opened = panthor::find(root).and_then(|path| Ok((panthor::open(&path)?, path)));
    let (good, found, cure) = match opened {
        Ok((mut driver, path)) => {
            let gpu = names::gpu(identify(&mut driver));
            let path = path.display();
            let found =
                format!("{path} takes work for {gpu}: gpureplay run RECORDING --device panthor");
            (true, found, None)
        }
        Err(OpenError::NoRenderNode(_)) => (
            false,
            "no render node in /dev/dri is its".into(),
            Some(
                "modprobe panthor, on a kernel that has it (Linux 6.10, CONFIG_DRM_PANTHOR); dmesg | grep panthor says what it misses"
                    .into(),
            ),
        ),
        Err(OpenError::Permission { path, cure }) => (
            false,
            format!("{}: permission denied", path.display()),
            Some(cure),
        ),
        Err(error) => (
            false,
            error.to_string(),
            Some("see the kernel's log: dmesg | grep panthor".into()),
        ),
    };
    Finding {
        subject: PANTHOR,
        good,
        found,
        cure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_cure() {
        let root = tempfile::tempdir().unwrap();
        let streams = ["rockchip,rk3588-mali", "arm,mali-valhall-csf"].map(String::from);
        assert_eq!(findings(root.path(), &["arm,mali-bifrost".into()]), None);
        let found = findings(root.path(), &streams).unwrap();
        for subject in ["firmware of the GPU", PANTHOR] {
            let finding = found.iter().find(|it| it.subject == subject).unwrap();
            assert!(!finding.good && finding.cure.is_some(), "{finding:?}");
        }
        let folder = root.path().join(FIRMWARE).join("arch10.8");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("mali_csffw.bin.zst"), "").unwrap();
        let finding = firmware(root.path());
        assert!(finding.good && finding.cure.is_none(), "{finding:?}");
    }
}
