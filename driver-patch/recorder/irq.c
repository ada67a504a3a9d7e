// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupt handlers: the driver's own ones run inside a wrapper that logs
 * entry and exit, and that writes a completed job's memory to the log where
 * sleeping is possible, before the driver tells anybody.
 */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "recorder.h"

#define LINES	(GPUREPLAY_LINE_GPU + 1)

struct wrapper {
	irq_handler_t handler;
	irq_handler_t thread;
	void *dev_id;
	enum gpureplay_irq_line line;
	unsigned int irq;
	struct list_head list;
};

/* Handlers that the driver frees itself. */
static LIST_HEAD(unmanaged);
static DEFINE_MUTEX(unmanaged_mutex);

/* The interrupt thread that is inside a handler, for each line. */
static struct task_struct *threads[LINES];

/* Where the hook that asks was called. */
enum gpureplay_context irq_context(void)
{
	unsigned int line;

	if (in_hardirq())
		return GPUREPLAY_CONTEXT_HARD_IRQ;
	for (line = 0; line < LINES; line++)
		if (READ_ONCE(threads[line]) == current)
			return GPUREPLAY_CONTEXT_THREADED_IRQ;
	return GPUREPLAY_CONTEXT_PROCESS;
}

static void log_irq(enum gpureplay_record_type type,
		    enum gpureplay_irq_line line, irqreturn_t result)
{
	struct gpureplay_irq record = {
		.irqreturn = cpu_to_le32(result),
	};

	log_record(type, line, &record, sizeof(record));
}

void gpureplay_irq_enter(enum gpureplay_irq_line line)
{
	if (gpureplay_is_recording())
		log_irq(GPUREPLAY_IRQ_ENTER, line, 0);
}
EXPORT_SYMBOL_GPL(gpureplay_irq_enter);

void gpureplay_irq_exit(enum gpureplay_irq_line line, irqreturn_t result)
{
	if (!gpureplay_is_recording())
		return;
	log_irq(GPUREPLAY_IRQ_EXIT, line, result);
	if (line == GPUREPLAY_LINE_JOB)
		jobs_retire();
}
EXPORT_SYMBOL_GPL(gpureplay_irq_exit);

static irqreturn_t wrapped_handler(int irq, void *data)
{
	struct wrapper *wrapper = data;
	irqreturn_t result;

	if (!gpureplay_is_recording())
		return wrapper->handler(irq, wrapper->dev_id);

	log_irq(GPUREPLAY_IRQ_ENTER, wrapper->line, 0);
	result = wrapper->handler(irq, wrapper->dev_id);
	log_irq(GPUREPLAY_IRQ_EXIT, wrapper->line, result);
	if (wrapper->line == GPUREPLAY_LINE_JOB && !wrapper->thread)
		jobs_retire();
	return result;
}

static irqreturn_t wrapped_thread(int irq, void *data)
{
	struct wrapper *wrapper = data;
	irqreturn_t result;

	if (!gpureplay_is_recording())
		return wrapper->thread(irq, wrapper->dev_id);

	log_wait_room();
	WRITE_ONCE(threads[wrapper->line], current);
	log_irq(GPUREPLAY_IRQ_ENTER, wrapper->line, 0);
	if (wrapper->line == GPUREPLAY_LINE_JOB)
		jobs_complete(true);
	result = wrapper->thread(irq, wrapper->dev_id);
	log_irq(GPUREPLAY_IRQ_EXIT, wrapper->line, result);
	WRITE_ONCE(threads[wrapper->line], NULL);
	if (wrapper->line == GPUREPLAY_LINE_JOB)
		jobs_retire();
	return result;
}

int gpureplay_request_irq(struct device *dev, unsigned int irq,
			  irq_handler_t handler, irq_handler_t thread,
			  unsigned long flags, const char *name, void *dev_id,
			  enum gpureplay_irq_line line)
{
	struct wrapper *wrapper;

	wrapper = devm_kzalloc(dev, sizeof(*wrapper), GFP_KERNEL);
	if (!wrapper)
		return -ENOMEM;
	wrapper->handler = handler;
	wrapper->thread = thread;
	wrapper->dev_id = dev_id;
	wrapper->line = line;
	return devm_request_threaded_irq(dev, irq, wrapped_handler,
					 thread ? wrapped_thread : NULL, flags,
					 name, wrapper);
}
EXPORT_SYMBOL_GPL(gpureplay_request_irq);

int gpureplay_request_unmanaged_irq(unsigned int irq, irq_handler_t handler,
				    unsigned long flags, const char *name,
				    void *dev_id,
				    enum gpureplay_irq_line line)
{
	struct wrapper *wrapper;
	int ret;

	wrapper = kzalloc(sizeof(*wrapper), GFP_KERNEL);
	if (!wrapper)
		return -ENOMEM;
	wrapper->handler = handler;
	wrapper->dev_id = dev_id;
	wrapper->line = line;
	wrapper->irq = irq;
	mutex_lock(&unmanaged_mutex);
	ret = request_irq(irq, wrapped_handler, flags, name, wrapper);
	if (ret)
		kfree(wrapper);
	else
		list_add(&wrapper->list, &unmanaged);
	mutex_unlock(&unmanaged_mutex);
	return ret;
}
EXPORT_SYMBOL_GPL(gpureplay_request_unmanaged_irq);

void gpureplay_free_unmanaged_irq(unsigned int irq, void *dev_id)
{
	struct wrapper *wrapper, *found = NULL;

	mutex_lock(&unmanaged_mutex);
	list_for_each_entry(wrapper, &unmanaged, list)
		if (wrapper->irq == irq && wrapper->dev_id == dev_id)
			found = wrapper;
	if (found) {
		list_del(&found->list);
		free_irq(irq, found);
		kfree(found);
	}
	mutex_unlock(&unmanaged_mutex);
}
EXPORT_SYMBOL_GPL(gpureplay_free_unmanaged_irq);
