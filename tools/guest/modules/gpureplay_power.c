// SPDX-License-Identifier: GPL-2.0
/*
 * Test only: the power domain of the guest's GPU. What it switches off is off in
 * the GPU model (--power-domain), which counts accesses to registers without power.
 */
#include <linux/io.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/platform_device.h>
#include <linux/pm_domain.h>

/* The model's registers behind those of the GPU: model/server/src/outside.rs. */
#define FIRST		0xf000
#define MAGIC		0x00
#define POWER		0x14
#define UNPOWERED	0x18
#define RESETS		0x1c
#define PRESENT		0x43414348

static void __iomem *registers;
static unsigned int switched;

static int switch_power(struct generic_pm_domain *domain, u32 on)
{
	writel(on, registers + POWER);
	switched++;
	return readl(registers + POWER) == on ? 0 : -EIO;
}

static int power_on(struct generic_pm_domain *domain)
{
	return switch_power(domain, 1);
}

static int power_off(struct generic_pm_domain *domain)
{
	return switch_power(domain, 0);
}

static struct generic_pm_domain gpu_domain = {
	.name = "gpureplay-gpu",
	.power_on = power_on,
	.power_off = power_off,
};

static int get_power(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%u\n", readl(registers + POWER));
}

static int get_unpowered(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%u\n", readl(registers + UNPOWERED));
}

static int get_resets(char *buffer, const struct kernel_param *parameter)
{
	return sysfs_emit(buffer, "%u\n", readl(registers + RESETS));
}

static int set_resets(const char *text, const struct kernel_param *parameter)
{
	u32 value;
	int ret = kstrtou32(text, 0, &value);

	if (!ret)
		writel(value, registers + RESETS);
	return ret;
}

static const struct kernel_param_ops power_operations = { .get = get_power };
static const struct kernel_param_ops unpowered_operations = { .get = get_unpowered };
module_param_cb(power, &power_operations, NULL, 0444);
MODULE_PARM_DESC(power, "Whether the GPU has power");
module_param_cb(unpowered, &unpowered_operations, NULL, 0444);
MODULE_PARM_DESC(unpowered, "Accesses to registers of the GPU without power");
static const struct kernel_param_ops resets_operations = { .get = get_resets, .set = set_resets };
module_param_cb(resets, &resets_operations, NULL, 0644);
MODULE_PARM_DESC(resets, "Resets until the GPU takes no notice of them, plus one; 0: it carries out all");
module_param(switched, uint, 0444);
MODULE_PARM_DESC(switched, "Times that the power was switched");

static int power_probe(struct platform_device *pdev)
{
	struct device_node *gpu = of_find_compatible_node(NULL, NULL, "arm,mali-bifrost");
	void __iomem *window = of_iomap(gpu, 0);
	int ret;

	of_node_put(gpu);
	if (!window)
		return -ENODEV;
	registers = window + FIRST;
	if (readl(registers + MAGIC) != PRESENT) {
		iounmap(window);
		return -ENXIO;
	}
	ret = power_off(&gpu_domain);
	if (!ret)
		ret = pm_genpd_init(&gpu_domain, NULL, true);
	return ret ?: of_genpd_add_provider_simple(pdev->dev.of_node, &gpu_domain);
}

static const struct of_device_id power_ids[] = {
	{ .compatible = "gpureplay,test-power-domain" },
	{}
};
MODULE_DEVICE_TABLE(of, power_ids);

static struct platform_driver power_driver = {
	.probe = power_probe,
	.driver = {
		.name = "gpureplay-power",
		.of_match_table = power_ids,
		.suppress_bind_attrs = true,
	},
};

/* Never unloaded: the GPU would lose its power domain. */
builtin_platform_driver(power_driver);

MODULE_DESCRIPTION("Power domain of gpureplay's GPU model: a test, not for machines");
MODULE_LICENSE("GPL");
