// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys, signatures and packs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::start::{self, Ended, Says};

struct Folder(start::Folder);

impl Folder {
    fn with_recording() -> Self {
        Self(start::Folder::with("saxpy-g52", "saxpy"))
    }

    fn at(&self, name: &str) -> String {
        self.0.text(name)
    }

    /// `@` stands for this directory.
    fn ran(&self, line: &str) -> (i32, String) {
        self.0.ran(start::GPUREPLAY, line)
    }
}

const REQUIRED: &str = "run --require-signature @key.pub.pem @saxpy";

#[test]
fn a_signed_recording_runs_and_a_changed_one_does_not() {
    let folder = Folder::with_recording();
    folder.ran("keygen @key").gave(0);
    let mode = fs::metadata(folder.at("key.pem"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    folder.ran("keygen @key").gave(6);

    folder.ran(REQUIRED).ended(3, "recording.sig");
    folder.ran("sign --key @key.pem --counter 4 @saxpy").gave(0);
    folder.ran(REQUIRED).ended(0, "bit for bit");
    folder
        .ran("verify --require-signature @key.pub.pem --min-counter 4 @saxpy")
        .gave(0);
    folder
        .ran("verify --require-signature @key.pub.pem --min-counter 5 @saxpy")
        .ended(3, "counter is 4");

    for name in ["recording.gpr", "manifest.toml", "recording.sig"] {
        let path = folder.at(&format!("saxpy/{name}"));
        let original = fs::read(&path).unwrap();
        let mut changed = original.clone();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&path, changed).unwrap();
        folder.ran(REQUIRED).gave(3);
        fs::write(&path, original).unwrap();
    }
    let inputs = fs::read_dir(folder.at("saxpy/inputs")).unwrap();
    let input = inputs.map(|entry| entry.unwrap().path()).next().unwrap();
    fs::write(&input, b"other").unwrap();
    folder
        .ran(REQUIRED)
        .ended(3, "not the file that was signed");
}

#[test]
fn another_key_is_refused() {
    let folder = Folder::with_recording();
    folder.ran("keygen @key").gave(0);
    folder.ran("keygen @other").gave(0);
    folder.ran("sign --key @other.pem @saxpy").gave(0);
    folder.ran(REQUIRED).ended(3, "another key");
    folder
        .ran("sign --key @key.pub.pem @saxpy")
        .ended(4, "no Ed25519 key");
    folder.ran("run --require-signature nothing @saxpy").gave(4);
}

#[test]
fn a_pack_takes_the_place_of_the_directory() {
    let folder = Folder::with_recording();
    folder.ran("keygen @key").gave(0);
    folder.ran("sign --key @key.pem @saxpy").gave(0);
    folder.ran("pack @saxpy -o @saxpy.pack").ended(0, "signed");
    fs::remove_dir_all(folder.at("saxpy")).unwrap();
    let text = folder.ran("run @saxpy.pack").ended(0, "bit for bit");
    // The private copy is gone by then.
    text.says("saxpy.pack/inputs/x.npy");
    folder
        .ran("run @saxpy.pack --inject bus-fault@0")
        .ended(5, "saxpy.pack: action");
    for command in ["info", "verify", "dump", "disasm"] {
        folder.ran(&format!("{command} @saxpy.pack")).gave(0);
    }
    folder
        .ran("run --require-signature @key.pub.pem @saxpy.pack")
        .gave(0);
    let mut bytes = fs::read(folder.at("saxpy.pack")).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(folder.at("saxpy.pack"), bytes).unwrap();
    folder.ran("run @saxpy.pack").ended(3, "checksum");
}

#[test]
fn a_manifest_that_points_outside_is_neither_signed_nor_packed() {
    let folder = Folder::with_recording();
    let path = folder.at("saxpy/manifest.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"inputs/", "\"../saxpy/inputs/")).unwrap();
    folder.ran("keygen @key").gave(0);
    folder
        .ran("sign --key @key.pem @saxpy")
        .ended(3, "inside the directory");
    folder.ran("pack @saxpy -o @saxpy.pack").gave(3);
}

#[test]
fn signers_at_once_leave_one_whole_signature() {
    let folder = Folder::with_recording();
    folder.ran("keygen @key").gave(0);
    std::thread::scope(|scope| {
        for counter in 1..=8 {
            let folder = &folder;
            scope.spawn(move || {
                for _ in 0..4 {
                    let line = format!("sign --force --key @key.pem --counter {counter} @saxpy");
                    folder.ran(&line).gave(0);
                }
            });
        }
        for _ in 0..8 {
            let (code, text) = folder.ran("run --require-signature @key.pub.pem @saxpy");
            let none = text.contains("a signature is required");
            assert!(code == 0 || code == 3 && none, "{code} {text}");
        }
    });
    let least = |counter: u32| {
        let line = format!("run --require-signature @key.pub.pem --min-counter {counter} @saxpy");
        folder.ran(&line).0
    };
    let last = (1..=9).take_while(|counter| least(*counter) == 0).count();
    assert!((1..=8).contains(&last), "{last}");
}
