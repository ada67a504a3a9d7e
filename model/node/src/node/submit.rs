// SPDX-License-Identifier: MIT OR Apache-2.0
//! SUBMIT: panfrost's checks, then the chain runs.

use std::sync::Mutex;

use mali_model::driven::NoRoom;

use crate::errno::{Errno, Result, valid};
use crate::faults::tell;
use crate::machine::{Machine, maps};
use crate::user;
use mali_uapi::panfrost::request as uapi;

use crate::lock::locked;

use super::Call;

impl Call<'_> {
    pub(super) fn submit(
        &self,
        machine: &Mutex<Machine>,
        argument: &mut uapi::Submit,
    ) -> Result<()> {
        let known = uapi::FRAGMENT | uapi::CYCLE_COUNT;
        valid(argument.head != 0 && argument.requirements & !known == 0)?;
        let out = match argument.out_sync {
            0 => None,
            handle => Some(self.sync(handle).map_err(|_| Errno(libc::ENODEV))?),
        };
        user::each(argument.in_syncs, argument.in_sync_count, |handle| {
            // Refused if nothing was submitted; others' failure stops nothing.
            valid(self.sync(handle)?.fence().is_some())
        })?;
        user::each(argument.handles, argument.handle_count, |handle| {
            self.has_object(handle)
        })?;
        let (mappings, space) = self.in_file(|file| Ok(file.mappings()))?;
        let fragment = argument.requirements & uapi::FRAGMENT != 0;
        let ended = locked(machine).run(space, maps(&mappings), argument.head, fragment);
        let ended = ended.map_err(|NoRoom| Errno::NO_MEMORY)?;
        let fence = ended.map_err(|status| {
            tell(format_args!(
                "the chain at {:#x} ended with {status}",
                argument.head
            ));
            Errno::INVALID
        });
        if let Some(out) = out {
            self.node.signal(&out, Some(fence));
        }
        Ok(())
    }
}
