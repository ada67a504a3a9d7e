// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ways to record and replay here, and the next command.

use std::path::Path;

use gpureplay_linux::machine::{DEV_MEM_ONLY, Finding, KBASE, PANFROST};

use crate::common::companion;
use crate::common::machine_streams::PANTHOR;
use crate::common::model_node::NodeOptions;
use crate::common::recorder_choice::{Name, Way};
use crate::common::secure_world;

pub(crate) const CUDA: [&str; 2] = ["record --recorder cuda", "run of CUDA"];

/// First if they work, as for `record`.
pub(crate) fn add_cuda(
    record: &mut Vec<Finding>,
    replay: &mut Vec<Finding>,
    found: Option<[Result<String, String>; 2]>,
) {
    for ((list, subject), way) in [record, replay]
        .into_iter()
        .zip(CUDA)
        .zip(found.into_iter().flatten())
    {
        let place = if way.is_ok() { 0 } else { list.len() };
        list.insert(place, finding(subject, way));
    }
}

/// `device` is the kernel recorder's.
pub(crate) fn to_record(device: &Path, node: &NodeOptions) -> Vec<Finding> {
    let way = |name| match Way::ready(name, device, node) {
        Ok(way) => Ok(way.shown()),
        Err(failure) => Err(failure.to_string()),
    };
    [
        ("record --recorder kernel", Name::Kernel),
        ("record --recorder user", Name::User),
        ("record --recorder model", Name::Model),
    ]
    .map(|(subject, name)| finding(subject, way(name)))
    .into()
}

/// Best first.
pub(crate) fn to_replay(findings: &[Finding]) -> Vec<Finding> {
    let of = |subject: &str| findings.iter().find(|finding| finding.subject == subject);
    let by = |finding: Option<&Finding>| match finding {
        Some(finding) if finding.good => Ok(finding.found.clone()),
        Some(finding) => Err(finding.found.clone()),
        None => Err("not looked at".to_owned()),
    };
    let apart = [
        &DEV_MEM_ONLY[..],
        &[secure_world::SUBJECT, PANFROST, PANTHOR, KBASE],
    ]
    .concat();
    let missing = |among: &dyn Fn(&Finding) -> bool| {
        let bad = findings
            .iter()
            .find(|finding| !finding.good && among(finding));
        bad.map(|finding| format!("{}: {}", finding.subject, finding.found))
    };
    let nano = missing(&|finding| !apart.contains(&finding.subject));
    let devmem = missing(&|finding| DEV_MEM_ONLY.contains(&finding.subject));
    let stock = match of(PANTHOR) {
        Some(found) => finding("run --device panthor", by(Some(found))),
        None => finding("run --device panfrost", by(of(PANFROST))),
    };
    vec![
        stock,
        finding(
            "run --device kbase",
            match of(KBASE) {
                None => Err("no /dev/mali0".into()),
                found => by(found),
            },
        ),
        finding(
            "run --device nano",
            nano.map_or_else(|| Ok("the nano driver has the GPU".into()), Err),
        ),
        finding("run --device optee", by(of(secure_world::SUBJECT))),
        finding(
            "run --device devmem",
            devmem.map_or_else(
                || Ok("reaches the GPU of a board that you name, as root".into()),
                Err,
            ),
        ),
        finding(
            "run --device model",
            Ok("the GPU model: every machine".into()),
        ),
    ]
}

pub(crate) fn next(record: &[Finding]) -> String {
    match record.iter().find(|way| way.good) {
        Some(_) => "gpureplay record -- ./app".into(),
        None => format!(
            "gpureplay run RECORDING; to record here, install {} or build it",
            companion::RECORDER.file
        ),
    }
}

fn finding(subject: &'static str, way: Result<String, String>) -> Finding {
    Finding {
        subject,
        good: way.is_ok(),
        found: way.unwrap_or_else(|why| why),
        cure: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(subject: &'static str, good: bool) -> Finding {
        Finding {
            subject,
            good,
            found: format!("{subject} was looked at"),
            cure: None,
        }
    }

    #[test]
    fn each_device_needs_its_own_findings_only() {
        let good = |findings: &[Finding]| -> Vec<&'static str> {
            let ways = to_replay(findings).into_iter().filter(|way| way.good);
            ways.map(|way| way.subject).collect()
        };
        let mut findings = vec![
            seen("nano driver", false),
            seen(PANFROST, false),
            seen(KBASE, false),
            seen(DEV_MEM_ONLY[0], false),
            seen(secure_world::SUBJECT, false),
        ];
        assert_eq!(good(&findings), ["run --device model"]);
        for (index, device) in ["nano", "panfrost", "kbase", "devmem", "optee"]
            .iter()
            .enumerate()
        {
            findings[index].good = true;
            let ways = good(&findings);
            assert!(ways.contains(&format!("run --device {device}").as_str()));
            assert_eq!(ways.len(), 2, "{ways:?}");
            findings[index].good = false;
        }
        let nano = &to_replay(&findings)[2];
        assert_eq!(nano.found, "nano driver: nano driver was looked at");
        findings[1] = seen(PANTHOR, true);
        assert_eq!(
            good(&findings),
            ["run --device panthor", "run --device model"]
        );
        let nano = &to_replay(&findings)[2];
        assert_eq!(nano.found, "nano driver: nano driver was looked at");
    }

    #[test]
    fn ways_of_cuda_are_named_where_its_driver_is() {
        let (mut record, mut replay) = (vec![seen("a", false)], vec![seen("b", true)]);
        add_cuda(&mut record, &mut replay, None);
        assert_eq!((record.len(), replay.len()), (1, 1));
        let found = [Err("no library".to_owned()), Ok("a GPU".to_owned())];
        add_cuda(&mut record, &mut replay, Some(found));
        assert_eq!(record[1].subject, CUDA[0]);
        assert!(!record[1].good && replay[0].good);
        assert_eq!(replay[0].subject, CUDA[1]);
    }

    #[test]
    fn the_next_command_needs_one_way_to_record() {
        let ways = [seen("record --recorder kernel", false)];
        assert!(next(&ways).contains(companion::RECORDER.file));
        let ways = [seen("record --recorder model", true)];
        assert_eq!(next(&ways), "gpureplay record -- ./app");
    }
}
