// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this work tree adds to the guest.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    build::step::{Fingerprint, logged},
    error::{Error, Result},
    files,
    folder::{Folder, place},
    run::driver::Driver,
};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const REPLAYER: [&str; 9] = [
    "gpureplay",
    "gpureplay-core",
    "gpureplay-format",
    "gpureplay-library",
    "gpureplay-linux",
    "gpureplay-host",
    "gpureplay-tensors",
    "gpureplay-recorder",
    "gpureplay-trace",
];
const SERVER_VARIABLE: &str = "GPUREPLAY_MODEL_SERVER";

pub(crate) fn build(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    apps(folder)?;
    command(folder)?;
    opencl_layer(folder)?;
    patched_driver(folder)?;
    host_server(folder)
}

pub(crate) fn prepare(folder: &Folder, driver: Driver) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    apps(folder)?;
    if driver == Driver::Patched {
        command(folder)?;
        opencl_layer(folder)?;
        patched_driver(folder)?;
    }
    host_server(folder)
}

pub(crate) fn model_server(folder: &Folder) -> Result<PathBuf> {
    let path = match env::var_os(SERVER_VARIABLE) {
        Some(path) => PathBuf::from(path),
        None => target_dir(folder).join("release/mali-vfio-user"),
    };
    if path.is_file() {
        Ok(path)
    } else {
        Err(Error::missing(
            format!("the model server ({})", path.display()),
            "run `cargo xtask guest build`",
        ))
    }
}

fn target_dir(folder: &Folder) -> PathBuf {
    gpureplay_task::target(&folder.repository)
}

fn apps(folder: &Folder) -> Result<()> {
    let mut make = in_root(folder);
    make.args(["make", "--no-print-directory", "-j2", "-C"])
        .arg(folder.recipe().join("apps"))
        .arg(with("OUT=", &folder.payload()))
        .arg("SYSROOT=/guest/userland");
    run(folder, &mut make, "test programs")
}

pub(crate) fn clblast(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    let unpacked = folder.local.join("clblast");
    if !unpacked.join("version").is_file() {
        let mut unpack = in_root(folder);
        unpack
            .arg("bash")
            .arg(folder.recipe().join("clblast.sh"))
            .arg(&unpacked);
        run(folder, &mut unpack, "CLBlast")?;
    }
    apps(folder)
}

pub(crate) fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    )
}

fn command(folder: &Folder) -> Result<()> {
    let built = cross_static(folder, &["-p", "gpureplay"], "gpureplay for the guest")?;
    install(&built.join("gpureplay"), &folder.payload().join("bin"))
}

/// On the guest's C library, since apps load them.
fn opencl_layer(folder: &Folder) -> Result<()> {
    shared(folder, "gpureplay-opencl", "libgpureplay_opencl.so")?;
    shared(folder, "gpureplay-recorder", "libgpureplay_recorder.so")
}

fn shared(folder: &Folder, package: &str, library: &str) -> Result<()> {
    let built = cross_shared(folder, package)?;
    install(&built.join(library), &folder.payload().join("lib"))
}

fn shared_command(folder: &Folder, to: &Path) -> Result<()> {
    let built = cross_shared(folder, "gpureplay")?;
    install(&built.join("gpureplay"), to)
}

fn cross_shared(folder: &Folder, package: &str) -> Result<PathBuf> {
    let to = folder.local.join("cargo-shared");
    cross_with(folder, &["-p", package], package, ("", &to))
}

pub(crate) fn user_recorder(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    command(folder)?;
    opencl_layer(folder)
}

pub(crate) fn static_command(folder: &Folder) -> Result<PathBuf> {
    let _lock = Folder::lock(&folder.local)?;
    command(folder)?;
    Ok(folder.payload().join("bin/gpureplay"))
}

pub(crate) fn replayer(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    command(folder)?;
    device_test(folder)
}

fn device_test(folder: &Folder) -> Result<()> {
    let example = ["-p", "gpureplay-linux", "--example", "device_test"];
    let built = cross_static(folder, &example, "device test")?;
    let to = folder.payload().join("nano");
    install(&built.join("examples/device_test"), &to)
}

fn device_tests(folder: &Folder) -> Result<()> {
    let to = folder.payload().join("nano");
    device_test(folder)?;
    let example = ["-p", "gpureplay-library", "--example", "state_faults"];
    let built = cross_static(folder, &example, "faults of states")?;
    install(&built.join("examples/state_faults"), &to)?;
    hostile(folder)
}

pub(crate) fn hostile(folder: &Folder) -> Result<()> {
    let source = "nano-driver/tests/hostile.c";
    let to = folder.payload().join("nano/hostile");
    c_program(folder, &["-static"], source, (&to, "hostile client"))
}

fn c_program(
    folder: &Folder,
    library: &[&str],
    source: &str,
    (to, what): (&Path, &str),
) -> Result<()> {
    let mut compile = in_root(folder);
    compile
        .args(["aarch64-linux-gnu-gcc", "-O1"])
        .args(library)
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(to)
        .arg(folder.repository.join(source));
    run(folder, &mut compile, what)
}

fn install(program: &Path, to: &Path) -> Result<()> {
    files::create_dir(to)?;
    place(program, &to.join(program.file_name().unwrap_or_default()))
}

fn cross_static(folder: &Folder, package: &[&str], what: &str) -> Result<PathBuf> {
    let target = folder.local.join("cargo");
    let flags = "-C target-feature=+crt-static";
    cross_with(folder, package, what, (flags, &target))
}

fn cross_with(
    folder: &Folder,
    package: &[&str],
    what: &str,
    (flags, target): (&str, &Path),
) -> Result<PathBuf> {
    let home = cargo_home();
    // The build root has no registry: fetch here, build offline there.
    let mut fetch = cargo();
    fetch
        .args(["fetch", "--locked", "--target", TARGET])
        .current_dir(&folder.repository);
    run(folder, &mut fetch, "crates for the guest")?;
    let mut build = in_root(folder);
    build
        .env("GPUREPLAY_BIND", &home)
        .arg("env")
        .arg(with("CARGO_HOME=", &home))
        .arg(format!(
            "CARGO_TARGET_{}_LINKER=aarch64-linux-gnu-gcc",
            TARGET.to_uppercase().replace('-', "_")
        ))
        .arg(format!("RUSTFLAGS={flags}"))
        // Mostly the model, which does not run there: do not optimize it.
        .args([
            "CARGO_PROFILE_RELEASE_DEBUG=0",
            "CARGO_PROFILE_RELEASE_OPT_LEVEL=1",
        ])
        .args(["cargo", "build", "--offline", "--locked", "--release"])
        .args(REPLAYER.iter().flat_map(|name| {
            let setting = format!("profile.release.package.{name}.opt-level=3");
            ["--config".to_owned(), setting]
        }))
        .args(package)
        .args(["--target", TARGET, "--target-dir"])
        .arg(target);
    run(folder, &mut build, what)?;
    Ok(target.join(TARGET).join("release"))
}

pub(crate) fn kbase(folder: &Folder, source: &Path) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    device_test(folder)?;
    opencl_layer(folder)?;
    // The recorder in user space needs the guest's C library.
    let programs = folder.payload().join("shared");
    shared_command(folder, &programs)?;
    for (name, kind) in [
        ("grow", "-pthread"),
        ("atoms", "-pthread"),
        ("taken", "-shared"),
    ] {
        let source = format!("driver-patch/kbase/{name}.c");
        let to = programs.join(format!("kbase-{name}"));
        let options = ["--sysroot=/guest/userland", "-fPIC", kind];
        c_program(folder, &options, &source, (&to, "clients of kbase"))?;
    }
    build_host_command(folder)?;
    host_server(folder)?;
    let modules = folder.payload().join("kbase");
    let stamp = folder.local.join("kbase-made-for");
    let mut hash = Fingerprint::default();
    let ours = folder.repository.join("driver-patch");
    hash.file(&ours.join("build"))?;
    for part in ["kbase", "recorder"] {
        hash.tree(&ours.join(part))?;
    }
    hash.bytes(source.as_os_str().as_encoded_bytes());
    hash.tree(source)?;
    let wanted = hash.text();
    if modules.join("order").is_file()
        && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted)
    {
        return Ok(());
    }
    let _ = fs::remove_file(&stamp);
    // Arm's packages have headers four folders up.
    let above = source.ancestors().nth(4);
    let bind = above.filter(|dir| dir.parent().is_some()).unwrap_or(source);
    let mut build = in_root(folder);
    build
        .env("GPUREPLAY_BIND", bind)
        .arg("bash")
        .arg(folder.repository.join("driver-patch/build"))
        .args(["kbase", "--cc", "aarch64-linux-gnu-gcc-12"])
        .args(["--platform", "none"])
        .args(["--kernel", "/guest/linux-5.10/headers/build", "--source"])
        .arg(source)
        .arg("--out")
        .arg(modules);
    run(folder, &mut build, "kbase")?;
    files::write(&stamp, wanted)
}

fn patched_driver(folder: &Folder) -> Result<()> {
    let sources = folder.repository.join("driver-patch");
    let release = folder.stock_kernel()?;
    let modules = folder.payload().join("modules");
    let stamp = folder.local.join("modules-made-for");
    let mut hash = Fingerprint::default();
    hash.bytes(release.as_bytes());
    hash.tree(&sources)?;
    let wanted = hash.text();
    if modules.join("order").is_file()
        && fs::read_to_string(&stamp).is_ok_and(|made| made == wanted)
    {
        return Ok(());
    }
    let source = folder.stock_source()?;
    let _ = fs::remove_file(&stamp);
    let mut build = in_root(folder);
    build
        .arg("bash")
        .arg(sources.join("build"))
        .args([
            "panfrost", "--source", &source, "--kernel", &release, "--out",
        ])
        .arg(modules);
    run(folder, &mut build, "patched driver")?;
    files::write(&stamp, wanted)
}

pub(crate) fn repaired_driver(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    let release = folder.stock_kernel()?;
    let source = folder.stock_source()?;
    let work = sources(folder, "driver-patch/upstream", "upstream")?;
    let mut patch = in_root(folder);
    patch
        .args(["bash", "-ec", REPAIR, "repair", &source])
        .arg(&work);
    run(folder, &mut patch, "repaired driver's source")?;
    let panfrost = work.join("tree/drivers/gpu/drm/panfrost");
    let mut make = nano_make(folder, &release, &panfrost);
    make.arg("CONFIG_DRM_PANFROST=m");
    // The kernel's installed headers lack the flag.
    make.arg("KCFLAGS=-DPANFROST_BO_FIXED=8");
    run(folder, &mut make, "repaired driver")?;
    let to = folder.payload().join("upstream");
    install(&work.join("fixed"), &to)?;
    install(&panfrost.join("panfrost.ko"), &to)
}

const REPAIR: &str = "\
rm -rf $2/tree
mkdir -p $2/tree/drivers/gpu/drm $2/tree/include/uapi/drm
cp -r $1/drivers/gpu/drm/panfrost $2/tree/drivers/gpu/drm/
cp $1/include/uapi/drm/panfrost_drm.h $2/tree/include/uapi/drm/
for change in faults fixed; do
	bash $2/mail $change --source $1 --from 'A Tester <tester@example.org>' > $2/$change.patch
	perl $1/scripts/checkpatch.pl --strict --no-tree $2/$change.patch
	patch --directory=$2/tree --strip=1 --fuzz=0 < $2/$change.patch
done
perl $1/scripts/checkpatch.pl --strict --no-tree -f $2/fixed.c
aarch64-linux-gnu-gcc -static -O1 -Wall -Wextra -Werror -isystem $2/tree/include/uapi -isystem /usr/aarch64-linux-gnu/include/drm \
	-o $2/fixed $2/fixed.c
";

pub(crate) fn nano_driver(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    command(folder)?;
    device_tests(folder)?;
    let release = folder.stock_kernel()?;
    let work = nano_sources(folder, "nano")?;
    run(
        folder,
        &mut nano_make(folder, &release, &work),
        "nano driver",
    )?;
    install(
        &work.join("gpureplay_nano.ko"),
        &folder.payload().join("nano"),
    )
}

pub(crate) fn probes(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    let release = folder.stock_kernel()?;
    let mut build = in_root(folder);
    build
        .arg("bash")
        .arg(folder.repository.join("driver-patch/build"))
        .args(["kprobes", "--kernel", &release, "--out"])
        .arg(folder.payload().join("probes"));
    run(folder, &mut build, "probes")
}

pub(crate) fn board_modules(folder: &Folder) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    let release = folder.stock_kernel()?;
    let work = sources(folder, "tools/guest/modules", "test-modules")?;
    let mut make = nano_make(folder, &release, &work);
    run(folder, &mut make, "modules around the GPU")?;
    let to = folder.payload().join("board");
    for name in [
        "gpureplay_caches.ko",
        "gpureplay_power.ko",
        "gpureplay_binary.ko",
    ] {
        install(&work.join(name), &to)?;
    }
    let modules = folder.guest.join("kernel/usr/lib/modules").join(release);
    install(&modules.join("kernel/drivers/regulator/fixed.ko.xz"), &to)
}

pub(crate) fn nano_sources(folder: &Folder, name: &str) -> Result<PathBuf> {
    sources(folder, "nano-driver", name)
}

fn sources(folder: &Folder, from: &str, name: &str) -> Result<PathBuf> {
    let work = folder.local.join(name);
    files::create_dir(&work)?;
    let sources = folder.repository.join(from);
    for path in files::entries(&sources)? {
        if path.is_file() {
            let to = work.join(path.file_name().unwrap_or_default());
            files::copy(&path, to)?;
        }
    }
    Ok(work)
}

pub(crate) fn nano_mutant(
    folder: &Folder,
    file: &str,
    changes: &[(&str, &str)],
    module: &Path,
) -> Result<()> {
    let _lock = Folder::lock(&folder.local)?;
    let release = folder.stock_kernel()?;
    let work = nano_sources(folder, "nano-mutant")?;
    let path = work.join(file);
    let mut text = files::text(&path)?;
    for (from, to) in changes {
        if text.matches(from).count() != 1 {
            let message = format!("nano-driver/{file} has `{from}` not once");
            return Err(Error::Usage(message));
        }
        text = text.replace(from, to);
    }
    files::write(&path, text)?;
    let mut make = nano_make(folder, &release, &work);
    run(folder, &mut make, "changed nano driver")?;
    let built = work.join("gpureplay_nano.ko");
    place(&built, module)
}

pub(crate) fn nano_make(folder: &Folder, release: &str, work: &Path) -> Command {
    let mut build = in_root(folder);
    build
        .args(["make", "-s", "ARCH=arm64"])
        .arg("CROSS_COMPILE=aarch64-linux-gnu-")
        .arg(format!("-C/usr/src/linux-headers-{release}"))
        .arg(with("M=", work))
        .arg("modules");
    build
}

pub(crate) fn python(folder: &Folder, program: &Path, arguments: &[&OsStr]) -> Result<()> {
    let mut python = in_root(folder);
    python
        .env(
            "GPUREPLAY_BIND",
            arguments.last().copied().unwrap_or_default(),
        )
        .arg("python3")
        .arg(program)
        .args(arguments);
    let log = program
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    run(folder, &mut python, &log)
}

pub(crate) fn build_host_command(folder: &Folder) -> Result<()> {
    gpureplay_task::build(&folder.repository, &["--bin", "gpureplay"]).map(drop)
}

pub(crate) fn build_release_command(folder: &Folder) -> Result<()> {
    let mut build = cargo();
    build
        .args(["build", "--locked", "--release", "-p", "gpureplay"])
        .current_dir(&folder.repository);
    run(folder, &mut build, "gpureplay for the host, optimised")
}

pub(crate) fn release_command(folder: &Folder) -> PathBuf {
    target_dir(folder).join("release/gpureplay")
}

pub(crate) fn host_command(folder: &Folder) -> PathBuf {
    target_dir(folder).join("debug/gpureplay")
}

fn host_server(folder: &Folder) -> Result<()> {
    if env::var_os(SERVER_VARIABLE).is_some() {
        return Ok(());
    }
    let mut build = cargo();
    build
        .args(["build", "--release", "--locked", "-p", "mali-vfio-user"])
        .current_dir(&folder.repository);
    run(folder, &mut build, "model server")
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

pub(crate) fn in_root(folder: &Folder) -> Command {
    let mut command = Command::new(folder.guest.join("in-root"));
    command.current_dir(&folder.repository);
    command
}

fn run(folder: &Folder, command: &mut Command, what: &str) -> Result<()> {
    let name = what.replace(' ', "-");
    logged(
        command,
        what,
        &folder.local.join("log").join(format!("{name}.log")),
    )
}

pub(crate) fn with(before: &str, path: &Path) -> OsString {
    let mut option = OsString::from(before);
    option.push(path);
    option
}
