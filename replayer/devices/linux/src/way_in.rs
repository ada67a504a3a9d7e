// SPDX-License-Identifier: MIT OR Apache-2.0
//! How users without rights get in.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Gid, Group};

const GROUP_MAY: u32 = 0o060;

pub(crate) fn to_render_node(path: &Path) -> String {
    by_group(path).unwrap_or_else(|| {
        format!(
            "let the group render in (sudo chgrp render {0}; sudo chmod 660 {0}) and join it, or run as root",
            path.display()
        )
    })
}

pub(crate) fn way_in(path: &Path) -> String {
    by_group(path).unwrap_or_else(|| {
        "let the group render in with nano-driver/60-gpureplay-nano.rules and join it, or run as root".into()
    })
}

fn by_group(path: &Path) -> Option<String> {
    let state = fs::metadata(path).ok();
    let admitted = state.filter(|state| state.mode() & GROUP_MAY == GROUP_MAY && state.gid() != 0);
    let group =
        admitted.and_then(|state| Group::from_gid(Gid::from_raw(state.gid())).ok().flatten());
    group.map(|Group { name, .. }| {
        format!(
            "join the group {name} and log in again: sudo usermod -aG {name} $USER; or run as root"
        )
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn the_group_is_named_if_it_may_open_the_device() {
        let path = std::env::temp_dir().join(format!("gpureplay-way-in-{}", std::process::id()));
        fs::write(&path, "").unwrap();
        let with = |mode, group: Option<&Group>| {
            // Root may use any group; a user has one that is not root's.
            if let Some(group) = group {
                let _ = chown(&path, None, Some(group.gid.as_raw()));
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            way_in(&path)
        };
        let group = |name| Group::from_name(name).unwrap();
        let open = with(0o660, group("daemon").as_ref());
        let gid = fs::metadata(&path).unwrap().gid();
        let (read_only, closed) = (with(0o640, None), with(0o600, None));
        let of_root = with(0o660, group("root").as_ref());
        let is_of_root = fs::metadata(&path).unwrap().gid() == 0;
        fs::remove_file(&path).unwrap();
        match Group::from_gid(Gid::from_raw(gid)).unwrap() {
            Some(Group { name, .. }) => {
                assert_ne!(gid, 0);
                assert!(open.contains(&format!("usermod -aG {name} ")), "{open}");
            }
            // Containers have groups without names.
            None => assert_eq!(open, closed),
        }
        assert!(closed.contains("60-gpureplay-nano.rules"), "{closed}");
        assert_eq!(read_only, closed);
        // Never suggest root's group.
        assert_eq!(of_root == closed, is_of_root, "{of_root}");
    }
}
