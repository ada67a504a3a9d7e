// SPDX-License-Identifier: MIT OR Apache-2.0
//! `analyse`: probed kernels compute the same; counts need a GPU.

use crate::stage::recorded;

const TEXT: &str = "\
.version 7.0
.target sm_70
.address_size 64
.file 1 \"/src/scale.cu\"
.visible .global .align 4 .u32 hits;
.visible .global .align 8 .u64 target;
.visible .global .align 4 .u32 total;
.visible .entry scale(.param .u64 p, .param .f32 factor, .param .u32 n)
{
    .reg .b64 %rd<2>; .reg .f32 %f<2>;
    .loc 1 7 1
    ld.param.u64 %rd1, [p];
    ld.global.f32 %f1, [%rd1];
    cp.async.wait_all;
    ret;
}
";

#[test]
fn probes_change_nothing_and_places_are_named() {
    let stage = recorded("scale");
    stage.write("scale.ptx", TEXT);
    let said = stage
        .run("analyse rec#0 --ptx scale.ptx --json -o report.json")
        .gave(0);
    crate::schema_check::assert_fits("cuda-analyse", &said.out);
    assert_eq!(stage.text("report.json"), said.out);
    let report = said.json();
    assert_eq!(report["verdict"], "exact");
    let sites = report["sites"].as_array().unwrap();
    assert_eq!(sites.len(), 2, "a block and an access");
    assert_eq!(sites[1]["kind"], "load");
    assert_eq!(sites[1]["file"], "/src/scale.cu");
    assert_eq!(sites[1]["source_line"], 7);
    assert_eq!(sites[1]["line"], 13);
    assert_eq!(
        report["incomplete"][0],
        "cp.async: 1 places are not followed"
    );
    assert_eq!(report["races_verdict"], "incomplete");
    stage
        .run("analyse rec#0 --ptx scale.ptx --what races --deny")
        .gave(1);
    let lines = stage.run("analyse rec#0 --ptx scale.ptx --what lines");
    assert!(!lines.out.contains("races"), "{lines:?}");
    let own = stage.run("analyse rec#0 --json");
    let report = own.json();
    assert_eq!(
        (&report["ptx"], &report["races_verdict"]),
        (&"the image".into(), &"clean".into())
    );
}

#[test]
fn accesses_of_parts_of_a_word_are_no_evidence_against_races() {
    let stage = recorded("scale");
    let text = TEXT
        .replace("cp.async.wait_all;", "st.shared.u8 [part], 1;")
        .replace("    .loc 1 7 1", "    .shared .b8 part[4];\n    .loc 1 7 1");
    stage.write("parts.ptx", text);
    let said = stage.run("analyse rec#0 --ptx parts.ptx --json --deny");
    let report = said.json();
    assert_eq!(report["races_verdict"], "incomplete");
    assert!(
        report["incomplete"][0]
            .as_str()
            .unwrap()
            .contains("less than 4 bytes"),
        "{said:?}"
    );
    assert_eq!(said.code, Some(1), "{said:?}");
}

#[test]
fn a_probe_of_the_users_is_called_and_its_variables_are_shown() {
    let stage = recorded("scale");
    let probe = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 mine[16];\n.func probe (.param .b64 address, .param .b32 site, .param .b32 bytes, .param .b32 kind) { ret; }\n";
    stage.write("probe.ptx", probe);
    stage
        .run("analyse rec#0 --what lines --probe probe.ptx")
        .gave(0)
        .says("  mine ");
}

#[test]
fn what_cannot_be_analysed_is_refused_by_name() {
    let stage = recorded("scale");
    stage.write("old.ptx", TEXT.replace("sm_70", "sm_60"));
    stage
        .run("analyse rec#0 --ptx old.ptx")
        .gave(4)
        .warns("the PTX is for sm_60");
    stage.write("other.ptx", TEXT.replace("scale(", "other("));
    stage
        .run("analyse rec#0 --ptx other.ptx")
        .gave(4)
        .warns("the PTX has no kernel scale");
}
