// SPDX-License-Identifier: MIT OR Apache-2.0
//! A clause, and where threads go next.

use std::ops::Range;
use std::sync::Arc;

use crate::ShaderFault;
use crate::core::Trouble;

/// Who takes a branch.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// All active lanes.
    Always,
    /// Lanes with a non-zero word.
    NonZero(u16),
    /// A warp with one in an active lane.
    Any(u16),
    /// A warp with them in all active lanes.
    All(u16),
    /// A warp with (or without) live lanes elsewhere.
    Diverged(bool),
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// A numbered clause.
    Clause(u32),
    /// Low address word of the clause; 0 ends the thread.
    Row(u16),
    /// The thread ends.
    End,
}

/// A branch.
#[derive(Clone, Copy, Debug)]
pub struct Branch {
    /// Who takes it.
    pub condition: Condition,
    /// Where it goes.
    pub target: Target,
}

/// What follows without a branch.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// The thread ends.
    End,
    /// A numbered clause.
    Clause(u32),
}

#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Decoded when a thread comes to it.
    Pending,
    Ready,
    Faulty(Arc<ShaderFault>),
}

#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) address: u64,
    pub(crate) state: State,
    pub(crate) ops: Range<usize>,
    pub(crate) next: Next,
    pub(crate) branch: Option<Branch>,
    pub(crate) barrier: bool,
    pub(crate) fma: u64,
    pub(crate) add: u64,
    pub(crate) messages: Vec<u8>,
    pub(crate) lane_cost: u32,
    /// Stands for this one and those after it, if nothing ends in between.
    pub(crate) joined: Option<u32>,
    /// Those that it stands for; none for the shader's own.
    pub(crate) parts: Vec<u32>,
}

impl Clause {
    pub(crate) fn pending(address: u64) -> Clause {
        Clause {
            address,
            state: State::Pending,
            ops: 0..0,
            next: Next::End,
            branch: None,
            barrier: false,
            fma: 0,
            add: 0,
            messages: Vec::new(),
            lane_cost: 0,
            joined: None,
            parts: Vec::new(),
        }
    }

    pub(crate) fn faulty(fault: ShaderFault) -> Clause {
        Clause {
            state: State::Faulty(Arc::new(fault.clone())),
            ..Clause::pending(fault.clause)
        }
    }

    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending)
    }

    #[inline(always)]
    pub(crate) fn count(&self) -> u64 {
        (self.parts.len() as u64).max(1)
    }

    #[inline(always)]
    pub(crate) fn ending(&self) -> Result<(), (Trouble, u8)> {
        match &self.state {
            State::Faulty(fault) => {
                let trouble = Trouble::new(fault.kind, fault.address, fault.text.clone());
                Err((trouble, 0))
            }
            State::Ready | State::Pending => Ok(()),
        }
    }

    pub(crate) fn jumps(&self) -> bool {
        self.branch
            .is_some_and(|branch| matches!(branch.target, Target::Row(_)))
    }

    #[cold]
    pub(crate) fn fault(&self, trouble: Trouble) -> Box<ShaderFault> {
        let address = if trouble.address == 0 {
            self.address
        } else {
            trouble.address
        };
        Box::new(ShaderFault {
            kind: trouble.kind,
            address,
            clause: self.address,
            text: trouble.text,
        })
    }
}
