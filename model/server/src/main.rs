// SPDX-License-Identifier: MIT OR Apache-2.0
//! The GPU model as a PCI device for QEMU over vfio-user.

fn main() {}
