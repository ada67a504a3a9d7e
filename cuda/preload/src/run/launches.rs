// SPDX-License-Identifier: MIT OR Apache-2.0
//! Launches of a region.

use std::sync::Arc;

use gpureplay_cuda_launch::abi::{Handle, LaunchAttribute, attribute};
use gpureplay_cuda_launch::recording::{Kernel, Operation};

use super::log::{Log, Result, idle};
use crate::asked::Launch;
use crate::functions::{self, Function};
use crate::memory::Kind;
use crate::parameters::{pack, refuse_handles, refuse_hidden_handles};
use crate::record::{self, because};
use crate::state::{Image, unrecordable};

impl Log {
    pub(super) fn launch(&mut self, launch: &Launch) -> Result<()> {
        if self.refusal.is_some() {
            return Ok(());
        }
        let stream = self.stream(launch.stream)?;
        let known = self.kernels.len();
        let (kernel, function) = self.kernel(launch)?;
        let named = |reason: String| format!("{}: {reason}", function.name);
        let layout = self.kernels[kernel as usize].layout.clone();
        let mut parameters = pack(launch, &layout).map_err(named)?;
        parameters.resize(layout.last().map_or(0, |[offset, size]| offset + size), 0);
        refuse_handles(&parameters, &layout).map_err(named)?;
        if self.kernels.len() > known
            && let Some(image) = &function.image
        {
            refuse_hidden_handles(image, &function.name, &self.device).map_err(named)?;
        }
        for word in parameters.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word);
            self.usable(address).map_err(named)?;
            if self
                .memory
                .at(address)
                .is_some_and(|piece| piece.kind == Kind::Host)
            {
                return Err(named("it uses memory of the host".into()));
            }
            self.known(address).map_err(named)?;
        }
        let operation = Operation::Launch {
            stream,
            kernel,
            grid: launch.sizes.grid,
            block: launch.sizes.block,
            shared: launch.sizes.shared,
            parameters,
            attributes: attributes(&launch.attributes).map_err(named)?.concat(),
        };
        self.work(&function.name, operation)
    }

    pub(super) fn image(&mut self, image: &Arc<Image>) -> Result<u32> {
        let mut all = self.images.iter();
        let known = all.position(|known| Arc::ptr_eq(known, image));
        let number = known.unwrap_or(self.images.len());
        if known.is_none() {
            self.images.push(Arc::clone(image));
        }
        u32::try_from(number).map_err(|_| "too many images".into())
    }

    fn kernel(&mut self, launch: &Launch) -> Result<(u32, Arc<Function>)> {
        let function = functions::get(launch.function).map_err(because("a kernel"))?;
        if let Some((number, known)) = self.kernel_numbers.get(&launch.function)
            && Arc::ptr_eq(known, &function)
        {
            return Ok((*number, function));
        }
        let named = |reason: String| format!("{}: {reason}", function.name);
        if let Some(kind) = unrecordable().references.get(&function.owner) {
            return Err(named(format!("its image has a reference to a {kind}")));
        }
        let image = function.image.clone();
        let image =
            image.ok_or_else(|| named("its image was loaded in a way that is not known".into()))?;
        let number = self.image(&image)?;
        self.read_variables(number, launch.function, &function, &image)
            .map_err(named)?;
        let kernel = Kernel {
            name: function.name.to_string(),
            image: number,
            layout: function
                .layout(launch.function)
                .map_err(because("the layout of its parameters"))
                .map_err(named)?,
            attributes: function.attributes(),
        };
        let number = u32::try_from(self.kernels.len()).map_err(|_| "too many kernels")?;
        self.kernels.push(kernel);
        self.kernel_numbers
            .insert(launch.function, (number, Arc::clone(&function)));
        Ok((number, function))
    }

    fn read_variables(
        &mut self,
        number: u32,
        launched: Handle,
        function: &Function,
        image: &Image,
    ) -> Result<()> {
        // What earlier copies of the region wrote into variables may be read, too: a replay repeats these copies.
        idle(self.settings)?;
        for variable in record::variables(launched, function, image, &self.device)? {
            let address = variable.held.address;
            let known = self
                .variables
                .iter()
                .any(|(_, known)| known.held.address == address);
            if !known {
                self.variables.push((number, variable));
            }
        }
        Ok(())
    }
}

/// Others say how a kernel waits for predecessors; replays wait for their end.
fn attributes(all: &[LaunchAttribute]) -> Result<Vec<LaunchAttribute>> {
    let events = [
        attribute::launch::PROGRAMMATIC_EVENT,
        attribute::launch::COMPLETION_EVENT,
    ];
    if all.iter().any(|value| events.contains(&value[0])) {
        return Err("its launch records an event".into());
    }
    let kept = |value: &&LaunchAttribute| attribute::launch::KEPT.contains(&value[0]);
    Ok(all.iter().filter(kept).copied().collect())
}
