// SPDX-License-Identifier: MIT OR Apache-2.0
//! Mesa's job descriptors, against its decoder's text.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::process::Command;

use mali_facts::walk::{Found, MemoryUse, Problem, Purpose, Visitor, walk_chain};
use mali_facts::{Architecture, PROFILES, Profile, valhall};
use mali_isa::valhall::Shader;

use crate::support::shared;

struct Pages(BTreeMap<u64, [u8; 4096]>);

impl Pages {
    /// From dumps after the decoded part: `Buffer: NAME gpu ADDRESS`, then lines of an offset and 16 bytes; `*`
    /// repeats the line.
    fn of(text: &str) -> Pages {
        let mut pages = BTreeMap::new();
        let (mut base, mut at, mut line) = (0, 0, [0u8; 16]);
        let mut put = |address: u64, bytes: [u8; 16]| {
            let page = pages.entry(address & !4095).or_insert([0; 4096]);
            let start = (address & 4095) as usize;
            page[start..start + 16].copy_from_slice(&bytes);
        };
        for text in text.lines() {
            if let Some((_, address)) = text.split_once(" gpu ") {
                base = u64::from_str_radix(address.trim(), 16).unwrap();
                (at, line) = (0, [0; 16]);
                continue;
            }
            let mut words = text.split_whitespace();
            let offset = words.next().filter(|word| word.len() >= 6 && base != 0);
            let Some(offset) = offset.and_then(|word| u64::from_str_radix(word, 16).ok()) else {
                continue;
            };
            while at < offset {
                put(base + at, line);
                at += 16;
            }
            for (byte, word) in line.iter_mut().zip(words) {
                *byte = u8::from_str_radix(word, 16).unwrap();
            }
            put(base + at, line);
            at += 16;
        }
        Pages(pages)
    }

    fn read(&self, address: u64, to: &mut [u8]) -> bool {
        (address..).zip(to).all(|(at, byte)| {
            let page = self.0.get(&(at & !4095));
            page.inspect(|page| *byte = page[(at & 4095) as usize])
                .is_some()
        })
    }
}

fn spelled(text: &str) -> String {
    let text = text.trim().to_lowercase().replace("colour", "color");
    let text = text.split(" (").next().unwrap_or_default();
    let letters = text
        .chars()
        .filter(|letter| letter.is_alphanumeric() || *letter == '.');
    letters.collect()
}

/// Mesa prints a swizzle's letters after its number.
fn value(text: &str) -> String {
    let letters = text
        .split_once(" (")
        .map(|(_, text)| text.trim_end_matches(')'));
    if let Some(letters) = letters.filter(|it| it.chars().all(|letter| "RGBA01".contains(letter))) {
        return spelled(letters);
    }
    let text = text.trim().split(" (").next().unwrap_or_default();
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|it| it as f64),
        None => text.parse::<f64>().ok(),
    };
    number.map_or_else(|| spelled(text), |number| number.to_string())
}

type Printed = BTreeMap<&'static str, VecDeque<BTreeMap<String, String>>>;

const BLOCKS: [(&str, &str); 10] = [
    ("Buffer @", "Buffer"),
    ("Shader Shader @", "Shader program"),
    ("Sampler @", "Sampler"),
    ("Texture:", "Texture"),
    ("Plane ", "Plane"),
    ("Entry ", "Resource"),
    ("Local Storage:", "Local storage"),
    ("Compute:", "Shader environment"),
    ("Compute  ", "Compute payload"),
    ("Job Header (", "Job header"),
];

fn printed(text: &str) -> Printed {
    let mut printed: Printed = BTreeMap::new();
    let mut block = "";
    for line in text.lines() {
        if line.starts_with("Buffer: ") {
            break;
        }
        let mut line = line.trim();
        if line.starts_with("Plane type") || line == "Preload:" {
        } else if let Some((head, name)) = BLOCKS.iter().find(|it| line.starts_with(it.0)) {
            block = name;
            printed.entry(name).or_default().push_back(BTreeMap::new());
            line = line
                .strip_prefix(head)
                .filter(|_| *head == "Compute  ")
                .unwrap_or("");
        }
        let Some((name, text)) = line.split_once(": ") else {
            continue;
        };
        let fields = printed.get_mut(block).and_then(VecDeque::back_mut);
        if let Some(fields) = fields {
            fields.insert(spelled(name), value(text));
        }
    }
    printed
}

struct Compared<'a> {
    printed: Printed,
    pages: &'a Pages,
    architecture: Architecture,
    fields: usize,
    shaders: usize,
    buffers: usize,
}

impl Visitor for Compared<'_> {
    fn descriptor(&mut self, found: &Found<'_>) {
        let Some(blocks) = self.printed.get_mut(found.layout.name) else {
            // A stream has none in memory.
            assert_eq!(found.layout.name, "Shader environment");
            return;
        };
        let theirs = blocks.pop_front().expect("Mesa printed fewer");
        for field in found.layout.fields {
            let named = theirs.get(&spelled(field.name).replace("preload", "r48r63"));
            let Some(theirs) = named.filter(|_| field.since <= self.architecture) else {
                continue;
            };
            let mut ours = String::new();
            field.format(found.words, &mut ours).unwrap();
            let ours = value(&ours).replace("lessorequal", "lequal");
            assert_eq!(&ours, theirs, "{} {}", found.layout.name, field.name);
            self.fields += 1;
        }
    }

    fn memory(&mut self, memory: &MemoryUse) {
        match memory.purpose {
            Purpose::Shader => {
                let mut code = vec![0; 8 << 10];
                let length = (0..code.len())
                    .step_by(128)
                    .take_while(|at| {
                        let to = &mut [0; 128];
                        self.pages.read(memory.address + *at as u64, to)
                    })
                    .count();
                code.truncate(128 * length);
                assert!(self.pages.read(memory.address, &mut code));
                let shader = Shader::decode(&code).unwrap();
                assert!(!shader.to_string().contains(';'), "{shader}");
                self.shaders += 1;
            }
            Purpose::UniformBuffer | Purpose::AttributeBuffer => self.buffers += 1,
            _ => {}
        }
    }

    fn problem(&mut self, address: u64, problem: &Problem) {
        panic!("{address:#x}: {problem}");
    }
}

fn traces(id: &str) -> Vec<(String, String)> {
    let Some(folder) = shared("reference/valhall/samples/traces") else {
        return Vec::new();
    };
    let files = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with(id) {
            continue;
        }
        match Command::new("xz").arg("-dc").arg(&file).output() {
            Ok(output) => found.push((name, String::from_utf8(output.stdout).unwrap())),
            Err(error) => eprintln!("SKIPPED: xz: {error}"),
        }
    }
    found
}

#[test]
fn jobs_of_a_g57_agree_with_mesa() {
    let traces = traces("9093");
    let profile = Profile::by_name("g57").unwrap();
    let (mut fields, mut shaders) = (0, 0);
    for (name, text) in &traces {
        let pages = Pages::of(text);
        let read = |at: u64, to: &mut [u8]| pages.read(at, to);
        let mut compared = Compared {
            printed: printed(text),
            pages: &pages,
            architecture: profile.architecture,
            fields: 0,
            shaders: 0,
            buffers: 0,
        };
        let mut jobs = 0;
        for head in text
            .lines()
            .filter_map(|line| line.strip_prefix("Job Header ("))
        {
            let head = u64::from_str_radix(head.trim_end_matches("):"), 16).unwrap();
            jobs += walk_chain(&read, profile, head, &mut compared);
        }
        assert!(jobs > 0, "{name}");
        assert!(compared.printed.values().all(VecDeque::is_empty), "{name}");
        println!("{name}: {jobs} jobs, {} fields", compared.fields);
        fields += compared.fields;
        shaders += compared.shaders;
    }
    assert!(
        traces.is_empty() || (fields > 700 && shaders == 11),
        "{fields} {shaders}"
    );
}

#[test]
fn resources_of_a_g610_agree_with_mesa() {
    for (name, text) in traces("a867") {
        println!("{name}");
        let pages = Pages::of(&text);
        let list = text.lines().find_map(|line| {
            let (_, at) = line.split_once("Resources resource table @")?;
            u64::from_str_radix(at.trim(), 16).ok()
        });
        let mut words = [0; 16];
        let list = list.unwrap();
        words[8..10].copy_from_slice(&[list as u32 | 7, (list >> 32) as u32]);
        let environment = valhall::ShaderEnvironment { words }.to_bytes();
        let read = |at: u64, to: &mut [u8]| match at {
            0 if to.len() == environment.len() => {
                to.copy_from_slice(&environment);
                true
            }
            // Its address is a register of the stream.
            0 => {
                to.fill(0);
                true
            }
            _ => pages.read(at, to),
        };
        let mut printed = printed(&text);
        for of_the_stream in ["Shader program", "Local storage"] {
            printed.remove(of_the_stream);
        }
        let mut compared = Tables(Compared {
            printed,
            pages: &pages,
            architecture: Architecture::V10,
            fields: 0,
            shaders: 0,
            buffers: 0,
        });
        valhall::environment(&read, &PROFILES[0], 0, &mut compared);
        let compared = compared.0;
        assert!(compared.fields > 20, "{name}: {}", compared.fields);
        for name in ["Resource", "Buffer", "Sampler", "Texture", "Plane"] {
            let left = compared.printed.get(name).map_or(0, VecDeque::len);
            assert_eq!(left, 0, "{name}");
        }
    }
}

struct Tables<'a>(Compared<'a>);

impl Visitor for Tables<'_> {
    fn descriptor(&mut self, found: &Found<'_>) {
        if found.address != 0 {
            self.0.descriptor(found);
        }
    }

    /// The environment made here names no program.
    fn problem(&mut self, address: u64, problem: &Problem) {
        if (address, problem) != (0, &Problem::Program) {
            self.0.problem(address, problem);
        }
    }
}
