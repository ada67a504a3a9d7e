// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tuning: sizes, grids, bounds, samples, budgets, continued searches.

use serde_json::Value;

use crate::stage::{Said, Stage, ended, recorded};

/// `lists` have values with spaces.
fn tune(stage: &Stage, words: &str, lists: &[&str]) -> Said {
    let mut command = stage.command(&format!("tune {words} --runs 2"));
    ended(command.args(lists))
}

#[test]
fn the_grid_follows_the_block_in_each_dimension() {
    let stage = recorded("shapes");
    let said = tune(&stage, "rec#0", &["--blocks", "16,16 64,4 8,8 96 7,3"]).gave(0);
    for (grid, block) in [
        ("3x5x1", "32x8x1"),
        ("6x3x1", "16x16x1"),
        ("2x10x1", "64x4x1"),
        ("12x5x1", "8x8x1"),
        ("1x40x1", "96x1x1"),
        ("14x14x1", "7x3x1"),
    ] {
        let row = format!("recorded,0,-1,0,0,-1,{grid},{block},32,exact,1.00,");
        assert!(said.out.contains(&row), "{row} {said:?}");
    }
    // Blocks of 16 by 16 do half of each line, and fewer columns.
    tune(
        &stage,
        "rec#0 --keep-grid",
        &["--blocks", "16,16 32,8 64,8"],
    )
    .says(",3x5x1,16x16x1,32,differs,")
    .says(",3x5x1,64x8x1,32,exact,");
    stage.run("run rec#0 --block 16,4 --keep-total").gave(0);
}

#[test]
fn grids_and_blocks_are_searched_together_and_the_fastest_is_named() {
    let stage = recorded("shapes");
    let said = tune(
        &stage,
        "rec#1",
        &["--blocks", "32 64 128", "--grids", "4..128 5,2"],
    )
    .gave(0);
    assert_eq!(said.out.matches(",exact,").count(), 7 * 3, "{said:?}");
    assert!(
        said.out.contains(
            "best: 2.00 us (2.52 times as fast as recorded): recorded, grid 32x1x1, block 64x1x1"
        ),
        "{said:?}"
    );
    let json = tune(
        &stage,
        "rec#1 --json --table t.csv",
        &["--blocks", "64", "--grids", "16..48:8"],
    );
    let report = json.fits("cuda-tune");
    assert_eq!(
        (
            &report["candidates"],
            report["tries"].as_array().unwrap().len()
        ),
        (&6.into(), 6)
    );
    assert_eq!(report["best"]["grid"], serde_json::json!([32, 1, 1]));
    let near = |value: &Value, right: f64| {
        let value = value.as_f64();
        assert!(
            value.is_some_and(|value| (value - right).abs() < 1e-5),
            "{report}"
        );
    };
    near(&report["tries"][1]["median_us"], 3.6);
    near(&report["speedup"], 5.04 / 2.0);
    let table = stage.text("t.csv");
    assert_eq!(table.lines().count(), 7, "{table}");
    tune(&stage, "rec#1 --keep-grid", &["--grids", "8"]).gave(2);
}

#[test]
fn bounds_go_with_registers_where_both_count() {
    let stage = recorded("shapes");
    let said = tune(
        &stage,
        "rec#1 --registers 0,32",
        &["--bounds", "0 64 256,2"],
    )
    .gave(0);
    let rows: Vec<_> = said
        .out
        .lines()
        .filter(|line| line.starts_with("recorded,"))
        .collect();
    assert_eq!(rows.len(), 5, "{said:?}");
    assert!(
        rows.iter()
            .any(|row| row.starts_with("recorded,0,-1,256,2,-1,") && row.contains(",exact,")),
        "{rows:?}"
    );
    let refused = "block [128, 1, 1] has 128 threads; this kernel allows at most 64";
    assert_eq!(said.out.matches(refused).count(), 2, "{said:?}");
}

#[test]
fn carve_outs_of_shared_memory_are_tried_and_reach_the_program() {
    let stage = recorded("shapes");
    tune(
        &stage,
        "rec#1 --carveout -1,0,75,101 --table t.csv",
        &["--blocks", "64"],
    )
    .gave(2);
    let said = tune(
        &stage,
        "rec#1 --carveout -1,0,75 --tuned tuned.toml",
        &["--blocks", "64 128"],
    )
    .gave(0);
    assert_eq!(said.out.matches(",exact,").count(), 6, "{said:?}");
    // 16 blocks of 64: 3.6 us, half with the carve-out.
    assert!(
        said.out
            .contains("recorded,0,-1,0,0,75,16x1x1,64x1x1,32,exact,1.80,"),
        "{said:?}"
    );
    assert!(
        said.out
            .contains("grid 16x1x1, block 64x1x1, 75 % for shared memory"),
        "{said:?}"
    );
    let said = stage
        .traced("replace --tuned tuned.toml", "shapes")
        .answers_as(&stage.alone("shapes"));
    // Its own image: other sizes keep their carve-out.
    let tuned = "[fake] \"stride\" of module 2: grid 16x1x1, block 64x1x1, 75 % shared";
    assert_eq!(said.err.matches(tuned).count(), 2, "{said:?}");
    let other = "[fake] \"stride\" of module 1: grid 4x1x1, block 128x1x1\n";
    assert!(said.err.contains(other), "{said:?}");
}

#[test]
fn a_search_that_learns_has_a_budget_and_goes_on_later() {
    let stage = recorded("shapes");
    let lists = ["--blocks", "16..512:16", "--grids", "1..64:1"];
    let words = "rec#1 --sampler learn:3 --budget 60";
    let said = tune(&stage, &format!("{words} --json"), &lists).gave(0);
    let report = said.json();
    let best = &report["best"];
    // Of 2048, the best takes 2 us.
    assert!(best["median_us"].as_f64().unwrap() < 2.6, "{best}");
    tune(
        &stage,
        &format!("{words} --resume r.jsonl --budget 20"),
        &lists,
    )
    .gave(2);
    tune(
        &stage,
        "rec#1 --sampler learn:3 --budget 20 --resume r.jsonl",
        &lists,
    )
    .gave(0);
    let rest = tune(
        &stage,
        "rec#1 --sampler learn:3 --budget 40 --resume r.jsonl --json",
        &lists,
    );
    let rest = rest.json();
    assert_eq!(rest["tries"], report["tries"], "{rest}");
}

#[test]
fn what_is_learnt_from_the_largest_launch_is_tried_for_all() {
    let stage = recorded("shapes");
    let lists = ["--blocks", "32..256:32", "--grids", "4..64:4"];
    let words = "rec --kernel ^stride$ --sampler learn:3 --budget 40 --tuned t.toml --json";
    let said = tune(&stage, words, &lists).gave(0);
    let report = said.json();
    // The recorded sizes and the learnt ones; none for one launch only.
    let ways = report["ways"].as_array().unwrap();
    assert!((30..=42).contains(&ways.len()), "{report}");
    assert_eq!(report["launches"], serde_json::json!([1, 2, 3]));
    assert!(
        ways.iter()
            .all(|way| way["median_us"].as_array().unwrap().len() == 3)
    );
    assert_eq!(
        report["best"]["grid"],
        serde_json::json!([32, 1, 1]),
        "{report}"
    );
    assert_eq!(
        report["best"]["block"],
        serde_json::json!([64, 1, 1]),
        "{report}"
    );
    let tuned = stage.text("t.toml");
    assert_eq!(
        tuned.matches("[[winner]]").count() + tuned.matches("[[winners]]").count(),
        2,
        "{tuned}"
    );
}

#[test]
fn a_search_has_a_budget_and_goes_on_later() {
    let stage = recorded("shapes");
    let lists = ["--blocks", "32 64 128", "--grids", "1..64"];
    let first = tune(
        &stage,
        "rec#1 --sampler random:7 --budget 5 --resume r.jsonl",
        &lists,
    )
    .gave(0)
    .warns("the budget is spent: 5 of 21 candidates were tried");
    let lines = || stage.text("r.jsonl");
    assert_eq!(lines().lines().count(), 1 + 5);
    let same = tune(&stage, "rec#1 --sampler random:7 --budget 5", &lists);
    assert_eq!(same.out, first.out);
    let other = tune(&stage, "rec#1 --sampler random:8 --budget 5", &lists);
    assert_ne!(other.out, first.out);
    let whole = lines();
    stage.write("r.jsonl", format!("{whole}{{\"image\":\"rec"));
    let rest = tune(
        &stage,
        "rec#1 --sampler random:7 --resume r.jsonl --table t.csv",
        &lists,
    )
    .gave(0);
    assert_eq!(rest.out.matches(",exact,").count(), 21 - 5, "{rest:?}");
    assert!(
        lines().starts_with(&whole) && lines().lines().count() == 1 + 21,
        "{}",
        lines()
    );
    let table = stage.text("t.csv");
    assert_eq!(table.matches(",exact,").count(), 21, "{table}");
    assert!(rest.out.contains("grid 32x1x1, block 64x1x1"), "{rest:?}");
    for words in ["rec#2", "rec#1 --tolerance 0.1 --type f32"] {
        tune(&stage, &format!("{words} --resume r.jsonl"), &lists)
            .gave(2)
            .warns("its tries are of another");
    }
    tune(&stage, "rec#3 --resume r.jsonl", &lists)
        .gave(2)
        .warns("its tries are of another size of launch");
    stage.write("r.jsonl", "nonsense\n");
    tune(&stage, "rec#1 --resume r.jsonl", &lists).gave(4);
    tune(&stage, "rec#1 --budget 0", &lists).gave(2);
}

#[test]
fn candidates_are_verified_and_those_beyond_limits_refused() {
    let stage = recorded("scale");
    let words = "rec#0 --table t.csv --registers 0,32 --blocks 64;128;1024";
    tune(&stage, words, &[]).gave(0).says("nothing is faster");
    let table = stage.text("t.csv");
    assert_eq!(table.lines().count(), 1 + 2 * 3, "{table}");
    assert_eq!(table.matches(",exact,").count(), 4, "{table}");
    assert_eq!(table.matches(",refused,").count(), 2, "{table}");
}

#[test]
fn tuning_goes_on_after_kernels_that_fail() {
    let stage = recorded("fragile");
    let said = stage
        .run("tune rec#0 --runs 1 --registers 0,32 --blocks 16;64;128 --table t.csv")
        .gave(0);
    let table = stage.text("t.csv");
    assert_eq!(table.lines().count(), 1 + 1 + 6, "{table}");
    assert_eq!(table.matches(",exact,").count(), 5, "{table}");
    assert_eq!(
        table.matches("CUDA_ERROR_LAUNCH_FAILED").count(),
        2,
        "{table}"
    );
    assert_eq!(
        said.out.matches("image,max_registers").count(),
        1,
        "{said:?}"
    );
    assert_eq!(
        said.out
            .lines()
            .filter(|line| line.starts_with("recorded,"))
            .count(),
        7
    );
    // Fails on changed memory: not shown to be right, but all is tried.
    let said = stage
        .run("tune rec#1 --runs 1 --blocks 16;64;128")
        .gave(1)
        .warns("going on in another process with --no-poison");
    assert_eq!(said.out.matches(",inconclusive,").count(), 3, "{said:?}");
    stage.run("run rec#1").gave(1).says("inconclusive");
}

#[test]
fn launches_of_one_kernel_are_tuned_together() {
    let stage = recorded("shapes");
    let words = ["--blocks", "64 96", "--grids", "16 32"];
    let said = tune(
        &stage,
        "rec --kernel ^stride$ --json --tuned t.toml",
        &words,
    )
    .gave(0);
    let report = said.fits("cuda-tune-together");
    // One's recorded way is not the others'.
    assert_eq!(report["launches"].as_array().unwrap().len(), 3);
    assert_eq!(report["ways"].as_array().unwrap().len(), 4, "{report}");
    assert_eq!(report["best"]["grid"], serde_json::json!([32, 1, 1]));
    assert_eq!(report["best"]["block"], serde_json::json!([64, 1, 1]));
    let text = stage.text("t.toml");
    assert_eq!(text.matches("[[winner]]").count(), 2, "{text}");
    for kernel in ["other", "plane|stride"] {
        stage.run(&format!("tune rec --kernel {kernel}")).gave(2);
    }
}

#[test]
fn other_kernels_of_tritons_cache_run_with_their_own_warps() {
    let stage = recorded("shapes");
    let head = ".version 7.0\n.target sm_70\n.address_size 64\n";
    let kernels = [
        (
            "two",
            2,
            90,
            ".entry stride(.param .u64 p, .param .u32 n) { ret; }",
        ),
        (
            "wide",
            8,
            90,
            ".entry stride(.param .u64 p, .param .u64 n) { ret; }",
        ),
        (
            "old",
            4,
            80,
            ".entry stride(.param .u64 p, .param .u32 n) { ret; }",
        ),
    ];
    for (folder, warps, arch, text) in kernels {
        let folder = stage.path("cache").join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let json = format!(
            r#"{{"name": "stride", "num_warps": {warps}, "shared": 60000, "target": {{"backend": "cuda", "arch": {arch}, "warp_size": 32}}}}"#
        );
        std::fs::write(folder.join("stride.json"), json).unwrap();
        std::fs::write(folder.join("stride.cubin"), format!("{head}{text}")).unwrap();
    }
    let mut command = stage.command("tune rec#1 --triton --runs 2 --tuned t.toml");
    command.args(["--grids", "8 32"]);
    command
        .env("TRITON_CACHE_DIR", stage.path("cache"))
        .env("HOME", stage.path("none"))
        .env("TORCHINDUCTOR_CACHE_DIR", stage.path("none"));
    let said = ended(&mut command);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("2 kernels of this name"), "{said:?}");
    let rows = |what: &str| said.out.lines().filter(|row| row.contains(what)).count();
    assert_eq!(
        rows("cache/two/stride.cubin,0,-1,0,0,-1,8x1x1,64x1x1,32,exact,"),
        1,
        "{said:?}"
    );
    assert_eq!(
        rows("cache/two/stride.cubin,0,-1,0,0,-1,32x1x1,64x1x1,32,exact,2.00,"),
        1,
        "{said:?}"
    );
    assert_eq!(
        rows("cache/wide/stride.cubin,0,-1,0,0,-1,8x1x1,256x1x1,0,refused,"),
        1,
        "{said:?}"
    );
    assert_eq!(rows("cache/old"), 0, "{said:?}");
    // More shared memory than the driver's default.
    let tuned = stage.text("t.toml");
    assert!(tuned.contains("shared = 60000"), "{tuned}");
    let replaced = stage.traced("replace --tuned t.toml", "shapes").gave(0);
    let launched = "\"stride\" of module 2: grid 32x1x1, block 64x1x1, 60000 B shared";
    assert_eq!(replaced.err.matches(launched).count(), 2, "{replaced:?}");
    assert!(
        said.out.contains("stride.cubin, grid 32x1x1, block 64x1x1"),
        "{said:?}"
    );
}
