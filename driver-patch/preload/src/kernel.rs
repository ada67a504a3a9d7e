// SPDX-License-Identifier: MIT OR Apache-2.0
//! Process's driver and kernel.

use std::ffi::{c_ulong, c_void};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::driver::{Driver, Mapped};
use crate::files::Sealed;
use crate::memory::View;
use crate::next;
use crate::object::Object;
use crate::threads::Asleep;
use gpureplay_trace::Driver as Driven;
use mali_uapi::kbase::{Property, request as kbase};
use mali_uapi::panfrost::request::{self as uapi, Request};
use mali_uapi::panthor::{self, GpuInfo};

pub(crate) struct Kernel;

/// `Err` is `errno`.
fn request<T>(fd: RawFd, request: Request, argument: &mut T) -> Result<(), i32> {
    debug_assert_eq!(request.size(), size_of::<T>());
    loop {
        // SAFETY: the argument is the request's structure, with pointers to what outlives the call.
        let done = unsafe {
            next::ioctl(
                fd,
                c_ulong::from(request.0),
                ptr::from_mut(argument).cast::<c_void>(),
            )
        };
        match next::errno() {
            _ if done >= 0 => return Ok(()),
            libc::EINTR | libc::EAGAIN => {}
            error => return Err(error),
        }
    }
}

impl Driver for Kernel {
    fn kind(&self, fd: RawFd) -> Option<Driven> {
        if is_kbase(fd) {
            // The driver tells nothing before the context has its flags.
            return (!self.properties(fd).is_empty()).then_some(Driven::Kbase);
        }
        let mut name = [0u8; 16];
        let mut version = uapi::Version {
            name_length: name.len(),
            name: name.as_mut_ptr().expose_provenance(),
            ..uapi::Version::default()
        };
        request(fd, uapi::VERSION, &mut version).ok()?;
        [Driven::Panfrost, Driven::Panthor]
            .into_iter()
            .find(|kind| name.split(|byte| *byte == 0).next() == Some(kind.name().as_bytes()))
    }

    fn gpu_info(&self, fd: RawFd) -> Option<GpuInfo> {
        let mut info = GpuInfo::default();
        let mut query = panthor::DevQuery {
            kind: panthor::query::GPU_INFO,
            size: size_of::<GpuInfo>() as u32,
            pointer: pointer(ptr::from_mut(&mut info)),
        };
        request(fd, panthor::DEV_QUERY, &mut query).ok()?;
        Some(info)
    }

    fn properties(&self, fd: RawFd) -> Vec<Property> {
        /// Releases have about a thousand bytes.
        const MOST: usize = 1 << 14;
        let mut bytes = vec![0u8; MOST];
        let mut asked = kbase::Buffer {
            buffer: pointer(bytes.as_mut_ptr()),
            size: MOST as u32,
            zero: 0,
        };
        let argument = ptr::from_mut(&mut asked).cast();
        // SAFETY: the driver writes at most as many bytes as told, and says how many.
        let written = unsafe { next::ioctl(fd, c_ulong::from(kbase::GET_GPUPROPS.0), argument) };
        let written = usize::try_from(written).unwrap_or(0);
        mali_uapi::kbase::properties(bytes.get(..written).unwrap_or(&[])).collect()
    }

    fn committed(&self, fd: RawFd, va: u64) -> Option<u64> {
        let mut asked = kbase::Query {
            address: va,
            number: kbase::COMMIT_SIZE,
        };
        request(fd, kbase::MEM_QUERY, &mut asked).ok()?;
        Some(asked.address)
    }

    fn is_same_file(&self, a: RawFd, b: RawFd) -> bool {
        const FILE: i32 = 0;
        // SAFETY: compares two numbers of this process.
        a == b
            || unsafe {
                let own = libc::getpid();
                libc::syscall(libc::SYS_kcmp, own, own, FILE, a, b) == 0
            }
    }

    fn param(&self, fd: RawFd, param: u32) -> Option<u64> {
        let mut asked = uapi::GetParam {
            parameter: param,
            ..uapi::GetParam::default()
        };
        request(fd, uapi::GET_PARAM, &mut asked).ok()?;
        Some(asked.value)
    }

    fn tree_is_coherent(&self, fd: RawFd) -> bool {
        let Some(device) = device(fd) else {
            return false;
        };
        let (major, minor) = (libc::major(device), libc::minor(device));
        let node = format!("/sys/dev/char/{major}:{minor}/device/of_node/dma-coherent");
        std::path::Path::new(&node).exists()
    }

    fn map(&self, fd: RawFd, kind: Driven, object: &Object) -> Option<Mapped> {
        let handle = object.handle;
        let offset = match kind {
            Driven::Panthor => offset(fd, handle).ok()?,
            Driven::Kbase => object.va,
            Driven::Panfrost => {
                let mut at = uapi::MmapBo {
                    handle,
                    flags: 0,
                    offset: 0,
                };
                request(fd, uapi::MMAP_BO, &mut at).ok()?;
                at.offset
            }
        };
        let length = usize::try_from(object.size).ok()?;
        // SAFETY: a new mapping, wherever the kernel likes.
        let start = unsafe {
            next::mmap64(
                ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_SHARED,
                fd,
                i64::try_from(offset).ok()?,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        Some(Mapped {
            offset,
            view: Box::new(Mapping {
                start: NonNull::new(start.cast())?,
                words: length / 8,
            }),
        })
    }

    fn address(&self, fd: RawFd, handle: u32) -> Option<u64> {
        let mut asked = uapi::GetBoOffset {
            handle,
            pad: 0,
            va: 0,
        };
        request(fd, uapi::GET_BO_OFFSET, &mut asked).ok()?;
        Some(asked.va)
    }

    fn shared_size(&self, buffer: RawFd) -> Option<u64> {
        // SAFETY: a buffer's file answers with its size and keeps no position.
        let size = unsafe { libc::lseek64(buffer, 0, libc::SEEK_END) };
        u64::try_from(size).ok().filter(|size| *size > 0)
    }

    fn invalidate(&self, fd: RawFd, kind: Driven, object: &Object) -> bool {
        let (handle, size) = (object.handle, object.there());
        if kind == Driven::Kbase {
            let Some(view) = object.view.as_ref().filter(|_| size > 0) else {
                return true;
            };
            let at = view.words().as_ptr().expose_provenance() as u64;
            // The app's writes are not to be lost.
            return [kbase::CLEAN, kbase::INVALIDATE].into_iter().all(|kind| {
                let mut sync = kbase::Sync {
                    region: object.va,
                    at,
                    size,
                    kind,
                    zero: [0; 7],
                };
                request(fd, kbase::MEM_SYNC, &mut sync).is_ok()
            });
        }
        let mut operation = uapi::SyncOperation {
            handle,
            kind: uapi::FLUSH_AND_INVALIDATE,
            offset: 0,
            size: u32::try_from(size).unwrap_or(u32::MAX),
        };
        let mut sync = uapi::SyncBo {
            operations: pointer(ptr::from_mut(&mut operation)),
            count: 1,
            pad: 0,
        };
        request(fd, uapi::SYNC_BO, &mut sync).is_ok()
    }

    fn asleep(&self) -> Option<Asleep> {
        Asleep::now()
    }

    fn release(&self) -> String {
        std::fs::read_to_string("/proc/sys/kernel/osrelease")
            .map(|text| text.trim_end().to_owned())
            .unwrap_or_default()
    }

    fn now(&self) -> u64 {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: a place for the structure; this clock always answers.
        let time = unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
            time.assume_init()
        };
        (time.tv_sec as u64)
            .wrapping_mul(1_000_000_000)
            .wrapping_add(time.tv_nsec as u64)
    }
}

fn pointer<T>(place: *mut T) -> u64 {
    place.expose_provenance() as u64
}

pub(crate) fn device(fd: RawFd) -> Option<libc::dev_t> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a place for the structure, filled if the call says so.
    let status = unsafe {
        if libc::fstat(fd, status.as_mut_ptr()) != 0 {
            return None;
        }
        status.assume_init()
    };
    (status.st_mode & libc::S_IFMT == libc::S_IFCHR).then_some(status.st_rdev)
}

pub(crate) fn is_kbase(fd: RawFd) -> bool {
    let is_mali = |path: std::path::PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("mali"))
    };
    let Some(device) = device(fd) else {
        return false;
    };
    let (major, minor) = (libc::major(device), libc::minor(device));
    [
        format!("/proc/self/fd/{fd}"),
        format!("/sys/dev/char/{major}:{minor}"),
    ]
    .iter()
    .any(|link| std::fs::read_link(link).is_ok_and(is_mali))
}

/// The kernel's threads read registered files unseen.
pub(crate) fn in_ring(fd: RawFd) -> bool {
    const RING: &str = "anon_inode:[io_uring]";
    let target = |fd: &str| std::fs::read_link(format!("/proc/self/fd/{fd}")).ok();
    let Some(path) = target(&fd.to_string()) else {
        return false;
    };
    let (Some(name), Ok(files)) = (path.file_name(), std::fs::read_dir("/proc/self/fd")) else {
        return false;
    };
    let name = name.to_string_lossy();
    // Lines such as `    0: mali0`, or with the whole path.
    let is_named = |line: &str| {
        let file = line.split_once(": ").map(|(_, file)| file.trim());
        file.and_then(|file| file.rsplit('/').next()) == Some(&*name)
    };
    files.flatten().any(|entry| {
        let fd = entry.file_name();
        let fd = fd.to_string_lossy();
        target(&fd).is_some_and(|target| target.as_os_str() == RING)
            && std::fs::read_to_string(format!("/proc/self/fdinfo/{fd}"))
                .is_ok_and(|text| text.lines().any(is_named))
    })
}

fn offset(fd: RawFd, handle: u32) -> Result<u64, i32> {
    let mut at = panthor::BoMmapOffset {
        handle,
        pad: 0,
        offset: 0,
    };
    request(fd, panthor::BO_MMAP_OFFSET, &mut at)?;
    Ok(at.offset)
}

/// Makes an accepted object again without `NO_MMAP`, so that the recorder may map it. Gives the driver's answer if the
/// app asked for its place.
pub(crate) fn make_mappable(fd: RawFd, made: &mut panthor::BoCreate) -> Result<Sealed, i32> {
    let place = match offset(fd, made.handle) {
        Ok(_) => Sealed::At(None),
        Err(error) => Sealed::Refused(error),
    };
    let mut close = uapi::GemClose {
        handle: made.handle,
        ..uapi::GemClose::default()
    };
    request(fd, uapi::GEM_CLOSE, &mut close)?;
    let flags = made.flags;
    made.flags &= !panthor::NO_MMAP;
    let done = request(fd, panthor::BO_CREATE, made);
    made.flags = flags;
    done.map(|()| place)
}

pub(crate) fn create_sync(fd: RawFd) -> Option<u32> {
    let mut made = uapi::Syncobj::default();
    request(fd, uapi::SYNCOBJ_CREATE, &mut made).ok()?;
    Some(made.handle)
}

/// `Err` is `errno`: `ETIME` when time is up.
pub(crate) fn wait(fd: RawFd, syncs: &mut [u32], longest: Duration) -> Result<(), i32> {
    let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
    let mut wait = uapi::SyncobjWait {
        handles: pointer(syncs.as_mut_ptr()),
        timeout_ns: i64::try_from(Kernel.now().saturating_add(longest)).unwrap_or(i64::MAX),
        count: u32::try_from(syncs.len()).unwrap_or(u32::MAX),
        flags: uapi::WAIT_ALL,
        first: 0,
        pad: 0,
    };
    request(fd, uapi::SYNCOBJ_WAIT, &mut wait)
}

pub(crate) fn went_well(fd: RawFd, sync: u32) -> bool {
    let mut export = uapi::SyncobjFd {
        handle: sync,
        flags: uapi::EXPORT_SYNC_FILE,
        fd: -1,
        pad: 0,
    };
    if request(fd, uapi::SYNCOBJ_HANDLE_TO_FD, &mut export).is_err() {
        return false;
    }
    let mut info = uapi::SyncFileInfo::default();
    let asked = request(export.fd, uapi::SYNC_FILE_INFO, &mut info);
    // SAFETY: the recorder's own file, made just now.
    unsafe { next::close(export.fd) };
    asked.is_ok() && info.status == 1
}

struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping is the process's, and the words are atomic.
unsafe impl Send for Mapping {}

impl View for Mapping {
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped until dropped, whole pages; nobody else has the address, and only hardware and other mappings
        // change the memory, which atomic loads allow.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, to which nobody has a reference any more.
        unsafe { next::munmap(self.start.as_ptr().cast(), self.words * 8) };
    }
}
