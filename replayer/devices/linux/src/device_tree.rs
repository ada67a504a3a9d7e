// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU in the device tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::board::Board;
use crate::error::OpenError;

/// The GPU's node and platform device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuNode {
    /// Such as `fde60000.gpu`.
    pub device: String,
    /// `compatible` strings, most specific first.
    pub compatible: Vec<String>,
    /// Physical address.
    pub registers: u64,
    /// Window size.
    pub register_bytes: u64,
    /// `dma-coherent`: the GPU snoops CPU caches.
    pub coherent: bool,
    /// Holds the GPU.
    pub driver: Option<String>,
}

/// Finds a GPU with a job manager below `sysfs` (`/sys`).
///
/// # Errors
/// There is none, or sysfs cannot be read.
pub fn find_gpu(sysfs: &Path) -> Result<GpuNode, OpenError> {
    let devices = sysfs.join("bus/platform/devices");
    let entries = fs::read_dir(&devices).map_err(|error| OpenError::Io {
        what: devices.display().to_string(),
        error,
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
        .iter()
        .find_map(|path| read_node(path).ok().flatten())
        .ok_or(OpenError::NoGpu)
}

/// Uses the board where the tree has no node.
///
/// # Errors
/// No GPU, unreadable sysfs, or tree and board disagree.
pub fn find_gpu_of(sysfs: &Path, board: Option<&Board>) -> Result<GpuNode, OpenError> {
    match (find_gpu(sysfs), board) {
        (Ok(node), Some(board)) if node.registers != board.registers => {
            Err(OpenError::OtherBoard {
                board: board.name.clone(),
                expected: board.registers,
                found: node.registers,
            })
        }
        (Err(OpenError::NoGpu), Some(board)) => Ok(GpuNode {
            device: format!("{:x}.gpu", board.registers),
            compatible: Vec::new(),
            registers: board.registers,
            register_bytes: board.register_bytes,
            coherent: board.coherent,
            driver: None,
        }),
        (found, _) => found,
    }
}

/// With a job manager.
const FAMILIES: [&str; 2] = ["arm,mali-bifrost", "arm,mali-valhall-jm"];

fn read_node(device: &Path) -> io::Result<Option<GpuNode>> {
    let node = device.join("of_node");
    let compatible = strings(&fs::read(node.join("compatible"))?);
    if !compatible.iter().any(|name| FAMILIES.contains(&&**name)) {
        return Ok(None);
    }
    let Some((registers, register_bytes)) = first_range(device, &node)? else {
        return Ok(None);
    };
    let driver = fs::read_link(device.join("driver"))
        .ok()
        .and_then(|link| Some(link.file_name()?.to_str()?.to_owned()));
    Ok(Some(GpuNode {
        device: device
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        compatible,
        registers,
        register_bytes,
        coherent: node.join("dma-coherent").exists(),
        driver,
    }))
}

fn strings(bytes: &[u8]) -> Vec<String> {
    bytes
        .split(|&byte| byte == 0)
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

/// Addresses are the CPU's, as with an empty parent `ranges`; the device's name has the translated one.
fn first_range(device: &Path, node: &Path) -> io::Result<Option<(u64, u64)>> {
    let reg = fs::read(node.join("reg"))?;
    let parent = node.canonicalize()?.parent().map(Path::to_owned);
    let cells = |name: &str, default: usize| {
        parent
            .as_ref()
            .and_then(|parent| fs::read(parent.join(name)).ok())
            .and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?) as usize))
            .filter(|&cells| (1..=2).contains(&cells))
            .unwrap_or(default)
    };
    let (address_cells, size_cells) = (cells("#address-cells", 2), cells("#size-cells", 1));
    let number = |bytes: Option<&[u8]>| {
        bytes.map(|bytes| {
            bytes
                .iter()
                .fold(0u64, |value, &byte| value << 8 | u64::from(byte))
        })
    };
    let address = number(reg.get(..4 * address_cells));
    let size = number(reg.get(4 * address_cells..4 * (address_cells + size_cells)));
    let named = device
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(|name| u64::from_str_radix(name.split('.').next()?, 16).ok());
    Ok(named.or(address).zip(size))
}
