// SPDX-License-Identifier: MIT OR Apache-2.0
//! One recorded launch: `launches/K.toml`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::recording::check::check;
use crate::recording::hash::hex;
use crate::recording::{Hash, RecordingError};

/// A launch that can run alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Format: 1.
    pub format: u32,
    /// Mangled name.
    pub kernel: String,
    /// By process and time.
    pub origin: Origin,
    /// GPU.
    pub device: Device,
    /// In blocks.
    pub grid: [u32; 3],
    /// In threads.
    pub block: [u32; 3],
    /// Dynamic, in bytes.
    pub shared: u32,
    /// Packed.
    #[serde(with = "hex")]
    pub parameters: Vec<u8>,
    /// Offset and size in bytes; ascending, no overlaps.
    pub layout: Vec<[usize; 2]>,
    /// 72 bytes each.
    #[serde(with = "hex")]
    pub attributes: Vec<u8>,
    /// The function's, set by the program: number, value.
    pub function_attributes: Vec<[i32; 2]>,
    /// The context's, set by the program: number, value. See `crate::abi::attribute::limit`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<[u64; 2]>,
    /// Kernel's image.
    pub image: ImageReference,
    /// Within the kernel's reach, ascending.
    #[serde(default, rename = "region")]
    pub regions: Vec<Region>,
    /// Variables of the image.
    #[serde(default, rename = "variable")]
    pub variables: Vec<Variable>,
}

/// Process and launch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Process.
    pub process: u32,
    /// From a launcher such as `mpirun` or `torchrun`.
    pub rank: Option<u32>,
    /// Earlier launches of the kernel.
    pub occurrence: u64,
    /// Launching function.
    pub entry: String,
}

/// GPU of a launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// As the driver names it.
    pub name: String,
    /// Major, minor.
    pub capability: [i32; 2],
    /// Version of CUDA: 13000 is 13.0.
    pub driver: i32,
    /// Ordinal in the process.
    pub ordinal: i32,
}

impl Device {
    /// See [`sm`].
    #[must_use]
    pub fn sm(&self) -> u32 {
        sm(self.capability)
    }
}

/// A compute capability as one number: 90 is `sm_90`.
#[must_use]
pub fn sm([major, minor]: [i32; 2]) -> u32 {
    u32::try_from(major * 10 + minor).unwrap_or(0)
}

/// A kernel's image.
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
    /// The device sees it.
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
    /// Chunks before the launch.
    pub before: Hash,
    /// Absent if unchanged.
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
    /// Chunks before the launch.
    pub before: Hash,
    /// Absent if unchanged.
    pub after: Option<Hash>,
}

/// In bytes, of the part before regions, or one region or variable. Parsing takes some hundred times as much
/// memory.
const MAX_TABLE: usize = 512 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Memory {
    #[serde(default, rename = "region")]
    regions: Vec<Region>,
    #[serde(default, rename = "variable")]
    variables: Vec<Variable>,
}

/// Text before the first `[[` line, then each such line with the rest.
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

/// What a piece of a launch's memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner<'a> {
    /// A region.
    Region(RegionKind),
    /// A variable of this name.
    Variable(&'a str),
}

impl<'a> Owner<'a> {
    /// The variable's name.
    #[must_use]
    pub const fn variable(self) -> Option<&'a str> {
        match self {
            Self::Region(_) => None,
            Self::Variable(name) => Some(name),
        }
    }
}

/// A region or variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// Region or variable.
    pub owner: Owner<'a>,
    /// Recorded address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// Chunks before the launch.
    pub before: Hash,
    /// Absent if unchanged.
    pub after: Option<Hash>,
}

impl Launch {
    /// Regions, then variables.
    pub fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let regions = self.regions.iter().map(|region| Piece {
            owner: Owner::Region(region.kind),
            address: region.address,
            size: region.size,
            before: region.before,
            after: region.after,
        });
        let variables = self.variables.iter().map(|variable| Piece {
            owner: Owner::Variable(&variable.name),
            address: variable.address,
            size: variable.size,
            before: variable.before,
            after: variable.after,
        });
        regions.chain(variables)
    }

    /// Sizes and chunks of all.
    pub fn contents(&self) -> impl Iterator<Item = (u64, Hash)> {
        self.pieces().flat_map(|piece| {
            let both = std::iter::once(piece.before).chain(piece.after);
            both.map(move |hash| (piece.size, hash))
        })
    }

    /// Regions and variables must come last.
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
        let sizes = self.pieces().map(|piece| piece.size);
        sizes.fold(0, u64::saturating_add)
    }

    /// Changed regions and variables.
    #[must_use]
    pub fn changed(&self) -> usize {
        let changed = self.pieces().filter(|piece| piece.after.is_some());
        changed.count()
    }
}
