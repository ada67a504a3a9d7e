// SPDX-License-Identifier: MIT OR Apache-2.0
//! One recorded launch: `launches/K.toml`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::recording::check::check;
use crate::recording::hash::hex;
use crate::recording::{Hash, RecordingError};

/// A launch with everything to run alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Version of the format: 1.
    pub format: u32,
    /// Mangled name.
    pub kernel: String,
    /// Which process launched it, and when.
    pub origin: Origin,
    /// GPU.
    pub device: Device,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
    /// Packed.
    #[serde(with = "hex")]
    pub parameters: Vec<u8>,
    /// Offset and size of each parameter, in bytes; ascending, without overlaps.
    pub layout: Vec<[usize; 2]>,
    /// 72 bytes each, one after the other.
    #[serde(with = "hex")]
    pub attributes: Vec<u8>,
    /// Set by the program for the function: number, value.
    pub function_attributes: Vec<[i32; 2]>,
    /// Set by the program for the context: number, value. See `crate::abi::attribute::limit`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<[u64; 2]>,
    /// Kernel's image.
    pub image: ImageReference,
    /// Memory that the kernel can reach, ascending.
    #[serde(default, rename = "region")]
    pub regions: Vec<Region>,
    /// Variables of the image.
    #[serde(default, rename = "variable")]
    pub variables: Vec<Variable>,
}

/// Which launch of which process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Process.
    pub process: u32,
    /// Rank, if a launcher such as `mpirun` or `torchrun` gave one.
    pub rank: Option<u32>,
    /// Earlier launches of this kernel in the process.
    pub occurrence: u64,
    /// Launching function.
    pub entry: String,
}

/// The GPU of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As the driver names it.
    pub name: String,
    /// Compute capability: major, minor.
    pub capability: [i32; 2],
    /// The driver's version of CUDA: 13000 is 13.0.
    pub driver: i32,
    /// Ordinal in the process.
    pub ordinal: i32,
}

/// The image of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageReference {
    /// File's name in `images`.
    pub hash: Hash,
    /// Bytes.
    pub size: u64,
}

/// Kind of a region's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegionKind {
    /// Memory of the device.
    Device,
    /// Host memory that the device sees.
    Host,
}

/// Memory before and after the launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Region {
    /// Recorded address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Device or host.
    pub kind: RegionKind,
    /// List of its chunks before the launch.
    pub before: Hash,
    /// After the launch; absent if nothing changed.
    pub after: Option<Hash>,
}

/// A variable before and after the launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Mangled name.
    pub name: String,
    /// Recorded address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// List of its chunks before the launch.
    pub before: Hash,
    /// After the launch; absent if nothing changed.
    pub after: Option<Hash>,
}

/// Bytes of a manifest to parse at once: the part before the first region, or one region or variable. Parsing takes
/// some hundred times as much memory.
const MAX_TABLE: usize = 512 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    #[serde(default, rename = "region")]
    regions: Vec<Region>,
    #[serde(default, rename = "variable")]
    variables: Vec<Variable>,
}

/// The text before the first `[[` line, then each such line with what follows.
pub(crate) fn tables(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (table, next) = match text.find("\n[[") {
            Some(end) => (&text[..=end], Some(&text[end + 1..])),
            None => (text, None),
        };
        rest = next;
        Some(table)
    })
}

pub(crate) fn parsed<T: DeserializeOwned>(table: &str) -> Result<T, RecordingError> {
    if table.len() > MAX_TABLE {
        return Err(RecordingError::TooLarge {
            what: "what comes before the lists of a manifest, or one entry of them,",
            limit: MAX_TABLE as u64,
        });
    }
    toml::from_str(table).map_err(|error| RecordingError::Manifest {
        path: PathBuf::from("launch"),
        reason: error.message().to_owned(),
    })
}

impl Launch {
    /// Parses and checks a manifest, in which regions and variables come last.
    ///
    /// # Errors
    /// No manifest, or an impossible value.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut tables = tables(text);
        let mut launch: Self = parsed(tables.next().unwrap_or_default())?;
        for table in tables {
            let memory: Memory = parsed(table)?;
            launch.regions.extend(memory.regions);
            launch.variables.extend(memory.variables);
        }
        check(&launch)?;
        Ok(launch)
    }

    /// Launch attributes one by one.
    #[must_use]
    pub fn attribute_list(&self) -> &[[u8; 72]] {
        self.attributes.as_chunks().0
    }

    /// Bytes of all regions and variables.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let regions = self.regions.iter().map(|region| region.size);
        regions
            .chain(self.variables.iter().map(|variable| variable.size))
            .fold(0, u64::saturating_add)
    }

    /// Regions and variables that the kernel changed.
    #[must_use]
    pub fn changed(&self) -> usize {
        let regions = self.regions.iter().filter(|region| region.after.is_some());
        regions.count()
            + self
                .variables
                .iter()
                .filter(|variable| variable.after.is_some())
                .count()
    }
}
