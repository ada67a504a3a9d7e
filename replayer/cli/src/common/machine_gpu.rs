// SPDX-License-Identifier: MIT OR Apache-2.0
//! This machine's GPU, and recordings that fit it.

use std::fs;
use std::path::Path;

use gpureplay_linux::machine::Finding;
use mali_model::{PROFILES, Profile};

pub(crate) const SUBJECT: &str = "recordings that fit";

/// By `compatible` prefix, and why they cannot be used.
const OTHERS: [(&str, &str); 5] = [
    (
        "brcm,",
        "a Broadcom VideoCore (Raspberry Pi): another family, not supported",
    ),
    (
        "arm,mali-t",
        "a Mali of the Midgard family: other instructions, not supported",
    ),
    (
        "arm,mali-4",
        "a Mali of the Utgard family: it has no compute",
    ),
    (
        "qcom,adreno",
        "a Qualcomm Adreno: another family, not supported",
    ),
    ("img,img-", "a PowerVR: another family, not supported"),
];

pub(crate) fn finding(root: &Path) -> Finding {
    let finding = |good, found: String, cure: Option<&str>| Finding {
        subject: SUBJECT,
        good,
        found,
        cure: cure.map(str::to_owned),
    };
    let devices = compatibles(root);
    if devices.iter().any(|name| name == "arm,mali-bifrost") {
        return match machine(root) {
            Some((board, profile)) => finding(
                true,
                format!(
                    "those of {} with cores {:#x}: make one with `gpureplay retarget RECORDING --gpu {board} -o DIR`",
                    profile.gpu_id, profile.shader_present
                ),
                None,
            ),
            None => {
                let names: Vec<_> = PROFILES.iter().map(|one| one.name).collect();
                finding(
                    true,
                    format!(
                        "the device tree does not say which Mali of the Bifrost family this is; panfrost prints it at boot (`dmesg | grep -i mali`), and retarget makes recordings for {}",
                        names.join(", ")
                    ),
                    None,
                )
            }
        };
    }
    if is_valhall(root) {
        return finding(
            true,
            "those recorded on the same Mali of the Valhall family (G57); retarget makes none for it".into(),
            None,
        );
    }
    if devices.iter().any(|name| name == "arm,mali-valhall-csf") {
        return finding(
            true,
            "those recorded on the same Mali with command streams (G610 of RK3588: digits-g610); retarget makes none for it".into(),
            None,
        );
    }
    let other = OTHERS.iter().find_map(|(start, what)| {
        let name = devices.iter().find(|name| is_gpu(name, start))?;
        Some(format!("none: {name} is {what}"))
    });
    let found =
        other.unwrap_or_else(|| "none: the device tree names no GPU of a known family".into());
    finding(
        false,
        found,
        Some(
            "docs/boards.md lists boards on which recordings can run; --device model needs no GPU",
        ),
    )
}

pub(crate) fn is_valhall(root: &Path) -> bool {
    let mut devices = compatibles(root).into_iter();
    devices.any(|name| name == "arm,mali-valhall-jm")
}

/// Broadcom makes more than GPUs.
fn is_gpu(name: &str, start: &str) -> bool {
    name.starts_with(start) && (start != "brcm," || name.ends_with("-v3d"))
}

pub(crate) fn compatibles(root: &Path) -> Vec<String> {
    let devices = fs::read_dir(root.join("sys/bus/platform/devices"));
    let entries = devices.into_iter().flatten().flatten();
    entries
        .flat_map(|entry| strings(&entry.path().join("of_node/compatible")))
        .collect()
}

/// GPU's name for `--gpu`, if known by the device tree.
pub(crate) fn name(root: &Path) -> Option<String> {
    machine(root).map(|(name, _)| name)
}

fn machine(root: &Path) -> Option<(String, &'static Profile)> {
    let names = strings(&root.join("sys/firmware/devicetree/base/compatible"));
    names.iter().find_map(|name| {
        let (_, model) = name.split_once(',')?;
        let chip = model.rsplit('-').next().unwrap_or(model);
        let candidates = [model.to_owned(), name.replace(',', "-"), chip.to_owned()];
        candidates
            .into_iter()
            .find_map(|name| Some((name.clone(), Profile::by_name(&name)?)))
    })
}

fn strings(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap_or_default();
    let names = bytes.split(|&byte| byte == 0);
    let names = names.filter(|name| !name.is_empty());
    names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(root: &str, device: &str) -> Finding {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("sys/firmware/devicetree/base/compatible", root);
        put(
            "sys/bus/platform/devices/fe000000.gpu/of_node/compatible",
            device,
        );
        finding(folder.path())
    }

    #[test]
    fn boards_are_told_what_fits_them() {
        let bifrost = "vendor,soc-mali\0arm,mali-bifrost\0";
        for (root, gpu, name) in [
            (
                "pine64,quartz64-a\0rockchip,rk3566\0",
                "Mali-G52 r1p0",
                "rk3566",
            ),
            (
                "hardkernel,odroid-n2-plus\0amlogic,s922x\0amlogic,g12b\0",
                "Mali-G52 r0p0",
                "odroid-n2-plus",
            ),
            (
                "khadas,vim3\0amlogic,a311d\0",
                "Mali-G52 r0p0",
                "khadas-vim3",
            ),
            (
                "xunlong,orangepi-zero2\0allwinner,sun50i-h616\0",
                "Mali-G31 r0p0",
                "h616",
            ),
        ] {
            let found = on(root, bifrost);
            assert!(found.good && found.found.contains(gpu), "{found:?}");
            assert!(found.found.contains(&format!("--gpu {name} ")), "{found:?}");
        }
        let valhall = on("a,b\0", "mediatek,mt8192-mali\0arm,mali-valhall-jm\0");
        assert!(
            valhall.good && valhall.found.starts_with("those recorded"),
            "{valhall:?}"
        );
        let streams = on("a,b\0", "rockchip,rk3588-mali\0arm,mali-valhall-csf\0");
        assert!(
            streams.good && streams.found.contains("digits-g610"),
            "{streams:?}"
        );
        let unknown = on("some,board\0", bifrost);
        assert!(unknown.good && unknown.found.contains("g31"), "{unknown:?}");
        for (device, word) in [
            ("brcm,2711-v3d\0", "Raspberry Pi"),
            ("brcm,bcm2835-i2c\0", "no GPU"),
        ] {
            let found = on("a,b\0", device);
            assert!(!found.good && found.found.contains(word), "{found:?}");
            assert!(found.cure.is_some());
        }
    }
}
