// SPDX-License-Identifier: GPL-2.0
/*
 * Test only: tells the GPU model what this kernel does to the processor's caches.
 *
 * QEMU has no caches. With --non-coherent the model keeps what the GPU sees apart
 * from what the processor sees; probes on the kernel's functions and on the cache
 * instructions of modules that are loaded later say what is cleaned, invalidated,
 * mapped past the caches, and shared with the GPU no more. Each is told before the
 * processor goes on.
 */
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_address.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#define LINE_SHIFT	6
#define LINE_BYTES	BIT(LINE_SHIFT)

/* The model's registers behind those of the GPU: model/server/src/outside.rs. */
#define FIRST		0xf000
#define MAGIC		0x00
#define LINE		0x04
#define COUNT		0x08
#define OPERATION	0x0c
#define DONE		0x10
#define PRESENT		0x43414348

enum operation {
	CLEAN = 1,
	INVALIDATE,
	CLEAN_INVALIDATE,
	UNCACHED,
	FORGET,
};

static void __iomem *registers;
static DEFINE_RAW_SPINLOCK(lock);

static void tell_locked(phys_addr_t start, phys_addr_t end, enum operation what)
{
	u64 line = start >> LINE_SHIFT;

	if (start >= end)
		return;
	writel(line, registers + LINE);
	writel(((end + LINE_BYTES - 1) >> LINE_SHIFT) - line, registers + COUNT);
	writel(what, registers + OPERATION);
	readl(registers + DONE);	/* returns when it is done */
}

static void tell(phys_addr_t start, phys_addr_t end, enum operation what)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	tell_locked(start, end, what);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static bool address_to_phys(unsigned long address, phys_addr_t *phys)
{
	const void *at = (const void *)address;

	if (virt_addr_valid(at))
		*phys = virt_to_phys(at);
	else if (is_vmalloc_addr(at))
		*phys = page_to_phys(vmalloc_to_page(at)) + offset_in_page(at);
	else
		return false;
	return true;
}

/* A range of virtual addresses, page by page if they are not the kernel's linear ones. */
static void tell_range(unsigned long start, unsigned long end, enum operation what)
{
	phys_addr_t phys;

	while (start < end) {
		unsigned long next = end;

		if (is_vmalloc_addr((const void *)start))
			next = min(end, ALIGN(start + 1, PAGE_SIZE));
		if (address_to_phys(start, &phys))
			tell(phys, phys + (next - start), what);
		start = next;
	}
}

static unsigned long argument(const struct pt_regs *regs, unsigned int index)
{
	return regs->regs[index];
}

static int on_clean(struct kprobe *probe, struct pt_regs *regs)
{
	tell_range(argument(regs, 0), argument(regs, 1), CLEAN);
	return 0;
}

static int on_clean_invalidate(struct kprobe *probe, struct pt_regs *regs)
{
	tell_range(argument(regs, 0), argument(regs, 1), CLEAN_INVALIDATE);
	return 0;
}

/* Lines that are not wholly inside are cleaned first, as the kernel does. */
static int on_invalidate(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned long start = argument(regs, 0), end = argument(regs, 1);
	unsigned long first = ALIGN(start, LINE_BYTES), last = ALIGN_DOWN(end, LINE_BYTES);

	if (first > last) {
		tell_range(start, end, CLEAN_INVALIDATE);
		return 0;
	}
	tell_range(start, first, CLEAN_INVALIDATE);
	tell_range(first, last, INVALIDATE);
	tell_range(last, end, CLEAN_INVALIDATE);
	return 0;
}

static bool is_cached(pgprot_t prot)
{
	u64 index = pgprot_val(prot) & PTE_ATTRINDX_MASK;

	return index == PTE_ATTRINDX(MT_NORMAL) || index == PTE_ATTRINDX(MT_NORMAL_TAGGED);
}

static void map_page(unsigned long pfn, pgprot_t prot)
{
	if (!is_cached(prot))
		tell(PFN_PHYS(pfn), PFN_PHYS(pfn + 1), UNCACHED);
}

static int on_insert(struct kprobe *probe, struct pt_regs *regs)
{
	const struct vm_area_struct *vma = (void *)argument(regs, 0);

	map_page(argument(regs, 2), vma->vm_page_prot);
	return 0;
}

static int on_insert_prot(struct kprobe *probe, struct pt_regs *regs)
{
	map_page(argument(regs, 2), __pgprot(argument(regs, 3)));
	return 0;
}

static int on_vmap(struct kprobe *probe, struct pt_regs *regs)
{
	struct page **pages = (void *)argument(regs, 0);
	unsigned int count = argument(regs, 1), page;

	for (page = 0; page < count; page++)
		map_page(page_to_pfn(pages[page]), __pgprot(argument(regs, 3)));
	return 0;
}

/* What a device that is not coherent had mapped: told when the kernel has invalidated it. */
struct unmapped {
	phys_addr_t start, end;
	struct scatterlist *list;
	int count;
};

static int on_unmap_page(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct unmapped *unmapped = (void *)instance->data;
	struct device *dev = (void *)argument(regs, 0);

	unmapped->start = dma_to_phys(dev, argument(regs, 1));
	unmapped->end = unmapped->start + argument(regs, 2);
	unmapped->count = 0;
	return dev_is_dma_coherent(dev);
}

static int on_unmap_list(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct unmapped *unmapped = (void *)instance->data;

	unmapped->start = 0;
	unmapped->end = 0;
	unmapped->list = (void *)argument(regs, 1);
	unmapped->count = argument(regs, 2);
	return dev_is_dma_coherent((void *)argument(regs, 0));
}

static int on_unmapped(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	struct unmapped *unmapped = (void *)instance->data;
	struct scatterlist *entry;
	int index;

	tell(unmapped->start, unmapped->end, FORGET);
	for_each_sg(unmapped->list, entry, unmapped->count, index)
		tell(sg_phys(entry), sg_phys(entry) + entry->length, FORGET);
	return 0;
}

static struct kretprobe returns[] = {
	{
		.kp.symbol_name = "dma_unmap_page_attrs",
		.entry_handler = on_unmap_page,
		.handler = on_unmapped,
		.data_size = sizeof(struct unmapped),
	},
	{
		.kp.symbol_name = "dma_unmap_sg_attrs",
		.entry_handler = on_unmap_list,
		.handler = on_unmapped,
		.data_size = sizeof(struct unmapped),
	},
};

static struct kprobe functions[] = {
	{ .symbol_name = "dcache_clean_poc", .pre_handler = on_clean },
	{ .symbol_name = "dcache_inval_poc", .pre_handler = on_invalidate },
	{ .symbol_name = "dcache_clean_inval_poc", .pre_handler = on_clean_invalidate },
	{ .symbol_name = "vmf_insert_pfn", .pre_handler = on_insert },
	{ .symbol_name = "vmf_insert_pfn_prot", .pre_handler = on_insert_prot },
	{ .symbol_name = "vmap", .pre_handler = on_vmap },
};

/*
 * Instructions of modules: dc ivac, cvac and civac by address, and the barrier
 * that completes them. Lines are gathered for each task until then, or until
 * the end of their page.
 */
#define DC_MASK		0xffffffe0
#define DC_IVAC		0xd5087620
#define DC_CVAC		0xd50b7a20
#define DC_CIVAC	0xd50b7e20
#define DSB_MASK	0xfffff0ff
#define DSB		0xd503309f
#define MAX_INSTRUCTIONS 64

static struct kprobe instructions[MAX_INSTRUCTIONS];
static unsigned int instruction_count;

static struct gathered {
	const struct task_struct *task;
	enum operation what;
	phys_addr_t start, end;
} gathered[16];

static void complete_locked(struct gathered *lines)
{
	if (lines->task)
		tell_locked(lines->start, lines->end, lines->what);
	lines->task = NULL;
}

static struct gathered *gathered_by_current(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(gathered); i++)
		if (gathered[i].task == current)
			return &gathered[i];
	for (i = 0; i < ARRAY_SIZE(gathered); i++)
		if (!gathered[i].task)
			return &gathered[i];
	complete_locked(&gathered[0]);
	return &gathered[0];
}

static void gather_line(unsigned long address, enum operation what)
{
	struct gathered *lines;
	unsigned long flags;
	phys_addr_t phys;

	address = ALIGN_DOWN(address, LINE_BYTES);
	if (!address_to_phys(address, &phys))
		return;
	raw_spin_lock_irqsave(&lock, flags);
	lines = gathered_by_current();
	if (lines->task && (lines->what != what || lines->end != phys))
		complete_locked(lines);
	if (!lines->task)
		*lines = (struct gathered) { .task = current, .what = what, .start = phys };
	lines->end = phys + LINE_BYTES;
	if (PAGE_ALIGNED(lines->end))
		complete_locked(lines);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static int on_instruction(struct kprobe *probe, struct pt_regs *regs)
{
	u32 instruction = le32_to_cpu(probe->opcode);
	unsigned long address = pt_regs_read_reg(regs, instruction & 0x1f);
	unsigned long flags;

	switch (instruction & DC_MASK) {
	case DC_IVAC:
		gather_line(address, INVALIDATE);
		break;
	case DC_CVAC:
		gather_line(address, CLEAN);
		break;
	case DC_CIVAC:
		gather_line(address, CLEAN_INVALIDATE);
		break;
	default:	/* dsb */
		raw_spin_lock_irqsave(&lock, flags);
		complete_locked(gathered_by_current());
		raw_spin_unlock_irqrestore(&lock, flags);
	}
	return 0;
}

static bool is_maintenance(u32 instruction)
{
	switch (instruction & DC_MASK) {
	case DC_IVAC:
	case DC_CVAC:
	case DC_CIVAC:
		return true;
	}
	return false;
}

static int probe_instruction(void *at)
{
	struct kprobe *probe = &instructions[instruction_count];
	int ret;

	if (instruction_count == MAX_INSTRUCTIONS)
		return -ENOSPC;
	*probe = (struct kprobe) { .addr = at, .pre_handler = on_instruction };
	ret = register_kprobe(probe);
	if (!ret)
		instruction_count++;
	return ret;
}

/* Probes a module's cache instructions; a module without any is left alone. */
static int on_module(struct notifier_block *block, unsigned long event, void *data)
{
	struct module *module = data;
	const struct module_memory *text = &module->mem[MOD_TEXT];
	const __le32 *code = text->base;
	unsigned int at, count = text->size / sizeof(*code), before = instruction_count;
	bool maintains = false;
	int ret = 0;

	if (event != MODULE_STATE_COMING || module == THIS_MODULE)
		return NOTIFY_DONE;
	for (at = 0; at < count && !maintains; at++)
		maintains = is_maintenance(le32_to_cpu(code[at]));
	for (at = 0; at < count && maintains && !ret; at++) {
		u32 instruction = le32_to_cpu(code[at]);

		if (is_maintenance(instruction) || (instruction & DSB_MASK) == DSB)
			ret = probe_instruction((void *)&code[at]);
	}
	if (maintains)
		pr_info("%s: %u cache instructions and barriers\n", module->name,
			instruction_count - before);
	if (ret)
		pr_err("%s: a cache instruction cannot be probed: %d\n", module->name, ret);
	return NOTIFY_DONE;
}

/* Probes that were skipped, since one was hit inside of another: what the model was not told. */
static int get_missed(char *buffer, const struct kernel_param *parameter)
{
	unsigned long missed = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++)
		missed += functions[i].nmissed;
	for (i = 0; i < ARRAY_SIZE(returns); i++)
		missed += returns[i].nmissed + returns[i].kp.nmissed;
	for (i = 0; i < instruction_count; i++)
		missed += instructions[i].nmissed;
	return sysfs_emit(buffer, "%lu\n", missed);
}

static const struct kernel_param_ops missed_operations = { .get = get_missed };
module_param_cb(missed, &missed_operations, NULL, 0444);
MODULE_PARM_DESC(missed, "Probes that were skipped");

static struct notifier_block modules = { .notifier_call = on_module };

static int probe_functions(void)
{
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(functions); i++) {
		ret = register_kprobe(&functions[i]);
		if (ret) {
			pr_err("no probe on %s: %d\n", functions[i].symbol_name, ret);
			return ret;
		}
	}
	for (i = 0; i < ARRAY_SIZE(returns); i++) {
		ret = register_kretprobe(&returns[i]);
		if (ret) {
			pr_err("no probe on %s: %d\n", returns[i].kp.symbol_name, ret);
			return ret;
		}
	}
	return register_module_notifier(&modules);
}

static void remove_probes(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(functions); i++)
		if (functions[i].addr)
			unregister_kprobe(&functions[i]);
	for (i = 0; i < ARRAY_SIZE(returns); i++)
		if (returns[i].kp.addr)
			unregister_kretprobe(&returns[i]);
}

static int __init caches_init(void)
{
	struct device_node *node = of_find_compatible_node(NULL, NULL, "arm,mali-bifrost");
	void __iomem *window = of_iomap(node, 0);
	int ret;

	BUILD_BUG_ON(PAGE_SIZE != 4096);
	of_node_put(node);
	if (!window)
		return -ENODEV;
	registers = window + FIRST;
	ret = readl(registers + MAGIC) == PRESENT ? probe_functions() : -ENXIO;
	if (ret) {
		remove_probes();
		iounmap(window);
	}
	return ret;
}

/* Never unloaded: the model would miss what the kernel does from then on. */
module_init(caches_init);

MODULE_DESCRIPTION("Tells gpureplay's GPU model about cache maintenance: a test, not for machines");
MODULE_LICENSE("GPL");
