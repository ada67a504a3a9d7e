// SPDX-License-Identifier: GPL-2.0
//
// Adds the recorder's hooks to the kernel's panfrost driver, from 5.17 on.
// Register accesses and polling loops need none: gpureplay_mmio.h redirects
// them. `driver-patch/build` counts what the rules below have found.

virtual patch

// The app's own mappings of buffers. These rules come first: the second adds
// what the first replaces.
@mappings@
@@
- &drm_gem_shmem_vm_ops
+ &gpureplay_vm_operations

@wrap@
expression OBJECT;
@@
  OBJECT = &panfrost_gem_funcs;
+ gpureplay_wrap_mappings(&drm_gem_shmem_vm_ops);

// Where the registers are: before anything is read or written.
@attach@
expression PLATFORM_DEVICE;
identifier P;
@@
  P->iomem = devm_platform_ioremap_resource(PLATFORM_DEVICE, ...);
+ gpureplay_attach(&PLATFORM_DEVICE->dev, P->iomem, GPUREPLAY_DRIVER_PANFROST);

// The scheduler's time-out runs while a job's memory is written to the log.
@timeout@
expression RET, SCHED;
@@
  RET = drm_sched_init(&SCHED, ...);
+ gpureplay_job_timeout(&SCHED.timeout);

// One job at a time.
@submit_void@
expression JOB, SLOT;
@@
+ gpureplay_submit_begin(SLOT);
  panfrost_job_hw_submit(JOB, SLOT);
+ gpureplay_submit_end(SLOT);

@submit_result@
expression RET, JOB, SLOT;
@@
+ gpureplay_submit_begin(SLOT);
  RET = panfrost_job_hw_submit(JOB, SLOT);
+ gpureplay_submit_end(SLOT);

// The app's call gets memory before its job exists. The app goes on when its job is done: what it writes next belongs
// to the next job.
@wait@
expression RET, JOB;
identifier FAILED;
@@
+ gpureplay_prepare();
  RET = panfrost_job_push(JOB);
  if (RET)
	goto FAILED;
+ gpureplay_wait(JOB->render_done_fence);

// The last place before the doorbell where sleeping is possible.
@memory@
identifier JOB, F;
type T;
expression DEV, SLOT, CONFIG;
@@
T F(struct panfrost_job *JOB, ...)
{
<...
  job_write(DEV, JS_CONFIG_NEXT(SLOT), CONFIG);
+ gpureplay_job_buffers(SLOT, (const void * const *)JOB->bos, JOB->bo_count);
+ gpureplay_submit_memory(SLOT);
...>
}

// Interrupt handlers.
@irq_job@
identifier INIT = {panfrost_job_init, panfrost_jm_init};
expression DEV, IRQ, HANDLER, THREAD, FLAGS, NAME, DATA;
@@
INIT(...)
{
<+...
- devm_request_threaded_irq(DEV, IRQ, HANDLER, THREAD, FLAGS, NAME, DATA)
+ gpureplay_request_irq(DEV, IRQ, HANDLER, THREAD, FLAGS, NAME, DATA, GPUREPLAY_LINE_JOB)
...+>
}

@irq_mmu@
expression DEV, IRQ, HANDLER, THREAD, FLAGS, NAME, DATA;
@@
panfrost_mmu_init(...)
{
<+...
- devm_request_threaded_irq(DEV, IRQ, HANDLER, THREAD, FLAGS, NAME, DATA)
+ gpureplay_request_irq(DEV, IRQ, HANDLER, THREAD, FLAGS, NAME, DATA, GPUREPLAY_LINE_MMU)
...+>
}

@irq_gpu@
expression DEV, IRQ, HANDLER, FLAGS, NAME, DATA;
@@
panfrost_gpu_init(...)
{
<+...
- devm_request_irq(DEV, IRQ, HANDLER, FLAGS, NAME, DATA)
+ gpureplay_request_irq(DEV, IRQ, HANDLER, NULL, FLAGS, NAME, DATA, GPUREPLAY_LINE_GPU)
...+>
}

// Changes of the page tables.
@tables_map@
expression RET;
@@
(
+ gpureplay_tables_lock();
  RET = mmu_map_sg(...);
+ gpureplay_tables_unlock();
|
+ gpureplay_tables_lock();
  mmu_map_sg(...);
+ gpureplay_tables_unlock();
)

@tables_unmap@
expression MAPPING;
@@
+ gpureplay_tables_lock();
  panfrost_mmu_unmap(MAPPING);
+ gpureplay_tables_unlock();

@tables_free@
expression OPS;
@@
+ gpureplay_tables_lock();
  free_io_pgtable_ops(OPS);
+ gpureplay_tables_unlock();

// What the driver says that it maps: flags are 1 not executable, 2 heap.
@map@
expression M;
symbol true;
@@
  M->active = true;
+ gpureplay_map(M->mmu->as, M->obj->noexec | M->obj->is_heap << 1, M->mmnode.start << PAGE_SHIFT, M->mmnode.size << PAGE_SHIFT);
+ if (!M->obj->is_heap)
+	gpureplay_track(&M->obj->base.base, M->mmu, M->obj->base.base.dev->anon_inode->i_mapping, drm_vma_node_offset_addr(&M->obj->base.base.vma_node), (void * const *)&M->obj->base.base.dma_buf, M->mmnode.start << PAGE_SHIFT, M->mmnode.size << PAGE_SHIFT);

@unmap@
expression M;
symbol false;
@@
  M->active = false;
+ gpureplay_untrack(&M->obj->base.base, M->mmnode.start << PAGE_SHIFT);
+ gpureplay_unmap(M->mmu->as, M->obj->noexec | M->obj->is_heap << 1, M->mmnode.start << PAGE_SHIFT, M->mmnode.size << PAGE_SHIFT);
