// SPDX-License-Identifier: GPL-2.0
/*
 * The attached GPU: where its registers are, its power, its job time-outs. It
 * says when the log begins.
 */
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-map-ops.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/ioport.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "mali.h"
#include "recorder.h"

/* How long a recording waits for other users of the GPU to finish. */
#define IDLE_WAIT_MS	5000

/* One hour: writing a job's memory to a slow reader counts as running it. */
#define RECORDING_TIMEOUT	(3600L * HZ)

#define MAX_PINS	16

/* A value of the driver's that is another one while a recording runs. */
struct pin {
	void *value;
	unsigned int bytes;	/* 1, 4 or 8 */
	u64 pinned;
	u64 saved;
};

static DEFINE_MUTEX(device_mutex);

static struct {
	struct device *dev;
	void __iomem *registers;
	size_t size;
	enum gpureplay_driver driver;
	bool pinned;		/* holds a runtime PM reference */
	bool raised;		/* the values are ours */
	bool managed;		/* the driver's probe is running or over */
	bool forgets;		/* forget_values() is registered */
	unsigned int pins;
	struct pin pin[MAX_PINS];
	bool watched;		/* its bus tells when its driver goes */
	void *power_driver;
	void (*power_release)(void *driver);
} gpu;

/**
 * device_offset - find out whether an address is one of the GPU's registers
 * @address: what the driver accesses
 * @offset: receives bytes from the start of the registers
 */
bool device_offset(const void __iomem *address, u32 *offset)
{
	uintptr_t from = (__force uintptr_t)READ_ONCE(gpu.registers);
	uintptr_t at = (__force uintptr_t)address;

	if (!from || at < from || at - from >= gpu.size)
		return false;
	*offset = at - from;
	return true;
}

void __iomem *device_registers(void)
{
	return gpu.registers;
}

struct device *device_get(void)
{
	return gpu.dev;
}

bool device_is_attached(void)
{
	return READ_ONCE(gpu.dev);
}

bool device_is_coherent(void)
{
	return gpu.dev && dev_is_dma_coherent(gpu.dev);
}

/* Is told that the registers are about to go. */
static void (*on_gone)(void);

void device_on_gone(void (*gone)(void))
{
	on_gone = gone;
}

static void tell_gone(struct device *dev)
{
	if (on_gone && device_get() == dev)
		on_gone();
}

enum gpureplay_driver device_driver(void)
{
	return device_is_attached() ? gpu.driver : 0;
}

/* Begin the log, unless there was an access since @early was taken. */
static bool begin_log(u64 early)
{
	struct gpureplay_begin begin = {
		.version = cpu_to_le32(GPUREPLAY_TRACE_VERSION),
		.page_size = cpu_to_le32(GPUREPLAY_PAGE_SIZE),
	};

	/* As long as a device is attached, its driver is there. */
	mutex_lock(&device_mutex);
	begin.driver = cpu_to_le32(device_driver());
	begin.flags = cpu_to_le32(device_is_coherent() ? GPUREPLAY_BEGIN_COHERENT : 0);
	if (gpu.dev && gpu.dev->driver)
		strscpy(begin.driver_name, gpu.dev->driver->name,
			sizeof(begin.driver_name));
	mutex_unlock(&device_mutex);

	strscpy(begin.kernel_release, init_utsname()->release,
		sizeof(begin.kernel_release));
	return log_start(&begin, early);
}

static u64 pin_load(const struct pin *pin)
{
	switch (pin->bytes) {
	case 1:
		return READ_ONCE(*(u8 *)pin->value);
	case 4:
		return READ_ONCE(*(u32 *)pin->value);
	}
	return READ_ONCE(*(u64 *)pin->value);
}

static void pin_store(const struct pin *pin, u64 value)
{
	switch (pin->bytes) {
	case 1:
		WRITE_ONCE(*(u8 *)pin->value, value);
		return;
	case 4:
		WRITE_ONCE(*(u32 *)pin->value, value);
		return;
	}
	WRITE_ONCE(*(u64 *)pin->value, value);
}

static void pin_value(struct pin *pin)
{
	pin->saved = pin_load(pin);
	pin_store(pin, pin->pinned);
}

static void pin_values(void)
{
	unsigned int i;

	lockdep_assert_held(&device_mutex);
	for (i = 0; !gpu.raised && i < gpu.pins; i++)
		pin_value(&gpu.pin[i]);
	gpu.raised = true;
}

static void restore_values(void)
{
	unsigned int i;

	lockdep_assert_held(&device_mutex);
	for (i = 0; gpu.raised && i < gpu.pins; i++)
		pin_store(&gpu.pin[i], gpu.pin[i].saved);
	gpu.raised = false;
}

static void add_pin(void *value, unsigned int bytes, u64 pinned)
{
	struct pin *pin;

	mutex_lock(&device_mutex);
	if (gpu.dev && !WARN_ON_ONCE(gpu.pins == MAX_PINS)) {
		pin = &gpu.pin[gpu.pins++];
		*pin = (struct pin) {
			.value = value, .bytes = bytes, .pinned = pinned,
		};
		if (gpu.raised)
			pin_value(pin);
	}
	mutex_unlock(&device_mutex);
}

/*
 * Runs before the driver's memory that was allocated earlier is freed: the
 * pointers into it are used for the last time.
 */
static void forget_values(void *data)
{
	mutex_lock(&device_mutex);
	if (gpu.dev == data) {
		restore_values();
		gpu.pins = 0;
	}
	mutex_unlock(&device_mutex);
}

/*
 * Whatever the driver is, the bus says that it will be removed before it is:
 * its memory and registers, which it may let go of by itself, are used for the
 * last time.
 */
static int driver_changes(struct notifier_block *block, unsigned long event,
			  void *data)
{
	if (event != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	tell_gone(data);
	forget_values(data);
	mutex_lock(&device_mutex);
	if (gpu.dev == data && gpu.power_release) {
		gpu.power_release(gpu.power_driver);
		gpu.power_release = NULL;
	}
	mutex_unlock(&device_mutex);
	return NOTIFY_OK;
}

static struct notifier_block driver_watch = {
	.notifier_call = driver_changes,
};

/* Once for all values of a driver: managed releases run in reverse order. */
static void forget_later(void)
{
	struct device *dev = NULL;

	mutex_lock(&device_mutex);
	if (gpu.dev && gpu.managed && !gpu.forgets) {
		gpu.forgets = true;
		dev = gpu.dev;
	}
	mutex_unlock(&device_mutex);
	if (dev && devm_add_action_or_reset(dev, forget_values, dev))
		dev_warn(dev, "gpureplay: no memory, job time-outs stay as they are\n");
}

void gpureplay_job_timeout(long *timeout)
{
	forget_later();
	add_pin(timeout, sizeof(*timeout), RECORDING_TIMEOUT);
}
EXPORT_SYMBOL_GPL(gpureplay_job_timeout);

void gpureplay_job_ticks(u32 *ticks)
{
	add_pin(ticks, sizeof(*ticks), U32_MAX);
}
EXPORT_SYMBOL_GPL(gpureplay_job_ticks);

void gpureplay_pin_byte(u8 *value, u8 pinned)
{
	add_pin(value, sizeof(*value), pinned);
}
EXPORT_SYMBOL_GPL(gpureplay_pin_byte);

void gpureplay_pin_power(void *driver, void (*hold)(void *driver),
			 void (*release)(void *driver))
{
	mutex_lock(&device_mutex);
	if (gpu.dev && gpu.raised && !gpu.power_release) {
		gpu.power_driver = driver;
		gpu.power_release = release;
		hold(driver);
	}
	mutex_unlock(&device_mutex);
}
EXPORT_SYMBOL_GPL(gpureplay_pin_power);

/**
 * gpureplay_detach - the driver has let go of the device
 * @dev: was given to gpureplay_attach_unmanaged()
 */
void gpureplay_detach(struct device *dev)
{
	bool watched = false;

	tell_gone(dev);
	mutex_lock(&device_mutex);
	if (gpu.dev == dev) {
		WRITE_ONCE(gpu.registers, NULL);
		WRITE_ONCE(gpu.dev, NULL);
		gpu.pins = 0;
		gpu.raised = false;
		gpu.power_release = NULL;
		if (gpu.pinned)
			pm_runtime_put_noidle(dev);
		gpu.pinned = false;
		watched = gpu.watched;
		gpu.watched = false;
	}
	mutex_unlock(&device_mutex);
	if (watched)
		bus_unregister_notifier(dev->bus, &driver_watch);
	log_note("%s: the driver has let go of the GPU", dev_name(dev));
	put_device(dev);
}
EXPORT_SYMBOL_GPL(gpureplay_detach);

static void detach_action(void *data)
{
	gpureplay_detach(data);
}

static bool device_take(struct device *dev, void __iomem *registers,
			enum gpureplay_driver driver)
{
	struct resource *range = NULL;

	if (dev_is_platform(dev))
		range = platform_get_resource(to_platform_device(dev),
					      IORESOURCE_MEM, 0);

	mutex_lock(&device_mutex);
	if (gpu.dev) {
		dev_warn(dev, "gpureplay: only one GPU is recorded, %s comes first\n",
			 dev_name(gpu.dev));
		mutex_unlock(&device_mutex);
		return false;
	}
	gpu.size = range ? resource_size(range) : MALI_REGISTERS;
	gpu.driver = driver;
	gpu.pins = 0;
	gpu.pinned = false;
	gpu.raised = false;
	gpu.managed = false;
	gpu.forgets = false;
	gpu.power_release = NULL;
	gpu.watched = false;
	gpu.dev = get_device(dev);
	WRITE_ONCE(gpu.registers, registers);
	mutex_unlock(&device_mutex);
	return true;
}

static void device_watch(struct device *dev, enum gpureplay_driver driver)
{
	dev_info(dev, "gpureplay: the recorder watches this GPU\n");
	if (dev->bus && !bus_register_notifier(dev->bus, &driver_watch)) {
		mutex_lock(&device_mutex);
		gpu.watched = true;
		mutex_unlock(&device_mutex);
	}

	if (!gpureplay_is_recording())
		return;
	mutex_lock(&device_mutex);
	/* Arm's driver refuses a device that somebody uses: see gpureplay_pin_power(). */
	if (driver != GPUREPLAY_DRIVER_KBASE && !gpu.pinned) {
		pm_runtime_get_noresume(dev);
		gpu.pinned = true;
	}
	pin_values();
	mutex_unlock(&device_mutex);
	begin_log(log_early());
}

void gpureplay_attach(struct device *dev, void __iomem *registers,
		      enum gpureplay_driver driver)
{
	if (IS_ERR_OR_NULL((__force void *)registers))
		return;
	if (!device_take(dev, registers, driver) ||
	    devm_add_action_or_reset(dev, detach_action, dev))
		return;
	mutex_lock(&device_mutex);
	gpu.managed = true;
	mutex_unlock(&device_mutex);
	device_watch(dev, driver);
}
EXPORT_SYMBOL_GPL(gpureplay_attach);

int gpureplay_attach_unmanaged(struct device *dev, void __iomem *registers,
			       enum gpureplay_driver driver)
{
	if (!device_take(dev, registers, driver))
		return -EBUSY;
	device_watch(dev, driver);
	return 0;
}
EXPORT_SYMBOL_GPL(gpureplay_attach_unmanaged);

/*
 * A driver makes no access while its GPU is suspended, and from its next
 * power-up on all are counted: the log begins between two power cycles, or not.
 */
static bool start_while_suspended(struct device *dev)
{
	u64 early = log_early();

	smp_rmb();	/* the count is older than the status */
	return pm_runtime_suspended(dev) && begin_log(early);
}

/**
 * device_begin - start the log before the attached GPU's next power-up
 *
 * Then powers it up and keeps it so until device_end(): a power-down in
 * between would only make the recording longer.
 *
 * Arm's driver does not leave its power to the kernel: there a recording can
 * only begin with the driver's probe.
 *
 * Return: 0, -EBUSY when the GPU stays in use, -ERESTARTSYS on a signal, or what
 * powering up returned.
 */
int device_begin(void)
{
	struct device *dev = NULL;
	unsigned int waited;
	bool surplus = false;
	int ret = -ENODEV;

	if (device_driver() == GPUREPLAY_DRIVER_KBASE) {
		pr_warn("gpureplay: unbind the GPU's driver, start the recording, then bind the driver again\n");
		return -EBUSY;
	}

	mutex_lock(&device_mutex);
	if (gpu.dev)
		dev = get_device(gpu.dev);
	mutex_unlock(&device_mutex);
	if (!dev)
		return ret;

	for (waited = 0; !start_while_suspended(dev); waited += 20) {
		ret = waited < IDLE_WAIT_MS ? 0 : -EBUSY;
		if (signal_pending(current))
			ret = -ERESTARTSYS;
		if (ret)
			goto put;
		pm_runtime_suspend(dev);
		msleep_interruptible(20);
	}

	mutex_lock(&device_mutex);
	pin_values();
	mutex_unlock(&device_mutex);

	ret = pm_runtime_resume_and_get(dev);
	mutex_lock(&device_mutex);
	/* Its driver may have come, or gone, at the same time. */
	if (ret)
		restore_values();
	else if (gpu.pinned || gpu.dev != dev)
		surplus = true;
	else
		gpu.pinned = true;
	mutex_unlock(&device_mutex);
	if (surplus)
		pm_runtime_put(dev);
put:
	put_device(dev);
	return ret;
}

/* Undo what device_begin() pinned. */
void device_end(void)
{
	mutex_lock(&device_mutex);
	restore_values();
	if (gpu.dev && gpu.power_release)
		gpu.power_release(gpu.power_driver);
	gpu.power_release = NULL;
	if (gpu.dev && gpu.pinned) {
		pm_runtime_mark_last_busy(gpu.dev);
		pm_runtime_put_autosuspend(gpu.dev);
	}
	gpu.pinned = false;
	mutex_unlock(&device_mutex);
}
