// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory of this process at addresses that its caller gives: one that cannot be reached is an error and no crash, as for the kernel.

use std::fs::OpenOptions;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

/// What a sandbox reaches that forbids the calls.
const MEMORY: &str = "/proc/self/mem";

/// Fills `to` with what lies at an address.
///
/// # Errors
/// `EFAULT` if not all of it can be read.
pub fn read(address: u64, to: &mut [u8]) -> io::Result<()> {
    let length = to.len();
    let copied = remote(address, length)
        .and_then(|from| process_vm_readv(Pid::this(), &mut [IoSliceMut::new(to)], &[from]));
    ended(copied, length, || read_file(address, to))
}

/// Puts bytes to an address.
///
/// # Errors
/// `EFAULT` if not all of it can be written; a part may be.
pub fn write(address: u64, from: &[u8]) -> io::Result<()> {
    let copied = remote(address, from.len())
        .and_then(|to| process_vm_writev(Pid::this(), &[IoSlice::new(from)], &[to]));
    ended(copied, from.len(), || write_file(address, from))
}

fn remote(address: u64, len: usize) -> nix::Result<RemoteIoVec> {
    let base = usize::try_from(address).map_err(|_| Errno::EFAULT)?;
    Ok(RemoteIoVec { base, len })
}

fn ended(
    copied: nix::Result<usize>,
    length: usize,
    otherwise: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let done = match copied {
        _ if length == 0 => true,
        Err(Errno::ENOSYS | Errno::EPERM) => otherwise().is_ok(),
        copied => copied == Ok(length),
    };
    done.then_some(()).ok_or_else(|| Errno::EFAULT.into())
}

fn read_file(address: u64, to: &mut [u8]) -> io::Result<()> {
    let memory = OpenOptions::new().read(true).open(MEMORY)?;
    memory.read_exact_at(to, address)
}

fn write_file(address: u64, from: &[u8]) -> io::Result<()> {
    let memory = OpenOptions::new().write(true).open(MEMORY)?;
    memory.write_all_at(from, address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_refuses_what_is_not_mapped() {
        type Read = fn(u64, &mut [u8]) -> io::Result<()>;
        type Write = fn(u64, &[u8]) -> io::Result<()>;
        let ways: [(Read, Write); 2] = [(read, write), (read_file, write_file)];
        for (read, write) in ways {
            let mut mine = [1u32, 2, 3];
            let address = mine.as_mut_ptr().expose_provenance() as u64;
            let mut one = [0; 4];
            read(address + 8, &mut one).unwrap();
            assert_eq!(u32::from_le_bytes(one), 3);
            write(address + 4, &7u32.to_le_bytes()).unwrap();
            read(address + 4, &mut one).unwrap();
            assert_eq!(u32::from_le_bytes(one), 7);
            for bad in [0, 8, u64::MAX, u64::MAX - 2, 1 << 63] {
                assert!(read(bad, &mut [0; 4]).is_err(), "{bad:#x}");
                assert!(write(bad, &[0; 4]).is_err(), "{bad:#x}");
            }
        }
        let error = read(8, &mut [0; 4]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EFAULT as i32));
        assert!(read(8, &mut []).is_ok() && write(8, &[]).is_ok());
    }
}
