// SPDX-License-Identifier: GPL-2.0
/*
 * In which context a hook runs: the recorder's wrappers say which threads are
 * inside of a driver's handler.
 */
#include <linux/preempt.h>
#include <linux/sched.h>

#include "compat.h"
#include "recorder.h"

/* The interrupt thread that is inside a handler, for each line. */
static struct task_struct *threads[GPUREPLAY_LINE_GPU + 1];

/* The caller handles an interrupt of this line until context_leave(). */
void context_enter(enum gpureplay_irq_line line)
{
	WRITE_ONCE(threads[line], current);
}

void context_leave(enum gpureplay_irq_line line)
{
	WRITE_ONCE(threads[line], NULL);
}

/* Where the hook that asks was called. */
enum gpureplay_context context_now(void)
{
	unsigned int line;

	if (in_hardirq())
		return GPUREPLAY_CONTEXT_HARD_IRQ;
	for (line = 0; line < ARRAY_SIZE(threads); line++)
		if (READ_ONCE(threads[line]) == current)
			return GPUREPLAY_CONTEXT_THREADED_IRQ;
	return GPUREPLAY_CONTEXT_PROCESS;
}
