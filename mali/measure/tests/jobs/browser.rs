// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page in a browser without a network.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use gpureplay_jobs::analysis::analyse::analyse;
use gpureplay_jobs::analysis::page::{Peaks, page};
use gpureplay_jobs::analysis::report::Report;
use gpureplay_jobs::measure::{Watch, measure};
use gpureplay_jobs::{Jobs, Report as JobReport};
use gpureplay_library::device::{Choice, Device};
use gpureplay_library::{Error, ModelOptions, Recording, Session};
use mali_model::Observer;

/// HTML made of names would run it.
const EVIL: &str = "<script>throw 1</script><img src=x onerror=\"throw 2\">&amp;</td>";

fn browser() -> Option<&'static str> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let there = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    let found = names.into_iter().find(there);
    if found.is_none() {
        println!("skipped: no Chromium on this machine (Debian's package chromium)");
    }
    found
}

fn lenet() -> (Jobs, JobReport, Report) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../recordings/lenet-g52");
    let recording = Recording::open(path).unwrap().apart().unwrap();
    let jobs = Jobs::of(&recording).unwrap();
    let all: Vec<usize> = (0..jobs.jobs.len()).collect();
    let watch = Arc::new(Watch::default());
    let observer: Arc<dyn Observer> = watch.clone();
    let gpu = recording.verified().recording().gpu_id();
    let options = ModelOptions::default();
    let device = Device::open_observed(&Choice::Model(None), gpu, options, Some(observer));
    let mut session = Session::on(recording.clone(), device.unwrap());
    session.bind_case().unwrap();
    let measured = measure(&mut session, &jobs, Some(&watch), 0, 1).unwrap();
    session.close().unwrap();
    let mut report = JobReport::new(&recording, &jobs, &all, None, Some(&measured));
    report.recording = format!("lenet {EVIL}");
    report.jobs[3].name = Some(EVIL.into());
    report.kernels[0].names.push(EVIL.into());
    let what = "all".parse().unwrap();
    let analysis = analyse(&recording, &jobs, &all, what, options, Session::bind_case);
    let mut analysis: Report = analysis.map_err(|error: Error| error.to_string()).unwrap();
    for area in analysis.jobs.iter_mut().flat_map(|job| &mut job.heat) {
        area.name += EVIL;
    }
    (jobs, report, analysis)
}

fn shown(browser: &str, page: &str, view: &str) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    std::fs::write(&file, page).unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--proxy-server=127.0.0.1:9",
            "--enable-logging=stderr",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(format!("file://{}{view}", file.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let console = errors.lines().filter(|line| line.contains("CONSOLE"));
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(dom.contains("</html>"), "{errors}");
    (dom, console.map(str::to_owned).collect())
}

fn texts<'a>(dom: &'a str, attribute: &str) -> Vec<&'a str> {
    let elements = dom.split(attribute).skip(1);
    let text = |rest: &'a str| {
        rest.split_once('>')?
            .1
            .split_once('<')
            .map(|(text, _)| text)
    };
    elements.filter_map(text).collect()
}

fn titles<'a>(dom: &'a str, attribute: &str) -> Vec<&'a str> {
    let elements = dom.split(attribute).skip(1);
    let title = |rest: &'a str| {
        rest.split_once("title=\"")?
            .1
            .split_once('"')
            .map(|(text, _)| text)
    };
    elements.filter_map(title).collect()
}

fn number(text: &str) -> u64 {
    text.replace(',', "").parse().unwrap()
}

#[test]
fn the_page_works_in_a_browser_without_a_network() {
    let Some(browser) = browser() else { return };
    let (jobs, report, analysis) = lenet();
    let peaks = Peaks {
        instructions: Some(1e11),
        bytes: Some(1e10),
    };
    let page = page(&report, &jobs, Some(&analysis), peaks).unwrap();
    let body = page.split_once("<body>").unwrap().1;
    assert_eq!(body.matches("<script").count(), 2, "data and script");
    for elsewhere in ["http://www.w3", "src=\"", "href=\"", "@import", "url("] {
        let allowed = usize::from(elsewhere == "http://www.w3");
        let outside_data = page.replace(
            &page[page.find("id=\"data\"").unwrap()..page.rfind("<script>").unwrap()],
            "",
        );
        assert!(
            outside_data.matches(elsewhere).count() <= allowed,
            "{elsewhere}"
        );
    }

    let (dom, console) = shown(browser, &page, "");
    assert_eq!(console, [""; 0]);
    let work = || report.jobs.iter().map(|job| job.work.as_ref().unwrap());
    let all = |numbers: Vec<&str>| -> Vec<u64> { numbers.into_iter().map(number).collect() };
    assert_eq!(
        all(texts(&dom, "data-field=\"instructions\"")),
        work().map(|work| work.instructions).collect::<Vec<_>>()
    );
    assert_eq!(
        all(titles(&dom, "data-field=\"read\"")),
        work().map(|work| work.bytes_read).collect::<Vec<_>>()
    );
    assert_eq!(
        all(titles(&dom, "data-field=\"written\"")),
        work().map(|work| work.bytes_written).collect::<Vec<_>>()
    );
    let text = EVIL
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    assert!(dom.contains(&text), "the name is shown");
    assert!(!dom.contains("<img"), "and is no element");
    assert_eq!(dom.matches("<script").count(), 2);

    let (memory, console) = shown(browser, &page, "#memory");
    assert_eq!(console, [""; 0]);
    assert!(memory.matches("<canvas").count() >= 10 && !memory.contains("<img"));
    let (roofline, console) = shown(browser, &page, "#roofline");
    assert_eq!(console, [""; 0]);
    assert_eq!(roofline.matches("<circle").count(), report.jobs.len());
    assert!(roofline.contains("class=\"roof\""));
    let (findings, console) = shown(browser, &page, "#findings");
    assert_eq!(console, [""; 0]);
    for verdict in &analysis.verdicts {
        let row = format!(
            "<dt>{}</dt><dd>{}</dd>",
            verdict.what,
            verdict.verdict.name()
        );
        assert!(findings.contains(&row), "{row}");
    }
    let (shaders, console) = shown(browser, &page, "#shaders");
    assert_eq!(console, [""; 0]);
    assert!(shaders.contains("class=\"note") && shaders.contains("clause_0:"));
    assert!(!shaders.contains("<img"));
    let (details, _) = shown(browser, &page, "#jobs,13");
    assert!(details.contains("Job 13: ") && details.contains("<canvas"));
}

/// For each view, into the frame's title: what does not fit, overlaps, or is too small to use.
const MISFITS: &str = r##"<script>{
const box = element => element.getBoundingClientRect();
const all = names => [...document.querySelectorAll(names)];
const misfits = [];
const cross = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
for (const key of "12345") {
  document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const say = (what, element) => misfits.push(key + ": " + what + " " + element.tagName + " " + element.textContent.slice(0, 30));
  if (document.documentElement.scrollWidth > innerWidth) say("wider than the window", document.body);
  for (const element of all(".panel")) if (element.scrollWidth > element.clientWidth) say("wider inside", element);
  for (const element of all("td, th, dd, h1, h2, p, button, select, input, canvas, svg text, svg circle")) {
    if (box(element).left < 0 || box(element).right > innerWidth) say("outside", element);
  }
  for (const among of ["header > *", "#tabs > *", ".tools > *", ".bar span, .bar i", "tr:nth-child(2) td", "dl > *"]) {
    const elements = all(among).filter(element => box(element).width);
    elements.forEach((one, at) => elements.slice(at + 1).forEach(other => { if (cross(box(one), box(other))) say("crossed", one); }));
  }
  for (const element of all("td.bar i, canvas")) if (box(element.parentElement).width < 48) say("narrow", element);
  for (const element of all("svg text")) if (box(element).height < 11) say("small", element);
  if (!all(".panel, svg").length) say("empty", document.body);
}
parent.document.title = innerWidth + JSON.stringify(misfits);
}</script></body>"##;

#[test]
fn every_view_fits_narrow_windows() {
    let Some(browser) = browser() else { return };
    let (jobs, report, analysis) = lenet();
    let peaks = Peaks {
        instructions: Some(1e11),
        bytes: Some(1e10),
    };
    for peaks in [peaks, Peaks::default()] {
        let page = page(&report, &jobs, Some(&analysis), peaks).unwrap();
        let page = page.replace("</body>", MISFITS);
        for width in [360, 600, 1200] {
            // Chromium's windows are at least 500 wide.
            let inner = page.replace('&', "&amp;").replace('"', "&quot;");
            let frame = format!(
                "<title>?</title><body><iframe width={width} height=900 style=border:0 srcdoc=\"{inner}\"></iframe></body>"
            );
            let (dom, console) = shown(browser, &frame, "");
            assert_eq!(console, [""; 0]);
            let title = dom.split_once("<title>").unwrap().1;
            let title = title.split_once("</title>").unwrap().0;
            assert_eq!(title, format!("{width}[]"));
        }
    }
}

#[test]
fn keys_choose_views_and_jobs_and_colours_change() {
    let Some(browser) = browser() else { return };
    let (jobs, report, analysis) = lenet();
    let page = page(&report, &jobs, Some(&analysis), Peaks::default()).unwrap();
    let press = |keys: &str| {
        let presses: String = keys
            .split_whitespace()
            .map(|key| {
                format!(
                    "document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}));"
                )
            })
            .collect();
        let result = "document.title = getComputedStyle(document.body).backgroundColor";
        page.replace(
            "</body>",
            &format!("<script>{presses}{result}</script></body>"),
        )
    };
    let (dom, console) = shown(browser, &press("ArrowDown ArrowDown"), "");
    assert_eq!(console, [""; 0]);
    assert!(dom.contains("Job 2: "), "two jobs further");
    let light = dom.split_once("<title>").unwrap().1.to_owned();
    let (dom, _) = shown(browser, &press("t"), "");
    let dark = dom.split_once("<title>").unwrap().1;
    assert_ne!(light[..18], dark[..18], "other colours");
    let (dom, _) = shown(browser, &press("4"), "");
    assert!(dom.contains("<h2>Findings</h2>"));
    let broken = page.replace(
        "</body>",
        "<script>throw new Error('on purpose')</script></body>",
    );
    let (_, console) = shown(browser, &broken, "");
    assert!(
        console.iter().any(|line| line.contains("on purpose")),
        "{console:?}"
    );
}

#[test]
fn a_page_of_104_jobs_is_below_a_megabyte() {
    let (jobs, mut report, mut analysis) = lenet();
    let (many, found) = (report.jobs.clone(), analysis.jobs.clone());
    for index in many.len()..104 {
        let mut job = many[index % many.len()].clone();
        let mut one = found[index % many.len()].clone();
        (job.index, one.index) = (index, index);
        report.jobs.push(job);
        analysis.jobs.push(one);
    }
    let page = page(&report, &jobs, Some(&analysis), Peaks::default()).unwrap();
    println!("{} bytes", page.len());
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}
