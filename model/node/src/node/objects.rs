// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests about buffer objects.

use std::sync::Arc;

use crate::descriptor;
use crate::errno::{Errno, Result, valid};
use mali_uapi::panfrost::request as uapi;

use super::{Call, ForApp, Model};

impl Call<'_> {
    pub(super) fn create_bo(&self, argument: &mut uapi::CreateBo) -> Result<()> {
        let flags = argument.flags;
        let known = flags & !(uapi::NO_EXECUTE | uapi::HEAP) == 0;
        // A heap holds no code.
        let heap = flags & uapi::HEAP != 0 && flags & uapi::NO_EXECUTE == 0;
        valid(argument.size != 0 && argument.pad == 0 && known && !heap)?;
        let object = self.node.memory.create(argument.size.into(), flags)?;
        let size = u32::try_from(object.size).unwrap_or(argument.size);
        let (handle, va) = self.in_file(|file| file.add(object))?;
        (argument.handle, argument.va) = (handle, va);
        argument.size = size;
        Ok(())
    }

    pub(super) fn gem_close(&self, argument: &mut uapi::GemClose) -> Result<()> {
        // Its memory goes outside the lock.
        self.in_file(|file| file.remove(argument.handle)).map(drop)
    }

    pub(super) fn mmap_bo(&self, argument: &mut uapi::MmapBo) -> Result<()> {
        valid(argument.flags == 0)?;
        argument.offset = self.in_file(|file| {
            let object = &file.object(argument.handle)?.object;
            valid(!object.heap).map(|()| object.address)
        })?;
        Ok(())
    }

    pub(super) fn get_bo_offset(&self, argument: &mut uapi::GetBoOffset) -> Result<()> {
        argument.va = self.in_file(|file| Ok(file.object(argument.handle)?.va))?;
        Ok(())
    }

    /// Memory is never taken away.
    pub(super) fn madvise(&self, argument: &mut uapi::Madvise) -> Result<()> {
        self.has_object(argument.handle)?;
        argument.retained = 1;
        Ok(())
    }

    /// All submitted chains have ended.
    pub(super) fn wait_bo(&self, argument: &mut uapi::WaitBo) -> Result<()> {
        valid(argument.pad == 0)?;
        self.has_object(argument.handle)
    }

    pub(super) fn export(&self, argument: &mut uapi::Prime) -> Result<()> {
        let allowed = (libc::O_CLOEXEC | libc::O_RDWR) as u32;
        valid(argument.flags & !allowed == 0)?;
        let object = self.in_file(|file| {
            let held = file.object(argument.handle)?;
            valid(held.exclusive == 0).map(|()| held.object.clone())
        })?;
        let fd = ForApp::new(object.file(), argument.flags & libc::O_CLOEXEC as u32 != 0)?;
        let mut state = self.node.state();
        state.exports.retain(|_, object| object.strong_count() > 0);
        state
            .exports
            .insert(object.identity, Arc::downgrade(&object));
        argument.fd = fd.give();
        Ok(())
    }

    pub(super) fn import(&self, argument: &mut uapi::Prime) -> Result<()> {
        let identity = descriptor::identity(argument.fd).ok_or(Errno(libc::EBADF))?;
        let known = self
            .node
            .state()
            .exports
            .get(&identity)
            .and_then(std::sync::Weak::upgrade);
        let object = match known {
            Some(object) => object,
            None => {
                let object = self.node.memory.adopt(argument.fd)?;
                let mut state = self.node.state();
                state.exports.insert(identity, Arc::downgrade(&object));
                object
            }
        };
        argument.handle = self.in_file(|file| match self.node.model {
            Model::Panfrost(_) => file.add(object).map(|(handle, _)| handle),
            Model::Panthor { .. } => file.add_plain(object, 0),
        })?;
        Ok(())
    }
}
