// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tensor blocks: index, length, bytes, zeros to a multiple of eight (`struct gpureplay_tee_entry`).

const HEADER: usize = 8;

fn entry_bytes(bytes: usize) -> usize {
    bytes.next_multiple_of(8).saturating_add(HEADER)
}

pub(crate) fn block<'a>(tensors: impl Iterator<Item = (u32, &'a [u8])>) -> Vec<u8> {
    let mut block = Vec::new();
    for (index, bytes) in tensors {
        block.extend(index.to_le_bytes());
        // The client refuses larger tensors earlier.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        block.extend(length.to_le_bytes());
        block.extend(bytes);
        block.resize(block.len().next_multiple_of(8), 0);
    }
    block
}

pub(crate) fn length(tensors: impl Iterator<Item = usize>) -> usize {
    tensors.map(entry_bytes).fold(0, usize::saturating_add)
}

/// Uses the client's lengths: the secure world may have changed the headers.
pub(crate) fn take<'a>(mut block: &[u8], tensors: impl Iterator<Item = &'a mut Vec<u8>>) {
    for bytes in tensors {
        let found = block.get(HEADER..HEADER.saturating_add(bytes.len()));
        if let Some(found) = found {
            bytes.copy_from_slice(found);
        }
        block = block.get(entry_bytes(bytes.len())..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_comes_back() {
        let tensors: [(u32, &[u8]); 3] = [(3, b"abc"), (0, b""), (0x0102, b"12345678")];
        let made = block(tensors.into_iter());
        let expected = b"\x03\0\0\0\x03\0\0\0abc\0\0\0\0\0\
            \0\0\0\0\0\0\0\0\
            \x02\x01\0\0\x08\0\0\x0012345678";
        assert_eq!(made, expected);
        assert_eq!(length([3, 0, 8].into_iter()), made.len());
        let mut found = [vec![0; 3], Vec::new(), vec![0; 8]];
        take(&made, found.iter_mut());
        assert_eq!(found, [b"abc".to_vec(), Vec::new(), b"12345678".to_vec()]);
        let mut found = [vec![1; 3], Vec::new(), vec![1; 8]];
        take(made.get(..20).unwrap(), found.iter_mut());
        assert_eq!(found, [b"abc".to_vec(), Vec::new(), vec![1; 8]]);
    }

    #[test]
    fn lengths_do_not_wrap() {
        assert_eq!(length([usize::MAX - 20, 100].into_iter()), usize::MAX);
    }
}
