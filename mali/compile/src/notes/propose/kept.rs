// SPDX-License-Identifier: MIT OR Apache-2.0
//! States: left by a step for the next, or named by the user.

use super::*;

impl Builder<'_> {
    pub(super) fn keep_all(&mut self, all: &[Kept]) {
        let mut given: HashMap<(u64, u64), usize> = HashMap::new();
        for (at, tensor) in self.proposal.tensors.iter().enumerate() {
            if let Some(range) = tensor
                .layout
                .address_range()
                .filter(|_| !tensor.is_result())
            {
                given.entry(range).or_insert(at);
            }
        }
        for kept in all {
            let range = (kept.va, kept.va.saturating_add(kept.size));
            let tensor = given.get(&range).copied();
            match tensor.and_then(|at| self.proposal.tensors.get_mut(at)) {
                Some(tensor) => tensor.role = Role::State,
                None => {
                    let next = self.proposal.tensors.len();
                    self.keep(kept);
                    if self.proposal.tensors.len() > next {
                        given.insert(range, next);
                    }
                }
            }
        }
    }

    fn keep(&mut self, kept: &Kept) {
        let name = self.taken.unique(kept.name.clone());
        let (Ok(length), true) = (usize::try_from(kept.size), self.moved.add(kept.size)) else {
            return;
        };
        let mut bytes = vec![0; length];
        // Memory is zero until written.
        self.capture
            .memory
            .read(Moment::before(0), kept.va, &mut bytes);
        let dtype = naming::element(&kept.type_name, &bytes, true);
        let Ok(elements) = u32::try_from(bytes.len() / dtype.bytes()) else {
            return;
        };
        let Ok(tensor) = Tensor::new(dtype, &[u64::from(elements)], bytes) else {
            return;
        };
        self.proposal.tensors.push(Found {
            role: Role::State,
            name,
            shape: vec![elements],
            layout: Layout::packed(kept.va, dtype, elements),
            job: 0,
            tensor,
            converted_from: None,
        });
    }
}

/// Drops reads of any state's memory: a session reads that itself.
pub(super) fn keep_named(proposal: &mut Proposal, names: &[String]) -> Result<(), ProposeError> {
    for name in names {
        let mut tensors = proposal.tensors.iter_mut();
        let found = tensors.find(|tensor| tensor.name == *name && !tensor.is_result());
        let Some(found) = found else {
            let known = proposal.tensors.iter();
            return Err(ProposeError::Stated(StatedError::Name {
                name: name.clone(),
                known: known.map(|tensor| tensor.name.clone()).collect(),
            }));
        };
        found.role = Role::State;
    }
    let states = proposal.tensors.iter();
    let states = states.filter(|tensor| tensor.role == Role::State);
    let mut kept = Ranges::default();
    for (start, end) in states.filter_map(|tensor| tensor.layout.address_range()) {
        kept.add(start, end);
    }
    proposal.tensors.retain(|tensor| {
        let range = tensor.layout.address_range();
        tensor.role == Role::State || !range.is_some_and(|(low, high)| kept.touches(low, high))
    });
    Ok(())
}
