// SPDX-License-Identifier: MIT OR Apache-2.0
//! QEMU's options and start.

use std::{ffi::OsString, path::Path, process::Command};

use crate::folder::Folder;

/// Shared, so that the model sees the guest's memory.
pub(crate) const MACHINE: &str = "virt,gic-version=3,memory-backend=ram0";
const SECURE_MACHINE: &str = "virt,secure=on,gic-version=3,memory-backend=ram0";
/// With a device tree. Emulation is twice as fast as of `max`.
pub(crate) const CPUS: [&str; 2] = ["cortex-a57", "cortex-a76"];
const SMP: u32 = 2;
const KERNEL_OPTIONS: &str = "console=ttyAMA0 panic=-1 nokaslr loglevel=7";
/// MiB, unless a run asks for more.
pub(crate) const MEMORY: u32 = 2048;

/// The trees fit these options only; QEMU replaces the memory node.
pub(crate) fn device_tree_environment() -> Vec<(&'static str, String)> {
    vec![
        ("MACHINE", MACHINE.into()),
        ("CPUS", CPUS.join(" ")),
        ("SMP", SMP.to_string()),
        ("MEMORY", MEMORY.to_string()),
    ]
}

pub(crate) struct Machine<'a> {
    pub(crate) folder: &'a Folder,
    /// One of [`CPUS`].
    pub(crate) cpu: &'a str,
    pub(crate) memory: u32,
    /// Counts instructions, one a nanosecond; processors take turns.
    pub(crate) counted: bool,
    pub(crate) private: &'a Path,
    /// The guest's `/run/host`, read-only.
    pub(crate) host: &'a Path,
    /// The guest's `/opt/gpureplay`, read-only.
    pub(crate) payload: &'a Path,
    pub(crate) share: &'a Path,
    pub(crate) extra: Option<&'a Path>,
    pub(crate) kernel_options: &'a [String],
    pub(crate) interactive: bool,
    pub(crate) tree: Option<&'a Path>,
    /// Starts in the secure world; without it QEMU starts the kernel.
    pub(crate) firmware: Option<&'a Path>,
    pub(crate) secure_log: Option<&'a Path>,
}

/// The host listens on these sockets; QEMU connects them.
pub(crate) const CHANNELS: [&str; 4] = ["console", "control", "out", "err"];

impl Machine<'_> {
    /// The process dies with its parent.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        program(&mut command, &self.folder.guest, "qemu-system-aarch64");
        let machine = match self.firmware {
            Some(_) => SECURE_MACHINE,
            None => MACHINE,
        };
        command
            .args(["-M", machine, "-cpu", self.cpu])
            .args(["-nodefaults", "-no-reboot"])
            .args(match self.counted {
                false => ["-accel", "tcg,thread=multi"].as_slice(),
                true => &["-accel", "tcg,thread=single", "-icount", "shift=0"],
            })
            .args(["-smp", &SMP.to_string()])
            .args(["-m", &self.memory.to_string()])
            .arg("-object")
            .arg(format!(
                "memory-backend-memfd,id=ram0,size={}M,share=on",
                self.memory
            ))
            .args(["-display", "none", "-monitor", "none", "-nic", "none"])
            .arg("-qmp")
            .arg(with_path(
                "unix:",
                &self.socket("qmp"),
                ",server=on,wait=off",
            ))
            .arg("-kernel")
            .arg(self.folder.boot("Image"))
            .arg("-initrd")
            .arg(self.folder.boot("initramfs.gz"))
            .arg("-append")
            .arg(format!(
                "{KERNEL_OPTIONS} {}",
                self.kernel_options.join(" ")
            ))
            .arg("-device")
            .arg(with_path(
                r#"{"driver":"vfio-user-pci","addr":"01.0","socket":{"type":"unix","path":""#,
                &self.socket("gpu"),
                r#""}}"#,
            ))
            .arg("-drive")
            .arg(with_path(
                "if=none,id=disk,format=raw,snapshot=on,file=",
                &self.folder.boot("root.ext4"),
                "",
            ))
            .args(["-device", "virtio-blk-pci,drive=disk,addr=02.0"]);
        match self.firmware {
            // The device tree is QEMU's, which has no GPU. The second serial line is the secure world's.
            Some(firmware) => command.arg("-bios").arg(firmware),
            None => {
                let own = self.folder.boot(&format!("{}.dtb", self.cpu));
                command.arg("-dtb").arg(self.tree.unwrap_or(&own))
            }
        };
        self.shares(&mut command);
        self.channels(&mut command);
        command
    }

    fn shares(&self, command: &mut Command) {
        let shares = [
            ("host", self.host, ",readonly=on", "03.0"),
            ("opt", self.payload, ",readonly=on", "04.0"),
            ("share", self.share, "", "05.0"),
        ];
        let extra = self
            .extra
            .map(|path| ("extra", path, ",readonly=on", "07.0"));
        for (name, path, mode, slot) in shares.into_iter().chain(extra) {
            command
                .arg("-fsdev")
                .arg(with_path(
                    &format!("local,id={name},security_model=none{mode},path="),
                    path,
                    "",
                ))
                .arg("-device")
                .arg(format!(
                    "virtio-9p-pci,fsdev={name},mount_tag={name},addr={slot}"
                ));
        }
    }

    fn channels(&self, command: &mut Command) {
        for name in CHANNELS {
            command.arg("-chardev").arg(with_path(
                &format!("socket,id={name},path="),
                &self.socket(name),
                "",
            ));
        }
        command.args([
            "-serial",
            "chardev:console",
            "-device",
            "virtio-serial-pci,id=ports,addr=06.0",
        ]);
        if let Some(log) = self.secure_log {
            command.arg("-serial").arg(with_path("file:", log, ""));
        }
        if self.interactive {
            command.args([
                "-chardev",
                "stdio,id=terminal,signal=off",
                "-device",
                "virtconsole,bus=ports.0,chardev=terminal",
            ]);
        }
        for name in ["control", "out", "err"] {
            command.arg("-device").arg(format!(
                "virtserialport,bus=ports.0,chardev={name},name={name}"
            ));
        }
    }

    fn socket(&self, name: &str) -> std::path::PathBuf {
        socket(self.private, name)
    }
}

pub(crate) fn socket(private: &Path, name: &str) -> std::path::PathBuf {
    private.join(format!("{name}.sock"))
}

/// Adds a program, run by the build root's own loader: needs no chroot, so no root.
pub(crate) fn program(command: &mut Command, guest: &Path, name: &str) {
    tool(command, guest, name);
    let root = guest.join("build-root");
    for data in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
        command.arg("-L").arg(root.join(data));
    }
}

pub(crate) fn tool(command: &mut Command, guest: &Path, name: &str) {
    let root = guest.join("build-root");
    let libraries = root.join("usr/lib/x86_64-linux-gnu");
    let mut search = OsString::from(&libraries);
    search.push(":");
    search.push(libraries.join("pulseaudio"));
    command
        .env("QEMU_MODULE_DIR", libraries.join("qemu"))
        .arg(root.join("usr/lib64/ld-linux-x86-64.so.2"))
        .arg("--library-path")
        .arg(search)
        .arg(root.join("usr/bin").join(name));
}

pub(crate) fn with_path(before: &str, path: &Path, after: &str) -> OsString {
    let mut option = OsString::from(before);
    option.push(path);
    option.push(after);
    option
}
