// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing, reading, sharing, refusing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gpureplay_cuda_launch::recording::{
    CHUNK, Device, FORMAT, Hash, ImageReference, Launch, MAX_BYTES, MAX_REGIONS, Origin, Recording,
    RecordingError, Region, RegionKind, Store, Variable, Writer,
};

fn launch(writer: &Writer, memory: &[u8]) -> Launch {
    let image = b"an image";
    Launch {
        format: FORMAT,
        kernel: "saxpy".into(),
        origin: Origin {
            process: 1,
            rank: None,
            occurrence: 0,
            entry: "cuLaunchKernel".into(),
        },
        device: Device {
            name: "a GPU".into(),
            capability: [9, 0],
            driver: 13000,
            ordinal: 0,
        },
        grid: [1, 1, 1],
        block: [32, 1, 1],
        shared: 0,
        parameters: vec![0, 0, 0, 0x40, 0, 0, 0, 0],
        layout: vec![[0, 8]],
        attributes: vec![],
        function_attributes: vec![[8, 98304]],
        limits: Vec::new(),
        image: ImageReference {
            hash: writer.store().put_image(image).expect("written"),
            size: image.len() as u64,
        },
        regions: vec![Region {
            address: 0x4000_0000,
            size: memory.len() as u64,
            kind: RegionKind::Device,
            before: writer.store().put(memory).expect("written"),
            after: None,
        }],
        variables: vec![],
    }
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder)
        .expect("read")
        .map(|entry| entry.expect("read").path())
        .map(|path| if path.is_dir() { files(&path) } else { 1 })
        .sum()
}

#[test]
fn memory_reads_back_and_equal_chunks_are_kept_once() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let mut memory = vec![7; 40 * CHUNK + 5];
    memory[3 * CHUNK + 1] = 8;
    let first = launch(&writer, &memory);
    assert_eq!(writer.add(&first).unwrap(), 0);
    // Two different chunks, a short last one, the list.
    assert_eq!(files(&folder.path().join("objects")), 4);
    memory[0] = 9;
    let second = launch(&writer, &memory);
    assert_eq!(writer.add(&second).unwrap(), 1);
    assert_eq!(files(&folder.path().join("objects")), 6);

    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.numbers().unwrap(), [0, 1]);
    let read = recording.launch(1).unwrap();
    assert_eq!(read.function_attributes, [[8, 98304]]);
    let region = &read.regions[0];
    assert_eq!(
        recording.store().get(region.before, region.size).unwrap(),
        memory
    );
    assert_eq!(Store::name(&memory), region.before);
    assert_eq!(
        recording
            .store()
            .image(read.image.hash, read.image.size)
            .unwrap(),
        b"an image"
    );
    assert_eq!(files(folder.path()), 6 + 1 + 2);
}

#[test]
fn damage_of_any_object_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let memory: Vec<u8> = (0..CHUNK + 100)
        .map(|at| ((at * 7919) >> 3) as u8)
        .collect();
    let launch = launch(&writer, &memory);
    let region = &launch.regions[0];
    let mut objects = Vec::new();
    for entry in fs::read_dir(folder.path().join("objects")).unwrap() {
        for file in fs::read_dir(entry.unwrap().path()).unwrap() {
            objects.push(file.unwrap().path());
        }
    }
    assert_eq!(objects.len(), 3);
    let check = |size| writer.store().checker().check(region.before, size);
    for path in objects {
        let good = fs::read(&path).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= 1;
        for bytes in [bad, good[..good.len() - 1].to_vec(), vec![], vec![9]] {
            fs::write(&path, bytes).unwrap();
            let got = writer.store().get(region.before, region.size).map(drop);
            for error in [got.unwrap_err(), check(region.size).unwrap_err()] {
                assert!(
                    matches!(
                        error,
                        RecordingError::Damaged(_) | RecordingError::Size { .. }
                    ),
                    "{error}"
                );
            }
        }
        fs::write(&path, good).unwrap();
    }
    assert!(writer.store().get(region.before, region.size + 1).is_err());
    assert!(check(region.size + 1).is_err());
    assert!(check(region.size).is_ok());
    assert!(writer.store().get(Hash::of(b"absent"), 1).is_err());
    assert_eq!(
        writer.store().get(region.before, region.size).unwrap(),
        memory
    );
}

#[test]
fn what_cannot_be_is_refused_before_it_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let good = launch(&writer, &[1; 100]);
    let refused = |change: &dyn Fn(&mut Launch)| {
        let mut launch = good.clone();
        change(&mut launch);
        writer.add(&launch).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&|l| l.format = 2),
        "the launch is of format 2; this program reads format 1"
    );
    assert_eq!(refused(&|l| l.block[1] = 0), "block has a dimension of 0");
    for beyond in [[4, 5], [usize::MAX, 2]] {
        assert_eq!(
            refused(&|l| l.layout = vec![beyond]),
            "layout reaches beyond the parameters"
        );
    }
    for layout in [[[0, 4], [3, 4]], [[4, 4], [0, 4]], [[0, 8], [0, 8]]] {
        assert_eq!(
            refused(&|l| l.layout = layout.to_vec()),
            "layout has a parameter that begins before the end of the one before it"
        );
    }
    assert_eq!(
        refused(&|l| l.parameters = vec![0; 40000]),
        "parameters is larger than 32764 bytes"
    );
    assert!(refused(&|l| l.attributes = vec![0; 71]).starts_with("attributes"));
    assert!(refused(&|l| l.kernel.clear()).starts_with("kernel"));
    assert!(refused(&|l| l.image.size = 1 << 40).starts_with("the image is larger"));
    let region = |change: &dyn Fn(&mut Region)| refused(&|l| change(&mut l.regions[0]));
    assert!(region(&|r| r.size = 0).ends_with("is empty"));
    assert!(region(&|r| r.size = u64::MAX).ends_with("reaches beyond the address space"));
    assert!(region(&|r| r.address = 0).ends_with("lies below or over the one before it"));
    assert!(region(&|r| r.size = 1 << 46).starts_with("memory of all regions"));
    assert!(
        refused(&|l| {
            let mut other = l.regions[0].clone();
            other.address += 99;
            l.regions.push(other);
        })
        .ends_with("lies below or over the one before it")
    );
    let variable = Variable {
        name: "table".into(),
        address: 0x1000,
        size: 16,
        before: good.regions[0].before,
        after: None,
    };
    assert!(
        refused(&|l| l.variables = vec![variable.clone(), variable.clone()])
            .ends_with("lies over another variable")
    );
    assert!(!folder.path().join("launches/0.toml").exists());

    fs::write(
        folder.path().join("launches/0.toml"),
        "format = 1\nkernel = 3",
    )
    .unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    assert!(matches!(
        recording.launch(0),
        Err(RecordingError::Manifest { .. })
    ));
    assert!(matches!(
        recording.launch(5),
        Err(RecordingError::File { .. })
    ));
    assert!(Recording::open(&folder.path().join("launches")).is_err());
}

fn recorded(memory: &[u8]) -> (tempfile::TempDir, Launch) {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let launch = launch(&writer, memory);
    (folder, launch)
}

#[test]
fn parameters_may_touch_and_fill_what_they_lie_in() {
    let (folder, mut launch) = recorded(&[7]);
    launch.layout = vec![[0, 1], [1, 3], [4, 4]];
    let writer = Writer::create(folder.path()).unwrap();
    assert_eq!(writer.add(&launch).unwrap(), 0);
}

#[test]
fn a_launch_has_as_much_memory_as_it_may() {
    let (folder, mut launch) = recorded(&[7]);
    let writer = Writer::create(folder.path()).unwrap();
    let half = MAX_BYTES / 2;
    let mut second = launch.regions[0].clone();
    launch.regions[0].size = half;
    second.address = launch.regions[0].address + half;
    second.size = half - 16;
    launch.regions.push(second);
    launch.variables.push(Variable {
        name: "table".into(),
        address: 0x1000,
        size: 16,
        before: launch.regions[0].before,
        after: None,
    });
    assert_eq!(launch.bytes(), MAX_BYTES);
    assert_eq!(writer.add(&launch).unwrap(), 0);
    launch.variables[0].size += 1;
    let refused = writer.add(&launch).unwrap_err().to_string();
    assert_eq!(
        refused,
        format!("memory of all regions and variables together is larger than {MAX_BYTES} bytes")
    );
}

#[test]
fn a_launch_has_as_many_regions_as_it_may() {
    let (folder, mut launch) = recorded(&[7]);
    let writer = Writer::create(folder.path()).unwrap();
    let region = launch.regions[0].clone();
    let at = |number| Region {
        address: 0x10000 + number,
        ..region.clone()
    };
    launch.regions = (0..MAX_REGIONS as u64).map(at).collect();
    // Faster than writing so many: another rule's error shows that the count is allowed.
    launch.regions[MAX_REGIONS - 1].size = 0;
    let refused = |launch: &Launch| writer.add(launch).unwrap_err().to_string();
    assert!(refused(&launch).ends_with("is empty"));
    launch.regions.push(at(MAX_REGIONS as u64));
    let many = format!("region and variable: there may be {MAX_REGIONS} of each");
    assert_eq!(refused(&launch), many);
}

#[test]
fn a_manifest_without_its_regions_is_as_long_as_it_may_be() {
    const LIMIT: usize = 512 << 10;
    let golden = include_str!("golden/launch.toml");
    let (head, regions) = golden.split_at(golden.find("[[region]]").unwrap());
    let comment = |length: usize| format!("#{}\n", "-".repeat(length - 2));
    let of = |head_more: usize, region_more: usize| {
        let launch = Launch::parse(&format!(
            "{}{head}{}{}",
            comment(head_more),
            regions.trim_end(),
            format_args!("\n{}", comment(region_more))
        ));
        launch.map(|launch| (launch.regions.len(), launch.variables.len()))
    };
    let last = regions.len() - regions.rfind("[[variable]]").unwrap();
    assert!(regions.ends_with('\n'));
    assert_eq!(of(LIMIT - head.len(), LIMIT - last).unwrap(), (2, 1));
    for (head_more, region_more) in [(LIMIT - head.len() + 1, 2), (2, LIMIT - last + 1)] {
        let refused = of(head_more, region_more).unwrap_err().to_string();
        assert!(
            refused.ends_with("is larger than 524288 bytes"),
            "{refused}"
        );
    }
}

#[test]
fn a_manifest_is_read_table_by_table() {
    let golden = include_str!("golden/launch.toml");
    let whole: Launch = toml::from_str(golden).unwrap();
    let parsed = Launch::parse(golden).unwrap();
    assert_eq!(
        toml::to_string(&parsed).unwrap(),
        toml::to_string(&whole).unwrap()
    );
    let lines_of_windows = golden.replace('\n', "\r\n");
    assert_eq!(Launch::parse(&lines_of_windows).unwrap().regions.len(), 2);
    for more in [
        "[[regions]]\n",
        "[[region]]\naddress = 3\n",
        "[[variable\n",
        "[[origin]]\n",
    ] {
        assert!(Launch::parse(&format!("{golden}{more}")).is_err());
    }
}

#[test]
fn memory_is_checked_chunk_by_chunk_and_each_chunk_once() {
    let mut memory = vec![7; 9 * CHUNK + 5];
    memory[3 * CHUNK] = 8;
    let (folder, launch) = recorded(&memory);
    let (name, size) = (launch.regions[0].before, launch.regions[0].size);
    let recording = Recording::open(folder.path()).unwrap();
    let store = recording.store();
    let short = store_of(&folder, &memory[..CHUNK]);
    let mut check = store.checker();
    check.check(name, size).unwrap();
    for wrong in [
        size - 1,
        size + 1,
        size + CHUNK as u64,
        0,
        MAX_BYTES,
        u64::MAX,
    ] {
        let refused = check.check(name, wrong);
        assert!(
            matches!(refused, Err(RecordingError::Size { .. })),
            "{wrong}: {refused:?}"
        );
    }
    let chunk = object(&folder, Hash::of(&memory[..CHUNK]));
    fs::rename(&chunk, folder.path().join("elsewhere")).unwrap();
    check.check(short, CHUNK as u64).unwrap();
    check.check(name, size).unwrap();
    for _ in 0..2 {
        let mut check = store.checker();
        assert!(matches!(
            check.check(name, size),
            Err(RecordingError::File { .. })
        ));
        // Wrong ones are not remembered as right.
        assert!(matches!(
            check.check(name, size),
            Err(RecordingError::File { .. })
        ));
    }
    fs::write(&chunk, [0; CHUNK + 1]).unwrap();
    let damaged = store.checker().check(name, size);
    assert!(matches!(damaged, Err(RecordingError::Damaged(_))));
}

#[test]
fn a_list_of_chunks_is_read_once() {
    let memory = vec![7; 9 * CHUNK + 5];
    let (folder, launch) = recorded(&memory);
    let (name, size) = (launch.regions[0].before, launch.regions[0].size);
    let recording = Recording::open(folder.path()).unwrap();
    let mut check = recording.store().checker();
    check.check(name, size).unwrap();
    fs::remove_file(object(&folder, name)).unwrap();
    check.check(name, size).unwrap();
    // Another size means another piece.
    let other = check.check(name, size + 1);
    assert!(matches!(other, Err(RecordingError::File { .. })));
    let new = recording.store().checker().check(name, size);
    assert!(matches!(new, Err(RecordingError::File { .. })));
}

fn store_of(folder: &tempfile::TempDir, memory: &[u8]) -> Hash {
    let writer = Writer::create(folder.path()).unwrap();
    writer.store().put(memory).unwrap()
}

fn object(folder: &tempfile::TempDir, hash: Hash) -> std::path::PathBuf {
    let name = hash.to_string();
    folder.path().join("objects").join(&name[..2]).join(name)
}

#[test]
fn several_writers_get_numbers_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for seed in 0..4u8 {
            let path = folder.path();
            scope.spawn(move || {
                let writer = Writer::create(path).unwrap();
                for _ in 0..5 {
                    writer.add(&launch(&writer, &[seed; 9])).unwrap();
                }
            });
        }
    });
    let numbers = Recording::open(folder.path()).unwrap().numbers().unwrap();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_launch_has_one_name() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let launch = launch(&writer, &[7; 9]);
    assert_eq!(writer.add(&launch).unwrap(), 0);
    let launches = folder.path().join("launches");
    for name in [
        "+5.toml",
        "05.toml",
        "00.toml",
        "-1.toml",
        "5.TOML",
        "5.toml.toml",
    ] {
        fs::copy(launches.join("0.toml"), launches.join(name)).unwrap();
    }
    fs::copy(launches.join("0.toml"), launches.join("1.toml")).unwrap();
    assert_eq!(
        writer.add(&launch).unwrap(),
        2,
        "one is taken by another writer"
    );
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.numbers().unwrap(), [0, 1, 2]);
}

#[test]
fn nothing_is_written_outside_however_folders_change_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("outside")).unwrap();
    // All directories of objects: a write into a missing one would fail anyway.
    for byte in 0..=u8::MAX {
        fs::create_dir(at("outside").join(format!("{byte:02x}"))).unwrap();
    }
    let writer = Writer::create(&at("rec")).unwrap();
    let sample = launch(&writer, &[1; 9]);
    let done = AtomicBool::new(false);
    let (written, added) = std::thread::scope(|scope| {
        for part in ["objects", "launches"] {
            let (from, to) = (at("rec").join(part), at(part));
            let (done, outside) = (&done, at("outside"));
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_micros(200));
                    fs::rename(&from, &to).unwrap();
                    let _ = symlink(&outside, &from);
                    std::thread::yield_now();
                    // The writer may have made the directory again.
                    while fs::rename(&to, &from).is_err() {
                        let _ = fs::remove_file(&from);
                        let _ = fs::remove_dir_all(&from);
                    }
                }
            });
        }
        let count = |work: &dyn Fn(u32) -> bool| {
            let succeeds = |seed: &u32| {
                let success = work(*seed);
                if !success {
                    std::thread::yield_now();
                }
                success
            };
            (0..100_000).filter(succeeds).take(200).count()
        };
        let written = count(&|seed| writer.store().put(&seed.to_le_bytes()).is_ok());
        let added = count(&|_| writer.add(&sample).is_ok());
        done.store(true, Ordering::Relaxed);
        (written, added)
    });
    assert_eq!([written, added], [200; 2]);
    assert_eq!(files(&at("outside")), 0);
}

#[test]
fn chunks_that_another_piece_has_are_not_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path()).unwrap();
    let store = writer.store();
    let before: Vec<u8> = (0..3 * CHUNK + 100).map(|at| (at % 251) as u8).collect();
    let mut after = before.clone();
    after[CHUNK + 7] ^= 1;
    let (old, new) = (store.put(&before).unwrap(), store.put(&after).unwrap());
    let size = after.len() as u64;
    assert_eq!(store.get_changed(new, size, old, &before).unwrap(), after);
    for chunk in [
        &before[..CHUNK],
        &before[2 * CHUNK..3 * CHUNK],
        &before[3 * CHUNK..],
    ] {
        let name = Hash::of(chunk).to_string();
        fs::remove_file(folder.path().join("objects").join(&name[..2]).join(&name)).unwrap();
    }
    assert!(store.get(new, size).is_err());
    assert_eq!(store.get_changed(new, size, old, &before).unwrap(), after);
    let short = &after[..2 * CHUNK + 5];
    let other = store.put(short).unwrap();
    assert_eq!(
        store
            .get_changed(other, short.len() as u64, old, &before)
            .unwrap(),
        short
    );
    assert!(
        store
            .get_changed(new, size, Hash::of(b"absent"), &before)
            .is_err()
    );
}
