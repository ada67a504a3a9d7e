// SPDX-License-Identifier: GPL-2.0
/*
 * Test only: a driver that resets the GPU, as far as probes for a binary-only
 * kbase see a driver: by the names of its accessors and interrupt handlers.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_platform.h>
#include <linux/platform_device.h>

#define GPU_ID			0x000
#define GPU_IRQ_CLEAR		0x024
#define GPU_IRQ_MASK		0x028
#define GPU_IRQ_STATUS		0x02c
#define GPU_COMMAND		0x030
#define GPU_COMMAND_SOFT_RESET	1
#define RESET_COMPLETED		BIT(8)

struct kbase_device {
	struct platform_device *gpu;
	void __iomem *reg;
	struct completion reset;
	int irq;
};

static struct kbase_device driver;

/* Symbols, though nobody else calls them. */
static noinline __used void kbase_reg_write(struct kbase_device *kbdev,
					    u32 offset, u32 value)
{
	writel(value, kbdev->reg + offset);
}

static noinline __used u32 kbase_reg_read(struct kbase_device *kbdev,
					  u32 offset)
{
	return readl(kbdev->reg + offset);
}

static noinline __used irqreturn_t kbase_job_irq_handler(int irq, void *data)
{
	return IRQ_NONE;
}

static noinline __used irqreturn_t kbase_mmu_irq_handler(int irq, void *data)
{
	return IRQ_NONE;
}

static noinline __used irqreturn_t kbase_gpu_irq_handler(int irq, void *data)
{
	struct kbase_device *kbdev = data;
	u32 status = kbase_reg_read(kbdev, GPU_IRQ_STATUS);

	if (!status)
		return IRQ_NONE;
	kbase_reg_write(kbdev, GPU_IRQ_CLEAR, status);
	if (status & RESET_COMPLETED)
		complete(&kbdev->reset);
	return IRQ_HANDLED;
}

static int __init binary_init(void)
{
	struct device_node *node;
	struct resource *range;
	int ret = -ENODEV;

	init_completion(&driver.reset);
	node = of_find_compatible_node(NULL, NULL, "arm,mali-bifrost");
	driver.gpu = node ? of_find_device_by_node(node) : NULL;
	of_node_put(node);
	if (!driver.gpu)
		return ret;
	range = platform_get_resource(driver.gpu, IORESOURCE_MEM, 0);
	driver.irq = platform_get_irq_byname(driver.gpu, "gpu");
	if (!range || driver.irq < 0)
		goto put;
	ret = -ENOMEM;
	driver.reg = ioremap(range->start, resource_size(range));
	if (!driver.reg)
		goto put;
	ret = request_irq(driver.irq, kbase_gpu_irq_handler, IRQF_SHARED,
			  "gpureplay_binary", &driver);
	if (ret)
		goto unmap;

	kbase_reg_write(&driver, GPU_IRQ_CLEAR, RESET_COMPLETED);
	kbase_reg_write(&driver, GPU_COMMAND, GPU_COMMAND_SOFT_RESET);
	kbase_reg_write(&driver, GPU_IRQ_MASK, RESET_COMPLETED);
	ret = -ETIMEDOUT;
	if (!wait_for_completion_timeout(&driver.reset, 10 * HZ))
		goto free;
	dev_info(&driver.gpu->dev, "reset a GPU %#x\n",
		 kbase_reg_read(&driver, GPU_ID));
	return 0;

free:
	free_irq(driver.irq, &driver);
unmap:
	iounmap(driver.reg);
put:
	put_device(&driver.gpu->dev);
	return ret;
}
module_init(binary_init);

static void __exit binary_exit(void)
{
	kbase_reg_write(&driver, GPU_IRQ_MASK, 0);
	free_irq(driver.irq, &driver);
	iounmap(driver.reg);
	put_device(&driver.gpu->dev);
}
module_exit(binary_exit);

MODULE_DESCRIPTION("Test only: a driver that is probed as a binary kbase is");
MODULE_AUTHOR("The gpureplay authors");
MODULE_LICENSE("GPL");
