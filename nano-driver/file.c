// SPDX-License-Identifier: GPL-2.0
/* /dev/gpureplay-nano: turns, ioctls, register mapping, interrupts by read() and poll(). */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/panic.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/security.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
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
	mutex_init(&client->charge_lock);
	client->mm = current->mm;
	mmgrab(client->mm);
	file->private_data = client;
	guard(mutex)(&nano->lock);
	kref_get(&nano->references);
	list_add(&client->node, &nano->clients);
	return 0;
}

static void nano_free_client(struct nano_client *client)
{
	mmdrop(client->mm);
	kfree(client);
}

/* Pages that are gone no longer count as locked memory. Needs charge_lock, or the last user. */
static void nano_settle(struct nano_client *client, unsigned long pages)
{
	account_locked_vm(client->mm, client->charged - pages, false);
	client->charged = pages;
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
		nano_free_client(orphan);
	}
	INIT_LIST_HEAD(&nano->orphans);
	spin_lock_irq(&nano->event_lock);
	memset(&nano->event, 0, sizeof(nano->event));
	spin_unlock_irq(&nano->event_lock);
	nano->ready = true;
	nano->stale = false;
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
	if (acquire->mode == GPUREPLAY_NANO_DIRECT &&
	    (!capable(CAP_SYS_RAWIO) || security_locked_down(LOCKDOWN_DEV_MEM)))
		return -EPERM;
	if (nano->owner == client || !list_empty(&client->turn))
		return -EALREADY;
	if (nano->owner && !(acquire->flags & GPUREPLAY_NANO_WAIT))
		return -EBUSY;
	client->mode = acquire->mode;
	client->mode_chosen = true;
	if (client->mode == GPUREPLAY_NANO_DIRECT)	/* it can reach all memory from now on */
		add_taint(TAINT_USER, LOCKDEP_STILL_OK);
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
		client->nano->stale = false;
		if (release)
			nano_free_memory(client);
	}
	return ret;
}

static int nano_release(struct inode *inode, struct file *file)
{
	struct nano_client *client = file->private_data;
	struct nano *nano = client->nano;
	bool orphaned;

	nano_settle(client, 0);
	scoped_guard(mutex, &nano->lock) {
		if (nano->owner == client)
			nano_stop(nano);
		list_del(&client->node);
		orphaned = nano->stuck;
		if (orphaned)
			list_add(&client->node, &nano->orphans);
		else
			nano_free_memory(client);
	}
	if (!orphaned)
		nano_free_client(client);
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
		if (client->mode != GPUREPLAY_NANO_DIRECT &&
		    !(access->write ?
		      nano_write_allowed(nano->gpu_id, access->offset, access->value) :
		      nano_read_allowed(access->offset)))
			return -EPERM;
		if (access->write)
			writel(access->value, nano->registers + access->offset);
		else
			access->value = readl(nano->registers + access->offset);
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
	if (nano->stale && command != GPUREPLAY_NANO_IOC_RESET &&
	    command != GPUREPLAY_NANO_IOC_RELEASE)
		return -ESTALE;
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

/* Requests that change how many pages the client has: they are locked memory of its process. */
static int nano_dispatch_memory(struct nano_client *client, unsigned int command,
				union nano_argument *argument)
{
	unsigned long pages;
	int ret;

	guard(mutex)(&client->charge_lock);	/* the process's memory is locked inside of it */
	if (command == GPUREPLAY_NANO_IOC_MAP) {
		if (argument->map.pages > totalram_pages())
			return -EINVAL;
		ret = account_locked_vm(client->mm, argument->map.pages, true);
		if (ret)
			return ret;
		client->charged += argument->map.pages;
	}
	ret = nano_dispatch(client, command, argument, NULL);
	scoped_guard(mutex, &client->nano->lock)
		pages = client->pages;
	nano_settle(client, pages);
	return ret;
}

static bool nano_is_known(unsigned int command)
{
	switch (command) {
	case GPUREPLAY_NANO_IOC_INFO:
	case GPUREPLAY_NANO_IOC_ACQUIRE:
	case GPUREPLAY_NANO_IOC_MAP:
	case GPUREPLAY_NANO_IOC_BUS:
	case GPUREPLAY_NANO_IOC_SYNC:
	case GPUREPLAY_NANO_IOC_REGISTERS:
	case GPUREPLAY_NANO_IOC_ACTIVATE:
	case GPUREPLAY_NANO_IOC_RESET:
	case GPUREPLAY_NANO_IOC_RELEASE:
	case GPUREPLAY_NANO_IOC_YIELD:
		return true;
	}
	return false;
}

static long nano_ioctl(struct file *file, unsigned int command, unsigned long user)
{
	void *list __free(kfree) = NULL;
	union nano_argument argument = {};
	unsigned int size = _IOC_SIZE(command);
	void __user *at = NULL;
	size_t bytes = 0;
	int ret;

	if (!nano_is_known(command))
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
	if (command == GPUREPLAY_NANO_IOC_MAP || command == GPUREPLAY_NANO_IOC_RELEASE)
		ret = nano_dispatch_memory(file->private_data, command, &argument);
	else
		ret = nano_dispatch(file->private_data, command, &argument, list);
	/* A list of accesses that ends early still says how far it came. */
	if (bytes && copy_to_user(at, list, bytes))
		return -EFAULT;
	if ((!ret || bytes) && (_IOC_DIR(command) & _IOC_READ) &&
	    copy_to_user((void __user *)user, &argument, size))
		return -EFAULT;
	return ret;
}

/* A page of registers is entered only for who has the GPU at that moment. */
static vm_fault_t nano_fault(struct vm_fault *vmf)
{
	struct nano_client *client = vmf->vma->vm_file->private_data;
	struct nano *nano = client->nano;

	guard(mutex)(&nano->lock);
	if (nano->gone || nano->owner != client)
		return VM_FAULT_SIGBUS;
	return vmf_insert_pfn(vmf->vma, vmf->address,
			      (nano->window->start >> PAGE_SHIFT) + vmf->pgoff);
}

static const struct vm_operations_struct nano_register_operations = {
	.fault = nano_fault,
};

static int nano_mmap_registers(struct nano_client *client, struct vm_area_struct *vma)
{
	unsigned long all = resource_size(client->nano->window) >> PAGE_SHIFT;

	if (client->mode != GPUREPLAY_NANO_DIRECT || client->nano->owner != client)
		return -EPERM;
	if (vma->vm_pgoff > all || vma_pages(vma) > all - vma->vm_pgoff)
		return -EINVAL;
	vma->vm_page_prot = pgprot_device(vma->vm_page_prot);
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_ops = &nano_register_operations;
	return 0;
}

static int nano_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct nano_client *client = file->private_data;

	/* A private mapping would be a copy, which unbinding could not take away. */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	guard(mutex)(&client->nano->lock);
	if (client->nano->gone)
		return -ENODEV;
	if (vma->vm_pgoff < NANO_FIRST_PAGE)
		return nano_mmap_registers(client, vma);
	return nano_mmap_pages(client, vma);
}

/* The machine has slept since the client had the GPU reset. */
static bool nano_is_stale(struct nano_client *client)
{
	return READ_ONCE(client->nano->stale) && READ_ONCE(client->nano->owner) == client;
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
				     nano_has_event(client) || nano_is_stale(client) ||
				     READ_ONCE(nano->gone)))
		return -ERESTARTSYS;
	scoped_guard(mutex, &nano->lock) {
		if (nano->gone)
			return -ENODEV;
		if (nano_is_stale(client))
			return -ESTALE;
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
	if (nano_is_stale(client))
		return EPOLLERR;
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
