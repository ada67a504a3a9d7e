// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits of parts, and one beyond.

use gpureplay_cuda_launch::image::{
    Allowance, Contents, ImageError, MAX_IMAGE, MAX_KERNELS, MAX_NAME, MAX_NAMES, MAX_PARAMETERS,
    MAX_PARTS, PARTS_OF_A_BYTE, PARTS_OF_ANY, check, parts,
};

const KERNEL_PARAMETERS: usize = 32_764;

fn contents(image: &[u8]) -> Result<Contents, ImageError> {
    parts(image)?[0].contents()
}

fn ptx(text: &str) -> Result<Contents, ImageError> {
    contents(format!(".version 8.0\n{text}").as_bytes())
}

fn refused(result: Result<Contents, ImageError>, expected: &str) {
    match result {
        Err(ImageError::TooMany { what, limit }) => {
            assert_eq!(format!("{limit} {what}"), expected);
        }
        other => panic!("{expected}: {:?}", other.map(drop)),
    }
}

fn entries(count: usize) -> String {
    (0..count).map(|at| format!(".entry k{at}(){{}}")).collect()
}

#[test]
fn kernels_of_a_part_are_bounded() {
    let all = ptx(&entries(MAX_KERNELS)).unwrap();
    assert_eq!(all.kernels.len(), MAX_KERNELS);
    refused(ptx(&entries(MAX_KERNELS + 1)), "262144 kernels");
}

#[test]
fn variables_of_a_part_are_bounded() {
    let variables =
        |count| -> String { (0..count).map(|at| format!(".global .u8 v{at};")).collect() };
    let all = ptx(&variables(MAX_KERNELS)).unwrap();
    assert_eq!(all.variables.len(), MAX_KERNELS);
    refused(ptx(&variables(MAX_KERNELS + 1)), "262144 variables");
}

#[test]
fn names_are_bounded() {
    let entry = |length| ptx(&format!(".entry {}(){{}}", "k".repeat(length)));
    assert_eq!(entry(MAX_NAME).unwrap().kernels[0].name.len(), MAX_NAME);
    refused(entry(MAX_NAME + 1), "65536 bytes of a name");
    let mut text = String::new();
    let long = "k".repeat(MAX_NAME - 4);
    for at in 0..MAX_NAMES / MAX_NAME {
        text += &format!(".entry {long}{at:04}(){{}}");
    }
    assert_eq!(ptx(&text).unwrap().kernels.len(), MAX_NAMES / MAX_NAME);
    text += ".entry k(){}";
    refused(
        ptx(&text),
        "67108864 bytes of names of kernels and variables",
    );
}

#[test]
fn parameters_are_bounded() {
    let entry = |name: usize, count| format!(".entry k{name}({}){{}}", ".u8,".repeat(count));
    let one = ptx(&entry(0, KERNEL_PARAMETERS)).unwrap();
    assert_eq!(one.kernels[0].parameters.len(), KERNEL_PARAMETERS);
    refused(
        ptx(&entry(0, KERNEL_PARAMETERS + 1)),
        "32764 parameters of a kernel",
    );
    let whole = MAX_PARAMETERS / KERNEL_PARAMETERS;
    let rest = MAX_PARAMETERS % KERNEL_PARAMETERS;
    let text: String = (0..whole).map(|at| entry(at, KERNEL_PARAMETERS)).collect();
    assert!(ptx(&(text.clone() + &entry(whole, rest))).is_ok());
    refused(
        ptx(&(text + &entry(whole, rest + 1))),
        "4194304 parameters of all kernels",
    );
}

#[test]
fn a_kernel_is_defined_once() {
    let twice = Err(ImageError::Twice("k".into()));
    assert_eq!(ptx(".entry k(){} .entry k(){}"), twice);
    assert_eq!(ptx(".entry k(); .entry k(){} .entry k(){}"), twice);
    let declared = ptx(".entry k(); .entry k(); .entry k(){} .entry k();").unwrap();
    assert_eq!(declared.kernels.len(), 1);
}

#[test]
fn an_error_shows_the_start_of_a_long_text() {
    let wrong = format!(".entry k(.param {}){{}}", "é".repeat(100_000));
    let told = ptx(&wrong).unwrap_err().to_string();
    assert!(told.contains("the PTX says") && told.len() < 200, "{told}");
}

/// Kind, bytes, stated size after Zstandard.
fn fatbin(members: &[(u16, &[u8], u64)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (kind, bytes, size) in members {
        let mut header = [0; 64];
        header[..2].copy_from_slice(&kind.to_le_bytes());
        header[4..8].copy_from_slice(&64u32.to_le_bytes());
        header[8..16].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        header[16..20].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        header[40..48].copy_from_slice(&0x8000u64.to_le_bytes());
        header[56..].copy_from_slice(&size.to_le_bytes());
        body.extend(header);
        body.extend(*bytes);
    }
    let mut fatbin = 0xba55_ed50_u32.to_le_bytes().to_vec();
    fatbin.extend([1, 0, 16, 0]);
    fatbin.extend((body.len() as u64).to_le_bytes());
    fatbin.extend(body);
    fatbin
}

#[test]
fn parts_of_an_image_together_are_bounded() {
    let of = |payload: usize, sizes: &[u64]| {
        let payload = vec![0; payload];
        let mut members: Vec<_> = sizes.iter().map(|size| (1, &[][..], *size)).collect();
        // No part, so not read.
        members.push((64, payload.as_slice(), MAX_IMAGE as u64));
        fatbin(&members)
    };
    let checked = |image: &[u8]| parts(image).map(|parts| parts.len());
    let most = PARTS_OF_ANY + PARTS_OF_A_BYTE * of(100, &[0]).len() as u64;
    assert_eq!(checked(&of(100, &[most])), Ok(1));
    let size = most + 1;
    assert_eq!(
        checked(&of(100, &[size])),
        Err(ImageError::TooLarge { size })
    );
    let long = (MAX_PARTS / PARTS_OF_A_BYTE) as usize;
    let all = vec![MAX_IMAGE as u64; MAX_PARTS as usize / MAX_IMAGE];
    let image = of(long, &all);
    assert_eq!(checked(&image), Ok(all.len()));
    assert!(matches!(check(&image), Err(ImageError::Compressed { .. })));
    let size = MAX_PARTS + 1;
    let more = [&all[..], &[1]].concat();
    assert_eq!(
        checked(&of(long, &more)),
        Err(ImageError::TooLarge { size })
    );
}

#[test]
fn an_image_itself_is_bounded() {
    let mut image = vec![0; MAX_IMAGE + 1];
    image[..12].copy_from_slice(b".version 8.5");
    assert!(parts(&image[..MAX_IMAGE]).is_ok());
    let size = image.len() as u64;
    assert_eq!(
        parts(&image).map(|parts| parts.len()),
        Err(ImageError::TooLarge { size })
    );
}

fn section(name: usize, kind: u32, offset: usize, size: usize, link: u32, entry: u64) -> Vec<u8> {
    let mut bytes = [name as u32, kind].map(u32::to_le_bytes).concat();
    bytes.extend(
        [0, 0, offset as u64, size as u64]
            .map(u64::to_le_bytes)
            .concat(),
    );
    bytes.extend([link, 1].map(u32::to_le_bytes).concat());
    bytes.extend([8, entry].map(u64::to_le_bytes).concat());
    bytes
}

/// `kernels`: offsets of names; all have the same parameters. Then more sections of one name.
fn cubin(names: &str, kernels: &[usize], parameters: usize, sections: (usize, &str)) -> Vec<u8> {
    let mut info = Vec::new();
    for _ in 0..parameters {
        info.extend([4, 0x17, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0]);
    }
    let strings = format!("\0{names}\0");
    let mut symbols = vec![0; 24];
    let mut section_names = format!("\0{}\0", sections.1);
    let mut at = Vec::new();
    for start in kernels {
        symbols.extend((*start as u32 + 1).to_le_bytes());
        symbols.extend([0x12, 0x10, 0, 0]);
        symbols.extend([0; 16]);
        at.push(section_names.len());
        if parameters > 0 {
            section_names += &format!(
                ".nv.info.{}\0",
                names[*start..].split('\0').next().unwrap_or_default()
            );
        }
    }
    let mut bytes = vec![0; 64];
    let mut put = |data: &[u8]| {
        bytes.extend(data);
        (bytes.len() - data.len(), data.len())
    };
    let (name_table, string_table) = (put(section_names.as_bytes()), put(strings.as_bytes()));
    let (symbol_table, info) = (put(&symbols), put(&info));
    let mut headers = vec![vec![0; 64]];
    headers.push(section(0, 3, name_table.0, name_table.1, 0, 0));
    headers.push(section(0, 3, string_table.0, string_table.1, 0, 0));
    headers.push(section(0, 2, symbol_table.0, symbol_table.1, 2, 24));
    if parameters > 0 {
        headers.extend(
            at.iter()
                .map(|at| section(*at, 0x7000_0000, info.0, info.1, 0, 0)),
        );
    }
    headers.resize(
        headers.len() + sections.0,
        section(1, 0x7000_0000, 64, 0, 0, 0),
    );
    let start = bytes.len() as u64;
    let count = headers.len() as u16;
    bytes.extend(headers.concat());
    bytes[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    bytes[16..24].copy_from_slice(&[2, 0, 190, 0, 1, 0, 0, 0]);
    bytes[40..48].copy_from_slice(&start.to_le_bytes());
    bytes[52..54].copy_from_slice(&64u16.to_le_bytes());
    bytes[58..60].copy_from_slice(&64u16.to_le_bytes());
    bytes[60..62].copy_from_slice(&count.to_le_bytes());
    bytes[62..64].copy_from_slice(&1u16.to_le_bytes());
    bytes
}

#[test]
fn what_the_tables_of_a_cubin_name_again_and_again_is_refused() {
    let good = contents(&cubin("a\0b", &[0, 2], 3, (2, "x"))).unwrap();
    assert_eq!(good.kernels.len(), 2);
    assert!(
        good.kernels
            .iter()
            .all(|kernel| kernel.parameters.len() == 3)
    );
    let twice = contents(&cubin("a", &[0, 0], 3, (0, "")));
    assert_eq!(twice, Err(ImageError::Twice("a".into())));
    let image = cubin("a\0b\0c", &[0, 2, 4], 100, (0, ""));
    refused(
        contents(&image),
        &format!("{} bytes that describe kernels", image.len()),
    );
}

#[test]
fn names_that_a_cubin_shares_are_bounded() {
    let name = |length: usize| cubin(&"k".repeat(length), &[0], 0, (1, &"s".repeat(length)));
    assert_eq!(contents(&name(MAX_NAME)).unwrap().kernels.len(), 1);
    refused(contents(&name(MAX_NAME + 1)), "65536 bytes of a name");
    // Overlapping names: another begins at each byte.
    let starts: Vec<usize> = (0..1100).collect();
    let alike = |length| contents(&cubin(&"k".repeat(length), &starts, 0, (0, "")));
    assert_eq!(alike(MAX_NAME - 8192).unwrap().kernels.len(), 1100);
    refused(
        alike(MAX_NAME),
        "67108864 bytes of names of kernels and variables",
    );
    let sections = |count| contents(&cubin("k", &[0], 0, (count, &"s".repeat(MAX_NAME))));
    let most = 4 * MAX_NAMES / MAX_NAME;
    assert!(sections(most).is_ok());
    refused(sections(most + 1), "268435456 bytes of names of sections");
}

/// How many images of one part fit, and what the next one exceeds.
fn fit(image: &[u8]) -> (usize, String) {
    let mut allowance = Allowance::default();
    for count in 0..100 {
        allowance.add_image(image.len());
        match parts(image).expect("a sound image")[0].contents_within(&mut allowance) {
            Ok(_) => {}
            Err(ImageError::TooMuch { what, .. }) => return (count, what.to_owned()),
            Err(other) => panic!("{other}"),
        }
    }
    panic!("everything fits");
}

/// Blocks of 128 KiB of one byte; four bytes each in Zstandard.
fn repeated(byte: u8, blocks: u32) -> Vec<u8> {
    let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x38];
    for block in 0..blocks {
        let last = u32::from(block + 1 == blocks);
        frame.extend(&((1 << 20) | 2 | last).to_le_bytes()[..3]);
        frame.push(byte);
    }
    fatbin(&[(1, &frame, u64::from(blocks) << 17)])
}

#[test]
fn images_share_an_allowance() {
    let [bytes, work] = ["bytes after decompression", "units of parse work"];
    // 64 MiB of spaces, 8 MiB per image; images bring 32 per byte.
    let spaces = repeated(b' ', 64);
    assert_eq!(fit(&spaces), (8, bytes.to_owned()));
    // A statement counts 16: 2^28 for 16 MiB.
    let statements = repeated(b';', 32);
    assert_eq!(fit(&statements), (4, work.to_owned()));
    // 63 MB of overlapping names in 84 kB, which bring 32 per byte.
    let starts: Vec<usize> = (0..1100).collect();
    let names = cubin(&"k".repeat(MAX_NAME - 8192), &starts, 0, (0, ""));
    assert_eq!(fit(&names), (4, work.to_owned()));
    // A text without compression uses no more than it brings.
    let text = format!(".version 8.0\n{}", ";".repeat(1 << 20));
    let mut allowance = Allowance::default();
    for _ in 0..40 {
        allowance.add_image(text.len());
        let parts = parts(text.as_bytes()).unwrap();
        parts[0].contents_within(&mut allowance).unwrap();
    }
}
