// SPDX-License-Identifier: MIT OR Apache-2.0
//! LZ4 blocks, against this test's own decoder.

use gpureplay_format::Payload;
use gpureplay_format::lz4::{History, Level, MAX_BLOCK, WINDOW, check};

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn length(&mut self, nibble: u8) -> Option<usize> {
        let mut sum = usize::from(nibble);
        let mut goes_on = nibble == 15;
        while goes_on {
            let byte = self.take(1)?[0];
            sum += usize::from(byte);
            goes_on = byte == 255;
        }
        Some(sum)
    }
}

/// By the rules of LZ4's documentation.
fn reference(block: &[u8], before: &[u8], length: usize) -> Option<Vec<u8>> {
    let (mut out, mut rest) = (before.to_vec(), Rest(block));
    loop {
        let token = rest.take(1)?[0];
        let literals = rest.length(token >> 4)?;
        out.extend(rest.take(literals)?);
        if rest.0.is_empty() {
            let sound = token & 15 == 0 && out.len() == before.len() + length;
            return sound.then(|| out.split_off(before.len()));
        }
        let distance = usize::from(u16::from_le_bytes(rest.take(2)?.try_into().ok()?));
        let copied = rest.length(token & 15)? + 4;
        if distance == 0 || distance > out.len() || out.len() + copied > before.len() + length {
            return None;
        }
        (0..copied).for_each(|_| out.push(out[out.len() - distance]));
    }
}

fn random(state: &mut u64) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    (*state >> 33) as usize
}

fn random_block(state: &mut u64, history: usize) -> (Vec<u8>, usize) {
    let (mut block, mut length) = (Vec::new(), 0);
    let long = |block: &mut Vec<u8>, count: usize| {
        if count >= 15 {
            block.extend(std::iter::repeat_n(255, (count - 15) / 255));
            block.push(((count - 15) % 255) as u8);
        }
    };
    for _ in 0..random(state) % 3 {
        let literals = [0, 1, 14, 15, 16, 269, 270, 271][random(state) % 8];
        let copied = [4, 5, 18, 19, 20, 273, 274, 275][random(state) % 8];
        block.push((literals.min(15) << 4 | (copied - 4).min(15)) as u8);
        long(&mut block, literals);
        block.extend((0..literals).map(|at| (at * 7) as u8));
        length += literals;
        let reach = history + length;
        let distance = [1, 2, reach, reach + 1, reach.saturating_sub(1), 0][random(state) % 6];
        block.extend((distance.min(65535) as u16).to_le_bytes());
        long(&mut block, copied - 4);
        length += copied;
    }
    let literals = random(state) % 40;
    block.push((literals.min(15) << 4) as u8 | u8::from(random(state).is_multiple_of(16)));
    long(&mut block, literals);
    block.extend((0..literals).map(|at| at as u8));
    length += literals;
    match random(state) % 12 {
        0 => length += 1,
        1 => length = length.saturating_sub(1),
        2 => drop(block.pop()),
        _ => {}
    }
    (block, length)
}

#[test]
fn blocks_decode_as_the_documentation_of_lz4_says() {
    let (mut history, mut level) = (History::new(), Level::default());
    let (mut before, mut state, mut sound, mut slides) = (Vec::new(), 7, 0, 0);
    for turn in 0..6000 {
        let (block, length) = random_block(&mut state, before.len());
        let (mut tried, mut slid) = (history.clone(), before.clone());
        let slides_now = slid.len() + length > WINDOW;
        if slides_now {
            slid.drain(..WINDOW / 2);
        }
        let expected = reference(&block, &slid, length);
        let found = tried.decode(&block, length).map(<[u8]>::to_vec);
        assert_eq!(found, expected, "{turn}: {block:?}");
        let checked = check(&block, level, length);
        assert_eq!(checked.is_some(), expected.is_some(), "{turn}: {block:?}");
        if let (Some(bytes), Some(after)) = (expected, checked) {
            slid.extend(bytes);
            (history, level, before) = (tried, after, slid);
            assert_eq!(level.bytes(), before.len());
            sound += 1;
            slides += u32::from(slides_now);
        }
    }
    assert!(sound > 2000 && slides > 5, "{sound} {slides}");
}

#[test]
fn an_upload_is_kept_raw_or_as_a_block() {
    let mut history = History::new();
    assert_eq!(
        Payload::Raw(&[3, 1, 4]).bytes(&mut history, 3),
        Some(&[3, 1, 4][..])
    );
    let block = [0x30, 3, 1, 4];
    assert_eq!(
        Payload::Lz4(&block).bytes(&mut history, 3),
        Some(&[3, 1, 4][..])
    );
    assert_eq!(Payload::Lz4(&block).bytes(&mut history, 4), None);
}

#[test]
fn a_block_has_a_page_at_most() {
    let run = |length: usize| {
        let copied = length - 1 - 4 - 15;
        let mut block = vec![0x1f, 9, 1, 0];
        block.extend(std::iter::repeat_n(255, copied / 255));
        block.extend([(copied % 255) as u8, 0]);
        block
    };
    let decoded = |length: usize| {
        History::new()
            .decode(&run(length), length)
            .map(<[u8]>::to_vec)
    };
    assert_eq!(decoded(MAX_BLOCK), Some(vec![9; MAX_BLOCK]));
    assert_eq!(decoded(MAX_BLOCK + 1), None);
    let after = check(&run(MAX_BLOCK), Level::default(), MAX_BLOCK);
    assert_eq!(after.map(Level::bytes), Some(MAX_BLOCK));
    assert_eq!(
        check(&run(MAX_BLOCK + 1), Level::default(), MAX_BLOCK + 1),
        None
    );
    let literals = |length: usize| {
        let mut block = vec![0xf0];
        block.extend(std::iter::repeat_n(255, (length - 15) / 255));
        block.push(((length - 15) % 255) as u8);
        block.resize(block.len() + length, 5);
        History::new().decode(&block, length).is_some()
    };
    assert!(literals(MAX_BLOCK) && !literals(MAX_BLOCK + 1));
}
