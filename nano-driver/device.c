// SPDX-License-Identifier: GPL-2.0
/* The GPU as a platform device: clocks, resets, supply, power domains, sleep, unbinding. */
#include <linux/clk.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
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

static DEFINE_IDA(nano_ids);

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
		ret = nano_request_lines(nano, pdev);
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
