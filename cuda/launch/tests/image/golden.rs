// SPDX-License-Identifier: MIT OR Apache-2.0
//! nvcc's images of `golden/kernels.cu`.

use gpureplay_cuda_launch::image::{
    Compression, Extent, Format, ImageError, MemberKind, Objects, Parameter, extent, kernel,
    members, objects, parts, reduced, variables,
};

const SM_75: &[u8] = include_bytes!("golden/sm_75.cubin");
const SM_90: &[u8] = include_bytes!("golden/sm_90.cubin");
const NONE: &[u8] = include_bytes!("golden/none.fatbin");
const ZSTANDARD: &[u8] = include_bytes!("golden/size.fatbin");
const LZ4: &[u8] = include_bytes!("golden/speed.fatbin");
const TEXTURES: [(u32, &[u8]); 3] = [
    (75, include_bytes!("golden/textures.ptx")),
    (75, include_bytes!("golden/textures_75.cubin")),
    (90, include_bytes!("golden/textures_90.cubin")),
];
const REQUIRED: &[u8] = include_bytes!("golden/required.ptx");

fn layout(image: &[u8], name: &str) -> Vec<(usize, usize)> {
    let kernel = kernel(image, name)
        .expect("read")
        .expect("the kernel is there");
    kernel
        .parameters
        .iter()
        .map(|Parameter { offset, size }| (*offset, *size))
        .collect()
}

#[test]
fn parameters_limits_and_variables_are_those_of_the_source() {
    for image in [SM_75, SM_90, NONE, ZSTANDARD, LZ4] {
        assert_eq!(layout(image, "saxpy"), [(0, 4), (4, 4), (8, 8), (16, 8)]);
        assert_eq!(layout(image, "by_struct"), [(0, 32), (32, 2), (40, 8)]);
        assert_eq!(layout(image, "nothing"), []);
        let capped = kernel(image, "capped").unwrap().unwrap();
        assert_eq!(capped.most_threads, Some([256, 1, 1]));
        assert!(capped.registers.is_some());
        assert!(kernel(image, "with_globals").unwrap().unwrap().shared >= 256);
        assert_eq!(
            variables(image).unwrap(),
            ["coefficients", "counter", "self", "table"]
        );
        assert_eq!(kernel(image, "absent").unwrap(), None);
    }
    // As `ptxas -v` says.
    assert_eq!(kernel(SM_90, "saxpy").unwrap().unwrap().registers, Some(14));
    assert_eq!(kernel(SM_75, "saxpy").unwrap().unwrap().registers, Some(12));
}

#[test]
fn kernels_that_read_textures_or_use_surfaces_are_known_by_their_code() {
    let of = |textures, surfaces| Objects { textures, surfaces };
    for (capability, image) in TEXTURES {
        let found = |kernel| objects(image, kernel, capability).unwrap();
        assert_eq!(found("from_texture"), of(true, false), "{capability}");
        assert_eq!(found("to_surface"), of(false, true), "{capability}");
        assert_eq!(found("neither"), of(false, false), "{capability}");
        assert_eq!(found("absent"), of(false, false), "{capability}");
    }
    for kernel in ["saxpy", "by_struct", "capped", "with_globals"] {
        for image in [SM_90, NONE, ZSTANDARD] {
            assert_eq!(objects(image, kernel, 90), Ok(of(false, false)), "{kernel}");
        }
    }
}

#[test]
fn the_ptx_and_the_cubin_of_a_fatbin_agree() {
    for (image, compression) in [
        (NONE, Compression::None),
        (ZSTANDARD, Compression::Zstandard),
        (LZ4, Compression::Lz4),
    ] {
        let members = members(image).unwrap();
        assert!(
            members
                .iter()
                .any(|member| member.compression == compression)
        );
        let parts = parts(image).unwrap();
        let contents = |kind| {
            let part = parts.iter().find(|part| part.kind == kind).unwrap();
            assert_eq!(part.capability, 90);
            part.contents().unwrap()
        };
        let (cubin, ptx) = (contents(MemberKind::Cubin), contents(MemberKind::Ptx));
        assert_eq!(cubin.variables, ptx.variables);
        for kernel in &cubin.kernels {
            let other = ptx
                .kernels
                .iter()
                .find(|other| other.name == kernel.name)
                .unwrap();
            assert_eq!(kernel.parameters, other.parameters, "{}", kernel.name);
            assert_eq!(
                kernel.most_threads,
                other.most_threads.map(|[x, ..]| [x, 1, 1])
            );
        }
    }
}

#[test]
fn ptx_by_hand_is_read_with_its_limits() {
    let scale = kernel(REQUIRED, "scale").unwrap().unwrap();
    assert_eq!(
        layout(REQUIRED, "scale"),
        [(0, 8), (8, 4), (16, 24), (40, 2)]
    );
    assert_eq!(scale.required_threads, Some([128, 2, 1]));
    assert_eq!(
        kernel(REQUIRED, "bounded").unwrap().unwrap().most_threads,
        Some([64, 1, 1])
    );
    assert_eq!(variables(REQUIRED).unwrap(), ["hits", "weights"]);
}

#[test]
fn an_image_in_memory_has_the_length_of_its_file() {
    for (image, format) in [
        (NONE, Format::Fatbin),
        (SM_90, Format::Cubin),
        (REQUIRED, Format::Ptx),
    ] {
        assert_eq!(Format::of(image), Some(format));
        match extent(&image[..64]).unwrap() {
            Extent::Bytes(bytes) => assert_eq!(bytes, image.len()),
            Extent::Sections {
                offset,
                size,
                least,
            } => {
                let end = Extent::of_sections(least, &image[offset..offset + size]).unwrap();
                assert_eq!(end, image.len());
            }
            other => assert_eq!((other, format), (Extent::Text, Format::Ptx)),
        }
    }
}

#[test]
fn every_cut_is_an_error_or_less_and_never_a_panic() {
    for image in [SM_90, ZSTANDARD, LZ4] {
        for length in 0..image.len() {
            if let Ok(parts) = parts(&image[..length]) {
                for part in parts {
                    let _ = part.contents();
                }
            }
        }
    }
    assert_eq!(parts(b"").err(), Some(ImageError::Unknown));
}

#[test]
fn every_flipped_byte_is_survived() {
    for image in [SM_90, ZSTANDARD, LZ4, REQUIRED] {
        let mut bytes = image.to_vec();
        for at in 0..bytes.len() {
            for flip in [0x01, 0x80] {
                bytes[at] ^= flip;
                if let Ok(parts) = parts(&bytes) {
                    for part in parts {
                        let _ = part.contents();
                    }
                }
                bytes[at] ^= flip;
            }
        }
    }
}

#[test]
fn a_reduced_cubin_has_wanted_kernels_only() {
    for image in [SM_90, NONE, ZSTANDARD, LZ4] {
        let whole = parts(image).unwrap();
        let whole = whole.iter().find(|part| part.kind == MemberKind::Cubin);
        let whole = whole.unwrap().bytes().unwrap();
        for (name, others) in [
            ("saxpy", ["nothing", "by_struct", "capped", "with_globals"]),
            ("with_globals", ["nothing", "by_struct", "capped", "saxpy"]),
        ] {
            let wanted = std::collections::HashSet::from([name]);
            let cubin = reduced(image, &wanted, 90).unwrap().unwrap();
            assert!(cubin.len() + 2000 < whole.len(), "{}", cubin.len());
            assert_eq!(kernel(&cubin, name), kernel(&whole, name));
            assert_eq!(variables(&cubin), variables(&whole));
            let [old, new] = [&*whole, &*cubin].map(sections);
            for section in old.keys() {
                let other = others
                    .iter()
                    .any(|other| section.ends_with(&format!(".{other}")));
                let expected = !other && !section.contains(".debug");
                assert_eq!(new.contains_key(section), expected, "{section}");
            }
            for (section, bytes) in &new {
                let is_table = [".strtab", ".symtab", ".nv.info", ".nv.callgraph"];
                if !is_table.contains(&section.as_str()) {
                    assert_eq!(bytes, &old[section], "{section}");
                }
            }
            assert_eq!(targets(&cubin), {
                let mut kept = targets(&whole);
                kept.retain(|target| new.contains_key(&target.0));
                kept
            });
            let again = reduced(&cubin, &wanted, 90).unwrap().unwrap();
            assert_eq!(sections(&again), new, "nothing is left to leave out");
        }
    }
    // PTX is not reduced.
    let wanted = std::collections::HashSet::from(["scale"]);
    assert_eq!(reduced(REQUIRED, &wanted, 90).unwrap(), None);
    let absent = std::collections::HashSet::from(["saxpy", "absent"]);
    assert_eq!(reduced(SM_90, &absent, 90).unwrap(), None);
}

fn sections(cubin: &[u8]) -> std::collections::BTreeMap<String, Vec<u8>> {
    use object::{Object, ObjectSection};
    let file = object::File::parse(cubin).unwrap();
    let all = file.sections();
    all.map(|one| (one.name().unwrap().into(), one.data().unwrap().into()))
        .collect()
}

/// Sections and their `sh_info`, if describing or relocating; and symbols'.
fn targets(cubin: &[u8]) -> std::collections::BTreeSet<(String, String)> {
    use object::read::elf::{FileHeader, SectionHeader};
    use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
    let endian = LittleEndian;
    let header = object::elf::FileHeader64::<LittleEndian>::parse(cubin).unwrap();
    let table = header.sections(endian, cubin).unwrap();
    let name = |index: usize| {
        let section = table.section(object::SectionIndex(index)).unwrap();
        let name = table.section_name(endian, section).unwrap();
        String::from_utf8(name.to_vec()).unwrap()
    };
    let links = table
        .iter()
        .enumerate()
        .filter(|(_, one)| one.sh_flags(endian).0 & 0x40 != 0);
    let links = links.map(|(at, one)| (name(at), name(one.sh_info(endian) as usize)));
    let file = object::File::parse(cubin).unwrap();
    let symbols = file.symbols().filter_map(|symbol| {
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        Some((
            section.name().ok()?.to_owned(),
            symbol.name().ok()?.to_owned(),
        ))
    });
    links.chain(symbols).collect()
}
