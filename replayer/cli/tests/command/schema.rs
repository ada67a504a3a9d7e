// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--json` prints exactly what `docs/reference/schemas` says.

use serde_json::Value;

use crate::schema_check::{assert_fits, check, schema};
use crate::start::{Ended, Folder, Says, json, ran};

fn fits(name: &str, words: &str, exit: i32) {
    let out = ran(words).gave(exit);
    assert_fits(name, &out);
}

#[test]
fn what_is_printed_has_the_form_of_its_schema() {
    let folder = Folder::default();
    let digits = "recordings/digits-g52";
    let saxpy = "recordings/saxpy-g52";
    fits("info", &format!("info {digits} --json"), 0);
    fits("jobs", &format!("jobs {digits} --json"), 0);
    fits("jobs", &format!("jobs {saxpy} --runs 2 --json"), 0);
    fits("disasm", &format!("disasm {saxpy} --json"), 0);
    fits(
        "verify",
        &format!("verify --deep {digits} {saxpy} --json"),
        0,
    );
    fits("verify-rules", "verify --rules --json", 0);
    fits("run", &format!("run {digits} --per-job --json"), 0);
    let output = folder.text("out.npy");
    fits("run", &format!("run {saxpy} --output {output} --json"), 0);
    fits("run", &format!("run {digits} --until conv2 --json"), 0);
    let pictures = format!("run {digits} --inputs {digits}/inputs --json");
    fits("run-inputs", &pictures, 0);
    let repeat = format!("run {saxpy} --inputs {saxpy}/inputs --repeat 2 --json");
    fits("run-repeat", &repeat, 0);
    let saved = folder.text("saved.json");
    let bench = format!("bench {saxpy} --runs 5 --json");
    fits("bench", &format!("{bench} --per-job -o {saved}"), 0);
    fits("bench", &format!("{bench} --compare {saved}"), 0);
    fits("analyse", &format!("analyse {saxpy} --json"), 0);
    let diff = format!("diff {digits} --against model --json");
    fits("diff", &diff, 0);
    fits("diff", &format!("{diff} --inject lost-write@300"), 1);
    fits(
        "tune",
        &format!("tune {saxpy} --jobs 0 --local 32 --json"),
        0,
    );
    let retargeted = folder.text("g31");
    fits(
        "retarget",
        &format!("retarget {saxpy} --gpu g31 -o {retargeted} --json"),
        0,
    );
    let cut = folder.text("cut.gpr");
    std::fs::write(&cut, "GPUREPLAY").unwrap();
    fits("verify", &format!("verify {cut} --json"), 3);
    fits("failure", "run /none --json", 3);
    fits(
        "failure",
        &format!("run {saxpy} --input x=/none.npy --json"),
        4,
    );
}

#[test]
fn the_doctor_and_traces_have_the_form_of_their_schemas() {
    let folder = Folder::default();
    assert_fits("doctor", &ran("doctor --json").1);
    let lines = folder.at("lines");
    let line = format!(
        "run recordings/digits-g52 --trace-lines {}",
        lines.display()
    );
    ran(&line).gave(0);
    let text = std::fs::read_to_string(lines).unwrap();
    assert_eq!(text.lines().count(), 20);
    for text in text.lines() {
        assert_fits("trace-line", text);
    }
}

#[test]
fn the_comparison_refuses_what_does_not_fit() {
    let value = json(&ran("info recordings/saxpy-g52 --json").gave(0));
    let schema = schema("info");
    let refused = |value: &Value, why: &str| {
        let error = check(value, &schema, &schema, "").unwrap_err();
        error.says(why);
    };
    assert_eq!(check(&value, &schema, &schema, ""), Ok(()));
    let mut wrong = value.clone();
    wrong["tensors"][0]["unknown"] = 1.into();
    refused(&wrong, "/tensors/0/unknown: the schema does not name it");
    let mut wrong = value.clone();
    wrong["jobs"] = "1".into();
    refused(&wrong, "/jobs: is no");
    let mut wrong = value.clone();
    wrong["jobs"] = (-1).into();
    refused(&wrong, "/jobs: is too small");
    let mut wrong = value;
    wrong.as_object_mut().unwrap().remove("gpu");
    refused(&wrong, "lacks \"gpu\"");
}

#[test]
fn an_import_has_the_form_of_its_schema() {
    let Some(original) = gpureplay_kit::shared("gpureplay-recordings/mnist") else {
        return;
    };
    fits(
        "import",
        &format!("import {} --check --json", original.display()),
        0,
    );
}
