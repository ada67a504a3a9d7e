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
#include <linux/slab.h>

#include "compat.h"
#include "recorder.h"

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

static irqreturn_t call_handler(int irq, const struct wrapper *wrapper)
{
	irqreturn_t result;

	log_irq(GPUREPLAY_IRQ_ENTER, wrapper->line, 0);
	result = wrapper->handler(irq, wrapper->dev_id);
	log_irq(GPUREPLAY_IRQ_EXIT, wrapper->line, result);
	if (wrapper->line == GPUREPLAY_LINE_JOB && !wrapper->thread)
		jobs_retire();
	return result;
}

static irqreturn_t wrapped_handler(int irq, void *data)
{
	struct wrapper *wrapper = data;

	if (!gpureplay_is_recording())
		return wrapper->handler(irq, wrapper->dev_id);
	return call_handler(irq, wrapper);
}

static void enter_thread(const struct wrapper *wrapper)
{
	log_wait_room();
	context_enter(wrapper->line);
	log_irq(GPUREPLAY_IRQ_ENTER, wrapper->line, 0);
	if (wrapper->line == GPUREPLAY_LINE_JOB)
		jobs_complete(true);
}

static void leave_thread(const struct wrapper *wrapper, irqreturn_t result)
{
	log_irq(GPUREPLAY_IRQ_EXIT, wrapper->line, result);
	context_leave(wrapper->line);
	if (wrapper->line == GPUREPLAY_LINE_JOB)
		jobs_retire();
}

static irqreturn_t wrapped_thread(int irq, void *data)
{
	struct wrapper *wrapper = data;
	irqreturn_t result;

	if (!gpureplay_is_recording())
		return wrapper->thread(irq, wrapper->dev_id);
	enter_thread(wrapper);
	result = wrapper->thread(irq, wrapper->dev_id);
	leave_thread(wrapper, result);
	return result;
}

/*
 * A driver without an interrupt thread: when a job has ended, its handler runs
 * in one of ours, behind the dump. The line is off until then, as it stays up.
 */
static irqreturn_t late_handler(int irq, void *data)
{
	struct wrapper *wrapper = data;

	if (!gpureplay_is_recording())
		return wrapper->handler(irq, wrapper->dev_id);
	if (!jobs_have_ended())
		return call_handler(irq, wrapper);
	disable_irq_nosync(irq);
	return IRQ_WAKE_THREAD;
}

static irqreturn_t late_thread(int irq, void *data)
{
	struct wrapper *wrapper = data;
	unsigned long flags;
	irqreturn_t result;

	enter_thread(wrapper);
	local_irq_save(flags);	/* as its handler expects */
	result = wrapper->handler(irq, wrapper->dev_id);
	local_irq_restore(flags);
	leave_thread(wrapper, result);
	enable_irq(irq);
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
	if (line == GPUREPLAY_LINE_JOB)
		ret = request_threaded_irq(irq, late_handler, late_thread,
					   flags, name, wrapper);
	else
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
