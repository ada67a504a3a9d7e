// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other kernels and sizes in a running program.

use gpureplay_cuda_launch::recording::{Change, Evidence, Recording, Tuned, Winner};

use crate::stage::{Said, Stage, recorded};

const TUNE: &str = "tune rec#1 --runs 2 --tuned tuned.toml --grids 32;64 --blocks 64;128";

fn replaced(stage: &Stage, words: &str, task: &str) -> Said {
    stage.traced(&format!("replace {words}"), task)
}

fn launched(said: &Said) -> Vec<&str> {
    said.err
        .lines()
        .filter_map(|line| line.strip_prefix("[fake] "))
        .collect()
}

#[test]
fn the_winner_of_a_search_runs_in_the_program_and_other_launches_as_ever() {
    let stage = recorded("shapes");
    let alone = stage.alone("shapes");
    stage
        .run(TUNE)
        .gave(0)
        .warns("tuned.toml: recorded, grid 32x1x1, block 64x1x1");
    let said = replaced(&stage, "--tuned tuned.toml", "shapes")
        .answers_as(&alone)
        .warns("stride: grid 8x1x1, block 128x1x1 runs as grid 32x1x1, block 64x1x1");
    assert_eq!(
        launched(&said),
        [
            "\"plane\" of module 1: grid 3x5x1, block 32x8x1",
            "\"stride\" of module 1: grid 32x1x1, block 64x1x1",
            "\"stride\" of module 1: grid 32x1x1, block 64x1x1",
            "\"stride\" of module 1: grid 4x1x1, block 128x1x1",
        ],
        "{said:?}"
    );
    let words =
        "tune rec#3 --runs 2 --tuned tuned.toml --grids 32 --registers 24 --bounds 64 --blocks 64";
    stage.run(words).gave(0);
    let said = replaced(&stage, "--tuned tuned.toml", "shapes").answers_as(&alone);
    assert_eq!(
        launched(&said)[3],
        "\"stride\" of module 2: grid 32x1x1, block 64x1x1",
        "{said:?}"
    );
    assert_eq!(
        launched(&said)[1],
        "\"stride\" of module 1: grid 32x1x1, block 64x1x1",
        "{said:?}"
    );
    let text = stage.text("tuned.toml");
    let images = std::fs::read_dir(stage.path("images")).unwrap();
    for image in images {
        std::fs::write(image.unwrap().path(), "other").unwrap();
    }
    replaced(&stage, "--tuned tuned.toml", "shapes").gave(3);
    stage.write("tuned.toml", text.replace("format = 1", "format = 7"));
    replaced(&stage, "--tuned tuned.toml", "shapes").gave(3);
}

#[test]
fn originals_and_replacements_run_in_turn_and_are_timed_side_by_side() {
    let stage = recorded("shapes");
    stage.run(TUNE).gave(0);
    let said = replaced(&stage, "--tuned tuned.toml --durations", "shapes").gave(0);
    let answers = stage.alone("shapes").out;
    assert!(said.out.starts_with(&answers), "{said:?}");
    // One of each kind; the other size is left alone.
    assert_eq!(
        launched(&said)[1..],
        [
            "\"stride\" of module 1: grid 8x1x1, block 128x1x1",
            "\"stride\" of module 1: grid 32x1x1, block 64x1x1",
            "\"stride\" of module 1: grid 4x1x1, block 128x1x1",
        ],
        "{said:?}"
    );
    let rows: Vec<&str> = said.out[answers.len()..].lines().skip(1).collect();
    let [row] = rows[..] else {
        panic!("{said:?}");
    };
    let fields: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        fields,
        ["5.29", "2.25", "2.35x", "2", "8x1x1", "128x1x1", "stride"]
    );
    let none = replaced(
        &stage,
        "--tuned tuned.toml --durations --kernel plane",
        "shapes",
    );
    assert_eq!((none.code, &none.out), (Some(0), &answers), "{none:?}");
    assert!(none.err.contains("nothing was replaced"), "{none:?}");
}

fn write_winner(
    stage: &Stage,
    number: u32,
    [grid, block]: [[u32; 3]; 2],
    change: impl Fn(&mut Winner),
) {
    let launch = Recording::open(&stage.path("rec"))
        .unwrap()
        .launch(number)
        .unwrap();
    let mut winner = Winner {
        kernel: launch.kernel,
        image: launch.image.hash,
        gpu: launch.device.name,
        grid: launch.grid,
        block: launch.block,
        shared: launch.shared,
        change: Change {
            grid,
            block,
            shared: None,
            image: None,
            max_registers: None,
            optimisation: None,
            max_threads: None,
            min_blocks: None,
            carveout: None,
        },
        evidence: Evidence {
            verdict: "exact".into(),
            runs: 1,
            tries: 1,
            driver: 13_000,
            recorded_us: [2.0, 0.1],
            tuned_us: [1.0, 0.1],
        },
    };
    change(&mut winner);
    let path = stage.path("tuned.toml");
    let _ = std::fs::remove_file(&path);
    Tuned::add(&path, winner, None).unwrap();
}

#[test]
fn a_winner_that_does_not_fit_is_named_and_the_program_runs_as_ever() {
    let stage = recorded("shapes");
    let alone = stage.alone("shapes");
    let shape = [[16, 1, 1], [64, 1, 1]];
    let as_ever = "\"stride\" of module 1: grid 8x1x1, block 128x1x1";
    for (change, reason) in [
        (
            Box::new(|winner: &mut Winner| winner.gpu = "another GPU".into())
                as Box<dyn Fn(&mut Winner)>,
            "stride is not tuned: it was tuned on another GPU",
        ),
        (
            Box::new(|winner| winner.image = gpureplay_cuda_launch::recording::Hash::of(b"other")),
            "stride is not tuned: its image is not the one that was tuned",
        ),
        (
            Box::new(|winner| winner.change.block = [64, 64, 1]),
            "stride is not tuned any more: the launch fails with CUDA_ERROR_INVALID_VALUE",
        ),
        (Box::new(|winner| winner.shared = 4), ""),
    ] {
        write_winner(&stage, 1, shape, change);
        let said = replaced(&stage, "--tuned tuned.toml", "shapes")
            .answers_as(&alone)
            .warns(reason);
        assert_eq!(launched(&said)[1..3], [as_ever; 2], "{said:?}");
    }
}

#[test]
fn launches_in_graphs_are_tuned_too() {
    for (task, from) in [
        ("captured", "grid 8x1x1, block 32x1x1"),
        ("graph", "grid 1x1x1, block 32x1x1"),
    ] {
        let stage = recorded(task);
        let alone = stage.alone(task);
        write_winner(&stage, 0, [[2, 1, 1], [16, 1, 1]], |_| {});
        let said = replaced(&stage, "--tuned tuned.toml", task).answers_as(&alone);
        assert!(
            !launched(&said).iter().any(|line| line.contains(from)),
            "{said:?}"
        );
        let tuned = launched(&said);
        let tuned = tuned
            .iter()
            .filter(|line| line.contains("grid 2x1x1, block 16x1x1"));
        assert_eq!(tuned.count(), 4, "{said:?}");
    }
}

#[test]
fn a_folder_of_images_is_a_cache_of_kernels() {
    let stage = Stage::new();
    let head = ".version 7.0\n.target sm_70\n.address_size 64\n";
    std::fs::create_dir(stage.path("cache")).unwrap();
    replaced(&stage, "cache", "shapes").gave(2);
    let write =
        |name: &str, text: &str| std::fs::write(stage.path("cache").join(name), text).unwrap();
    // Other parameters; an unknown kernel; one that fits.
    write(
        "1.ptx",
        &format!(
            "{head}.entry plane(.param .u64 p, .param .u64 width, .param .u32 height) {{ ret; }}"
        ),
    );
    write(
        "2.ptx",
        &format!("{head}.entry absent(.param .u64 p) {{ ret; }}"),
    );
    write(
        "3.ptx",
        &format!("{head}.entry stride(.param .u64 p, .param .u32 n) {{ ret; }}"),
    );
    write("notes.txt", "no image");
    let said = replaced(&stage, "cache", "shapes")
        .answers_as(&stage.alone("shapes"))
        .warns("stride is replaced")
        .warns("plane is not replaced: its parameters");
    let launched = launched(&said);
    assert!(
        launched[0].starts_with("\"plane\" of module 1"),
        "{launched:?}"
    );
    assert!(
        launched[1..]
            .iter()
            .all(|line| line.starts_with("\"stride\" of module 4")),
        "{launched:?}"
    );
    write("4.ptx", "no image");
    replaced(&stage, "cache", "shapes").gave(4);
}

#[test]
fn another_image_takes_the_place_of_the_programs() {
    let stage = Stage::new();
    let ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.global .u32 hits;\n.entry scale(.param .u64 p, .param .f32 f, .param .u32 n) { ret; }";
    stage.write("other.ptx", ptx);
    stage.write("wrong.ptx", ptx.replace(".u32 n", ".u64 n"));
    for task in ["scale", "graph"] {
        let said = stage.app("replace other.ptx", task);
        said.gave(0).warns("scale is replaced");
    }
    stage
        .app("replace wrong.ptx", "scale")
        .warns("scale is not replaced: its parameters")
        .says("answer 30");
}
