// SPDX-License-Identifier: MIT OR Apache-2.0
//! One recording for several GPUs.

use std::fs;
use std::path::{Path, PathBuf};

use crate::start::{Ended, Folder, Says, said as ran, shipped, well};

fn digits(folder: &Folder) -> PathBuf {
    let made = folder.path().join("digits");
    let from = shipped("digits-g52");
    let (from, to) = (from.to_str().unwrap(), made.to_str().unwrap());
    well(&format!(
        "retarget {from} --gpu rk3566 --gpu g76 --variants --trials 1 -o {to}"
    ));
    made
}

#[test]
fn a_run_takes_the_variant_that_fits() {
    let folder = Folder::default();
    let made = digits(&folder);
    let at = |name: &str| made.join(name);
    let first = fs::read(at("recording.gpr")).unwrap();
    assert_eq!(
        first,
        fs::read(shipped("digits-g52").join("recording.gpr")).unwrap()
    );
    for variant in ["rk3566.variant", "g76.variant"] {
        let bytes = fs::metadata(at(variant)).unwrap().len();
        assert!(bytes < first.len() as u64 / 10, "{variant}: {bytes}");
    }
    let made = made.to_str().unwrap();
    assert!(well(&format!("info {made}")).contains("with variants for rk3566, g76"));
    well(&format!("verify --deep {made}"));
    let [pack, key] = ["digits.pack", "key"].map(|name| folder.at(name));
    let (pack, key) = (pack.to_str().unwrap(), key.to_str().unwrap());
    well(&format!("keygen {key}"));
    let [secret, public] = [".pem", ".pub.pem"].map(|end| format!("{key}{end}"));
    well(&format!("sign --key {secret} {made}"));
    well(&format!("pack {made} -o {pack}"));
    for recording in [made, pack] {
        for device in ["model", "model:g52-r1", "model:g76"] {
            for digit in ["3", "7"] {
                let picture = shipped("digits-g52").join(format!("inputs/{digit}.npy"));
                let input = format!("input={}", picture.display());
                let run = format!("run {recording} --device {device} --input {input}");
                let text = well(&format!("{run} --require-signature {public}"));
                text.says("bit for bit");
            }
        }
    }
    let other = fs::read(at("rk3566.variant")).unwrap();
    let variant = fs::read(at("g76.variant")).unwrap();
    fs::write(at("g76.variant"), other).unwrap();
    ran(&format!("run {made} --require-signature {public}"))
        .failed("g76.variant: it is not the file that was signed");
    fs::write(at("g76.variant"), variant).unwrap();
    ran(&format!("run {made} --device model:g31")).ended(5, "GPU_ID");
}

#[test]
fn damage_is_named_and_changed_recordings_have_no_variants() {
    let folder = Folder::default();
    let made = digits(&folder);
    let path = made.to_str().unwrap();
    let variant = made.join("g76.variant");
    let sound = fs::read(&variant).unwrap();

    let mut damaged = sound.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&variant, damaged).unwrap();
    let on_g76 = format!("run {path} --device model:g76");
    for command in [&format!("verify {path}"), &on_g76] {
        ran(command).failed("g76.variant").says("checksum");
    }
    let key = folder.at("key");
    let key = key.to_str().unwrap();
    well(&format!("keygen {key}"));
    let secret = format!("{key}.pem");
    let packed = folder.at("digits.pack");
    let packed = packed.to_str().unwrap();
    for command in [
        format!("sign --key {secret} {path}"),
        format!("pack {path} -o {packed}"),
    ] {
        ran(&command).ended(3, "g76.variant");
    }
    assert!(!Path::new(packed).exists() && !made.join("recording.sig").exists());
    well(&format!("run {path}"));

    fs::copy(made.join("rk3566.variant"), &variant).unwrap();
    ran(&format!("verify {path}")).failed("g76.variant: its SHA-256 is");

    fs::remove_file(&variant).unwrap();
    ran(&on_g76).failed("g76.variant");

    ran(&format!("verify {path}/rk3566.variant")).failed("");

    // Variants hold this recording's data.
    fs::write(&variant, sound).unwrap();
    for (command, options) in [
        ("link", "--split"),
        ("retarget", "--gpu h616 --trials 1"),
        ("patch", "--job 11 --local 1x1"),
    ] {
        let other = folder.at(command);
        let place = other.display();
        well(&format!("{command} {path} {options} -o {place}"));
        well(&format!("verify {place}"));
        assert!(!other.join("g76.variant").exists(), "{command}");
        let shown = well(&format!("info {place}"));
        assert!(!shown.contains("variants"), "{command}");
    }
}
