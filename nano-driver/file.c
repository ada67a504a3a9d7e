// SPDX-License-Identifier: GPL-2.0
/* /dev/gpureplay-nano: turns, ioctls, register mapping, interrupts by read() and poll(). */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nano.h"

#define NANO_FIRST_PAGE		(SZ_1M >> PAGE_SHIFT)	/* registers lie below */

static int nano_open(struct inode *inode, struct file *file)
{
	struct nano *nano = container_of(file->private_data, struct nano, misc);
	struct nano_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);

	if (!client)
		return -ENOMEM;
	client->nano = nano;
	client->space = file->f_mapping;
	client->next_offset = NANO_FIRST_PAGE;
	INIT_LIST_HEAD(&client->turn);
	INIT_LIST_HEAD(&client->mappings);
	file->private_data = client;
	guard(mutex)(&nano->lock);
	kref_get(&nano->references);
	list_add(&client->node, &nano->clients);
	return 0;
}

/* Gives the GPU, if nobody has it, to the first who waits. */
static void nano_next(struct nano *nano)
{
	if (nano->owner)
		return;
	nano->owner = list_first_entry_or_null(&nano->waiting, struct nano_client, turn);
	if (nano->owner)
		list_del_init(&nano->owner->turn);
	wake_up_all(&nano->wait);
}

/* Takes the GPU from its owner. */
static void nano_stop(struct nano *nano)
{
	if (nano->ready) {
		nano_power_off(nano);
		nano->ready = false;
	}
	nano->owner = NULL;
	nano_next(nano);
}

/* Makes the GPU ready for its new owner. */
static int nano_start(struct nano *nano)
{
	struct nano_client *orphan, *next;
	int ret = nano_power_on(nano);

	if (ret)
		return ret;
	list_for_each_entry_safe(orphan, next, &nano->orphans, node) {
		nano_free_memory(orphan);
		kfree(orphan);
	}
	INIT_LIST_HEAD(&nano->orphans);
	spin_lock_irq(&nano->event_lock);
	memset(&nano->event, 0, sizeof(nano->event));
	spin_unlock_irq(&nano->event_lock);
	nano->ready = true;
	return 0;
}

/* Waits for the client's turn, with the lock released meanwhile. */
static int nano_take_turn(struct nano_client *client)
{
	struct nano *nano = client->nano;
	int ret;

	list_add_tail(&client->turn, &nano->waiting);
	nano_next(nano);
	wake_up_all(&nano->wait);	/* an owner that is willing to yield */
	mutex_unlock(&nano->lock);
	ret = wait_event_interruptible(nano->wait, READ_ONCE(nano->owner) == client ||
				       READ_ONCE(nano->gone));
	mutex_lock(&nano->lock);
	if (nano->owner == client && !nano->gone) {
		ret = nano_start(nano);
		if (ret)
			nano_stop(nano);
		return ret;
	}
	list_del_init(&client->turn);
	return ret ?: -ENODEV;
}

static int nano_acquire(struct nano_client *client, const struct gpureplay_nano_acquire *acquire)
{
	struct nano *nano = client->nano;

	if (acquire->mode > GPUREPLAY_NANO_DIRECT || acquire->flags & ~GPUREPLAY_NANO_WAIT ||
	    (client->mode_chosen && acquire->mode != client->mode))
		return -EINVAL;
	if (acquire->mode == GPUREPLAY_NANO_DIRECT && !capable(CAP_SYS_RAWIO))
		return -EPERM;
	if (nano->owner == client || !list_empty(&client->turn))
		return -EALREADY;
	if (nano->owner && !(acquire->flags & GPUREPLAY_NANO_WAIT))
		return -EBUSY;
	client->mode = acquire->mode;
	client->mode_chosen = true;
	return nano_take_turn(client);
}

/* Lends the GPU to those who wait. Mapped registers (direct mode) cannot be taken away. */
static int nano_yield(struct nano_client *client)
{
	int ret;

	if (client->mode != GPUREPLAY_NANO_GUARDED)
		return -EPERM;
	client->active = false;
	nano_stop(client->nano);
	ret = nano_take_turn(client);
	return ret == -ERESTARTSYS ? -EINTR : ret;	/* ACQUIRE goes on with what was begun */
}

static int nano_reset_for(struct nano_client *client, bool release)
{
	int ret = nano_reset(client->nano);

	if (!ret) {
		client->active = false;
		if (release)
			nano_free_memory(client);
	}
	return ret;
}

static int nano_release(struct inode *inode, struct file *file)
{
	struct nano_client *client = file->private_data;
	struct nano *nano = client->nano;

	scoped_guard(mutex, &nano->lock) {
		if (nano->owner == client)
			nano_stop(nano);
		list_del(&client->node);
		if (nano->stuck) {
			list_add(&client->node, &nano->orphans);
		} else {
			nano_free_memory(client);
			kfree(client);
		}
	}
	nano_put(nano);
	return 0;
}

/* The driver is being unbound: what is open stays open, but reaches nothing any more. */
void nano_revoke(struct nano *nano)
{
	struct nano_client *client;

	guard(mutex)(&nano->lock);
	nano->gone = true;
	INIT_LIST_HEAD(&nano->waiting);
	list_for_each_entry(client, &nano->clients, node) {
		INIT_LIST_HEAD(&client->turn);
		unmap_mapping_range(client->space, 0, (loff_t)NANO_FIRST_PAGE << PAGE_SHIFT, 1);
	}
	if (nano->owner)
		nano_stop(nano);
	list_for_each_entry(client, &nano->clients, node)
		if (!nano->stuck)
			nano_free_memory(client);
	wake_up_all(&nano->wait);
}

static int nano_registers(struct nano_client *client, struct gpureplay_nano_registers *list,
			  struct gpureplay_nano_access *access)
{
	struct nano *nano = client->nano;

	for (list->done = 0; list->done < list->count; list->done++, access++) {
		if (access->reserved || access->write > 1 || access->offset & 3 ||
		    access->offset >= resource_size(nano->window))
			return -EINVAL;
		if (!access->write)
			access->value = readl(nano->registers + access->offset);
		else if (client->mode == GPUREPLAY_NANO_DIRECT ||
			 nano_write_allowed(access->offset, access->value))
			writel(access->value, nano->registers + access->offset);
		else
			return -EPERM;
	}
	return 0;
}

static int nano_info(struct nano *nano, struct gpureplay_nano_info *info)
{
	if (info->reserved)
		return -EINVAL;
	info->version = GPUREPLAY_NANO_VERSION;
	info->flags = nano->coherent ? GPUREPLAY_NANO_COHERENT : 0;
	info->register_bytes = resource_size(nano->window);
	info->waiting = !list_empty(&nano->waiting);
	info->pages = nano->pages;
	info->free_bytes = (u64)si_mem_available() << PAGE_SHIFT;
	return 0;
}

union nano_argument {
	struct gpureplay_nano_info info;
	struct gpureplay_nano_acquire acquire;
	struct gpureplay_nano_map map;
	struct gpureplay_nano_bus bus;
	struct gpureplay_nano_sync sync;
	struct gpureplay_nano_registers registers;
};

static int nano_dispatch(struct nano_client *client, unsigned int command,
			 union nano_argument *argument, void *list)
{
	struct nano *nano = client->nano;

	guard(mutex)(&nano->lock);
	if (nano->gone)
		return -ENODEV;
	if (command == GPUREPLAY_NANO_IOC_INFO)
		return nano_info(nano, &argument->info);
	if (command == GPUREPLAY_NANO_IOC_ACQUIRE)
		return nano_acquire(client, &argument->acquire);
	if (nano->owner != client || !nano->ready)
		return -EBUSY;
	switch (command) {
	case GPUREPLAY_NANO_IOC_MAP:
		return nano_map(client, &argument->map);
	case GPUREPLAY_NANO_IOC_BUS:
		return nano_bus(client, &argument->bus, list);
	case GPUREPLAY_NANO_IOC_SYNC:
		return nano_sync(client, &argument->sync);
	case GPUREPLAY_NANO_IOC_REGISTERS:
		return nano_registers(client, &argument->registers, list);
	case GPUREPLAY_NANO_IOC_ACTIVATE:
		return nano_activate(client);
	case GPUREPLAY_NANO_IOC_RESET:
		return nano_reset_for(client, false);
	case GPUREPLAY_NANO_IOC_RELEASE:
		return nano_reset_for(client, true);
	case GPUREPLAY_NANO_IOC_YIELD:
		return nano_yield(client);
	}
	return -ENOTTY;
}

static long nano_ioctl(struct file *file, unsigned int command, unsigned long user)
{
	void *list __free(kfree) = NULL;
	union nano_argument argument = {};
	unsigned int size = _IOC_SIZE(command);
	void __user *at = NULL;
	size_t bytes = 0;
	int ret;

	if (size > sizeof(argument))
		return -ENOTTY;
	if ((_IOC_DIR(command) & _IOC_WRITE) &&
	    copy_from_user(&argument, (void __user *)user, size))
		return -EFAULT;
	/* User memory may take for ever to answer: it is never touched with the lock held. */
	if (command == GPUREPLAY_NANO_IOC_REGISTERS) {
		if (argument.registers.count > GPUREPLAY_NANO_MAX_ACCESSES)
			return -EINVAL;
		at = u64_to_user_ptr(argument.registers.list);
		bytes = argument.registers.count * sizeof(struct gpureplay_nano_access);
	} else if (command == GPUREPLAY_NANO_IOC_BUS) {
		if (argument.bus.count > GPUREPLAY_NANO_MAX_ADDRESSES)
			return -EINVAL;
		at = u64_to_user_ptr(argument.bus.list);
		bytes = argument.bus.count * sizeof(u64);
	}
	if (bytes)
		list = memdup_user(at, bytes);
	if (IS_ERR(list))
		return PTR_ERR(list);
	ret = nano_dispatch(file->private_data, command, &argument, list);
	/* A list of accesses that ends early still says how far it came. */
	if (bytes && copy_to_user(at, list, bytes))
		return -EFAULT;
	if ((!ret || bytes) && (_IOC_DIR(command) & _IOC_READ) &&
	    copy_to_user((void __user *)user, &argument, size))
		return -EFAULT;
	return ret;
}

static int nano_mmap_registers(struct nano_client *client, struct vm_area_struct *vma)
{
	struct resource *window = client->nano->window;
	unsigned long all = resource_size(window) >> PAGE_SHIFT;

	if (client->mode != GPUREPLAY_NANO_DIRECT || client->nano->owner != client)
		return -EPERM;
	if (vma->vm_pgoff > all || vma_pages(vma) > all - vma->vm_pgoff)
		return -EINVAL;
	vma->vm_page_prot = pgprot_device(vma->vm_page_prot);
	return io_remap_pfn_range(vma, vma->vm_start,
				  (window->start >> PAGE_SHIFT) + vma->vm_pgoff,
				  vma->vm_end - vma->vm_start, vma->vm_page_prot);
}

static int nano_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct nano_client *client = file->private_data;

	guard(mutex)(&client->nano->lock);
	if (client->nano->gone)
		return -ENODEV;
	if (vma->vm_pgoff < NANO_FIRST_PAGE)
		return nano_mmap_registers(client, vma);
	return nano_mmap_pages(client, vma);
}

static bool nano_has_event(struct nano_client *client)
{
	const u32 *status = client->nano->event.status;

	return READ_ONCE(client->nano->owner) == client &&
	       (READ_ONCE(status[0]) || READ_ONCE(status[1]) || READ_ONCE(status[2]));
}

static ssize_t nano_read(struct file *file, char __user *to, size_t size, loff_t *position)
{
	struct nano_client *client = file->private_data;
	struct nano *nano = client->nano;
	struct gpureplay_nano_event event;

	if (size < sizeof(event))
		return -EINVAL;
	if (!(file->f_flags & O_NONBLOCK) &&
	    wait_event_interruptible(nano->wait,
				     nano_has_event(client) || READ_ONCE(nano->gone)))
		return -ERESTARTSYS;
	scoped_guard(mutex, &nano->lock) {
		if (nano->gone)
			return -ENODEV;
		if (!nano_has_event(client))
			return -EAGAIN;
		spin_lock_irq(&nano->event_lock);
		event = nano->event;
		memset(&nano->event, 0, sizeof(event));
		spin_unlock_irq(&nano->event_lock);
	}
	return copy_to_user(to, &event, sizeof(event)) ? -EFAULT : sizeof(event);
}

static __poll_t nano_poll(struct file *file, poll_table *table)
{
	struct nano_client *client = file->private_data;
	struct nano *nano = client->nano;
	__poll_t ready = 0;

	poll_wait(file, &nano->wait, table);
	if (READ_ONCE(nano->gone))
		return EPOLLERR | EPOLLHUP;
	if (nano_has_event(client))
		ready |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(nano->owner) == client && !list_empty_careful(&nano->waiting))
		ready |= EPOLLPRI;
	return ready;
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
