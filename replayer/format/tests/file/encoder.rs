// SPDX-License-Identifier: MIT OR Apache-2.0
//! The encoder, against another decoder and sizes by hand.

use std::collections::BTreeMap;

use gpureplay_format::encode::Draft;
use gpureplay_format::layout::{ActionEntry, FLAG_COHERENT, Platform};
use gpureplay_format::lz4::History;
use gpureplay_format::{
    Access, Builder, ElementType, EncodeError, Encoding, MAX_AXES, MAX_RANK, Opcode, Recording,
    RegionKind, SegmentKind, Tensor, TensorKind,
};

const PAGE: u64 = 4096;
const BASE: u64 = 0x10_0000;

fn memory(file: &[u8]) -> BTreeMap<u64, u8> {
    let view = Recording::parse(file).unwrap();
    let mut memory = BTreeMap::new();
    for segment in view.segments() {
        let mut window = Vec::new();
        let mut cursor = view.cursor(segment);
        for entry in view.segment_entries(segment) {
            let (opcode, payload) = cursor.step(entry).unwrap();
            let length = entry.c.get() as usize;
            let bytes = match opcode {
                Opcode::Fill => vec![entry.a; length],
                Opcode::Upload if entry.a == Encoding::Raw.code() => payload.to_vec(),
                Opcode::Upload => {
                    let start = window.len();
                    unpack(payload, &mut window);
                    window[start..].to_vec()
                }
                _ => continue,
            };
            assert_eq!(bytes.len(), length);
            memory.extend((entry.d.get()..).zip(bytes));
        }
    }
    memory
}

fn unpack(block: &[u8], window: &mut Vec<u8>) {
    let mut bytes = block.iter().copied();
    let length = |bytes: &mut dyn Iterator<Item = u8>, first: u8| {
        let mut length = usize::from(first);
        let mut more_follow = first == 15;
        while more_follow {
            let more = bytes.next().unwrap();
            length += usize::from(more);
            more_follow = more == 255;
        }
        length
    };
    while let Some(token) = bytes.next() {
        let literals = length(&mut bytes, token >> 4);
        window.extend(bytes.by_ref().take(literals));
        let Some(low) = bytes.next() else { return };
        let distance = usize::from(low) | usize::from(bytes.next().unwrap()) << 8;
        let from = window.len() - distance;
        let matched = length(&mut bytes, token & 15) + 4;
        (from..from + matched).for_each(|at| window.push(window[at]));
    }
}

fn builder(pages: u32) -> Builder {
    let mut builder = Builder::new(0x7212_0000);
    builder.region(BASE, pages, Access::READ_WRITE, RegionKind::Data);
    builder.segment("setup", SegmentKind::Setup);
    builder
}

fn noise(count: usize, mut seed: u64) -> Vec<u8> {
    let next = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 56) as u8
    };
    (0..count).map(next).collect()
}

fn actions(file: &[u8]) -> Vec<(Opcode, u8, u32, u64)> {
    let view = Recording::parse(file).unwrap();
    let of = |entry: &ActionEntry| {
        let opcode = Opcode::from_code(entry.op.into()).unwrap();
        (opcode, entry.a, entry.c.get(), entry.d.get())
    };
    view.action_entries().iter().map(of).collect()
}

#[test]
fn a_recording_says_whether_caches_were_coherent() {
    for (coherent, flags) in [(true, FLAG_COHERENT), (false, 0)] {
        let mut builder = builder(1);
        builder.coherent(coherent);
        let file = builder.finish().unwrap();
        let platform = Recording::parse(&file).unwrap().header().platform();
        assert_eq!(platform.flags, flags);
    }
}

#[test]
fn what_was_uploaded_is_there_and_takes_few_bytes() {
    // With the most bytes that a good encoder needs: literals once, then matches of three bytes and their lengths.
    let text = noise(64, 1);
    let far = [&text[..], &noise(3000, 2), &text].concat();
    let runs: Vec<u8> = (0..600).map(|at| (at / 100) as u8 + 1).collect();
    let words: Vec<u8> = (0..1024_u32)
        .flat_map(|at| (at / 7 + 1).to_le_bytes())
        .collect();
    let nested = [&text[..20], &text[..12], &text[4..30], &text[..40]].concat();
    let cases: [(&str, Vec<u8>, usize); 7] = [
        ("noise", noise(4096, 3), 4096),
        ("twice", [&text[..], &text].concat(), 64 + 2 + 3 + 2),
        ("far", far, 3064 + 15 + 3 + 3),
        (
            "a long match",
            [&text[..], &text.repeat(20)].concat(),
            64 + 2 + 3 + 7,
        ),
        ("runs", runs, 6 * 6),
        ("words", words, 900),
        ("nested", nested, 40 + 2 + 4 * 3 + 4),
    ];
    for (name, bytes, most) in cases {
        let mut builder = builder(1);
        builder.upload(BASE, &bytes);
        let file = builder.finish().unwrap();
        let data = Recording::parse(&file).unwrap().data().len();
        assert!(data <= most, "{name}: {data} bytes, {most} are enough");
        // Zeros around what a fresh page gets are left out.
        let found = memory(&file).into_iter().filter(|(_, byte)| *byte != 0);
        let expected = (BASE..).zip(bytes).filter(|(_, byte)| *byte != 0);
        assert!(found.eq(expected), "{name}");
    }
}

#[test]
fn pages_that_repeat_earlier_ones_cost_little_in_one_segment_and_all_in_the_next() {
    // Noise alone is stored as it is, outside the window.
    let text = [&noise(1400, 9)[..], &[0x55; 100]].concat();
    let made = |twice: bool| {
        let mut builder = builder(64);
        for page in 0..40 {
            let own = noise(200, page + 100);
            builder.upload(BASE + page * PAGE, &[&own[..], &text].concat());
        }
        if twice {
            builder.segment("more", SegmentKind::Setup);
            builder.upload(BASE + 50 * PAGE, &text);
            builder.upload(BASE + 51 * PAGE, &text);
        }
        builder.finish().unwrap()
    };
    let (first, file) = (made(false), made(true));
    let data = |file| Recording::parse(file).unwrap().data().len();
    assert!(data(&first) < 1620 + 39 * 225, "{}", data(&first));
    // Segments forget the window.
    let more = data(&file) - data(&first);
    assert!((1400..1440).contains(&more), "{more}");
    let found = memory(&file);
    for (page, skip) in [(0, 200), (17, 200), (39, 200), (50, 0), (51, 0)] {
        let at = BASE + page * PAGE + skip;
        let bytes: Vec<u8> = found.range(at..at + 1500).map(|(_, byte)| *byte).collect();
        assert!(bytes == text, "page {page}");
    }
    let view = Recording::parse(&file).unwrap();
    let mut history = History::new();
    for segment in view.segments() {
        history.clear();
        let mut cursor = view.cursor(segment);
        for entry in view.segment_entries(segment) {
            let (_, payload) = cursor.step(entry).unwrap();
            if entry.a == Encoding::Lz4.code() {
                let bytes = history.decode(payload, entry.c.get() as usize).unwrap();
                let at = entry.d.get();
                let expected: Vec<u8> = found
                    .range(at..at + bytes.len() as u64)
                    .map(|it| *it.1)
                    .collect();
                assert!(bytes == expected);
            }
        }
    }
}

#[test]
fn zeros_of_fresh_pages_are_left_out_and_others_are_not() {
    let raw = Encoding::Raw.code();
    let mut builder = builder(8);
    builder.upload(BASE, &[0; 100]);
    builder.upload(BASE + 10, &[0, 0, 1, 2, 3, 0]);
    builder.upload(BASE + 20, &[0, 0, 4]);
    builder.upload(BASE + PAGE - 2, &[5, 0, 0, 6]);
    builder.fill(BASE + 3 * PAGE + 1, PAGE as u32, 9);
    builder.upload(BASE + 3 * PAGE, &[0, 7]);
    builder.upload(BASE + 4 * PAGE, &[0, 7]);
    builder.upload(BASE + 5 * PAGE, &[0, 7]);
    builder.upload(BASE + 6 * PAGE, &[8; 9]);
    builder.upload(BASE + 7 * PAGE, &[8; 8]);
    // Nothing is fresh in a run.
    builder.segment("run", SegmentKind::Run);
    builder.upload(BASE + 2 * PAGE, &[0, 3]);
    let file = builder.finish().unwrap();
    let upload = |length, place| (Opcode::Upload, raw, length, BASE + place);
    let fill = |byte, length, place| (Opcode::Fill, byte, length, BASE + place);
    let expected = [
        upload(3, 12),
        upload(3, 20),
        upload(2, PAGE - 2),
        upload(1, PAGE + 1),
        fill(9, PAGE as u32, 3 * PAGE + 1),
        upload(2, 3 * PAGE),
        // The fill reached one byte into this page.
        upload(2, 4 * PAGE),
        upload(1, 5 * PAGE + 1),
        fill(8, 9, 6 * PAGE),
        (Opcode::Upload, Encoding::Lz4.code(), 8, BASE + 7 * PAGE),
        upload(2, 2 * PAGE),
    ];
    assert_eq!(actions(&file), expected);
    let found = memory(&file);
    let at = |place: u64, count: u64| {
        let range = found.range(BASE + place..BASE + place + count);
        range.map(|(_, byte)| *byte).collect::<Vec<_>>()
    };
    assert_eq!(at(0, 30), [1, 2, 3, 0, 0, 4]);
    assert_eq!(at(PAGE - 2, 4), [5, 0, 6]);
    assert_eq!(at(3 * PAGE, 3), [0, 7, 9]);
    assert_eq!(at(4 * PAGE, 2), [0, 7]);
    assert_eq!(at(7 * PAGE, 9), [8; 8]);
    assert_eq!(at(2 * PAGE, 2), [0, 3]);
}

#[test]
fn raw_uploads_join_where_they_touch_but_not_across_regions_and_segments() {
    let raw = Encoding::Raw.code();
    let upload = |length, place| (Opcode::Upload, raw, length, BASE + place);
    let mut builder = Builder::new(0x7212_0000);
    builder.region(BASE, 2, Access::READ_WRITE, RegionKind::Data);
    builder.region(BASE + 2 * PAGE, 1, Access::READ_WRITE, RegionKind::Data);
    builder.segment("setup", SegmentKind::Setup);
    for (page, seed) in (0..3).zip([11, 12, 13]) {
        builder.upload(BASE + page * PAGE, &noise(4096, seed));
    }
    builder.segment("run", SegmentKind::Run);
    builder.upload(BASE, &noise(7, 14));
    builder.upload(BASE + 7, &noise(5, 15));
    builder.upload(BASE + 13, &noise(6, 16));
    builder.segment("again", SegmentKind::Run);
    builder.upload(BASE + 19, &noise(6, 17));
    let file = builder.finish().unwrap();
    let expected = [
        upload(8192, 0),
        upload(4096, 2 * PAGE),
        upload(12, 0),
        upload(6, 13),
        upload(6, 19),
    ];
    assert_eq!(actions(&file), expected);
    let view = Recording::parse(&file).unwrap();
    let counts: Vec<u32> = view
        .segments()
        .iter()
        .map(|segment| view.count(segment, Opcode::Upload))
        .collect();
    assert_eq!(counts, [2, 2, 1]);
    assert_eq!(view.count(&view.segments()[0], Opcode::Submit), 0);
}

#[test]
fn the_first_error_is_kept_and_says_what_it_is() {
    let texts = |error: &EncodeError| error.to_string();
    let mut named = builder(1);
    let tensor = |name: &str| Tensor::dense(name, TensorKind::Input, ElementType::U8, &[4], BASE);
    named.tensor(tensor("a b"));
    named.tensor(tensor(""));
    let error = named.finish().unwrap_err();
    assert_eq!(error, EncodeError::Name("a b".into()));
    assert!(texts(&error).contains("a b"));
    let mut twice = builder(1);
    twice.tensor(tensor("x"));
    twice.tensor(tensor("x"));
    let error = twice.finish().unwrap_err();
    assert_eq!(error, EncodeError::NameTwice("x".into()));
    assert!(texts(&error).contains('x'));
    let mut early = Builder::new(0x7212_0000);
    early.fill(BASE, 1, 1);
    assert_eq!(early.finish().unwrap_err(), EncodeError::NoSegment(0));
    for (second, fits) in [(BASE + 2 * PAGE, true), (BASE + PAGE, false), (BASE, false)] {
        let mut two = builder(2);
        two.region(second, 1, Access::READ, RegionKind::Data);
        let expected = Err(EncodeError::RegionsOverlap(BASE, second));
        let made = two.finish().map(drop);
        assert_eq!(made, if fits { Ok(()) } else { expected }, "{second:#x}");
    }
}

#[test]
fn the_version_is_the_smallest_that_knows_the_file() {
    let minor = |change: &dyn Fn(&mut Builder)| {
        let mut builder = builder(1);
        change(&mut builder);
        let file = builder.finish().unwrap();
        u16::from_le_bytes([file[10], file[11]])
    };
    let platform = |unused_cores, family| Platform {
        unused_cores,
        family,
        ..Platform::of(0x7212_0000)
    };
    let state = Tensor::dense("s", TensorKind::State, ElementType::U8, &[4], BASE);
    assert_eq!(minor(&|_| ()), 0);
    assert_eq!(minor(&|builder| _ = builder.tensor(state.clone())), 1);
    assert_eq!(minor(&|builder| builder.platform(platform(2, 0))), 2);
    assert_eq!(minor(&|builder| builder.platform(platform(0, 9))), 3);
    assert_eq!(minor(&|builder| builder.launch(0, &[1], 5)), 3);
}

#[test]
fn a_tensor_has_few_dimensions_and_some_places() {
    let changes: [fn(&mut Tensor); 4] = [
        |_| (),
        |tensor| tensor.shape = vec![1; MAX_RANK + 1],
        |tensor| tensor.pieces.clear(),
        |tensor| tensor.pieces[0].axes = vec![tensor.pieces[0].axes[0]; MAX_AXES + 1],
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut tensor = Tensor::dense("t", TensorKind::Input, ElementType::U8, &[4], BASE);
        change(&mut tensor);
        let mut builder = builder(1);
        builder.tensor(tensor);
        let expected = match number {
            0 => Ok(()),
            _ => Err(EncodeError::Shape("t".into())),
        };
        assert_eq!(builder.finish().map(drop), expected, "{number}");
    }
}

#[test]
fn after_a_seek_uploads_take_their_bytes_from_elsewhere() {
    let (one, other) = (noise(100, 1), noise(100, 2));
    let mut builder = builder(2);
    builder.upload(BASE, &one);
    builder.seek(0);
    builder.upload(BASE + PAGE, &other);
    let found = memory(&builder.finish().unwrap());
    let second: Vec<u8> = found.range(BASE + PAGE..).map(|(_, byte)| *byte).collect();
    assert_eq!(second, one);
}

#[test]
fn only_raw_uploads_grow() {
    let packs = [&[7, 9].repeat(60)[..], &noise(40, 3)].concat();
    let (raw, ends) = (Encoding::Raw.code(), BASE + 160);
    for (first, encoding) in [(packs, Encoding::Lz4.code()), (noise(160, 4), raw)] {
        let mut builder = builder(1);
        builder.upload(BASE, &first);
        builder.upload(ends, &noise(9, 5));
        let found = actions(&builder.finish().unwrap());
        let joined = encoding == raw;
        let length = if joined { 169 } else { 160 };
        assert_eq!(found[0], (Opcode::Upload, encoding, length, BASE));
        assert_eq!(found.len(), if joined { 1 } else { 2 });
    }
}

#[test]
fn a_draft_gives_a_launch_other_words() {
    let mut builder = builder(1);
    builder.segment("run", SegmentKind::Run);
    builder.launch(3, &[1, 2], 50);
    let file = builder.finish().unwrap();
    let view = Recording::parse(&file).unwrap();
    let mut draft = Draft::new(&view);
    let wanted = [9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0];
    for segment in view.segments() {
        draft.segment(segment);
        for step in view.steps(segment) {
            draft.launch(*step.unwrap().entry, &wanted, 8);
        }
    }
    let made = draft.encode().unwrap();
    let view = Recording::parse(&made).unwrap();
    let mut cursor = view.cursor(&view.segments()[1]);
    let words = view.segment_entries(&view.segments()[1]).iter();
    let words = words.map(|entry| cursor.step(entry).unwrap());
    let words: Vec<_> = words
        .filter(|(opcode, _)| *opcode == Opcode::Launch)
        .collect();
    assert_eq!(words, [(Opcode::Launch, &wanted[..])]);
}

#[test]
fn a_draft_keeps_tables_and_adds_behind_the_data() {
    let mut builder = builder(1);
    builder.upload(BASE, &[1, 2, 3]);
    builder.segment("run", SegmentKind::Run);
    builder.upload(BASE + 8, &[4, 5]);
    let file = builder.finish().unwrap();
    let view = Recording::parse(&file).unwrap();
    let mut draft = Draft::new(&view);
    for segment in view.segments() {
        draft.segment(segment);
        for step in view.steps(segment) {
            let step = step.unwrap();
            draft.push(*step.entry);
            assert_eq!(step.after - step.before, u64::from(step.entry.c.get()));
        }
    }
    assert!(draft.encode().unwrap() == file, "the same again");
    draft.rename("other");
    let none: [(u64, &[u8]); 0] = [];
    assert!(draft.store(&none).is_empty());
    draft.insert(&[], 3);
    let uploads = draft.store(&[(BASE + 64, &[6, 7][..]), (BASE + 72, &[8])]);
    draft.insert(&uploads, 3);
    let made = draft.encode().unwrap();
    let raw = Encoding::Raw.code();
    let expected = [
        (Opcode::Upload, raw, 3, BASE),
        (Opcode::Upload, raw, 2, BASE + 8),
        (Opcode::Seek, 0, 0, 5),
        (Opcode::Upload, raw, 2, BASE + 64),
        (Opcode::Upload, raw, 1, BASE + 72),
        (Opcode::Seek, 0, 0, 3),
    ];
    assert_eq!(actions(&made), expected);
    let view = Recording::parse(&made).unwrap();
    assert_eq!(view.data(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let names = view
        .segments()
        .iter()
        .map(|it| view.name_bytes(it.name.get()));
    let names: Vec<_> = names.map(Option::unwrap).collect();
    assert_eq!(names, [&b"setup"[..], b"other"]);
    let counts: Vec<u32> = view.segments().iter().map(|it| it.actions.get()).collect();
    assert_eq!(counts, [1, 5]);
    let memory = memory(&made);
    let expected = [
        (0, 1),
        (1, 2),
        (2, 3),
        (8, 4),
        (9, 5),
        (64, 6),
        (65, 7),
        (72, 8),
    ];
    let expected: BTreeMap<u64, u8> = expected.map(|(at, byte)| (BASE + at, byte)).into();
    assert_eq!(memory, expected);
}
