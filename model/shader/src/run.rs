// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way of a dispatch: checks, work groups, threads.

use crate::{AddressSpace, Control, Dispatch, FaultKind, ShaderFault, Statistics, Threads};

/// Executes a dispatch to its end.
///
/// # Errors
///
/// The first fault that a thread raised. Memory then holds what was stored before, as on hardware.
pub fn run(
    dispatch: &Dispatch,
    space: &dyn AddressSpace,
    threads: &Threads,
    control: &Control,
) -> Result<Statistics, ShaderFault> {
    let _ = (space, threads);
    control.give_back(control.take(0));
    Err(ShaderFault {
        kind: FaultKind::InvalidEncoding,
        address: dispatch.shader,
        clause: dispatch.shader,
        text: "the shader cores do not execute instructions yet".into(),
    })
}
