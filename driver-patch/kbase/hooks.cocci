// SPDX-License-Identifier: GPL-2.0
//
// Adds the recorder's hooks to Arm's job-manager driver, r9p0 to r44p1.
// Register accesses need none: gpureplay_mmio.h redirects them, also those of
// vendors' platform code. The doorbell needs none either: the driver rings it
// under a spinlock, so the recorder rings it later, when the job's memory is in
// the log. After the job its interrupt handler runs in a thread, behind a dump.

virtual patch

// Where the registers are, and one job at a time by the driver's own switch.
@attach@
identifier KB;
expression ADDRESS, SIZE;
@@
  KB->reg = ioremap(ADDRESS, SIZE);
+ gpureplay_attach(KB->dev, KB->reg, GPUREPLAY_DRIVER_KBASE);
+ gpureplay_pin_byte(&KB->serialize_jobs, KBASE_SERIALIZE_INTRA_SLOT | KBASE_SERIALIZE_INTER_SLOT);

// No power-down between jobs, and no end of a job because writing its memory to the log takes time.
@power@
identifier KB;
@@
  dev_info(KB->dev, "Probed as %s\n", dev_name(KB->mdev.this_device));
+ gpureplay_pin_power(KB, gpureplay_kbase_hold, gpureplay_kbase_release);
+ gpureplay_job_ticks(&KB->js_data.soft_stop_ticks);
+ gpureplay_job_ticks(&KB->js_data.soft_stop_ticks_cl);
+ gpureplay_job_ticks(&KB->js_data.hard_stop_ticks_ss);
+ gpureplay_job_ticks(&KB->js_data.hard_stop_ticks_cl);
+ gpureplay_job_ticks(&KB->js_data.hard_stop_ticks_dumping);
+ gpureplay_job_ticks(&KB->js_data.gpu_reset_ticks_ss);
+ gpureplay_job_ticks(&KB->js_data.gpu_reset_ticks_cl);
+ gpureplay_job_ticks(&KB->js_data.gpu_reset_ticks_dumping);

// The app goes on when its jobs are done: what it writes next belongs to the
// next job.
@wait@
identifier KCTX, SUBMIT;
expression list ARGUMENTS;
@@
kbase_api_job_submit(struct kbase_context *KCTX, struct kbase_ioctl_job_submit *SUBMIT)
{
- return kbase_jd_submit(ARGUMENTS);
+ int gpureplay_result = kbase_jd_submit(ARGUMENTS);
+
+ gpureplay_wait_zero(&KCTX->jctx.zero_jobs_wait, &KCTX->jctx.job_nr);
+ return gpureplay_result;
}

// Interrupt handlers. The driver numbers its lines as the recorder does:
// job, mmu, gpu.
@irq@
expression IRQ, HANDLER, FLAGS, NAME, KB, TAG;
@@
- request_irq(IRQ, HANDLER, FLAGS, NAME, kbase_tag(KB, TAG))
+ gpureplay_request_unmanaged_irq(IRQ, HANDLER, FLAGS, NAME, kbase_tag(KB, TAG), TAG)

@irq_free@
expression IRQ, KB, TAG;
@@
- free_irq(IRQ, kbase_tag(KB, TAG))
+ gpureplay_free_unmanaged_irq(IRQ, kbase_tag(KB, TAG))

// What the driver says that it maps.
@map@
identifier ERR;
expression KCTX, REG;
expression list REST;
@@
kbase_gpu_mmap(...)
{
<...
  ERR = kbase_add_va_region(KCTX, REG, REST);
  if (ERR)
	return ERR;
+ gpureplay_map(KCTX->as_nr, REG->flags, REG->start_pfn << 12, REG->nr_pages * 4096ULL);
...>
}

@unmap@
identifier KCTX, REG;
@@
kbase_gpu_munmap(struct kbase_context *KCTX, struct kbase_va_region *REG)
{
<...
+ gpureplay_unmap(KCTX->as_nr, REG->flags, REG->start_pfn << 12, REG->nr_pages * 4096ULL);
  if (REG->start_pfn == 0)
	return 0;
...>
}
