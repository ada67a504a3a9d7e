// SPDX-License-Identifier: MIT OR Apache-2.0
//! `docs/reference/schemas`, made from the types.

use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::commands::{bench, diff, disasm, doctor, import, info, retarget, verify};
use crate::common::{evaluation, failure, job_trace, new_recording, repeat, run_report};

/// Fields that may be left out are not required.
fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().for_serialize()
}

fn of<T: JsonSchema>() -> Schema {
    settings().into_generator().into_root_schema_for::<T>()
}

/// File, command, schema.
fn all() -> Vec<(&'static str, &'static str, Schema)> {
    let mut all = vec![
        (
            "analyse",
            "gpureplay analyse --json",
            of::<gpureplay_analysis::report::Report>(),
        ),
        (
            "bench",
            "gpureplay bench --json",
            of::<bench::report::Report>(),
        ),
        ("diff", "gpureplay diff --json", of::<diff::Report>()),
        ("disasm", "gpureplay disasm --json", of::<disasm::Report>()),
        (
            "doctor",
            "gpureplay doctor --json",
            of::<Vec<doctor::FindingReport<'_>>>(),
        ),
        (
            "failure",
            "any command that fails with --json",
            of::<failure::FailureReport>(),
        ),
        ("import", "gpureplay import --json", of::<import::Report>()),
        ("info", "gpureplay info --json", of::<info::Summary<'_>>()),
        (
            "jobs",
            "gpureplay jobs --json",
            of::<gpureplay_jobs::Report>(),
        ),
        (
            "recorded",
            "gpureplay record --json, gpureplay compile --json",
            of::<new_recording::Report<'_>>(),
        ),
        (
            "retarget",
            "gpureplay retarget --json",
            of::<Vec<retarget::Report>>(),
        ),
        ("run", "gpureplay run --json", of::<run_report::Report>()),
        (
            "run-inputs",
            "gpureplay run --inputs --json",
            of::<evaluation::Evaluation>(),
        ),
        (
            "run-repeat",
            "gpureplay run --repeat --json",
            of::<repeat::Repeated>(),
        ),
        (
            "trace-line",
            "gpureplay run --trace-lines, each line",
            of::<job_trace::Line>(),
        ),
        (
            "tune",
            "gpureplay tune --json",
            of::<gpureplay_edit::tune::Tuning>(),
        ),
        (
            "verify",
            "gpureplay verify --json",
            of::<Vec<verify::Checked>>(),
        ),
        (
            "verify-rules",
            "gpureplay verify --rules --json",
            of::<Vec<verify::RuleReport>>(),
        ),
    ];
    for (name, schema) in gpureplay_cuda_replay::command::schemas(&settings()) {
        let what = match name {
            "cuda-run" => "gpureplay cuda run --json",
            "cuda-whole-run" => "gpureplay cuda run --json, of a whole run",
            "cuda-tune" => "gpureplay cuda tune --json",
            "cuda-tune-together" => "gpureplay cuda tune --kernel --json",
            "cuda-judge" => "gpureplay cuda judge",
            "cuda-launch" => "gpureplay extract, launch.json",
            "cuda-analyse" => "gpureplay analyse --json, of a CUDA launch",
            _ => "gpureplay cuda durations --json",
        };
        all.push((name, what, schema));
    }
    all
}

#[test]
fn the_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let mut names = Vec::new();
    for (name, what, mut schema) in all() {
        schema.insert("title".into(), what.into());
        let mut text = serde_json::to_string_pretty(&schema).unwrap();
        text.push('\n');
        let path = folder.join(format!("{name}.json"));
        if std::env::var_os("GPUREPLAY_WRITE_SCHEMAS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/reference/schemas/{name}.json is out of date; GPUREPLAY_WRITE_SCHEMAS=1 cargo test -p gpureplay --lib schemas writes it"
        );
        names.push(format!("{name}.json"));
    }
    // No schema of a removed report stays.
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(names.contains(&name) || name == "README.md", "{name}");
    }
}
