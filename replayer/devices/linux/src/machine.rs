// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands between this process and the GPU.

use std::fs;
use std::path::Path;

use mali_drive::{identify, names};

use crate::board::Board;
pub use crate::device_tree::{GpuNode, find_gpu, find_gpu_of};
use crate::devmem;
use crate::error::OpenError;
use crate::kbase;
use crate::nano;
use crate::panfrost;

/// Subject for `--device panfrost` only.
pub const PANFROST: &str = "panfrost";
/// Subject for `--device kbase` only, if present.
pub const KBASE: &str = "kbase";
const DEV_MEM: &str = "/dev/mem";

const PINNED_PAGES: &str = "pinned pages";
/// Subjects for `--device devmem` only.
pub const DEV_MEM_ONLY: [&str; 2] = [DEV_MEM, PINNED_PAGES];

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub subject: &'static str,
    /// A replay can go on.
    pub good: bool,
    /// What was found.
    pub found: String,
    /// What to do if not good.
    pub cure: Option<String>,
}

/// Checks what a replay needs; finds the board if not given.
pub fn doctor(root: &Path, board: Option<&Board>) -> Vec<Finding> {
    let known = board.cloned().or_else(|| Board::of_machine(root));
    let gpu = find_gpu(&root.join("sys"));
    let mut findings = vec![
        gpu_node(gpu.as_ref(), known.as_ref()),
        render_node(root, gpu.as_ref().ok()),
    ];
    findings.extend(arms_driver(root));
    if let Some(board) = &known {
        findings.push(agreement(gpu.as_ref().ok(), board));
    }
    if let Ok(node) = &gpu {
        findings.push(driver(node, is_loaded(root)));
        findings.push(good(
            "cache coherency",
            if node.coherent {
                "the GPU snoops CPU caches (dma-coherent)"
            } else {
                "the GPU does not snoop CPU caches: the nano driver maintains them, devmem cannot"
            },
        ));
    }
    findings.push(module(root));
    findings.push(nano_node(root));
    findings.push(dev_mem(root));
    findings.push(pinning());
    findings.push(memory(root));
    findings
}

fn good(subject: &'static str, found: impl Into<String>) -> Finding {
    Finding {
        subject,
        good: true,
        found: found.into(),
        cure: None,
    }
}

fn bad(subject: &'static str, found: impl Into<String>, cure: impl Into<String>) -> Finding {
    Finding {
        subject,
        good: false,
        found: found.into(),
        cure: Some(cure.into()),
    }
}

fn gpu_node(gpu: std::result::Result<&GpuNode, &OpenError>, board: Option<&Board>) -> Finding {
    const SUBJECT: &str = "GPU in the device tree";
    match (gpu, board) {
        (Ok(node), _) => good(
            SUBJECT,
            format!(
                "{} ({}), registers at {:#x}, {} bytes",
                node.device,
                node.compatible.join(", "),
                node.registers,
                node.register_bytes
            ),
        ),
        (Err(error), Some(board)) if board.node.is_empty() => bad(
            SUBJECT,
            error.to_string(),
            format!(
                "mainline has no node for {}: add one with its registers at {:#x} (docs/boards.md){}",
                board.name,
                board.registers,
                // /dev/mem cannot maintain caches.
                if board.coherent {
                    ", or use --device devmem"
                } else {
                    ""
                }
            ),
        ),
        (Err(error), _) => bad(
            SUBJECT,
            error.to_string(),
            "boot with the board's own device tree; its gpu node must not be disabled",
        ),
    }
}

fn render_node(root: &Path, gpu: Option<&GpuNode>) -> Finding {
    let opened = panfrost::find(root).and_then(|path| Ok((panfrost::open(&path)?, path)));
    let device = gpu
        .filter(|node| node.driver.as_deref() != Some("panfrost"))
        .map(|node| node.device.as_str());
    match (opened, device) {
        (Ok((mut driver, path)), _) => good(
            PANFROST,
            format!(
                "{} takes work for {}: gpureplay run RECORDING --device panfrost",
                path.display(),
                names::gpu(identify(&mut driver))
            ),
        ),
        (Err(OpenError::NoRenderNode(_)), Some(device)) => bad(
            PANFROST,
            "does not drive the GPU",
            format!(
                "modprobe panfrost; echo {device} > /sys/bus/platform/devices/{device}/driver/unbind; echo panfrost > /sys/bus/platform/devices/{device}/driver_override; echo {device} > /sys/bus/platform/drivers_probe"
            ),
        ),
        (Err(OpenError::NoRenderNode(_)), None) => bad(
            PANFROST,
            "no render node in /dev/dri is its",
            "modprobe panfrost, on a kernel that has it (CONFIG_DRM_PANFROST)",
        ),
        (Err(OpenError::Permission { path, cure }), _) => bad(
            PANFROST,
            format!("{}: permission denied", path.display()),
            cure,
        ),
        (Err(error), _) => bad(
            PANFROST,
            error.to_string(),
            "see the kernel's log: dmesg | grep panfrost",
        ),
    }
}

fn arms_driver(root: &Path) -> Option<Finding> {
    let path = root.join(kbase::PATH.trim_start_matches('/'));
    match kbase::open(&path) {
        Err(OpenError::NoKbase(_)) => None,
        Ok(mut driver) => {
            let gpu = names::gpu(identify(&mut driver));
            let name = driver.name().to_owned();
            Some(good(
                KBASE,
                format!(
                    "{}, {name}, takes work for {gpu}: gpureplay run RECORDING --device kbase",
                    path.display()
                ),
            ))
        }
        Err(OpenError::Permission { path, cure }) => Some(bad(
            KBASE,
            format!("{}: permission denied", path.display()),
            cure,
        )),
        Err(error) => Some(bad(
            KBASE,
            error.to_string(),
            "see the kernel's log: dmesg | grep -i mali",
        )),
    }
}

fn agreement(node: Option<&GpuNode>, board: &Board) -> Finding {
    const SUBJECT: &str = "board";
    let known = format!("{}, {} (not yet run on silicon)", board.name, board.gpu);
    match node {
        Some(node) if node.registers != board.registers => bad(
            SUBJECT,
            format!(
                "{known}: registers at {:#x}, but the device tree says {:#x}",
                board.registers, node.registers
            ),
            "name the board that this is, or none; the device tree decides",
        ),
        Some(node) if node.coherent != board.coherent => bad(
            SUBJECT,
            format!("{known}: the device tree differs in dma-coherent"),
            "use a device tree of Linux 5.11 or newer; with the wrong property results are wrong",
        ),
        _ => good(SUBJECT, known),
    }
}

fn is_loaded(root: &Path) -> bool {
    root.join("sys/module/gpureplay_nano").is_dir()
}

fn module(root: &Path) -> Finding {
    const SUBJECT: &str = "nano module";
    if is_loaded(root) {
        return good(SUBJECT, "gpureplay_nano is loaded");
    }
    let locked = fs::read_to_string(root.join("sys/kernel/security/lockdown"))
        .is_ok_and(|text| !text.contains("[none]"));
    bad(
        SUBJECT,
        if locked {
            "not loaded, and the kernel is locked down: it takes signed modules only"
        } else {
            "not loaded"
        },
        if locked {
            "sign gpureplay_nano.ko with a key that the machine trusts (mokutil), or boot without secure boot"
        } else {
            "make -C /lib/modules/$(uname -r)/build M=$PWD/nano-driver modules; insmod nano-driver/gpureplay_nano.ko"
        },
    )
}

fn pinning() -> Finding {
    match devmem::pinnable() {
        Ok(_) => good(PINNED_PAGES, "can be had from io_uring"),
        Err(OpenError::Forbidden { reason, cure, .. }) => bad(
            PINNED_PAGES,
            format!("io_uring gives none: {reason}"),
            format!("{cure} # for --device devmem only"),
        ),
        Err(error) => bad(PINNED_PAGES, error.to_string(), "use --device nano"),
    }
}

fn driver(node: &GpuNode, loaded: bool) -> Finding {
    let device = &node.device;
    let load = if loaded {
        ""
    } else {
        "insmod gpureplay_nano.ko; "
    };
    let bind = format!(
        "echo gpureplay-nano > /sys/bus/platform/devices/{device}/driver_override; echo {device} > /sys/bus/platform/drivers_probe"
    );
    let (good, found, cure) = match node.driver.as_deref() {
        Some("gpureplay-nano") => (true, "gpureplay-nano".to_owned(), None),
        Some(other) => (
            false,
            format!("{other}; --device nano needs it for itself"),
            Some(format!(
                "{load}echo {device} > /sys/bus/platform/drivers/{other}/unbind; {bind}"
            )),
        ),
        None => (false, "none".to_owned(), Some(format!("{load}{bind}"))),
    };
    Finding {
        subject: "driver that holds the GPU",
        good,
        found,
        cure,
    }
}

fn nano_node(root: &Path) -> Finding {
    const SUBJECT: &str = "nano driver";
    let path = root.join("dev/gpureplay-nano");
    match nano::state(&path) {
        Ok(state) if state.pages == 0 => {
            good(SUBJECT, format!("{} opens, no page in use", path.display()))
        }
        Ok(state) => good(
            SUBJECT,
            format!(
                "{} opens, {} pages in use by other processes{}",
                path.display(),
                state.pages,
                if state.waiting { ", others wait" } else { "" }
            ),
        ),
        Err(OpenError::NoDriver { .. }) => bad(
            SUBJECT,
            format!("{}: no such device", path.display()),
            "load the module and bind the GPU to it, as above",
        ),
        Err(OpenError::Permission { path, cure }) => bad(
            SUBJECT,
            format!("{}: permission denied", path.display()),
            cure,
        ),
        Err(error @ OpenError::OldDriver) => bad(
            SUBJECT,
            error.to_string(),
            "rmmod gpureplay_nano; build and load the module of this release",
        ),
        Err(error) => bad(
            SUBJECT,
            error.to_string(),
            "see the kernel's log: dmesg | grep gpureplay",
        ),
    }
}

fn dev_mem(root: &Path) -> Finding {
    let path = root.join("dev/mem");
    let opened = fs::OpenOptions::new().read(true).write(true).open(&path);
    let relaxed = fs::read_to_string(root.join("proc/cmdline"))
        .is_ok_and(|line| line.split_whitespace().any(|word| word == "iomem=relaxed"));
    match opened {
        Ok(_) => Finding {
            subject: DEV_MEM,
            good: true,
            found: if relaxed {
                "opens, iomem=relaxed".into()
            } else {
                "opens; reaches the GPU only while no driver claims its registers".into()
            },
            cure: None,
        },
        Err(error) => Finding {
            subject: DEV_MEM,
            good: false,
            found: error.to_string(),
            cure: Some(
                "run as root on a kernel with CONFIG_DEVMEM; needed for --device devmem only"
                    .into(),
            ),
        },
    }
}

fn memory(root: &Path) -> Finding {
    let available = fs::read_to_string(root.join("proc/meminfo"))
        .ok()
        .and_then(|text| {
            let line = text
                .lines()
                .find(|line| line.starts_with("MemAvailable:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        });
    Finding {
        subject: "memory",
        good: available.is_some_and(|kib| kib > 64 << 10),
        found: available.map_or("unknown".into(), |kib| {
            format!("{} MiB available", kib >> 10)
        }),
        cure: available
            .filter(|&kib| kib <= 64 << 10)
            .map(|_| "free memory: a recording's pages are pinned while it is open".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_says_so() {
        let empty = std::env::temp_dir().join(format!("gpureplay-doctor-{}", std::process::id()));
        fs::create_dir_all(empty.join("sys/bus/platform/devices")).unwrap();
        let findings = doctor(&empty, None);
        fs::remove_dir_all(&empty).unwrap();
        let node = &findings[0];
        assert!(!node.good);
        assert!(node.found.contains("arm,mali-bifrost"), "{}", node.found);
        assert!(
            findings.iter().all(|finding| finding.good
                || finding.cure.is_some()
                || finding.subject == "memory")
        );
    }

    #[test]
    fn a_board_without_a_node_is_known() {
        let root = std::env::temp_dir().join(format!("gpureplay-hikey-{}", std::process::id()));
        fs::create_dir_all(root.join("bus/platform/devices")).unwrap();
        let board = Board::named("hikey960").unwrap();
        let node = find_gpu_of(&root, Some(&board)).unwrap();
        assert_eq!((node.registers, node.coherent), (0xe82c_0000, false));
        assert!(matches!(find_gpu_of(&root, None), Err(OpenError::NoGpu)));
        let findings = doctor(&root, Some(&board));
        fs::remove_dir_all(&root).unwrap();
        let cure = findings[0].cure.as_deref().unwrap_or_default();
        assert!(cure.contains("0xe82c0000"), "{cure}");
        assert!(!cure.contains("devmem"), "{cure}");
        assert!(findings[2].found.contains("not yet run on silicon"));
    }

    #[test]
    fn the_cure_fits_what_is_loaded() {
        let mut node = GpuNode {
            device: "fde60000.gpu".into(),
            compatible: Vec::new(),
            registers: 0xfde6_0000,
            register_bytes: 0x4000,
            coherent: false,
            driver: None,
        };
        let cure = |node: &GpuNode, loaded| driver(node, loaded).cure.unwrap_or_default();
        let bind = "echo gpureplay-nano > /sys/bus/platform/devices/fde60000.gpu/driver_override; \
                    echo fde60000.gpu > /sys/bus/platform/drivers_probe";
        assert_eq!(cure(&node, true), bind);
        assert_eq!(
            cure(&node, false),
            format!("insmod gpureplay_nano.ko; {bind}")
        );
        node.driver = Some("panfrost".into());
        let unbind = "echo fde60000.gpu > /sys/bus/platform/drivers/panfrost/unbind";
        assert_eq!(cure(&node, true), format!("{unbind}; {bind}"));
        node.driver = Some("gpureplay-nano".into());
        assert!(driver(&node, true).good);
    }

    #[test]
    fn another_board_is_refused() {
        let node = GpuNode {
            device: "fde60000.gpu".into(),
            compatible: vec!["arm,mali-bifrost".into()],
            registers: 0xfde6_0000,
            register_bytes: 0x4000,
            coherent: false,
            driver: None,
        };
        assert!(!agreement(Some(&node), &Board::named("khadas-vim3").unwrap()).good);
        assert!(agreement(Some(&node), &Board::named("rk3568").unwrap()).good);
        let snooping = GpuNode {
            coherent: true,
            ..node
        };
        assert!(!agreement(Some(&snooping), &Board::named("rk3568").unwrap()).good);
    }

    #[test]
    fn a_node_is_read_from_its_properties() {
        let root = std::env::temp_dir().join(format!("gpureplay-node-{}", std::process::id()));
        let device = root.join("bus/platform/devices/fde60000.gpu");
        let node = device.join("of_node");
        fs::create_dir_all(&node).unwrap();
        let range = [0, 0, 0, 0, 0xfd, 0xe6, 0, 0, 0, 0, 0x40, 0];
        fs::write(node.join("reg"), range).unwrap();
        let of = |family: &str| {
            let names = format!("vendor,chip-mali\0{family}\0");
            fs::write(node.join("compatible"), names).unwrap();
            find_gpu(&root)
        };
        let families = ["arm,mali-bifrost", "arm,mali-valhall-jm"];
        let found = families.map(|family| (family, of(family).unwrap()));
        let csf = of("arm,mali-valhall-csf");
        fs::remove_dir_all(&root).unwrap();
        assert!(csf.is_err());
        for (family, found) in found {
            let expected = GpuNode {
                device: "fde60000.gpu".into(),
                compatible: vec!["vendor,chip-mali".into(), family.into()],
                registers: 0xfde6_0000,
                register_bytes: 0x4000,
                coherent: false,
                driver: None,
            };
            assert_eq!(found, expected);
        }
    }
}
