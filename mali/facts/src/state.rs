// SPDX-License-Identifier: MIT OR Apache-2.0
//! Renderer state and local storage.

use crate::field::Kind::{Address, Bool, Enum, Hex, PowerOfTwo, Unsigned};
use crate::field::descriptors;

/// To the first [`Blend`](crate::Blend), in bytes.
pub const BLEND_OFFSET: u64 = RendererState::SIZE as u64;

const REGISTER_ALLOCATIONS: &[(u32, &str)] = &[(0, "64 per thread"), (2, "32 per thread")];

descriptors! {
    /// Shader, and threads' start; nothing of fragments.
    RendererState = "Renderer state", 16 words {
        shader = "Shader", 0:0, 64, Address;
        sampler_count = "Sampler count", 2:0, 16, Unsigned;
        texture_count = "Texture count", 2:16, 16, Unsigned;
        attribute_count = "Attribute count", 3:0, 16, Unsigned;
        varying_count = "Varying count", 3:16, 16, Unsigned;
        uniform_buffer_count = "Uniform buffer count", 4:0, 8, Unsigned;
        contains_barrier = "Shader contains barrier", 4:11, 1, Bool;
        register_allocation = "Shader register allocation", 4:12, 2, Enum(REGISTER_ALLOCATIONS), since V7;
        preload_pc = "Preload PC", 12:6, 1, Bool;
        preload_local_xy = "Preload local invocation XY", 12:7, 1, Bool;
        preload_local_z = "Preload local invocation Z", 12:8, 1, Bool;
        preload_workgroup_x = "Preload work group X", 12:9, 1, Bool;
        preload_workgroup_y = "Preload work group Y", 12:10, 1, Bool;
        preload_workgroup_z = "Preload work group Z", 12:11, 1, Bool;
        preload_global_x = "Preload global invocation X", 12:12, 1, Bool;
        preload_global_y = "Preload global invocation Y", 12:13, 1, Bool;
        preload_global_z = "Preload global invocation Z", 12:14, 1, Bool;
        uniform_count = "Uniform count", 12:15, 7, Unsigned;
    }

    /// Thread and work group storage.
    LocalStorage = "Local storage", 8 words {
        /// A thread has 16 bytes, shifted left by this, with a base.
        tls_size = "TLS size", 0:0, 5, Unsigned;
        tls_stack_offset = "TLS initial stack pointer offset", 0:5, 27, Hex;
        /// 1 << 31: no memory.
        wls_instances = "WLS instances", 1:0, 5, PowerOfTwo;
        wls_size_base = "WLS size base", 1:5, 2, Unsigned;
        wls_size_scale = "WLS size scale", 1:8, 5, Unsigned;
        tls_base = "TLS base pointer", 2:0, 64, Address;
        wls_base = "WLS base pointer", 4:0, 64, Address;
    }
}

impl RendererState {
    /// Bytes of push uniforms.
    pub fn uniform_bytes(&self) -> u64 {
        self.uniform_count() * 8
    }
}

impl LocalStorage {
    /// Of thread and work group storage; 0 for none.
    pub fn bases(&self) -> [u64; 2] {
        [self.tls_base(), self.wls_base()]
    }

    /// Bytes of storage per thread; 0 for none.
    pub fn tls_bytes(&self) -> u64 {
        if self.tls_base() == 0 {
            0
        } else {
            16 << self.tls_size()
        }
    }

    /// Bytes of work group storage per instance; 0 for none.
    pub fn wls_bytes(&self) -> u64 {
        let size = (self.wls_size_base(), self.wls_size_scale());
        workgroup_bytes(self.wls_instances(), size)
    }
}

/// `(2 base + 1) << (scale - 1)`: the smallest formula for what runtimes allocate, and the one real shader with a base
/// other than 0.
pub(crate) fn workgroup_bytes(instances: u64, (base, scale): (u64, u64)) -> u64 {
    match scale.checked_sub(1) {
        Some(shift) if instances != 1 << 31 => (2 * base + 1) << shift,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_sizes() {
        let none = LocalStorage {
            words: [0, 31, 0, 0, 0, 0, 0, 0],
        };
        assert_eq!((none.tls_bytes(), none.wls_bytes()), (0, 0));
        let softmax = LocalStorage {
            words: [3, 0x941, 0x1000, 0, 0x2000, 0, 0, 0],
        };
        assert_eq!(
            (
                softmax.tls_bytes(),
                softmax.wls_bytes(),
                softmax.wls_instances()
            ),
            (128, 1280, 2)
        );
    }
}
