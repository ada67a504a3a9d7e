// SPDX-License-Identifier: GPL-2.0
/* The GPU as a platform device: clocks, resets, supply, power domains, interrupts, reset. */
#include <linux/clk.h>
#include <linux/dma-mapping.h>
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

#include "nano.h"

static_assert(PAGE_SIZE == 4096);
static_assert(sizeof(struct gpureplay_nano_info) == 40);
static_assert(sizeof(struct gpureplay_nano_acquire) == 8);
static_assert(sizeof(struct gpureplay_nano_map) == 32);
static_assert(sizeof(struct gpureplay_nano_bus) == 32);
static_assert(sizeof(struct gpureplay_nano_sync) == 24);
static_assert(sizeof(struct gpureplay_nano_access) == 16);
static_assert(sizeof(struct gpureplay_nano_registers) == 16);
static_assert(sizeof(struct gpureplay_nano_event) == 32);

#define GPU_INT_RESET_DONE	BIT(8)
#define GPU_COMMAND_SOFT_RESET	1
#define GPU_COMMAND_HARD_RESET	2
/* What Linux's panfrost_gpu_amlogic_quirk() writes. */
#define PWR_KEY			0x50
#define PWR_KEY_UNLOCK		0x2968a819
#define PWR_OVERRIDE1		0x58
#define PWR_OVERRIDE1_AMLOGIC	0x00200fff

static const char *const nano_line_names[NANO_LINES] = { "job", "mmu", "gpu" };
static const u32 nano_line_bases[NANO_LINES] = {
	JOB_INT_RAWSTAT, MMU_INT_RAWSTAT, GPU_INT_RAWSTAT
};

/* Afterwards the GPU runs nothing, maps nothing and raises no interrupt. */
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
	if (!nano->stuck && nano->amlogic) {
		writel(PWR_KEY_UNLOCK, nano->registers + PWR_KEY);
		writel(PWR_OVERRIDE1_AMLOGIC, nano->registers + PWR_OVERRIDE1);
	}
	return nano->stuck ? -ETIMEDOUT : 0;
}

static irqreturn_t nano_interrupt(int irq, void *data)
{
	struct nano_line *line = data;
	struct nano *nano = line->nano;
	struct gpureplay_nano_event *event = &nano->event;
	u32 status = readl(nano->registers + line->base + INT_STAT);

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

/* Interrupts are delivered only while the GPU has power; no other device shares its lines. */
int nano_power_on(struct nano *nano)
{
	int line, ret = pm_runtime_resume_and_get(nano->dev);

	if (ret)
		return ret;
	ret = nano_reset(nano);
	if (ret) {
		pm_runtime_put_sync(nano->dev);
		return ret;
	}
	for (line = 0; line < NANO_LINES; line++)
		enable_irq(nano->lines[line].irq);
	return 0;
}

void nano_power_off(struct nano *nano)
{
	int line;

	if (nano_reset(nano))
		dev_err(nano->dev, "the GPU does not reset: its pages stay allocated\n");
	for (line = 0; line < NANO_LINES; line++)
		disable_irq(nano->lines[line].irq);
	pm_runtime_put_sync(nano->dev);
}

static int nano_resume(struct device *dev)
{
	struct nano *nano = dev_get_drvdata(dev);
	int ret;

	if (nano->supply) {
		ret = regulator_enable(nano->supply);
		if (ret)
			return ret;
	}
	ret = clk_bulk_prepare_enable(nano->clock_count, nano->clocks);
	if (ret)
		goto supply;
	ret = reset_control_deassert(nano->resets);
	if (!ret)
		return 0;
	clk_bulk_disable_unprepare(nano->clock_count, nano->clocks);
supply:
	if (nano->supply)
		regulator_disable(nano->supply);
	return ret;
}

static int nano_suspend(struct device *dev)
{
	struct nano *nano = dev_get_drvdata(dev);

	clk_bulk_disable_unprepare(nano->clock_count, nano->clocks);
	if (nano->supply)
		regulator_disable(nano->supply);
	return 0;
}

static DEFINE_RUNTIME_DEV_PM_OPS(nano_pm, nano_suspend, nano_resume, NULL);

static void nano_free_device(struct kref *references)
{
	kfree(container_of(references, struct nano, references));
}

void nano_put(struct nano *nano)
{
	kref_put(&nano->references, nano_free_device);
}

static void nano_put_action(void *nano)
{
	nano_put(nano);
}

static void nano_detach_domain(void *domain)
{
	dev_pm_domain_detach(domain, true);
}

/* One domain is attached by the bus; several (MT8183) are ours to attach. */
static int nano_attach_domains(struct device *dev)
{
	int count = of_count_phandle_with_args(dev->of_node, "power-domains",
					       "#power-domain-cells");
	int index, ret;

	for (index = 0; count > 1 && index < count; index++) {
		struct device *domain = dev_pm_domain_attach_by_id(dev, index);

		if (IS_ERR_OR_NULL(domain))
			return domain ? PTR_ERR(domain) : -ENODATA;
		ret = devm_add_action_or_reset(dev, nano_detach_domain, domain);
		if (ret)
			return ret;
		if (!device_link_add(dev, domain, DL_FLAG_PM_RUNTIME | DL_FLAG_AUTOREMOVE_CONSUMER))
			return -ENODEV;
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
	nano->supply = devm_regulator_get_optional(dev, "mali");
	if (PTR_ERR_OR_ZERO(nano->supply) == -ENODEV)
		nano->supply = NULL;
	if (IS_ERR(nano->supply))
		return PTR_ERR(nano->supply);
	nano->coherent = device_get_dma_attr(dev) == DEV_DMA_COHERENT;
	return nano_attach_domains(dev);
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

/* Learns how wide addresses may be, and leaves the GPU reset and off. */
static int nano_try(struct platform_device *pdev, struct nano *nano)
{
	int ret = pm_runtime_resume_and_get(nano->dev);
	u32 features;

	if (ret)
		return ret;
	features = readl(nano->registers + GPU_MMU_FEATURES);
	nano->va_bits = clamp(features & 0xff, 32u, 48u);
	nano->bus_bits = clamp(features >> 8 & 0xff, 32u, 40u);
	ret = dma_set_mask_and_coherent(nano->dev, DMA_BIT_MASK(nano->bus_bits));
	if (!ret)
		ret = nano_reset(nano);
	if (!ret)
		ret = nano_request_lines(pdev, nano);
	if (ret)
		pm_runtime_put_sync(nano->dev);
	else
		nano_power_off(nano);
	return ret;
}

/* Runs first of all when the driver is unbound; the rest is released after it. */
static void nano_unbind(void *data)
{
	struct nano *nano = data;

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
	ret = devm_add_action_or_reset(dev, nano_put_action, nano);
	if (ret)
		return ret;
	nano->dev = dev;
	nano->amlogic = of_device_is_compatible(dev->of_node, "amlogic,meson-g12a-mali");
	platform_set_drvdata(pdev, nano);
	mutex_init(&nano->lock);
	spin_lock_init(&nano->event_lock);
	init_waitqueue_head(&nano->wait);
	INIT_LIST_HEAD(&nano->waiting);
	INIT_LIST_HEAD(&nano->clients);
	INIT_LIST_HEAD(&nano->orphans);
	ret = nano_get_resources(pdev, nano);
	if (ret)
		return dev_err_probe(dev, ret, "registers, clocks, resets, supply or domains\n");
	ret = devm_pm_runtime_enable(dev);
	if (!ret)
		ret = nano_try(pdev, nano);
	if (ret)
		return dev_err_probe(dev, ret, "the GPU does not start\n");
	nano->misc.minor = MISC_DYNAMIC_MINOR;
	nano->misc.name = "gpureplay-nano";
	nano->misc.fops = &nano_file_operations;
	nano->misc.mode = 0600;
	nano->misc.parent = dev;
	ret = misc_register(&nano->misc);
	return ret ?: devm_add_action_or_reset(dev, nano_unbind, nano);
}

static const struct of_device_id nano_of_match[] = {
	{ .compatible = "arm,mali-bifrost" },
	{ }
};
MODULE_DEVICE_TABLE(of, nano_of_match);

static struct platform_driver nano_driver = {
	.probe = nano_probe,
	.driver = {
		.name = "gpureplay-nano",
		.of_match_table = nano_of_match,
		.pm = pm_ptr(&nano_pm),
	},
};
module_platform_driver(nano_driver);

MODULE_DESCRIPTION("Registers, memory and interrupts of a Mali GPU for the gpureplay replayer");
MODULE_LICENSE("GPL");
