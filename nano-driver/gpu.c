// SPDX-License-Identifier: GPL-2.0
/* The GPU itself: reset, interrupts, power. */
#include <linux/interrupt.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iopoll.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>

#include "nano.h"

/* COHERENCY_ENABLE, as Arm's driver sets it from the device tree. */
#define COHERENCY_ACE_LITE	0
#define COHERENCY_NONE		31

#define GPU_INT_RESET_DONE	BIT(8)
#define GPU_COMMAND_SOFT_RESET	1
#define GPU_COMMAND_HARD_RESET	2
#define GPU_INT_CLEANED		BIT(17)
#define GPU_COMMAND_CLEAN	7
/* What Linux's panfrost_gpu_amlogic_quirk() writes. */
#define PWR_KEY			0x50
#define PWR_KEY_UNLOCK		0x2968a819
#define PWR_OVERRIDE1		0x58
#define PWR_OVERRIDE1_AMLOGIC	0x00200fff

static const char *const nano_line_names[NANO_LINES] = { "job", "mmu", "gpu" };
static const u32 nano_line_bases[NANO_LINES] = {
	JOB_INT_RAWSTAT, MMU_INT_RAWSTAT, GPU_INT_RAWSTAT
};

/* No handler runs that began before; one that is late would mask a line again. */
static void nano_finish_handlers(struct nano *nano)
{
	int line;

	for (line = 0; line < NANO_LINES; line++)
		if (nano->lines[line].irq > 0)
			synchronize_irq(nano->lines[line].irq);
}

/* Afterwards the GPU runs nothing, maps nothing, raises no interrupt, and none is left to read. */
int nano_reset(struct nano *nano)
{
	u32 command, status;
	int line;

	for (line = 0; line < NANO_LINES; line++)
		writel(0, nano->registers + nano_line_bases[line] + INT_MASK);
	for (command = GPU_COMMAND_SOFT_RESET; command <= GPU_COMMAND_HARD_RESET; command++) {
		writel(GPU_INT_RESET_DONE, nano->registers + GPU_INT_RAWSTAT + INT_CLEAR);
		writel(command, nano->registers + GPU_COMMAND);
		nano->stuck = readl_poll_timeout(nano->registers + GPU_INT_RAWSTAT, status,
						 status & GPU_INT_RESET_DONE, 10, 10000);
		if (!nano->stuck)
			break;
	}
	for (line = 0; line < NANO_LINES; line++)
		writel(~0u, nano->registers + nano_line_bases[line] + INT_CLEAR);
	nano_finish_handlers(nano);
	spin_lock_irq(&nano->event_lock);
	memset(&nano->event, 0, sizeof(nano->event));
	spin_unlock_irq(&nano->event_lock);
	if (nano->stuck)
		return -ETIMEDOUT;
	WRITE_ONCE(nano->asleep, false);
	if (nano->amlogic) {
		writel(PWR_KEY_UNLOCK, nano->registers + PWR_KEY);
		writel(PWR_OVERRIDE1_AMLOGIC, nano->registers + PWR_OVERRIDE1);
	}
	writel(nano->coherent ? COHERENCY_ACE_LITE : COHERENCY_NONE,
	       nano->registers + COHERENCY_ENABLE);
	if (!list_empty(&nano->orphans))
		queue_work(system_freezable_wq, &nano->reap);
	return 0;
}

/* Writes back the caches of a GPU before a reset that its owner did not ask for. */
void nano_clean(struct nano *nano)
{
	u32 status;

	writel(GPU_INT_CLEANED, nano->registers + GPU_INT_RAWSTAT + INT_CLEAR);
	writel(GPU_COMMAND_CLEAN, nano->registers + GPU_COMMAND);
	if (readl_poll_timeout(nano->registers + GPU_INT_RAWSTAT, status,
			       status & GPU_INT_CLEANED, 10, 10000))
		dev_warn(nano->dev, "the GPU does not clean its caches\n");
}

static irqreturn_t nano_interrupt(int irq, void *data)
{
	struct nano_line *line = data;
	struct nano *nano = line->nano;
	struct gpureplay_nano_event *event = &nano->event;
	u32 status;

	if (READ_ONCE(nano->asleep))	/* another device's: our registers have no clock */
		return IRQ_NONE;
	status = readl(nano->registers + line->base + INT_STAT);
	if (status) {
		writel(0, nano->registers + line->base + INT_MASK);
		spin_lock(&nano->event_lock);
		event->time_ns = ktime_get_ns();
		event->status[line - nano->lines] |= status;
		if (line->base == MMU_INT_RAWSTAT) {
			event->fault_status = readl(nano->registers + AS0_FAULTSTATUS);
			event->fault_address = lo_hi_readq(nano->registers + AS0_FAULTADDRESS);
		}
		spin_unlock(&nano->event_lock);
		wake_up_interruptible(&nano->wait);
	}
	return IRQ_RETVAL(status);
}

int nano_power_on(struct nano *nano)
{
	int ret = pm_runtime_resume_and_get(nano->dev);

	if (ret)
		return ret;
	ret = nano_rate_apply(nano) ?: nano_reset(nano);
	if (ret)
		pm_runtime_put_sync(nano->dev);
	return ret;
}

/* Afterwards no handler touches a register: the lines may be shared with devices that go on. */
int nano_fall_asleep(struct nano *nano)
{
	int ret = nano_reset(nano);

	WRITE_ONCE(nano->asleep, true);
	nano_finish_handlers(nano);
	return ret;
}

void nano_power_off(struct nano *nano)
{
	if (nano_fall_asleep(nano))
		dev_err(nano->dev, "the GPU does not reset: its pages stay allocated\n");
	pm_runtime_put_sync(nano->dev);
}

int nano_request_lines(struct nano *nano, struct platform_device *pdev)
{
	struct nano_line *line = nano->lines;
	int index, ret;

	for (index = 0; index < NANO_LINES; index++, line++) {
		line->nano = nano;
		line->base = nano_line_bases[index];
		line->irq = platform_get_irq_byname(pdev, nano_line_names[index]);
		if (line->irq < 0)
			return line->irq;
		ret = devm_request_irq(nano->dev, line->irq, nano_interrupt, IRQF_SHARED,
				       "gpureplay-nano", line);
		if (ret)
			return ret;
	}
	return 0;
}

static void nano_free_device(struct kref *references)
{
	kfree(container_of(references, struct nano, references));
}

void nano_put(struct nano *nano)
{
	kref_put(&nano->references, nano_free_device);
}
