// SPDX-License-Identifier: GPL-2.0
/*
 * Probes that stand in for hooks may be skipped by the kernel. Whoever places
 * them says how many were; the recording fails before its END is written.
 */
#include <linux/export.h>
#include <linux/mutex.h>

#include "recorder.h"

static DEFINE_MUTEX(probes_mutex);
static u64 (*count_missed)(void);
static u64 reported;

void gpureplay_count_missed(u64 (*missed)(void))
{
	probes_report();
	mutex_lock(&probes_mutex);
	count_missed = missed;
	reported = 0;
	mutex_unlock(&probes_mutex);
}
EXPORT_SYMBOL_GPL(gpureplay_count_missed);

/* The recording is about to end, or the probes are about to go. */
void probes_report(void)
{
	u64 missed;

	mutex_lock(&probes_mutex);
	missed = count_missed ? count_missed() : 0;
	if (missed > reported)
		log_error(GPUREPLAY_ERROR_MISSED, missed - reported);
	reported = missed;
	mutex_unlock(&probes_mutex);
}
