// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording's regions and tensors.

/// What an area holds.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AreaKind {
    /// A tensor.
    Tensor,
    /// Buffers that belong to no tensor.
    Data,
    /// Descriptors and uniforms.
    Descriptors,
    /// Code of shaders.
    Code,
    /// Storage of threads and work groups.
    Scratch,
}

/// Named range of addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// From the recording.
    pub name: String,
    /// What it holds.
    pub kind: AreaKind,
    /// First address.
    pub address: u64,
    /// Size.
    pub bytes: u64,
}

/// A recording's memory.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// Ascending.
    tensors: Vec<Area>,
    /// Ascending.
    regions: Vec<Area>,
    /// Of tensors, disjoint, ascending.
    covered: Vec<(u64, u64)>,
}

impl Map {
    /// Regions are disjoint, tensors may overlap. `covered`: ranges (first, size) of tensors' elements, several
    /// with gaps.
    pub fn new(
        mut regions: Vec<Area>,
        mut tensors: Vec<Area>,
        mut covered: Vec<(u64, u64)>,
    ) -> Map {
        regions.sort_by_key(|area| area.address);
        tensors.sort_by_key(|area| (area.address, area.bytes));
        covered.retain(|range| range.1 > 0);
        covered.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(covered.len());
        for (start, bytes) in covered {
            let end = start.saturating_add(bytes);
            match joined.last_mut() {
                Some(last) if last.1 >= start => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        Map {
            tensors,
            regions,
            covered: joined,
        }
    }

    /// Areas with a row in reports; a region's is for the rest.
    pub(crate) fn areas(&self) -> impl Iterator<Item = &Area> {
        self.tensors.iter().chain(&self.regions)
    }

    /// Place in [`Map::areas`]; of overlapping tensors, the last to begin.
    pub(crate) fn area(&self, address: u64) -> Option<usize> {
        let holds = |area: &Area| address.wrapping_sub(area.address) < area.bytes;
        let before = self.tensors.partition_point(|area| area.address <= address);
        let nearest = self.tensors[..before].iter().rposition(holds);
        nearest.or_else(|| {
            let before = self.regions.partition_point(|area| area.address <= address);
            let region = before.checked_sub(1)?;
            holds(self.regions.get(region)?).then_some(self.tensors.len() + region)
        })
    }

    /// Like `conv1+0x40`.
    pub(crate) fn name(&self, address: u64) -> String {
        match self.area(address).and_then(|at| self.areas().nth(at)) {
            Some(area) => match address - area.address {
                0 => area.name.clone(),
                offset => format!("{}+{offset:#x}", area.name),
            },
            None => format!("{address:#x}"),
        }
    }

    pub(crate) fn kind(&self, address: u64) -> Option<AreaKind> {
        let before = self.regions.partition_point(|area| area.address <= address);
        let region = self.regions.get(before.checked_sub(1)?)?;
        (address - region.address < region.bytes).then_some(region.kind)
    }

    /// (inside, first address, end) of the range or gap.
    pub(crate) fn covered(&self, address: u64) -> (bool, u64, u64) {
        let after = self.covered.partition_point(|range| range.0 <= address);
        let before = after.checked_sub(1).and_then(|at| self.covered.get(at));
        if let Some(&(start, end)) = before
            && address < end
        {
            return (true, start, end);
        }
        let start = before.map_or(0, |range| range.1);
        let end = self.covered.get(after).map_or(u64::MAX, |range| range.0);
        (false, start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(name: &str, kind: AreaKind, address: u64, bytes: u64) -> Area {
        Area {
            name: name.into(),
            kind,
            address,
            bytes,
        }
    }

    #[test]
    fn addresses_have_names() {
        let map = Map::new(
            vec![
                area("data", AreaKind::Data, 0x1000, 0x2000),
                area("code", AreaKind::Code, 0x8000, 0x1000),
            ],
            vec![
                area("x", AreaKind::Tensor, 0x1000, 0x100),
                area("y", AreaKind::Tensor, 0x1080, 0x10),
            ],
            vec![(0x1000, 0x80), (0x1080, 0x80), (0x1200, 0)],
        );
        assert_eq!(map.name(0x1000), "x");
        assert_eq!(map.name(0x1088), "y+0x8");
        assert_eq!(map.name(0x1090), "x+0x90", "behind the inner one");
        assert_eq!(map.name(0x1100), "data+0x100");
        assert_eq!(map.name(0x9000), "0x9000");
        assert_eq!(map.covered(0x10ff), (true, 0x1000, 0x1100), "joined");
        assert_eq!(map.covered(0x1100), (false, 0x1100, u64::MAX));
        assert_eq!(map.covered(0xfff), (false, 0, 0x1000));
        assert_eq!(map.kind(0x8000), Some(AreaKind::Code));
        assert_eq!(map.kind(0x3000), None);
    }
}
