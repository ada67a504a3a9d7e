// SPDX-License-Identifier: GPL-2.0
/* Operating points: the highest with its voltage; lower ones when the machine gets hot. */
#include <linux/pm_opp.h>
#include <linux/pm_runtime.h>
#include <linux/property.h>
#include <linux/slab.h>
#include <linux/thermal.h>

#include "compat.h"
#include "nano.h"

/* Sets clock and voltage, if the device tree has operating points. The GPU has power. */
int nano_rate_apply(struct nano *nano)
{
	guard(mutex)(&nano->rate_lock);
	return nano->rates ? dev_pm_opp_set_rate(nano->dev, nano->rates[nano->rate]) : 0;
}

static int nano_cooling_max(struct thermal_cooling_device *cooling, unsigned long *state)
{
	struct nano *nano = cooling->devdata;

	*state = nano->rate_count - 1;
	return 0;
}

static int nano_cooling_get(struct thermal_cooling_device *cooling, unsigned long *state)
{
	struct nano *nano = cooling->devdata;

	guard(mutex)(&nano->rate_lock);
	*state = nano->rate;
	return 0;
}

static int nano_cooling_set(struct thermal_cooling_device *cooling, unsigned long state)
{
	struct nano *nano = cooling->devdata;
	int ret = 0;

	if (state >= nano->rate_count)
		return -EINVAL;
	scoped_guard(mutex, &nano->rate_lock)
		nano->rate = state;
	/* A GPU without power gets its point when it is switched on. */
	if (pm_runtime_get_if_in_use(nano->dev) > 0) {
		ret = nano_rate_apply(nano);
		pm_runtime_put(nano->dev);
	}
	return ret;
}

static const struct thermal_cooling_device_ops nano_cooling_operations = {
	.get_max_state = nano_cooling_max,
	.get_cur_state = nano_cooling_get,
	.set_cur_state = nano_cooling_set,
};

/* Points of the device tree, if it has any. */
int nano_rate_init(struct nano *nano)
{
	static const char * const supplies[] = { "mali", NULL };
	struct device *dev = nano->dev;
	unsigned long rate = ULONG_MAX;
	int ret, count;

	mutex_init(&nano->rate_lock);
	if (!device_property_present(dev, "operating-points-v2"))
		return 0;
	/* A voltage that nothing changes is none of our business. */
	ret = device_property_present(dev, "mali-supply") ?
		      devm_pm_opp_set_regulators(dev, supplies) : 0;
	if (!ret)
		ret = devm_pm_opp_of_add_table(dev);
	if (ret)
		return ret;
	count = dev_pm_opp_get_opp_count(dev);
	if (count <= 0)
		return count;
	nano->rates = devm_kcalloc(dev, count, sizeof(*nano->rates), GFP_KERNEL);
	if (!nano->rates)
		return -ENOMEM;
	for (; nano->rate_count < count; nano->rate_count++, rate--) {
		struct dev_pm_opp *point = dev_pm_opp_find_freq_floor(dev, &rate);

		if (IS_ERR(point))
			break;
		dev_pm_opp_put(point);
		nano->rates[nano->rate_count] = rate;
	}
	if (nano->rate_count < 2)
		return nano->rate_count ? 0 : -EINVAL;
	return PTR_ERR_OR_ZERO(nano_register_cooling(dev, nano, &nano_cooling_operations));
}
