// SPDX-License-Identifier: MIT OR Apache-2.0
//! A clause of micro-operations, and where threads go after it.

use std::ops::Range;
use std::sync::Arc;

use crate::ShaderFault;
use crate::core::Trouble;

/// When a branch is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Condition {
    /// By all lanes.
    Always,
    /// By lanes whose word in a row is not zero.
    NonZero(u16),
    /// By all lanes of a warp if the word in a row is not zero in one of its active lanes.
    Any(u16),
    /// By all lanes of a warp if the word in a row is not zero in all its active lanes.
    All(u16),
    /// By all lanes of a warp if (or unless) some of its lanes that have not ended are elsewhere.
    Diverged(bool),
}

/// Where a branch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Clause(u32),
    /// To the clause whose low address word is in a row; 0 ends the thread.
    Row(u16),
    /// Nowhere: the thread ends. A branch to address 0 does that.
    End,
}

/// A branch at the end of a clause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Branch {
    pub(crate) condition: Condition,
    pub(crate) target: Target,
}

/// What follows a clause if no branch is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// The thread ends.
    End,
    Clause(u32),
}

/// What is known of a clause.
#[derive(Clone, Debug)]
pub(crate) enum State {
    /// Its address alone: it is decoded when a thread comes to it.
    Pending,
    Ready,
    /// It raises a fault, after its micro-operations.
    Faulty(Arc<ShaderFault>),
}

#[derive(Clone, Debug)]
pub(crate) struct Clause {
    pub(crate) address: u64,
    pub(crate) state: State,
    /// Its micro-operations, as a part of the program's.
    pub(crate) ops: Range<usize>,
    pub(crate) next: Next,
    pub(crate) branch: Option<Branch>,
    /// Whether threads wait for their work group after the clause.
    pub(crate) barrier: bool,
    /// Operations of a lane that executes the clause, by unit.
    pub(crate) fma: u64,
    pub(crate) add: u64,
    pub(crate) messages: Vec<mali_isa::Message>,
    /// What each lane costs that it executes by itself, in sixteenths of a clause.
    pub(crate) lane_cost: u32,
    /// The clause that stands for this one and those that follow it, as long as nothing ends in between.
    pub(crate) joined: Option<u32>,
    /// The clauses that it stands for; none if it is one of the shader's.
    pub(crate) parts: Vec<u32>,
}

impl Clause {
    /// The clause at an address, not decoded yet.
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

    /// Whether it must be decoded before it can be executed.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.state, State::Pending)
    }

    /// How many clauses of the shader it is.
    #[inline(always)]
    pub(crate) fn count(&self) -> u64 {
        (self.parts.len() as u64).max(1)
    }

    /// How it ends after its micro-operations.
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

    /// Whether threads go from here to a place that they compute.
    pub(crate) fn jumps(&self) -> bool {
        self.branch
            .is_some_and(|branch| matches!(branch.target, Target::Row(_)))
    }

    /// The fault that trouble in this clause becomes.
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
