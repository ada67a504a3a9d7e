// SPDX-License-Identifier: MIT OR Apache-2.0
//! Dispatches and drawing on the engine.

use gpureplay_shader::launch;
use gpureplay_shader::probe::Analyser;
use gpureplay_shader::{AddressSpace, Control, ShaderFault, Statistics, Threads};

use super::dispatch::Dispatch;
use super::stage::Stage;
use super::state::State;

/// Executes a dispatch.
///
/// # Errors
///
/// As [`launch`].
pub fn run(
    dispatch: &Dispatch,
    space: &dyn AddressSpace,
    threads: &Threads,
    control: &Control,
) -> Result<Statistics, ShaderFault> {
    launch(
        &dispatch.grid,
        &mut State::new(dispatch, None),
        None,
        space,
        threads,
        control,
    )
}

/// Runs as [`run`], with an analyser. Warps begin at whole numbers of lanes, so [`Statistics::clauses`] may differ.
///
/// # Errors
///
/// As [`run`].
pub fn analyse(
    dispatch: &Dispatch,
    space: &dyn AddressSpace,
    threads: &Threads,
    control: &Control,
    analyser: &dyn Analyser,
) -> Result<Statistics, ShaderFault> {
    launch(
        &dispatch.grid,
        &mut State::new(dispatch, None),
        Some(analyser),
        space,
        threads,
        control,
    )
}

/// Executes vertices or fragments.
///
/// # Errors
///
/// As [`run`]; `FaultKind::InvalidData` if a work group has several threads or the shader looks at others.
pub fn draw(
    dispatch: &Dispatch,
    stage: &Stage,
    space: &dyn AddressSpace,
    threads: &Threads,
    control: &Control,
) -> Result<Statistics, ShaderFault> {
    launch(
        &dispatch.grid,
        &mut State::new(dispatch, Some(stage)),
        None,
        space,
        threads,
        control,
    )
}
