// SPDX-License-Identifier: MIT OR Apache-2.0
//! Kernel modules as Debian packages, built by DKMS.

use std::path::{Path, PathBuf};

use super::{
    Source, VERSION,
    deb::{control, copyright, read},
    tree::Tree,
};
use crate::{error::Result, files};

struct Package {
    /// The package adds `-dkms`.
    name: &'static str,
    modules: &'static [(&'static str, &'static str)],
    sources: &'static [(&'static str, &'static str)],
    installed: &'static [(&'static str, &'static str, u32)],
    fields: &'static str,
}

const NANO: Package = Package {
    name: "gpureplay-nano",
    modules: &[("gpureplay_nano", ".")],
    sources: &[("nano-driver", ".")],
    installed: &[
        (
            "nano-driver/60-gpureplay-nano.rules",
            "usr/lib/udev/rules.d/60-gpureplay-nano.rules",
            0o644,
        ),
        (
            "nano-driver/gpureplay-nano-bind",
            "usr/sbin/gpureplay-nano-bind",
            0o755,
        ),
        (
            "nano-driver/gpureplay-nano.service",
            "usr/lib/systemd/system/gpureplay-nano.service",
            0o644,
        ),
        (
            "nano-driver/60-gpureplay-nano.preset",
            "usr/lib/systemd/system-preset/60-gpureplay-nano.preset",
            0o644,
        ),
    ],
    fields: "Depends: dkms\nDescription: nano driver of gpureplay, built by DKMS\n \
             A kernel module that owns a Mali GPU's page tables and checks every register write of a replay.\n",
};

const RECORDER: Package = Package {
    name: "gpureplay-recorder",
    modules: &[
        ("gpureplay_recorder", "recorder"),
        ("gpureplay_kprobes", "kprobes"),
    ],
    sources: &[
        ("driver-patch", "."),
        ("driver-patch/recorder", "recorder"),
        ("driver-patch/kprobes", "kprobes"),
        ("driver-patch/panfrost", "panfrost"),
        ("driver-patch/kbase", "kbase"),
        ("driver-patch/kbase/platform", "kbase/platform"),
    ],
    installed: &[],
    fields: "Depends: dkms\nSuggests: coccinelle, linux-source\nDescription: recorder of gpureplay, built by DKMS\n \
             A kernel module that logs what a Mali driver does with its GPU, and one that hooks a driver of which there is only a\n \
             binary. gpureplay-build-driver makes a driver with hooks from its source.\n",
};

pub(super) fn write(source: &Source, packages: &Path) -> Result<[PathBuf; 2]> {
    Ok([
        NANO.write(source, packages)?,
        RECORDER.write(source, packages)?,
    ])
}

impl Package {
    fn write(&self, source: &Source, packages: &Path) -> Result<PathBuf> {
        let tree = Tree::new()?;
        let name = self.name;
        let folder = format!("usr/src/{name}-{VERSION}");
        for (from, to) in self.sources {
            let from = source.top.join(from);
            for path in files::entries(&from)? {
                let file = super::name(&path);
                if path.is_file() && is_source(&file) {
                    let bytes = files::read(&path)?;
                    let mode = if file == "build" { 0o755 } else { 0o644 };
                    tree.put(&format!("{folder}/{to}/{file}"), bytes, mode)?;
                }
            }
        }
        if self.modules.iter().any(|(_, within)| *within != ".") {
            tree.put(&format!("{folder}/Kbuild"), self.makefile(), 0o644)?;
            let wrapper = format!("#!/bin/sh\nexec bash /{folder}/build \"$@\"\n");
            tree.put("usr/bin/gpureplay-build-driver", wrapper, 0o755)?;
        }
        tree.put(&format!("{folder}/dkms.conf"), self.settings(), 0o644)?;
        for (from, to, mode) in self.installed {
            tree.put(to, read(source, from)?, *mode)?;
        }
        let licence = copyright(source, &["LICENSE-GPL-2.0"])?;
        tree.put(
            &format!("usr/share/doc/{name}-dkms/copyright"),
            licence,
            0o644,
        )?;
        let description = control(&format!("{name}-dkms"), "all", self.fields);
        tree.put("DEBIAN/control", description, 0o644)?;
        tree.put("DEBIAN/postinst", self.after_installation(), 0o755)?;
        tree.put("DEBIAN/prerm", self.before_removal(), 0o755)?;
        tree.pack(
            source,
            packages.join(format!("{name}-dkms_{VERSION}_all.deb")),
        )
    }

    /// One build for all modules, as they may call each other.
    fn makefile(&self) -> String {
        let folders: Vec<String> = self
            .modules
            .iter()
            .map(|(_, within)| format!("{within}/"))
            .collect();
        format!(
            "# SPDX-License-Identifier: GPL-2.0\nobj-m := {}\nsubdir-ccflags-y += -I$(src)/recorder\n",
            folders.join(" ")
        )
    }

    fn settings(&self) -> String {
        let mut text = format!(
            "PACKAGE_NAME=\"{}\"\nPACKAGE_VERSION=\"{VERSION}\"\n",
            self.name
        );
        for (number, (module, within)) in self.modules.iter().enumerate() {
            text += &format!(
                "BUILT_MODULE_NAME[{number}]=\"{module}\"\nBUILT_MODULE_LOCATION[{number}]=\"{within}\"\n\
                 DEST_MODULE_LOCATION[{number}]=\"/updates/dkms\"\n"
            );
        }
        let build = format!("${{dkms_tree}}/{}/{VERSION}/build", self.name);
        text + &format!(
            "MAKE[0]=\"make -C ${{kernel_source_dir}} M={build} modules\"\nAUTOINSTALL=\"yes\"\n"
        )
    }

    /// Debian's script builds for all kernels with headers, and fails if one fails.
    fn after_installation(&self) -> String {
        let group = match self.installed.is_empty() {
            true => "",
            // The preset leaves the service disabled.
            false => "\tgetent group render >/dev/null || addgroup --system render\n",
        };
        format!(
            "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n{group}\
             \t/usr/lib/dkms/common.postinst {} {VERSION} \"\" \"\" \"$2\"\nfi\n",
            self.name
        )
    }

    fn before_removal(&self) -> String {
        let name = self.name;
        format!(
            "#!/bin/sh\nset -e\nif [ -n \"$(dkms status -m {name} -v {VERSION})\" ]; then\n\
             \tdkms remove -m {name} -v {VERSION} --all\nfi\n"
        )
    }
}

fn is_source(name: &str) -> bool {
    ["Kbuild", "build", "releases"].contains(&name)
        || [".c", ".h", ".sh", ".cocci"]
            .iter()
            .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::{NANO, Package, RECORDER};

    #[test]
    fn settings_name_each_module_where_it_is_built() {
        assert!(RECORDER.settings().contains(
            "BUILT_MODULE_NAME[1]=\"gpureplay_kprobes\"\nBUILT_MODULE_LOCATION[1]=\"kprobes\"\n"
        ));
        assert!(
            RECORDER
                .makefile()
                .contains("obj-m := recorder/ kprobes/\n")
        );
        for package in [NANO, RECORDER] {
            let top = crate::repository::root();
            let Package {
                sources, installed, ..
            } = package;
            for (module, within) in package.modules {
                let from = sources.iter().find(|(_, to)| to == within);
                let (from, _) = from.expect("a folder");
                let kbuild = std::fs::read_to_string(top.join(from).join("Kbuild"));
                assert!(
                    kbuild
                        .expect("Kbuild")
                        .contains(&format!("obj-m := {module}.o"))
                );
            }
            for (from, _, _) in installed {
                assert!(top.join(from).is_file(), "{from}");
            }
        }
    }
}
