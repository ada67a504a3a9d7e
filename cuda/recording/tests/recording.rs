// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches are written, read back, shared and refused as a user would see it.

use std::fs;
use std::path::Path;

use gpureplay_cuda_recording::{
    CHUNK, Device, FORMAT, Hash, ImageReference, Launch, Origin, Recording, RecordingError, Region,
    RegionKind, Store, Variable, Writer,
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
    // Two different chunks, the short one at the end, and the list.
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
    assert_eq!(
        refused(&|l| l.layout = vec![[4, 5]]),
        "layout reaches beyond the parameters"
    );
    assert_eq!(
        refused(&|l| l.layout = vec![[usize::MAX, 2]]),
        "layout reaches beyond the parameters"
    );
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
    assert!(region(&|r| r.size = 1 << 46).starts_with("memory is larger"));
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
