// SPDX-License-Identifier: MIT OR Apache-2.0
//! All registers.

use core::fmt;

use crate::registers::{
    ADDRESS_SPACES, Class, JOB_SLOTS, Register, address_space, gpu, job, job_slot, mmu,
};

/// Groups of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// GPU control, at 0.
    Gpu,
    /// Job interrupts, at 0x1000.
    Job,
    /// One, at 0x1800 + 0x80 n.
    JobSlot,
    /// MMU interrupts, at 0x2000.
    Mmu,
    /// One, at 0x2400 + 0x40 n.
    AddressSpace,
}

const BLOCKS: [Block; 5] = [
    Block::Gpu,
    Block::Job,
    Block::JobSlot,
    Block::Mmu,
    Block::AddressSpace,
];

impl Block {
    /// Offset of an instance in the window.
    pub const fn base(self, index: u32) -> u32 {
        match self {
            Block::Gpu | Block::Job | Block::Mmu => 0,
            Block::JobSlot => job_slot::offset(index, 0),
            Block::AddressSpace => address_space::offset(index, 0),
        }
    }

    /// Instances in the window.
    pub const fn instances(self) -> u32 {
        match self {
            Block::Gpu | Block::Job | Block::Mmu => 1,
            Block::JobSlot => JOB_SLOTS,
            Block::AddressSpace => ADDRESS_SPACES,
        }
    }

    /// Registers by offset.
    pub const fn registers(self) -> &'static [Register] {
        match self {
            Block::Gpu => gpu::TABLE,
            Block::Job => job::TABLE,
            Block::JobSlot => job_slot::TABLE,
            Block::Mmu => mmu::TABLE,
            Block::AddressSpace => address_space::TABLE,
        }
    }

    /// Before the index; empty for single blocks.
    pub const fn prefix(self) -> &'static str {
        match self {
            Block::Gpu | Block::Job | Block::Mmu => "",
            Block::JobSlot => "JS",
            Block::AddressSpace => "AS",
        }
    }
}

/// Register in the window; `Display` gives its full name: `JS1_COMMAND_NEXT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// Block.
    pub block: Block,
    /// Job slot or address space, or 0.
    pub index: u32,
    /// Table entry.
    pub register: &'static Register,
}

impl Located {
    /// Byte offset in the window.
    pub const fn offset(&self) -> u32 {
        self.block.base(self.index) + self.register.offset
    }

    /// What the register is for.
    pub const fn class(&self) -> Class {
        self.register.class
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Block::JobSlot | Block::AddressSpace => {
                write!(
                    f,
                    "{}{}_{}",
                    self.block.prefix(),
                    self.index,
                    self.register.name
                )
            }
            _ => f.write_str(self.register.name),
        }
    }
}

/// `None`: unknown, or no multiple of 4.
pub const fn lookup(offset: u32) -> Option<Located> {
    let (block, index) = match offset {
        0..0x1000 => (Block::Gpu, 0),
        0x1000..0x1800 => (Block::Job, 0),
        0x1800..0x2000 => (Block::JobSlot, (offset - 0x1800) / job_slot::STRIDE),
        0x2000..0x2400 => (Block::Mmu, 0),
        0x2400..0x2800 => (
            Block::AddressSpace,
            (offset - 0x2400) / address_space::STRIDE,
        ),
        _ => return None,
    };
    match find(block.registers(), offset - block.base(index)) {
        Some(register) => Some(Located {
            block,
            index,
            register,
        }),
        None => None,
    }
}

const fn find(table: &'static [Register], offset: u32) -> Option<&'static Register> {
    let (mut low, mut high) = (0, table.len());
    while low < high {
        let middle = (low + high) / 2;
        let candidate = &table[middle];
        if candidate.offset == offset {
            return Some(candidate);
        }
        if candidate.offset < offset {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    None
}

/// Full, such as `GPU_ID`, `JS1_COMMAND_NEXT`, `AS0_TRANSTAB_LO`.
pub fn by_name(name: &str) -> Option<Located> {
    for block in BLOCKS {
        let Some(rest) = name.strip_prefix(block.prefix()) else {
            continue;
        };
        let (index, rest) = if block.instances() == 1 {
            (0, rest)
        } else {
            let Some((digits, rest)) = rest.split_once('_') else {
                continue;
            };
            match digits.parse::<u32>() {
                Ok(index) if index < block.instances() => (index, rest),
                _ => continue,
            }
        };
        if let Some(register) = block
            .registers()
            .iter()
            .find(|register| register.name == rest)
        {
            return Some(Located {
                block,
                index,
                register,
            });
        }
    }
    None
}

/// All registers, by offset.
pub fn all() -> impl Iterator<Item = Located> {
    BLOCKS.into_iter().flat_map(|block| {
        (0..block.instances()).flat_map(move |index| {
            block.registers().iter().map(move |register| Located {
                block,
                index,
                register,
            })
        })
    })
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn tables_are_sorted_and_aligned() {
        for block in BLOCKS {
            for pair in block.registers().windows(2) {
                assert!(
                    pair[0].offset < pair[1].offset,
                    "{} {}",
                    pair[0].name,
                    pair[1].name
                );
            }
            for register in block.registers() {
                assert_eq!(register.offset % 4, 0, "{}", register.name);
            }
        }
    }

    #[test]
    fn offset_and_name_find_every_register() {
        let mut previous = None;
        for located in all() {
            assert_eq!(lookup(located.offset()), Some(located));
            assert_eq!(by_name(&located.to_string()), Some(located));
            assert!(previous < Some(located.offset()), "{located}");
            previous = Some(located.offset());
        }
    }

    #[test]
    fn unknown_offsets_and_names_are_none() {
        for offset in [
            0x05c,
            0x002,
            0x1018,
            0x1804 + 0x24,
            0x2018,
            0x243c + 4 - 2,
            0x2800,
            0x4000,
            u32::MAX,
        ] {
            let found = lookup(offset);
            assert!(
                found.is_none() || found.is_some_and(|l| l.offset() == offset),
                "{offset:#x} {found:?}"
            );
        }
        assert_eq!(lookup(0x05c), None);
        assert_eq!(lookup(0x2800), None);
        for name in [
            "",
            "JS",
            "JS16_HEAD_LO",
            "JS_HEAD_LO",
            "AS0",
            "AS0_",
            "HEAD_LO",
            "gpu_id",
            "JSx_HEAD_LO",
        ] {
            assert_eq!(by_name(name), None, "{name}");
        }
    }
}
