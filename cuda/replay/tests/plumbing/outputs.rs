// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that replays and tables leave.

use crate::stage::recorded;

#[test]
fn memory_after_a_replay_is_saved() {
    let stage = recorded("scale");
    stage.run("run rec#0 --save-output out").gave(0);
    let table = stage.text("out/memory.csv");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    let changed = rows.iter().find(|row| row[2] == "4000").unwrap();
    assert_eq!(changed[3..], ["yes", ""], "{table}");
    let numbers = std::fs::read(stage.path("out").join(changed[0])).unwrap();
    for (index, number) in numbers.as_chunks::<4>().0.iter().enumerate() {
        assert_eq!(f32::from_le_bytes(*number), index as f32 * 1.5, "{index}");
    }
    let hits = rows.iter().find(|row| row[4] == "hits").unwrap();
    let hits = std::fs::read(stage.path("out").join(hits[0])).unwrap();
    assert_eq!(u32::from_le_bytes(hits.try_into().unwrap()), 1000);
    stage.run("run rec#0 --save-output out").gave(6);
    stage.run("run rec#0 --grid 4 --save-output half").gave(1);
    let numbers = std::fs::read(stage.path("half").join(changed[0])).unwrap();
    let numbers = numbers.as_chunks::<4>().0;
    assert_eq!(
        [numbers[511], numbers[512]].map(f32::from_le_bytes),
        [511.0 * 1.5, 512.0]
    );
}

#[test]
fn a_replay_need_not_be_verified_and_a_null_replay_has_a_report() {
    let stage = recorded("scale");
    stage
        .run("run rec#0 --grid 4 --no-verify --runs 2")
        .gave(0)
        .says("not verified")
        .says("2 runs");
    for (words, code, verdict, is_null) in [
        ("--no-verify", 0, "unverified", false),
        ("--null", 1, "differs", true),
        ("", 0, "exact", false),
    ] {
        let said = stage.run(&format!("run rec#0 --json {words}")).gave(code);
        let report = said.fits("cuda-run");
        assert_eq!(
            (&report["verdict"], &report["null"]),
            (&verdict.into(), &is_null.into())
        );
    }
    stage.run("run rec#0 --no-verify --null").gave(2);
}

#[test]
fn launches_are_joined_with_their_times_and_each_is_logged() {
    let stage = recorded("shapes");
    let words = "durations --events --json -o table.json --log log.csv";
    stage
        .app(words, "shapes")
        .answers_as(&stage.alone("shapes"));
    let text = stage.text("table.json");
    crate::schema_check::assert_fits("cuda-durations", &text);
    let log = stage.text("log.csv");
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("process,kernel,grid,block,us"));
    let rest: Vec<&str> = lines.map(|line| line.split_once(',').unwrap().1).collect();
    // The stand-in's events give the last kernel's time when read.
    assert_eq!(rest.len(), 4, "{log}");
    for (line, start) in rest.iter().zip([
        "plane,3x5x1,32x8x1,",
        "stride,8x1x1,128x1x1,",
        "stride,8x1x1,128x1x1,",
        "stride,4x1x1,128x1x1,",
    ]) {
        assert!(line.starts_with(start), "{log}");
    }
    stage
        .run("list rec --durations table.json")
        .gave(0)
        .says("launches/1.toml, 2 launches, mean ")
        .says("launches/3.toml, 1 launches, mean ");
    let console = stage.app("durations --events --csv -o t.csv --log -", "shapes");
    assert_eq!(
        console.out.matches(",stride,8x1x1,128x1x1,").count(),
        2,
        "{console:?}"
    );
    stage.run("list rec --durations t.csv").gave(2);
}
