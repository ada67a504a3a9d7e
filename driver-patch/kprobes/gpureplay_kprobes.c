// SPDX-License-Identifier: GPL-2.0
/*
 * The hooks for a kbase that exists only as a binary module, r9p0 to r44p1.
 *
 * Its two register accessors are global functions. A probe at the entry of
 * each does the access through the recorder, in one step with its record, and
 * returns to the caller: the function itself does not run. Probes are armed
 * when the module has been loaded and before it runs, so that nothing of the
 * first reset is lost.
 */
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_platform.h>
#include <linux/platform_device.h>
#include <linux/ptrace.h>

#include "gpureplay_hooks.h"

#ifndef CONFIG_ARM64
#error "the probes know where arguments are on arm64 only"
#endif

static char *module_name_to_probe = "mali_kbase";
module_param_named(driver, module_name_to_probe, charp, 0444);
MODULE_PARM_DESC(driver, "Name of the driver's module (default mali_kbase)");

static struct platform_device *gpu;
static void __iomem *registers;
static resource_size_t bytes;
static bool armed;

/* Device-tree names of GPUs that this driver takes. */
static const struct of_device_id gpus[] = {
	{ .compatible = "arm,mali-bifrost" },
	{ .compatible = "arm,mali-midgard" },
	{ .compatible = "arm,mali" },
	{ .compatible = "arm,malit6xx" },
	{ .compatible = "arm,malittx" },
	{}
};

/* void kbase_reg_write(struct kbase_device *, u32 offset, u32 value, ...) */
static int on_write(struct kprobe *probe, struct pt_regs *regs)
{
	u32 offset = regs->regs[1];

	if (offset >= bytes)
		return 0;
	if (gpureplay_is_recording())
		gpureplay_log_write(registers + offset, (u32)regs->regs[2], 4);
	else
		writel(regs->regs[2], registers + offset);
	instruction_pointer_set(regs, regs->regs[30]);
	return 1;
}

NOKPROBE_SYMBOL(on_write);

/* u32 kbase_reg_read(struct kbase_device *, u32 offset, ...) */
static int on_read(struct kprobe *probe, struct pt_regs *regs)
{
	u32 offset = regs->regs[1];

	if (offset >= bytes)
		return 0;
	if (gpureplay_is_recording())
		regs->regs[0] = gpureplay_log_read(registers + offset, 4);
	else
		regs->regs[0] = readl(registers + offset);
	instruction_pointer_set(regs, regs->regs[30]);
	return 1;
}

NOKPROBE_SYMBOL(on_read);

static const struct kprobe new_accessors[] = {
	{ .symbol_name = "kbase_reg_write", .pre_handler = on_write },
	{ .symbol_name = "kbase_reg_read", .pre_handler = on_read },
};

static int job_enter(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	gpureplay_irq_enter(GPUREPLAY_LINE_JOB);
	return 0;
}

static int job_exit(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	gpureplay_irq_exit(GPUREPLAY_LINE_JOB, regs_return_value(regs));
	return 0;
}

static int mmu_enter(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	gpureplay_irq_enter(GPUREPLAY_LINE_MMU);
	return 0;
}

static int mmu_exit(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	gpureplay_irq_exit(GPUREPLAY_LINE_MMU, regs_return_value(regs));
	return 0;
}

static int gpu_enter(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	gpureplay_irq_enter(GPUREPLAY_LINE_GPU);
	return 0;
}

static int gpu_exit(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	gpureplay_irq_exit(GPUREPLAY_LINE_GPU, regs_return_value(regs));
	return 0;
}

static const struct kretprobe new_handlers[] = {
	{
		.kp.symbol_name = "kbase_job_irq_handler",
		.entry_handler = job_enter,
		.handler = job_exit,
	},
	{
		.kp.symbol_name = "kbase_mmu_irq_handler",
		.entry_handler = mmu_enter,
		.handler = mmu_exit,
	},
	{
		.kp.symbol_name = "kbase_gpu_irq_handler",
		.entry_handler = gpu_enter,
		.handler = gpu_exit,
	},
};

/*
 * What is registered. The kernel leaves addresses and flags of a driver that is
 * gone in them, and refuses a probe with an address and a name.
 */
static struct kprobe accessors[ARRAY_SIZE(new_accessors)];
static struct kretprobe handlers[ARRAY_SIZE(new_handlers)];

static void renew_probes(void)
{
	memcpy(accessors, new_accessors, sizeof(accessors));
	memcpy(handlers, new_handlers, sizeof(handlers));
}

/* Calls that the kernel did not tell of: a register access or a handler is not in the log. */
static u64 count_missed(void)
{
	u64 missed = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(handlers); i++)
		missed += handlers[i].nmissed + handlers[i].kp.nmissed;
	for (i = 0; i < ARRAY_SIZE(accessors); i++)
		missed += accessors[i].nmissed;
	return missed;
}

/* Release in the opposite order: handlers use what the accessors have logged. */
static void disarm(void)
{
	unsigned int i;

	if (!armed)
		return;
	armed = false;
	gpureplay_count_missed(NULL);
	for (i = 0; i < ARRAY_SIZE(handlers); i++) {
		unregister_kretprobe(&handlers[i]);
		if (handlers[i].nmissed)
			pr_err("gpureplay: %s: %d calls missed\n",
			       handlers[i].kp.symbol_name, handlers[i].nmissed);
	}
	for (i = 0; i < ARRAY_SIZE(accessors); i++) {
		unregister_kprobe(&accessors[i]);
		if (accessors[i].nmissed)
			pr_err("gpureplay: %s: %lu calls missed\n",
			       accessors[i].symbol_name, accessors[i].nmissed);
	}
	gpureplay_detach(&gpu->dev);
	iounmap(registers);
	put_device(&gpu->dev);
}

/* The GPU is known from the device tree: nothing is bound to it yet. */
static int find_gpu(void)
{
	struct device_node *node;
	struct resource *range;

	for_each_matching_node(node, gpus)
		if (of_device_is_available(node))
			break;
	if (!node)
		return -ENODEV;
	gpu = of_find_device_by_node(node);
	of_node_put(node);
	if (!gpu)
		return -ENODEV;
	range = platform_get_resource(gpu, IORESOURCE_MEM, 0);
	if (range) {
		bytes = resource_size(range);
		registers = ioremap(range->start, bytes);
	}
	if (range && registers)
		return 0;
	put_device(&gpu->dev);
	return -ENOMEM;
}

static int arm(void)
{
	unsigned int i, j = 0;
	int ret = find_gpu();

	if (ret)
		return ret;
	renew_probes();
	for (i = 0; i < ARRAY_SIZE(accessors); i++) {
		ret = register_kprobe(&accessors[i]);
		if (ret)
			goto accessors;
	}
	for (j = 0; j < ARRAY_SIZE(handlers); j++) {
		ret = register_kretprobe(&handlers[j]);
		if (ret)
			goto handlers;
	}
	ret = gpureplay_attach_unmanaged(&gpu->dev, registers,
					 GPUREPLAY_DRIVER_KBASE);
	if (ret)
		goto handlers;
	gpureplay_count_missed(count_missed);
	armed = true;
	return 0;

handlers:
	while (j--)
		unregister_kretprobe(&handlers[j]);
accessors:
	while (i--)
		unregister_kprobe(&accessors[i]);
	iounmap(registers);
	put_device(&gpu->dev);
	return ret;
}

static int on_module(struct notifier_block *block, unsigned long state,
		     void *data)
{
	struct module *loaded = data;
	int ret;

	if (strcmp(loaded->name, module_name_to_probe))
		return NOTIFY_DONE;
	if (state == MODULE_STATE_COMING) {
		ret = arm();
		if (ret)
			pr_err("gpureplay: %s cannot be probed: error %d; it runs unrecorded\n",
			       loaded->name, ret);
	} else if (state == MODULE_STATE_GOING) {
		disarm();
	}
	return NOTIFY_OK;
}

static struct notifier_block modules = { .notifier_call = on_module };

static int __init kprobes_init(void)
{
	renew_probes();
	/* A probe that can be placed now means that its reset is over. */
	if (!register_kprobe(&accessors[0])) {
		unregister_kprobe(&accessors[0]);
		pr_err("gpureplay: remove %s, load this module, then load it again\n",
		       module_name_to_probe);
		return -EBUSY;
	}
	return register_module_notifier(&modules);
}
module_init(kprobes_init);

static void __exit kprobes_exit(void)
{
	unregister_module_notifier(&modules);
	disarm();
}
module_exit(kprobes_exit);

MODULE_DESCRIPTION("Records a binary-only kbase: probes for gpureplay_recorder");
MODULE_AUTHOR("The gpureplay authors");
MODULE_LICENSE("GPL");
