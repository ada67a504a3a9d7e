// SPDX-License-Identifier: GPL-2.0
/*
 * When a recording begins and ends.
 *
 * A recording must hold everything since before the GPU's reset. With a driver
 * attached, opening the device therefore waits until the GPU is idle, lets the
 * driver power it down, begins to record, and powers it up again, which
 * includes reset, power-up and address spaces. With no driver attached, the
 * recording begins with the driver's probe.
 */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sizes.h>

#include "recorder.h"

#define STOP_WAIT_MS	10000

static unsigned int log_mib = 64;
module_param(log_mib, uint, 0644);
MODULE_PARM_DESC(log_mib,
		 "Size of the log in MiB, a power of two from 4 to 1024 (default 64)");

static DEFINE_MUTEX(session_mutex);
static bool session_is_open;
static bool session_runs;	/* hooks are on */

static void session_off(void)
{
	lockdep_assert_held(&session_mutex);
	if (!session_runs)
		return;
	session_runs = false;
	static_branch_disable(&gpureplay_recording);
	device_end();
	jobs_end();
}

static int session_on(void)
{
	int ret;

	lockdep_assert_held(&session_mutex);
	jobs_begin();
	device_on_gone(jobs_cancel);
	static_branch_enable(&gpureplay_recording);
	session_runs = true;

	if (!device_is_attached())
		return 0;
	ret = device_begin();
	if (ret) {
		log_abort();
		session_off();
	}
	return ret;
}

/**
 * session_open - begin to record
 *
 * Return: 0, -EBUSY when somebody records or the GPU does not become idle, or
 * another negative errno.
 */
int session_open(void)
{
	unsigned int mib = READ_ONCE(log_mib);
	int ret;

	if (mib < 4 || mib > 1024 || !is_power_of_2(mib))
		return -EINVAL;
	if (mutex_lock_interruptible(&session_mutex))
		return -ERESTARTSYS;

	ret = -EBUSY;
	if (session_is_open)
		goto unlock;
	ret = log_create((size_t)mib * SZ_1M);
	if (ret)
		goto unlock;
	ret = dump_create();
	if (ret)
		goto no_log;
	ret = session_on();
	if (ret)
		goto no_dump;
	session_is_open = true;
	goto unlock;

no_dump:
	dump_destroy();
no_log:
	log_destroy();
unlock:
	mutex_unlock(&session_mutex);
	return ret;
}

/* End the recording; the reader gets the rest of it. */
void session_stop(void)
{
	mutex_lock(&session_mutex);
	if (session_runs) {
		if (!jobs_wait_idle(STOP_WAIT_MS))
			log_error(GPUREPLAY_ERROR_JOB_LOST, 0);
		probes_report();
		dump_note();
		log_end();
		session_off();
	}
	mutex_unlock(&session_mutex);
}

/* The reader has closed the device. */
void session_close(void)
{
	mutex_lock(&session_mutex);
	log_abort();
	session_off();
	touched_destroy();
	dump_destroy();
	log_destroy();
	session_is_open = false;
	mutex_unlock(&session_mutex);
}

int session_create(void)
{
	return jobs_create();
}

void session_destroy(void)
{
	jobs_destroy();
}

void session_status(struct gpureplay_status *status)
{
	log_status(status);
	status->driver = device_driver();
	status->jobs = jobs_completed();
}
