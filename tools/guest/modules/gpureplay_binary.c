// SPDX-License-Identifier: GPL-2.0
/*
 * Test only: a driver that resets the GPU, as far as probes for a binary-only
 * kbase see a driver: by the names of its accessors and interrupt handlers. If
 * asked to, it gives the recorder what a driver seldom does: memory that the
 * kernel does not map, and a page fault whose mapping is gone.
 */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/iopoll.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_platform.h>
#include <linux/platform_device.h>
#include <linux/uaccess.h>

#include <asm/tlbflush.h>

#include "gpureplay_binary.h"

static char *unmapped = "";
module_param(unmapped, charp, 0444);
MODULE_PARM_DESC(unmapped, "What of the GPU's memory the kernel does not map: page or table");
static bool retried;
module_param(retried, bool, 0444);
MODULE_PARM_DESC(retried, "Let a page fault be retried whose mapping is gone");

#define GPU_ID			0x000
#define GPU_IRQ_CLEAR		0x024
#define GPU_IRQ_MASK		0x028
#define GPU_IRQ_STATUS		0x02c
#define GPU_COMMAND		0x030
#define GPU_COMMAND_SOFT_RESET	1
#define RESET_COMPLETED		BIT(8)
#define JOB_INT_RAWSTAT		0x1000
#define JOB_INT_CLEAR		0x1004
#define JOB_SLOT_1		0x1880
#define JS_HEAD_NEXT		0x40
#define JS_AFFINITY_NEXT	0x50
#define JS_CONFIG_NEXT		0x58
#define JS_COMMAND_NEXT		0x60
#define JS_COMMAND_START	1
#define ADDRESS_SPACE_0		0x2400
#define AS_TRANSTAB		0x00
#define AS_TRANSCFG		0x30
#define TABLE			3	/* also the mode in TRANSTAB */
#define PAGE			0xc1	/* readable and writable */

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

/* Tables of all levels, and the page that the last one maps. */
#define PAGES	5
static struct page *pages[PAGES];

static int set_mapped(struct page *page, const char *function)
{
	struct kprobe place = { .symbol_name = function };
	int (*set)(struct page *page);
	int ret = register_kprobe(&place);

	/* Modules do not get the function itself. */
	if (ret)
		return ret;
	set = (void *)place.addr;
	unregister_kprobe(&place);
	ret = set(page);
	flush_tlb_all();
	return ret;
}

static void free_pages_of_gpu(void)
{
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		if (pages[i])
			__free_page(pages[i]);
}

static int make_pages(void)
{
	unsigned int i;
	u64 *table;

	for (i = 0; i < PAGES; i++) {
		pages[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!pages[i])
			return -ENOMEM;
	}
	for (i = 0; i + 1 < PAGES; i++) {
		table = page_address(pages[i]);
		*table = page_to_phys(pages[i + 1]) | (i + 2 < PAGES ? TABLE : PAGE);
	}
	return 0;
}

/* A job whose memory the recorder cannot read. The GPU finds no job there either. */
static int run_job(void)
{
	struct page *gone = pages[strcmp(unmapped, "table") ? PAGES - 1 : 1];
	u32 events;
	u8 byte;
	int ret;

	ret = set_mapped(gone, "set_direct_map_invalid_noflush");
	if (ret)
		return ret;
	if (!copy_from_kernel_nofault(&byte, page_address(gone), 1)) {
		ret = -EOPNOTSUPP;
		goto map;
	}
	kbase_reg_write(&driver, ADDRESS_SPACE_0 + AS_TRANSCFG, 0);
	kbase_reg_write(&driver, ADDRESS_SPACE_0 + AS_TRANSTAB,
			(u32)page_to_phys(pages[0]) | TABLE);
	kbase_reg_write(&driver, ADDRESS_SPACE_0 + AS_TRANSTAB + 4,
			upper_32_bits(page_to_phys(pages[0])));
	kbase_reg_write(&driver, JOB_SLOT_1 + JS_HEAD_NEXT, 0x1000);
	kbase_reg_write(&driver, JOB_SLOT_1 + JS_AFFINITY_NEXT, 1);
	kbase_reg_write(&driver, JOB_SLOT_1 + JS_CONFIG_NEXT, 0);
	kbase_reg_write(&driver, JOB_SLOT_1 + JS_COMMAND_NEXT, JS_COMMAND_START);
	ret = read_poll_timeout(readl, events, events, 1000, 10 * USEC_PER_SEC,
				false, driver.reg + JOB_INT_RAWSTAT);
	/* As a driver does, so that the recorder sees the end. */
	kbase_reg_read(&driver, JOB_INT_RAWSTAT);
	kbase_reg_write(&driver, JOB_INT_CLEAR, events);
map:
	set_mapped(gone, "set_direct_map_default_noflush");
	return ret;
}

static vm_fault_t retry(struct vm_fault *fault)
{
	return VM_FAULT_RETRY;
}

static int fault(void)
{
	static const struct vm_operations_struct own = { .fault = retry };
	const struct vm_operations_struct *recorder = symbol_get(gpureplay_vm_operations);
	void (*wrap)(const struct vm_operations_struct *operations) =
		symbol_get(gpureplay_wrap_mappings);
	struct vm_fault fault = { .vma = LIST_POISON1 };
	int ret = -ENOENT;

	if (recorder && wrap) {
		wrap(&own);
		ret = recorder->fault(&fault) == VM_FAULT_RETRY ? 0 : -EIO;
	}
	if (recorder)
		symbol_put(gpureplay_vm_operations);
	if (wrap)
		symbol_put(gpureplay_wrap_mappings);
	return ret;
}

static int __init binary_init(void)
{
	struct device_node *node;
	struct resource *range;
	int ret = -ENODEV;

	init_completion(&driver.reset);
	for_each_compatible_node(node, NULL, "arm,mali-bifrost")
		if (of_device_is_available(node))
			break;
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
	ret = *unmapped ? make_pages() : 0;
	if (!ret && *unmapped)
		ret = run_job();
	free_pages_of_gpu();
	if (!ret && retried)
		ret = fault();
	if (!ret)
		return 0;
	kbase_reg_write(&driver, GPU_IRQ_MASK, 0);

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
