// SPDX-License-Identifier: GPL-2.0
/* /dev/gpureplay-nano: one opener, ioctls, register mapping, interrupts by read() and poll(). */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pm_runtime.h>
#include <linux/poll.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>

#include "nano.h"

#define NANO_FIRST_PAGE		(SZ_1M >> PAGE_SHIFT)	/* registers lie below */

static struct nano *nano_of(struct file *file)
{
	return container_of(file->private_data, struct nano, misc);
}

static int nano_open(struct inode *inode, struct file *file)
{
	struct nano *nano = nano_of(file);
	int line, ret;

	if (atomic_cmpxchg(&nano->opened, 0, 1))
		return -EBUSY;
	mutex_lock(&nano->lock);
	ret = nano->gone ? -ENODEV : nano_power_on(nano);
	if (ret)
		goto closed;
	ret = nano_reset(nano);
	if (ret)
		goto off;
	if (nano->dead) {	/* stopped at last: what the previous opener left can go */
		nano_free_all(nano);
		nano->dead = false;
	}
	spin_lock_irq(&nano->event_lock);
	for (line = 0; line < NANO_LINES; line++)
		memset(&nano->lines[line].event, 0, sizeof(nano->lines[line].event));
	spin_unlock_irq(&nano->event_lock);
	nano->mode = GPUREPLAY_NANO_GUARDED;
	nano->mode_chosen = false;
	nano->next_offset = NANO_FIRST_PAGE;
	nano->file = file;
	kref_get(&nano->references);
	mutex_unlock(&nano->lock);
	return 0;
off:
	nano_power_off(nano);
closed:
	mutex_unlock(&nano->lock);
	atomic_set(&nano->opened, 0);
	return ret;
}

/* Takes the GPU from its opener. */
static void nano_stop(struct nano *nano)
{
	if (nano_reset(nano)) {
		dev_err(nano->dev, "the GPU does not reset: its pages stay allocated\n");
		nano->dead = true;
	} else {
		nano_free_all(nano);
	}
	nano_power_off(nano);
	nano->file = NULL;
}

static int nano_release(struct inode *inode, struct file *file)
{
	struct nano *nano = nano_of(file);

	mutex_lock(&nano->lock);
	if (!nano->gone)
		nano_stop(nano);
	mutex_unlock(&nano->lock);
	atomic_set(&nano->opened, 0);
	nano_put(nano);
	return 0;
}

/* The driver is being unbound: what is open stays open, but reaches nothing any more. */
void nano_revoke(struct nano *nano)
{
	mutex_lock(&nano->lock);
	nano->gone = true;
	if (nano->file) {
		unmap_mapping_range(nano->file->f_mapping, 0, (loff_t)NANO_FIRST_PAGE << PAGE_SHIFT,
				    1);
		nano_stop(nano);
	}
	mutex_unlock(&nano->lock);
	wake_up_interruptible(&nano->events);
}

static int nano_registers(struct nano *nano, struct gpureplay_nano_registers *list)
{
	struct gpureplay_nano_access __user *at = u64_to_user_ptr(list->accesses);
	struct gpureplay_nano_access access;

	if (list->count > GPUREPLAY_NANO_MAX_ACCESSES)
		return -EINVAL;
	for (list->done = 0; list->done < list->count; list->done++, at++) {
		if (copy_from_user(&access, at, sizeof(access)))
			return -EFAULT;
		if (access.reserved || access.write > 1 || access.offset & 3 ||
		    access.offset >= resource_size(nano->window))
			return -EINVAL;
		if (!access.write) {
			access.value = readl(nano->registers + access.offset);
			if (put_user(access.value, &at->value))
				return -EFAULT;
			continue;
		}
		if (nano->mode == GPUREPLAY_NANO_GUARDED &&
		    !nano_write_allowed(access.offset, access.value))
			return -EPERM;
		writel(access.value, nano->registers + access.offset);
	}
	return 0;
}

static int nano_choose_mode(struct nano *nano, const struct gpureplay_nano_mode *mode)
{
	if (mode->reserved || mode->mode > GPUREPLAY_NANO_DIRECT)
		return -EINVAL;
	if (nano->mode_chosen || !list_empty(&nano->mappings))
		return -EBUSY;
	if (mode->mode == GPUREPLAY_NANO_DIRECT && !capable(CAP_SYS_RAWIO))
		return -EPERM;
	nano->mode = mode->mode;
	nano->mode_chosen = true;
	return 0;
}

static int nano_info(struct nano *nano, struct gpureplay_nano_info *info)
{
	if (info->reserved)
		return -EINVAL;
	info->version = GPUREPLAY_NANO_VERSION;
	info->mode = nano->mode;
	info->flags = nano->coherent ? GPUREPLAY_NANO_COHERENT : 0;
	info->register_bytes = resource_size(nano->window);
	info->free_bytes = (u64)si_mem_available() << PAGE_SHIFT;
	return 0;
}

union nano_argument {
	struct gpureplay_nano_info info;
	struct gpureplay_nano_mode mode;
	struct gpureplay_nano_map map;
	struct gpureplay_nano_unmap unmap;
	struct gpureplay_nano_bus bus;
	struct gpureplay_nano_sync sync;
	struct gpureplay_nano_registers registers;
};

static int nano_dispatch(struct nano *nano, unsigned int command, union nano_argument *argument)
{
	switch (command) {
	case GPUREPLAY_NANO_IOC_INFO:
		return nano_info(nano, &argument->info);
	case GPUREPLAY_NANO_IOC_MODE:
		return nano_choose_mode(nano, &argument->mode);
	case GPUREPLAY_NANO_IOC_MAP:
		return nano_map(nano, &argument->map);
	case GPUREPLAY_NANO_IOC_UNMAP:
		return argument->unmap.reserved ? -EINVAL : nano_unmap(nano, argument->unmap.va);
	case GPUREPLAY_NANO_IOC_BUS:
		return nano_bus(nano, &argument->bus);
	case GPUREPLAY_NANO_IOC_SYNC:
		return nano_sync(nano, &argument->sync);
	case GPUREPLAY_NANO_IOC_REGISTERS:
		return nano_registers(nano, &argument->registers);
	case GPUREPLAY_NANO_IOC_ACTIVATE:
		return nano_activate(nano);
	case GPUREPLAY_NANO_IOC_RESET:
		return nano_reset(nano);
	}
	return -ENOTTY;
}

static long nano_ioctl(struct file *file, unsigned int command, unsigned long user)
{
	struct nano *nano = nano_of(file);
	union nano_argument argument = {};
	unsigned int size = _IOC_SIZE(command);
	int ret;

	if (size > sizeof(argument))
		return -ENOTTY;
	if ((_IOC_DIR(command) & _IOC_WRITE) &&
	    copy_from_user(&argument, (void __user *)user, size))
		return -EFAULT;
	mutex_lock(&nano->lock);
	ret = nano->gone ? -ENODEV : nano_dispatch(nano, command, &argument);
	mutex_unlock(&nano->lock);
	/* A list of accesses that ends early still says how far it came. */
	if ((!ret || command == GPUREPLAY_NANO_IOC_REGISTERS) && (_IOC_DIR(command) & _IOC_READ) &&
	    copy_to_user((void __user *)user, &argument, size))
		return -EFAULT;
	return ret;
}

static int nano_mmap_registers(struct nano *nano, struct vm_area_struct *vma)
{
	unsigned long window = resource_size(nano->window) >> PAGE_SHIFT;
	unsigned long pages = vma_pages(vma);

	if (nano->mode != GPUREPLAY_NANO_DIRECT)
		return -EPERM;
	if (vma->vm_pgoff > window || pages > window - vma->vm_pgoff)
		return -EINVAL;
	vma->vm_page_prot = pgprot_device(vma->vm_page_prot);
	return io_remap_pfn_range(vma, vma->vm_start,
				  (nano->window->start >> PAGE_SHIFT) + vma->vm_pgoff,
				  pages << PAGE_SHIFT, vma->vm_page_prot);
}

static int nano_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct nano *nano = nano_of(file);
	int ret;

	mutex_lock(&nano->lock);
	if (nano->gone)
		ret = -ENODEV;
	else if (vma->vm_pgoff < NANO_FIRST_PAGE)
		ret = nano_mmap_registers(nano, vma);
	else
		ret = nano_mmap_pages(nano, vma);
	mutex_unlock(&nano->lock);
	return ret;
}

/* Takes the events of one line that had an interrupt. */
static bool nano_take_event(struct nano *nano, struct gpureplay_nano_event *event)
{
	bool found = false;
	int line;

	spin_lock_irq(&nano->event_lock);
	for (line = 0; line < NANO_LINES && !found; line++) {
		struct gpureplay_nano_event *latched = &nano->lines[line].event;

		if (latched->count) {
			*event = *latched;
			memset(latched, 0, sizeof(*latched));
			found = true;
		}
	}
	spin_unlock_irq(&nano->event_lock);
	return found;
}

static bool nano_has_event(struct nano *nano)
{
	return READ_ONCE(nano->lines[0].event.count) || READ_ONCE(nano->lines[1].event.count) ||
	       READ_ONCE(nano->lines[2].event.count);
}

static ssize_t nano_read(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct nano *nano = nano_of(file);
	struct gpureplay_nano_event event;

	if (size < sizeof(event))
		return -EINVAL;
	while (!nano_take_event(nano, &event)) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(nano->events,
					     nano_has_event(nano) || READ_ONCE(nano->gone)))
			return -ERESTARTSYS;
		if (READ_ONCE(nano->gone))
			return -ENODEV;
	}
	return copy_to_user(to, &event, sizeof(event)) ? -EFAULT : sizeof(event);
}

static __poll_t nano_poll(struct file *file, poll_table *table)
{
	struct nano *nano = nano_of(file);

	poll_wait(file, &nano->events, table);
	if (READ_ONCE(nano->gone))
		return EPOLLERR | EPOLLHUP;
	return nano_has_event(nano) ? EPOLLIN | EPOLLRDNORM : 0;
}

const struct file_operations nano_file_operations = {
	.owner = THIS_MODULE,
	.open = nano_open,
	.release = nano_release,
	.unlocked_ioctl = nano_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = nano_mmap,
	.read = nano_read,
	.poll = nano_poll,
};
