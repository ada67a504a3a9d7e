// SPDX-License-Identifier: GPL-2.0
/* /dev/gpureplay-nano: turns, ioctls, interrupts by read() and poll(). */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "nano.h"

/* Offset 0 is no mapping's. */
#define NANO_FIRST_PAGE		(SZ_1M >> PAGE_SHIFT)

static unsigned int idle_ms = 2000;
module_param(idle_ms, uint, 0644);
MODULE_PARM_DESC(idle_ms, "how long an owner without work keeps the GPU while another waits");
static unsigned int turn_ms = 30000;
module_param(turn_ms, uint, 0644);
MODULE_PARM_DESC(turn_ms, "how long any owner keeps the GPU while another waits");

static int nano_open(struct inode *inode, struct file *file)
{
	struct nano *nano = container_of(file->private_data, struct nano, misc);
	struct nano_client *client;

	if (!current->mm)	/* a thread of the kernel has no limit of locked memory */
		return -EPERM;
	client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	if (!client)
		return -ENOMEM;
	client->nano = nano;
	client->space = file->f_mapping;
	INIT_LIST_HEAD(&client->turn);
	mt_init(&client->by_va);
	mt_init(&client->by_offset);
	mutex_init(&client->charge_lock);
	client->mm = current->mm;
	mmgrab(client->mm);
	file->private_data = client;
	/* The lock of all misc devices is held: nothing that takes long may be waited for. */
	kref_get(&nano->references);
	spin_lock(&nano->clients_lock);
	list_add(&client->node, &nano->clients);
	spin_unlock(&nano->clients_lock);
	return 0;
}

/* Pages that are gone no longer count as locked memory. Needs charge_lock, or the last user. */
static void nano_settle(struct nano_client *client, unsigned long pages)
{
	account_locked_vm(client->mm, client->charged - pages, false);
	client->charged = pages;
}

/* Its memory has been freed. */
static void nano_free_client(struct nano_client *client)
{
	struct nano *nano = client->nano;

	nano_settle(client, 0);
	mmdrop(client->mm);
	kfree(client);
	nano_put(nano);
}

/* Openers that were closed while the GPU did not reset: it has been reset since. */
static void nano_reap(struct work_struct *work)
{
	struct nano *nano = container_of(work, struct nano, reap);
	struct nano_client *orphan, *next;
	LIST_HEAD(freed);

	scoped_guard(mutex, &nano->lock) {
		if (nano->stuck)
			return;
		list_splice_init(&nano->orphans, &freed);
		list_for_each_entry(orphan, &freed, node)
			nano_free_memory(orphan);
	}
	list_for_each_entry_safe(orphan, next, &freed, node)
		nano_free_client(orphan);
}

/* Somebody waits: the owner's time runs from now on. */
static void nano_ask(struct nano *nano)
{
	nano->asked = jiffies;
	mod_delayed_work(system_freezable_wq, &nano->overdue,
			 msecs_to_jiffies(min(idle_ms, turn_ms)));
}

/* Gives the GPU, if nobody has it, to the first who waits. */
static void nano_next(struct nano *nano)
{
	if (nano->owner)
		return;
	nano->owner = list_first_entry_or_null(&nano->waiting, struct nano_client, turn);
	if (nano->owner) {
		list_del_init(&nano->owner->turn);
		nano->worked = jiffies;
		if (!list_empty(&nano->waiting))
			nano_ask(nano);
	}
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

/* Jiffies that the owner may go on for while another waits. */
static unsigned long nano_time_left(struct nano *nano)
{
	unsigned long turn = nano->asked + msecs_to_jiffies(turn_ms);
	unsigned long idle = nano->worked + msecs_to_jiffies(idle_ms);
	unsigned long end, now = jiffies;

	if (time_before(nano->worked, nano->asked))
		idle = nano->asked + msecs_to_jiffies(idle_ms);
	end = time_before(idle, turn) ? idle : turn;
	return time_before(now, end) ? end - now : 0;
}

/* The state of a slot stands still from its interrupt until that is cleared. */
static bool nano_runs_job(struct nano *nano)
{
	u32 ended = readl(nano->registers + JOB_INT_RAWSTAT);

	return readl(nano->registers + JOB_INT_JS_STATE) & ~(ended | ended >> 16) & 0xffff;
}

/* An owner that does not yield loses the GPU. Its pages stay. */
static void nano_overdue(struct work_struct *work)
{
	struct nano *nano = container_of(work, struct nano, overdue.work);
	unsigned long left;

	guard(mutex)(&nano->lock);
	if (nano->gone || !nano->owner || list_empty(&nano->waiting))
		return;
	/* One that has not come to take its turn loses nothing yet; a job that runs is work. */
	if (!nano->ready || (!nano->stale && nano_runs_job(nano)))
		nano->worked = jiffies;
	left = nano_time_left(nano);
	if (left) {
		queue_delayed_work(system_freezable_wq, &nano->overdue, left);
		return;
	}
	if (nano->ready && !nano->stale && readl(nano->registers + L2_READY))
		nano_clean(nano);
	nano->owner->revoked = true;
	nano->owner->active = false;
	nano_stop(nano);
}

void nano_init_turns(struct nano *nano)
{
	spin_lock_init(&nano->clients_lock);
	init_waitqueue_head(&nano->wait);
	INIT_LIST_HEAD(&nano->waiting);
	INIT_LIST_HEAD(&nano->clients);
	INIT_LIST_HEAD(&nano->orphans);
	INIT_DELAYED_WORK(&nano->overdue, nano_overdue);
	INIT_WORK(&nano->reap, nano_reap);
	nano->next_offset = NANO_FIRST_PAGE;
}

/* Makes the GPU ready for its new owner. */
static int nano_start(struct nano *nano)
{
	int ret = nano_power_on(nano);

	if (ret)
		return ret;
	nano->ready = true;
	nano->stale = false;
	nano->worked = jiffies;
	nano->owner->revoked = false;
	return 0;
}

/* Waits for the client's turn, with the lock released meanwhile. */
static int nano_take_turn(struct nano_client *client)
{
	struct nano *nano = client->nano;
	bool first = list_empty(&nano->waiting);
	int ret;

	list_add_tail(&client->turn, &nano->waiting);
	if (nano->owner && first)
		nano_ask(nano);
	nano_next(nano);
	wake_up_all(&nano->wait);	/* an owner that is willing to yield */
	mutex_unlock(&nano->lock);
	ret = wait_event_interruptible(nano->wait, READ_ONCE(nano->owner) == client ||
				       READ_ONCE(client->revoked) || READ_ONCE(nano->gone));
	mutex_lock(&nano->lock);
	if (nano->owner == client && !nano->gone) {
		ret = nano_start(nano);
		if (ret)
			nano_stop(nano);
		return ret;
	}
	list_del_init(&client->turn);
	return ret ?: nano->gone ? -ENODEV : -ESTALE;
}

static int nano_acquire(struct nano_client *client, const struct gpureplay_nano_acquire *acquire)
{
	struct nano *nano = client->nano;

	if (acquire->flags & ~GPUREPLAY_NANO_WAIT || acquire->reserved0 ||
	    memchr_inv(acquire->reserved, 0, sizeof(acquire->reserved)))
		return -EINVAL;
	if (nano->owner == client || !list_empty(&client->turn))
		return -EALREADY;
	if (nano->owner && !(acquire->flags & GPUREPLAY_NANO_WAIT))
		return -EBUSY;
	client->revoked = false;
	return nano_take_turn(client);
}

/* Lends the GPU to those who wait. */
static int nano_yield(struct nano_client *client)
{
	int ret;

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

	scoped_guard(mutex, &nano->lock) {
		spin_lock(&nano->clients_lock);
		list_del(&client->node);
		spin_unlock(&nano->clients_lock);
		if (nano->owner == client)
			nano_stop(nano);
		client->space = NULL;	/* mapped pages would have kept the file open */
		orphaned = nano->stuck;
		if (orphaned)
			list_add(&client->node, &nano->orphans);
		else
			nano_free_memory(client);
	}
	if (!orphaned)
		nano_free_client(client);
	return 0;
}

/* The driver is being unbound: what is open stays open, but reaches the GPU no more. */
void nano_revoke(struct nano *nano)
{
	struct nano_client *client;

	scoped_guard(mutex, &nano->lock) {
		nano->gone = true;
		while (!list_empty(&nano->waiting))
			list_del_init(nano->waiting.next);
		if (nano->owner)
			nano_stop(nano);
		else if (nano->stuck && !nano_power_on(nano))	/* it may reset by now */
			nano_power_off(nano);
		/* Nobody opens it any more, and who closes it waits for the lock. */
		list_for_each_entry(client, &nano->clients, node)
			if (!nano->stuck)
				nano_detach_memory(client);
		wake_up_all(&nano->wait);
	}
	cancel_delayed_work_sync(&nano->overdue);
	cancel_work_sync(&nano->reap);
	nano_reap(&nano->reap);
}

static int nano_registers(struct nano_client *client, struct gpureplay_nano_registers *list,
			  struct gpureplay_nano_access *access)
{
	struct nano *nano = client->nano;

	for (; list->done < list->count; list->done++, access++) {
		if (access->reserved || access->write > 1 || access->offset & 3 ||
		    access->offset >= resource_size(nano->window))
			return -EINVAL;
		if (!(access->write ?
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
	if (info->reserved0 || memchr_inv(info->reserved, 0, sizeof(info->reserved)))
		return -EINVAL;
	info->features = GPUREPLAY_NANO_HAS_BASE;
	info->flags = nano->coherent ? GPUREPLAY_NANO_COHERENT : 0;
	info->waiting = !list_empty(&nano->waiting);
	info->idle_ms = idle_ms;
	info->turn_ms = turn_ms;
	info->pages = nano->pages;
	info->free_bytes = (u64)si_mem_available() << PAGE_SHIFT;
	return 0;
}

union nano_argument {
	struct gpureplay_nano_info info;
	struct gpureplay_nano_acquire acquire;
	struct gpureplay_nano_map map;
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
	if (client->revoked)
		return -ESTALE;
	if (nano->owner != client || !nano->ready)
		return -EBUSY;
	if (nano->stale && command != GPUREPLAY_NANO_IOC_RESET &&
	    command != GPUREPLAY_NANO_IOC_RELEASE)
		return -ESTALE;
	nano->worked = jiffies;
	switch (command) {
	case GPUREPLAY_NANO_IOC_MAP:
		return nano_map(client, &argument->map);
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
		ret = nano_check_map(client, &argument->map);
		if (ret)
			return ret;
		pages = argument->map.pages + nano_new_tables(client, &argument->map);
		ret = account_locked_vm(client->mm, pages, true);
		if (ret)
			return ret;
		client->charged += pages;
	}
	ret = nano_dispatch(client, command, argument, NULL);
	scoped_guard(mutex, &client->nano->lock)
		pages = client->pages + client->table_pages;
	nano_settle(client, pages);
	return ret;
}

/* The request that user space names, whose structure may be longer than what is known here. */
static unsigned int nano_known(unsigned int command)
{
	static const unsigned int known[] = {
		GPUREPLAY_NANO_IOC_INFO, GPUREPLAY_NANO_IOC_ACQUIRE, GPUREPLAY_NANO_IOC_MAP,
		GPUREPLAY_NANO_IOC_SYNC, GPUREPLAY_NANO_IOC_REGISTERS, GPUREPLAY_NANO_IOC_ACTIVATE,
		GPUREPLAY_NANO_IOC_RESET, GPUREPLAY_NANO_IOC_RELEASE, GPUREPLAY_NANO_IOC_YIELD,
	};
	const unsigned int size = _IOC_SIZEMASK << _IOC_SIZESHIFT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if ((command & ~size) == (known[i] & ~size))
			return known[i];
	return 0;
}

/* The accesses of a request; user memory is never touched with the lock held. */
static int nano_ioctl_registers(struct nano_client *client, union nano_argument *argument)
{
	const struct gpureplay_nano_registers *list = &argument->registers;
	void __user *at = u64_to_user_ptr(list->list);
	size_t bytes = list->count * sizeof(struct gpureplay_nano_access);
	void *accesses = NULL;
	int ret;

	if (list->count > GPUREPLAY_NANO_MAX_ACCESSES)
		return -EINVAL;
	if (bytes)
		accesses = memdup_user(at, bytes);
	if (IS_ERR(accesses))
		return PTR_ERR(accesses);
	ret = nano_dispatch(client, GPUREPLAY_NANO_IOC_REGISTERS, argument, accesses);
	/* A list that ends early still says what was read. */
	if (bytes && copy_to_user(at, accesses, bytes))
		ret = -EFAULT;
	kfree(accesses);
	return ret;
}

static long nano_ioctl(struct file *file, unsigned int command, unsigned long at)
{
	struct nano_client *client = file->private_data;
	unsigned int known = nano_known(command), size = _IOC_SIZE(known);
	void __user *user = (void __user *)at;
	union nano_argument argument = {};
	int ret;

	if (!known || !size != !_IOC_SIZE(command))
		return -ENOTTY;
	if (_IOC_SIZE(command) < size)
		return -EINVAL;
	if (size) {
		/* E2BIG if user space asks for something that is not known here. */
		ret = copy_struct_from_user(&argument, size, user, _IOC_SIZE(command));
		if (ret)
			return ret;
	}
	if (known == GPUREPLAY_NANO_IOC_REGISTERS) {
		argument.registers.done = 0;
		ret = nano_ioctl_registers(client, &argument);
	} else if (known == GPUREPLAY_NANO_IOC_MAP || known == GPUREPLAY_NANO_IOC_RELEASE) {
		ret = nano_dispatch_memory(client, known, &argument);
	} else {
		ret = nano_dispatch(client, known, &argument, NULL);
	}
	if ((!ret || known == GPUREPLAY_NANO_IOC_REGISTERS) && _IOC_DIR(known) & _IOC_READ &&
	    copy_to_user(user, &argument, size))
		return -EFAULT;
	return ret;
}

static int nano_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct nano_client *client = file->private_data;

	/* A private mapping would be a copy, which RELEASE could not take away. */
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	guard(mutex)(&client->nano->lock);
	return client->nano->gone ? -ENODEV : nano_mmap(client, vma);
}

/* It had the GPU and has lost it, or the machine has slept since the GPU was reset for it. */
static bool nano_is_stale(struct nano_client *client)
{
	return READ_ONCE(client->revoked) ||
	       (READ_ONCE(client->nano->stale) && READ_ONCE(client->nano->owner) == client);
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
	.mmap = nano_file_mmap,
	.read = nano_read,
	.poll = nano_poll,
};
