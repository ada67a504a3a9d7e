// SPDX-License-Identifier: MIT OR Apache-2.0
//! Added probes; all else stays. `device-test analyse` runs such texts.
#![allow(clippy::unwrap_used)]

use gpureplay_cuda_launch::probe::{Calls, Instrumented, Kind, ProbeError, Space, instrument};

const ALL: Calls<'_> = Calls {
    accesses: true,
    blocks: true,
    races: false,
    own: None,
};

const TEXT: &str = r#".version 7.8
.target sm_90
.address_size 64
.file 1 "/src/it's {a} kernel.cu"
.extern .shared .align 16 .b8 room[];
.func (.param .b32 r) helper (.param .b64 p)
{
	.reg .b64 %rd<3>; .reg .b32 %r<2>;
	ld.param.u64 %rd1, [p];
	ld.u32 %r1, [%rd1]; // generic
	st.param.b32 [r], %r1;
	ret;
}
.visible .entry other() { .reg .b64 %rd<2>; st.global.u32 [%rd1], 0; ret; }
.visible .entry kernel(
	.param .u64 kernel_param_0
) .maxntid 128, 1, 1
{
	.reg .pred %p<3>;
	.reg .b64 %rd<9>; .reg .b32 %r<9>;
	.loc	1 12 3
	ld.param.u64 %rd1, [kernel_param_0];
	/* ld.global.u32 %r1, [%rd1]; */
	@!%p1 ld.global.v2.u32 {%r1, %r2}, [%rd1+-8];
	@%p1 bra $L__BB0_2;
	.loc	1 14 5, function_name $L__info_string0, inlined_at 1 13 1
	st.shared.f64 [room+8], %rd2;
	{ // a scope of its own
	.reg .b32 %rd1;
	ld.shared.u8 %r1, [%rd1];
	}
$L__BB0_2:
	add.cc.u32 %r1, %r1, %r2;
	ld.global.u32 %r3, [%rd1];
	addc.u32 %r2, %r2, 0;
	cp.async.ca.shared.global [%r1], [%rd1], 16;
	bar.sync 0;
	atom.global.add.u32 %r1, [%rd1], 1;
	ret;
}
"#;

fn instrumented(calls: &Calls<'_>) -> Instrumented {
    instrument(TEXT.as_bytes(), "kernel", calls, "// PROBES").unwrap()
}

#[test]
fn accesses_and_blocks_get_calls() {
    let found = instrumented(&ALL);
    let accesses: Vec<_> = found
        .sites
        .iter()
        .filter_map(|site| {
            let (kind, space) = site.access?;
            Some((kind, space, site.bytes, site.function.as_str()))
        })
        .collect();
    assert_eq!(
        accesses,
        [
            (Kind::Load, Space::Generic, 4, "helper"),
            (Kind::Load, Space::Global, 8, "kernel"),
            (Kind::Store, Space::Shared, 8, "kernel"),
            (Kind::Load, Space::Shared, 1, "kernel"),
            (Kind::Atomic, Space::Global, 4, "kernel"),
        ]
    );
    let kernel = found.sites.iter().filter(|site| site.function == "kernel");
    let blocks = kernel.filter(|site| site.access.is_none()).count();
    // Beginning, after the branch, label.
    assert_eq!(blocks, 3);
    let source = |line: u32| Some(("/src/it's {a} kernel.cu".to_owned(), line));
    let store = found
        .sites
        .iter()
        .find(|site| site.bytes == 8 && site.source == source(14));
    assert_eq!(store.unwrap().instruction, "st.shared.f64 [room+8], %rd2");
    let line = TEXT
        .lines()
        .position(|line| line.contains("st.shared.f64"))
        .unwrap()
        + 1;
    assert_eq!(store.unwrap().line, line);
    let left_out: Vec<_> = found.left_out.into_iter().collect();
    assert_eq!(
        left_out,
        [
            ("an access between additions with carry".to_owned(), 1),
            ("cp.async".to_owned(), 1)
        ]
    );
}

#[test]
fn a_call_happens_where_the_access_does() {
    let text = instrumented(&Calls {
        blocks: false,
        ..ALL
    })
    .text;
    // The predicate holds for the call, too.
    let expected = "@%p1 bra $gpureplay_1;\n{\n.reg .b64 %gpureplay_a;\n.reg .b32 %gpureplay_b;\nmov.b64 %gpureplay_a, %rd1;\n\
        add.s64 %gpureplay_a, %gpureplay_a, -8;\ncall gpureplay_global, (%gpureplay_a, 1, 8);\n}\n$gpureplay_1:\n@!%p1 ld.global.v2.u32";
    assert!(text.contains(expected), "{text}");
    // 32 bits in this scope.
    assert!(text.contains("mov.b32 %gpureplay_b, %rd1;\nadd.s32 %gpureplay_b, %gpureplay_b, 0;"));
    assert!(text.contains("mov.u32 %gpureplay_b, room;\nadd.s32 %gpureplay_b, %gpureplay_b, 8;"));
    assert!(
        text.contains(
            ".visible .entry other() { .reg .b64 %rd<2>; st.global.u32 [%rd1], 0; ret; }"
        )
    );
    assert_eq!(text.matches("// PROBES").count(), 1);
}

#[test]
fn without_what_was_added_the_text_is_what_it_was() {
    let plain = instrumented(&Calls::default());
    assert_eq!(plain.sites, []);
    let words = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("//"));
        let lines = lines.map(|line| line.split("//").next().unwrap());
        let joined = lines.collect::<Vec<_>>().join("\n");
        let joined = joined.replace("/* ld.global.u32 %r1, [%rd1]; */", "");
        joined.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(words(&plain.text), words(TEXT));
}

#[test]
fn barriers_are_counted_for_races() {
    let found = instrumented(&Calls {
        races: true,
        ..Calls::default()
    });
    assert!(
        found
            .text
            .contains("bar.sync 0;\nadd.u32 %gpureplay_barriers, %gpureplay_barriers, 1;")
    );
    assert!(found.text.contains(
        "call gpureplay_race, (%gpureplay_b, 1, 8, 1, %gpureplay_barriers, %gpureplay_warp);"
    ));
    // A generic access has no known order.
    assert!(found.unordered.is_some());
}

#[test]
fn what_fits_no_probes_is_refused() {
    let refused =
        |text: &str, kernel: &str| instrument(text.as_bytes(), kernel, &ALL, "").unwrap_err();
    assert_eq!(refused(TEXT, "none"), ProbeError::NoKernel("none".into()));
    assert_eq!(
        refused(&TEXT.replace("helper", "gpureplay_x"), "kernel"),
        ProbeError::Name
    );
    assert_eq!(
        refused(TEXT.trim_end().trim_end_matches('}'), "kernel"),
        ProbeError::Unended
    );
    assert_eq!(
        instrument(b"\xff", "k", &ALL, "").unwrap_err(),
        ProbeError::Text
    );
    let one = "ld.global.u32 %r1, [%rd1];\n";
    let many = TEXT.replace("\tbar.sync 0;", &one.repeat((1 << 16) + 1));
    assert_eq!(refused(&many, "kernel"), ProbeError::TooMany);
}

#[test]
fn names_that_places_repeat_are_bounded() {
    let long = "n".repeat(1 << 20);
    let text = |places: usize| {
        let load = "ld.global.u32 %r1, [%rd1];\n".repeat(places);
        format!(
            ".version 7.8\n.target sm_90\n.address_size 64\n.file 1 \"{long}\"\n.visible .entry k() {{ .reg .b64 %rd<2>; .reg .b32 %r<2>;\n\
             .loc 1 2 3\n{load}ret; }}"
        )
    };
    let calls = Calls {
        blocks: false,
        ..ALL
    };
    let few = instrument(text(9).as_bytes(), "k", &calls, "").unwrap();
    assert_eq!(few.sites.len(), 9);
    let many = instrument(text(200).as_bytes(), "k", &calls, "");
    assert_eq!(many.err(), Some(ProbeError::Names));
}

#[test]
fn damaged_texts_do_no_harm() {
    let mut random = fastrand::Rng::with_seed(40);
    for _ in 0..20_000 {
        let mut bytes = TEXT.as_bytes().to_vec();
        for _ in 0..random.usize(1..6) {
            let at = random.usize(..bytes.len());
            match random.u8(..4) {
                0 => bytes.truncate(at.max(1)),
                1 => {
                    bytes[at] = random
                        .choice(b"{};:,.[]()@!%\"/*\n$< ".iter().copied())
                        .unwrap()
                }
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, bytes[random.usize(..bytes.len())]),
            }
            if bytes.len() < 2 {
                break;
            }
        }
        if let Ok(found) = instrument(
            &bytes,
            "kernel",
            &Calls {
                races: true,
                own: Some("probe"),
                ..ALL
            },
            "",
        ) {
            assert!(found.text.len() < bytes.len() * 200 + 1000);
        }
    }
}
