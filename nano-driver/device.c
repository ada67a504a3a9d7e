// SPDX-License-Identifier: GPL-2.0
/* The GPU as a platform device: clocks, resets, supply, power domains, interrupts, reset. */
#include <linux/clk.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/iopoll.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/platform_device.h>
#include <linux/pm_domain.h>
#include <linux/pm_runtime.h>
#include <linux/property.h>
#include <linux/regulator/consumer.h>
#include <linux/reset.h>
#include <linux/slab.h>

#include "compat.h"
#include "nano.h"

static_assert(sizeof(struct gpureplay_nano_info) == 72);
static_assert(sizeof(struct gpureplay_nano_acquire) == 32);
static_assert(sizeof(struct gpureplay_nano_map) == 32);
static_assert(sizeof(struct gpureplay_nano_sync) == 24);
static_assert(sizeof(struct gpureplay_nano_access) == 16);
static_assert(sizeof(struct gpureplay_nano_registers) == 16);
static_assert(sizeof(struct gpureplay_nano_event) == 64);

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

static DEFINE_IDA(nano_ids);

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
static int nano_fall_asleep(struct nano *nano)
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

static int nano_runtime_resume(struct device *dev)
{
	struct nano *nano = dev_get_drvdata(dev);
	int ret = clk_bulk_prepare_enable(nano->clock_count, nano->clocks);

	if (ret)
		return ret;
	ret = reset_control_deassert(nano->resets);
	if (ret)
		clk_bulk_disable_unprepare(nano->clock_count, nano->clocks);
	return ret;
}

static int nano_runtime_suspend(struct device *dev)
{
	struct nano *nano = dev_get_drvdata(dev);

	clk_bulk_disable_unprepare(nano->clock_count, nano->clocks);
	return 0;
}

/*
 * The machine goes to sleep; processes are frozen. A job that runs is lost: its owner is told so,
 * and has to reset. A GPU that cannot be stopped keeps the machine awake.
 */
static int nano_suspend(struct device *dev)
{
	struct nano *nano = dev_get_drvdata(dev);
	int ret = 0;

	guard(mutex)(&nano->lock);
	if (nano->ready) {
		ret = nano_fall_asleep(nano);
		nano->stale = true;
		wake_up_all(&nano->wait);
	}
	return ret ?: pm_runtime_force_suspend(dev);
}

/* A GPU that does not come back is gone: without a clock its registers may hang the machine. */
static int nano_resume(struct device *dev)
{
	struct nano *nano = dev_get_drvdata(dev);
	int ret = pm_runtime_force_resume(dev);

	guard(mutex)(&nano->lock);
	if (!ret && nano->ready)
		ret = nano_rate_apply(nano) ?: nano_reset(nano);
	if (ret) {
		if (nano->ready)
			pm_runtime_put_noidle(dev);
		nano->gone = true;
		nano->ready = false;
		wake_up_all(&nano->wait);
	}
	return ret;
}

static const struct dev_pm_ops nano_pm = {
	SYSTEM_SLEEP_PM_OPS(nano_suspend, nano_resume)
	RUNTIME_PM_OPS(nano_runtime_suspend, nano_runtime_resume, NULL)
};

static void nano_free_device(struct kref *references)
{
	kfree(container_of(references, struct nano, references));
}

void nano_put(struct nano *nano)
{
	kref_put(&nano->references, nano_free_device);
}

static void nano_put_action(void *data)
{
	struct nano *nano = data;

	if (nano->id >= 0)
		ida_free(&nano_ids, nano->id);
	nano_put(nano);
}

static void nano_detach_domain(void *domain)
{
	dev_pm_domain_detach(domain, true);
}

static void nano_remove_link(void *link)
{
	device_link_del(link);
}

/* One domain is attached by the bus; several (MT8183) are ours to attach. */
static int nano_attach_domains(struct device *dev)
{
	int count = of_count_phandle_with_args(dev->of_node, "power-domains",
					       "#power-domain-cells");
	int index, ret;

	for (index = 0; count > 1 && index < count; index++) {
		struct device *domain = dev_pm_domain_attach_by_id(dev, index);
		struct device_link *link;

		if (IS_ERR_OR_NULL(domain))
			return domain ? PTR_ERR(domain) : -ENODATA;
		ret = devm_add_action_or_reset(dev, nano_detach_domain, domain);
		if (ret)
			return ret;
		/* Nothing is ever bound to a domain's device: a managed link would wait for it. */
		link = device_link_add(dev, domain, DL_FLAG_PM_RUNTIME | DL_FLAG_STATELESS);
		if (!link)
			return -ENODEV;
		ret = devm_add_action_or_reset(dev, nano_remove_link, link);
		if (ret)
			return ret;
	}
	return 0;
}

/* On from probe to unbinding, as panfrost has them; clocks and domains are switched meanwhile. */
static int nano_enable_supplies(struct device *dev)
{
	static const char * const names[] = { "mali", "sram" };
	size_t index;
	int ret;

	for (index = 0; index < ARRAY_SIZE(names); index++) {
		ret = devm_regulator_get_enable_optional(dev, names[index]);
		if (ret && ret != -ENODEV)
			return ret;
	}
	return 0;
}

static int nano_get_resources(struct platform_device *pdev, struct nano *nano)
{
	struct device *dev = &pdev->dev;

	nano->registers = devm_platform_get_and_ioremap_resource(pdev, 0, &nano->window);
	if (IS_ERR(nano->registers))
		return PTR_ERR(nano->registers);
	if (resource_size(nano->window) < SZ_16K || resource_size(nano->window) > SZ_1M)
		return -EINVAL;
	nano->clock_count = devm_clk_bulk_get_all(dev, &nano->clocks);
	if (nano->clock_count < 0)
		return nano->clock_count;
	nano->resets = devm_reset_control_array_get_optional_exclusive(dev);
	if (IS_ERR(nano->resets))
		return PTR_ERR(nano->resets);
	nano->coherent = device_get_dma_attr(dev) == DEV_DMA_COHERENT;
	return nano_enable_supplies(dev) ?: nano_attach_domains(dev) ?: nano_rate_init(nano);
}

static int nano_request_lines(struct platform_device *pdev, struct nano *nano)
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

/* driver_override may name any device: only Bifrost (6, 7) and Valhall (9) have a job manager. */
static bool nano_has_job_manager(u32 gpu_id)
{
	return gpu_id >> 28 == 6 || gpu_id >> 28 == 7 || gpu_id >> 28 == 9;
}

/* Learns what GPU this is, and leaves it reset and off. */
static int nano_try(struct platform_device *pdev, struct nano *nano)
{
	int ret = pm_runtime_resume_and_get(nano->dev);
	u32 features;

	if (ret)
		return ret;
	nano->gpu_id = readl(nano->registers + GPU_ID);
	if (!nano_has_job_manager(nano->gpu_id)) {
		dev_err(nano->dev, "GPU_ID %#x is no Bifrost or Valhall GPU with a job manager\n",
			nano->gpu_id);
		pm_runtime_put_sync(nano->dev);
		return -ENODEV;
	}
	features = readl(nano->registers + GPU_MMU_FEATURES);
	nano->va_bits = clamp(features & 0xff, 32u, 48u);
	nano->bus_bits = clamp(features >> 8 & 0xff, 32u, 40u);
	ret = dma_set_mask_and_coherent(nano->dev, DMA_BIT_MASK(nano->bus_bits));
	if (!ret)
		ret = nano_reset(nano);
	if (!ret)
		ret = nano_request_lines(pdev, nano);
	nano_power_off(nano);
	return ret;
}

/* The last moment with the GPU's power domain attached: what is managed is released later. */
static void nano_remove(struct platform_device *pdev)
{
	struct nano *nano = platform_get_drvdata(pdev);

	misc_deregister(&nano->misc);
	nano_revoke(nano);
}

static int nano_probe(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct nano *nano = kzalloc(sizeof(*nano), GFP_KERNEL);
	int ret;

	if (!nano)
		return -ENOMEM;
	kref_init(&nano->references);
	nano->id = -1;
	ret = devm_add_action_or_reset(dev, nano_put_action, nano);
	if (ret)
		return ret;
	nano->id = ida_alloc(&nano_ids, GFP_KERNEL);
	if (nano->id < 0)
		return nano->id;
	snprintf(nano->name, sizeof(nano->name), nano->id ? "gpureplay-nano%d" : "gpureplay-nano",
		 nano->id);
	nano->dev = dev;
	nano->asleep = true;
	nano->amlogic = of_device_is_compatible(dev->of_node, "amlogic,meson-g12a-mali");
	platform_set_drvdata(pdev, nano);
	mutex_init(&nano->lock);
	spin_lock_init(&nano->event_lock);
	nano_init_turns(nano);
	ret = nano_get_resources(pdev, nano);
	if (ret)
		return dev_err_probe(dev, ret, "registers, clocks, resets, supply or domains\n");
	ret = devm_pm_runtime_enable(dev);
	if (!ret)
		ret = nano_try(pdev, nano);
	if (ret)
		return dev_err_probe(dev, ret, "the GPU does not start\n");
	nano->misc.minor = MISC_DYNAMIC_MINOR;
	nano->misc.name = nano->name;
	nano->misc.fops = &nano_file_operations;
	nano->misc.mode = 0600;
	nano->misc.parent = dev;
	return misc_register(&nano->misc);
}

/* No table of devices: it would take the GPU from panfrost at boot. driver_override names us. */
static struct platform_driver nano_driver = {
	.probe = nano_probe,
	.nano_remove_member = nano_remove,
	.driver = {
		.name = "gpureplay-nano",
		.pm = pm_ptr(&nano_pm),
	},
};
module_platform_driver(nano_driver);

MODULE_DESCRIPTION("Registers, memory and interrupts of a Mali GPU for the gpureplay replayer");
MODULE_LICENSE("GPL");
