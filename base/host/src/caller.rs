// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads memory at a caller's addresses: errors, no crash. It never writes: safe code could change what it does not
//! borrow.

use std::fs::OpenOptions;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

/// For sandboxes that forbid the calls.
const MEMORY: &str = "/proc/self/mem";

/// # Errors
/// `EFAULT` if not all of it can be read.
pub fn read(address: u64, to: &mut [u8]) -> io::Result<()> {
    let length = to.len();
    let remote = usize::try_from(address).map(|base| RemoteIoVec { base, len: length });
    let copied = remote
        .map_err(|_| Errno::EFAULT)
        .and_then(|from| process_vm_readv(Pid::this(), &mut [IoSliceMut::new(to)], &[from]));
    let done = match copied {
        _ if length == 0 => true,
        Err(Errno::ENOSYS | Errno::EPERM) => read_file(address, to).is_ok(),
        copied => copied == Ok(length),
    };
    done.then_some(()).ok_or_else(|| Errno::EFAULT.into())
}

fn read_file(address: u64, to: &mut [u8]) -> io::Result<()> {
    let memory = OpenOptions::new().read(true).open(MEMORY)?;
    memory.read_exact_at(to, address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_refuses_what_is_not_mapped() {
        type Way = fn(u64, &mut [u8]) -> io::Result<()>;
        for read in [read as Way, read_file] {
            let mine = [1u32, 2, 3];
            let address = mine.as_ptr().expose_provenance() as u64;
            let mut one = [0; 4];
            read(address + 8, &mut one).unwrap();
            assert_eq!(u32::from_le_bytes(one), 3);
            for bad in [0, 8, u64::MAX, u64::MAX - 2, 1 << 63] {
                assert!(read(bad, &mut [0; 4]).is_err(), "{bad:#x}");
            }
        }
        let error = read(8, &mut [0; 4]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::EFAULT as i32));
        assert!(read(8, &mut []).is_ok());
    }
}
