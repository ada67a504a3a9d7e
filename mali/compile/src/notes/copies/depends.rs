// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which copies cannot be replayed, by what objects depend on.

use super::*;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::notes) struct Depends {
    pub(in crate::notes) inputs: bool,
    pub(in crate::notes) weights: bool,
}

impl Depends {
    fn or(self, other: Self) -> Self {
        Self {
            inputs: self.inputs || other.inputs,
            weights: self.weights || other.weights,
        }
    }
}

/// What host reads and copies depend on, by step. A launch passes on all that it is given.
pub(in crate::notes) fn dependencies(
    events: &Events,
    of: impl Fn(usize, &Host) -> Depends,
) -> BTreeMap<usize, Depends> {
    let mut out = BTreeMap::new();
    let mut objects: HashMap<u32, Depends> = HashMap::new();
    let known = |objects: &HashMap<u32, Depends>, object: u32| {
        objects.get(&object).copied().unwrap_or_default()
    };
    for (step, event) in events.list.iter().enumerate() {
        let (object, more) = match event {
            Event::Host(host) if host.direction == Direction::Read => {
                out.insert(step, known(&objects, host.at.object));
                continue;
            }
            Event::Host(host) => (host.at.object, of(step, host)),
            Event::Launch(launch) => {
                let read = launch.given.iter();
                let read = read.map(|given| known(&objects, given.object));
                let all = read.fold(Depends::default(), Depends::or);
                for given in launch.given.iter().filter(|given| !given.is_constant()) {
                    objects.insert(given.object, all);
                }
                continue;
            }
            Event::Moved(moved) => {
                let from = moved.from.map(|from| known(&objects, from.object));
                out.insert(step, from.unwrap_or_default());
                (moved.to.object, from.unwrap_or_default())
            }
        };
        let old = objects.entry(object).or_default();
        *old = old.or(more);
    }
    out
}

impl Followed {
    /// A launch reads a copy that depends on a tensor. Results computed before any tensor are constants.
    pub(in crate::notes) fn refusal(
        &self,
        events: &Events,
        dependencies: &BTreeMap<usize, Depends>,
    ) -> Result<(), ProposeError> {
        let depends = |broken: &&Broken| dependencies.get(&broken.copy).copied();
        let of_inputs = |broken: &&Broken| depends(broken).is_some_and(|on| on.inputs);
        let of_weights = |broken: &&Broken| depends(broken).is_some_and(|on| on.weights);
        // For an input's copy only the app has a remedy.
        let inputs = self.broken.iter().find(of_inputs);
        let Some(broken) = inputs.or_else(|| self.broken.iter().find(of_weights)) else {
            return Ok(());
        };
        let text = |step: Option<usize>| match step.and_then(|step| events.list.get(step)) {
            Some(Event::Launch(launch)) if launch.id == u32::MAX => launch.kernel.clone(),
            Some(Event::Launch(launch)) => format!("launch {} ({})", launch.id, launch.kernel),
            _ => "a kernel".to_owned(),
        };
        Err(ProposeError::Copied {
            reader: text(Some(broken.reader)),
            argument: broken.argument.clone(),
            call: broken.call.clone(),
            writer: text(broken.writer),
            weights: inputs.is_none(),
        })
    }
}
