// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares requests with panthor's header, by a C compiler. Skipped, aloud, without it or the header
//! (linux-libc-dev of Debian 13); `PANTHOR_HEADERS` names another directory with `drm/panthor_drm.h`.

use std::path::{Path, PathBuf};
use std::process::Command;

use mali_uapi::panthor as uapi;

fn program(rows: &[(String, u64)]) -> String {
    let mut text = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include <drm/panthor_drm.h>\nint main(void) {\n",
    );
    for (expression, _) in rows {
        text += &format!("\tprintf(\"%llu\\n\", (unsigned long long)({expression}));\n");
    }
    text + "\treturn 0;\n}\n"
}

fn rows() -> Vec<(String, u64)> {
    let mut rows = Vec::new();
    macro_rules! request {
        ($($name:ident),*) => { $(rows.push((format!("DRM_IOCTL_PANTHOR_{}", stringify!($name)), uapi::$name.0.into()));)* };
    }
    request!(
        DEV_QUERY,
        VM_CREATE,
        VM_DESTROY,
        VM_BIND,
        VM_GET_STATE,
        BO_CREATE,
        BO_MMAP_OFFSET,
        GROUP_CREATE,
        GROUP_DESTROY,
        GROUP_SUBMIT,
        GROUP_GET_STATE,
        TILER_HEAP_CREATE,
        TILER_HEAP_DESTROY
    );
    macro_rules! argument {
        ($($kernel:literal = $name:ident { $($field:literal = $ours:ident),* };)*) => {$(
            rows.push((format!("sizeof(struct drm_panthor_{})", $kernel), size_of::<uapi::$name>() as u64));
            $(rows.push((
                format!("offsetof(struct drm_panthor_{}, {})", $kernel, $field),
                std::mem::offset_of!(uapi::$name, $ours) as u64,
            ));)*
        )*};
    }
    argument! {
        "obj_array" = ObjectArray { "stride" = stride, "count" = count, "array" = array };
        "sync_op" = SyncOp { "flags" = flags, "handle" = handle, "timeline_value" = point };
        "gpu_info" = GpuInfo {
            "gpu_id" = gpu_id, "l2_features" = l2_features, "mmu_features" = mmu_features, "thread_features" = thread_features,
            "max_threads" = max_threads, "texture_features" = texture_features, "shader_present" = shader_present,
            "tiler_present" = tiler_present, "core_features" = core_features
        };
        "csif_info" = CsifInfo { "csg_slot_count" = groups, "cs_slot_count" = streams, "cs_reg_count" = registers };
        "dev_query" = DevQuery { "type" = kind, "size" = size, "pointer" = pointer };
        "vm_create" = VmCreate { "id" = id, "user_va_range" = user_range };
        "vm_bind_op" = VmBindOp {
            "flags" = flags, "bo_handle" = handle, "bo_offset" = offset, "va" = va, "size" = size, "syncs" = syncs
        };
        "vm_bind" = VmBind { "vm_id" = vm, "flags" = flags, "ops" = operations };
        "bo_create" = BoCreate { "size" = size, "flags" = flags, "exclusive_vm_id" = exclusive_vm, "handle" = handle };
        "bo_mmap_offset" = BoMmapOffset { "handle" = handle, "offset" = offset };
        "queue_create" = QueueCreate { "priority" = priority, "ringbuf_size" = ring_bytes };
        "group_create" = GroupCreate {
            "queues" = queues, "max_compute_cores" = compute_cores, "priority" = priority, "compute_core_mask" = compute_mask,
            "tiler_core_mask" = tiler_mask, "vm_id" = vm, "group_handle" = handle
        };
        "queue_submit" = QueueSubmit {
            "queue_index" = queue, "stream_size" = bytes, "stream_addr" = address, "latest_flush" = latest_flush, "syncs" = syncs
        };
        "group_submit" = GroupSubmit { "group_handle" = group, "queue_submits" = submits };
        "group_get_state" = GroupGetState { "group_handle" = group, "state" = state, "fatal_queues" = fatal_queues };
        "tiler_heap_create" = TilerHeapCreate { "handle" = handle, "tiler_heap_ctx_gpu_va" = context };
    }
    let flags: [(&str, u64); 6] = [
        (
            "DRM_PANTHOR_USER_FLUSH_ID_MMIO_OFFSET",
            uapi::FLUSH_ID_OFFSET,
        ),
        ("DRM_PANTHOR_SYNC_OP_SIGNAL", uapi::SYNC_SIGNAL.into()),
        (
            "DRM_PANTHOR_VM_BIND_OP_MAP_READONLY",
            uapi::MAP_READ_ONLY.into(),
        ),
        (
            "DRM_PANTHOR_VM_BIND_OP_MAP_NOEXEC",
            uapi::MAP_NO_EXECUTE.into(),
        ),
        ("DRM_PANTHOR_VM_BIND_OP_TYPE_UNMAP", uapi::BIND_UNMAP.into()),
        (
            "DRM_PANTHOR_GROUP_STATE_FATAL_FAULT",
            uapi::GROUP_FATAL_FAULT.into(),
        ),
    ];
    let masked = |(name, value): (&str, u64)| match value >> 32 {
        0 => (format!("(unsigned int)({name})"), value),
        _ => (name.to_owned(), value),
    };
    rows.extend(flags.map(masked));
    rows
}

#[test]
fn arguments_are_those_of_the_kernels_header() {
    let given = std::env::var_os("PANTHOR_HEADERS").map(PathBuf::from);
    let headers = given.unwrap_or_else(|| "/usr/include".into());
    if !headers.join("drm/panthor_drm.h").is_file() {
        eprintln!("SKIPPED: no drm/panthor_drm.h in {}", headers.display());
        return;
    }
    let rows = rows();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (folder.join("panthor.c"), folder.join("panthor"));
    std::fs::write(&source, program(&rows)).expect("a file in the target folder");
    let mut compiler = Command::new("cc");
    compiler
        .arg("-I")
        .arg(&headers)
        .arg(&source)
        .arg("-o")
        .arg(&binary);
    match compiler.status() {
        Err(_) => return eprintln!("SKIPPED: no C compiler (cc)"),
        Ok(status) => assert!(status.success(), "{}", source.display()),
    }
    let printed = Command::new(&binary)
        .output()
        .expect("the program runs")
        .stdout;
    let printed = String::from_utf8(printed).expect("numbers");
    let found: Vec<u64> = printed
        .lines()
        .map(|line| line.parse().expect("a number"))
        .collect();
    assert_eq!(found.len(), rows.len());
    for ((expression, ours), theirs) in rows.iter().zip(found) {
        assert_eq!(*ours, theirs, "{expression}");
    }
}
