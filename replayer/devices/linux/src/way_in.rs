// SPDX-License-Identifier: MIT OR Apache-2.0
//! How somebody whom the mode of the nano driver's device keeps out gets in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Gid, Group};

/// A group with this bit in the mode may open the device for reading and writing.
const GROUP_MAY: u32 = 0o060;

/// What lets the caller open the device at `path`: to join its group, if the mode admits that.
pub(crate) fn way_in(path: &Path) -> String {
    let state = fs::metadata(path).ok();
    let admitted = state.filter(|state| state.mode() & GROUP_MAY == GROUP_MAY && state.gid() != 0);
    let group =
        admitted.and_then(|state| Group::from_gid(Gid::from_raw(state.gid())).ok().flatten());
    match group {
        Some(Group { name, .. }) => format!(
            "join the group {name} and log in again: sudo usermod -aG {name} $USER; or run as root"
        ),
        None => "let the group render in with nano-driver/60-gpureplay-nano.rules and join it, or run as root".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_group_is_named_if_it_may_open_the_device() {
        let path = std::env::temp_dir().join(format!("gpureplay-way-in-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let with_mode = |mode| {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            way_in(&path)
        };
        let (closed, open) = (with_mode(0o600), with_mode(0o660));
        let group = fs::metadata(&path).unwrap().gid();
        fs::remove_file(&path).unwrap();
        assert!(closed.contains("60-gpureplay-nano.rules"), "{closed}");
        match Group::from_gid(Gid::from_raw(group)).unwrap() {
            Some(group) if group.gid.as_raw() != 0 => {
                assert!(
                    open.contains(&format!("usermod -aG {} ", group.name)),
                    "{open}"
                );
            }
            // Nobody is told to join the group of root.
            _ => assert_eq!(open, closed),
        }
    }
}
