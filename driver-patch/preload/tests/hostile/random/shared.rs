// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests that all drivers have.

use mali_uapi::panfrost::request::{self as uapi, Request};
use zerocopy::IntoBytes;

use super::App;
use crate::app::ioctl;

impl App<'_> {
    pub(super) fn shared(&mut self) {
        match self.below(7) {
            0 => {
                // Few objects go, so that others stay.
                let (handle, pad) = (self.handle(), self.pick(&[0, 0, 1]));
                if self.below(3) == 0 && handle > 1 {
                    self.ask(uapi::GEM_CLOSE, &mut uapi::GemClose { handle, pad });
                }
            }
            1 => {
                let flags = self.pick(&[0, 1, 2]);
                let mut sync = uapi::Syncobj { handle: 0, flags };
                if self.ask(uapi::SYNCOBJ_CREATE, &mut sync) {
                    self.syncs.push(sync.handle);
                }
            }
            2 => {
                let at = self.below(self.syncs.len());
                let handle = self.syncs[at];
                // It may be the recorder's next.
                if self.syncs.len() > 4 {
                    self.syncs.swap_remove(at);
                    self.ask(
                        uapi::SYNCOBJ_DESTROY,
                        &mut uapi::Syncobj { handle, flags: 0 },
                    );
                }
            }
            3 => {
                let (handles, count) = (self.sync_list(), self.count());
                let request = self.pick(&[uapi::SYNCOBJ_SIGNAL, uapi::SYNCOBJ_RESET]);
                self.ask(
                    request,
                    &mut uapi::SyncobjArray {
                        handles,
                        count,
                        pad: 0,
                    },
                );
            }
            4 => {
                let mut wait = uapi::SyncobjWait {
                    handles: self.sync_list(),
                    count: self.count(),
                    flags: self.flags(),
                    ..Default::default()
                };
                self.ask(uapi::SYNCOBJ_WAIT, &mut wait);
            }
            5 => {
                let points = [self.random(), 1, 0];
                let mut list = uapi::SyncobjTimelineArray {
                    handles: self.sync_list(),
                    points: self.list(points.as_bytes()),
                    count: self.count(),
                    flags: self.flags(),
                };
                let request = self.pick(&[uapi::SYNCOBJ_QUERY, uapi::SYNCOBJ_TIMELINE_SIGNAL]);
                self.ask(request, &mut list);
            }
            _ => {
                let request =
                    Request(self.random() as u32 & 0xffff_00ff | u32::from(Request::DRM) << 8);
                let waits = [0xc3, 0xca, 0x2d, 0x2e, 0xc1, 0xc2];
                if !waits.contains(&request.number()) && request.number() & 0xf0 != 0x40 {
                    let answer = ioctl(self.fd, request.0, 0);
                    self.seen.push(format!("{:#x}: {answer:?}", request.0));
                }
            }
        }
    }
}
