// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/gpureplay. Opening it for reading records; read() streams the trace.
 *
 * It has a device number of its own, because opening waits for an idle GPU: all
 * miscellaneous devices are opened under one mutex.
 */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "recorder.h"

static DEFINE_MUTEX(read_mutex);

static int gpureplay_open(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_READ) {
		int ret = session_open();

		if (ret)
			return ret;
	}
	return stream_open(inode, file);
}

static int gpureplay_release(struct inode *inode, struct file *file)
{
	if (file->f_mode & FMODE_READ)
		session_close();
	return 0;
}

static ssize_t gpureplay_read(struct file *file, char __user *buffer,
			      size_t bytes, loff_t *offset)
{
	ssize_t ret;

	if (file->f_flags & O_NONBLOCK) {
		if (!mutex_trylock(&read_mutex))
			return -EAGAIN;
	} else if (mutex_lock_interruptible(&read_mutex)) {
		return -ERESTARTSYS;
	}
	ret = log_read(buffer, bytes, !(file->f_flags & O_NONBLOCK));
	mutex_unlock(&read_mutex);
	return ret;
}

/* A line of text from user space becomes a NOTE between register accesses. */
static int write_note(const char *text, size_t length)
{
	size_t i;
	int ret;

	if (length && text[length - 1] == '\n')
		length--;
	if (!length || length > GPUREPLAY_NOTE_BYTES)
		return -EINVAL;
	for (i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			return -EINVAL;
	ret = log_wait_room_killable();
	if (!ret)
		log_record(GPUREPLAY_NOTE, 0, text, length);
	return ret;
}

/* Two commands: "stop", for shells, and "note TEXT". */
static ssize_t gpureplay_write(struct file *file, const char __user *buffer,
			       size_t bytes, loff_t *offset)
{
	static const char note[] = "note ";
	const size_t prefix = sizeof(note) - 1;
	char *command;
	int ret = 0;

	if (bytes > prefix + GPUREPLAY_NOTE_BYTES + 1)
		return -EINVAL;
	command = memdup_user_nul(buffer, bytes);
	if (IS_ERR(command))
		return PTR_ERR(command);
	if (!strncmp(command, note, prefix))
		ret = write_note(command + prefix, bytes - prefix);
	else if (!strcmp(strim(command), "stop"))
		session_stop();
	else
		ret = -EINVAL;
	kfree(command);
	return ret ? ret : bytes;
}

static __poll_t gpureplay_poll(struct file *file, poll_table *table)
{
	return log_poll(file, table);
}

static long gpureplay_ioctl(struct file *file, unsigned int command,
			    unsigned long argument)
{
	struct gpureplay_status status = {};

	switch (command) {
	case GPUREPLAY_IOC_STOP:
		session_stop();
		return 0;
	case GPUREPLAY_IOC_STATUS:
		session_status(&status);
		if (copy_to_user((void __user *)argument, &status,
				 sizeof(status)))
			return -EFAULT;
		return 0;
	}
	return -ENOTTY;
}

static const struct file_operations gpureplay_operations = {
	.owner = THIS_MODULE,
	.open = gpureplay_open,
	.release = gpureplay_release,
	.read = gpureplay_read,
	.write = gpureplay_write,
	.poll = gpureplay_poll,
	.unlocked_ioctl = gpureplay_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* Nobody but root may open it: a trace holds all that the GPU's memory holds. */
static struct class gpureplay_class = { .name = GPUREPLAY_DEVICE_NAME };
static int major;

static int __init gpureplay_init(void)
{
	struct device *node;
	int ret;

	ret = session_create();
	if (ret)
		return ret;
	ret = class_register(&gpureplay_class);
	if (ret)
		goto destroy_session;
	major = __register_chrdev(0, 0, 1, GPUREPLAY_DEVICE_NAME,
				  &gpureplay_operations);
	if (major < 0) {
		ret = major;
		goto unregister_class;
	}
	node = device_create(&gpureplay_class, NULL, MKDEV(major, 0), NULL,
			     GPUREPLAY_DEVICE_NAME);
	if (IS_ERR(node)) {
		ret = PTR_ERR(node);
		goto unregister_number;
	}
	return 0;

unregister_number:
	__unregister_chrdev(major, 0, 1, GPUREPLAY_DEVICE_NAME);
unregister_class:
	class_unregister(&gpureplay_class);
destroy_session:
	session_destroy();
	return ret;
}
module_init(gpureplay_init);

static void __exit gpureplay_exit(void)
{
	device_destroy(&gpureplay_class, MKDEV(major, 0));
	__unregister_chrdev(major, 0, 1, GPUREPLAY_DEVICE_NAME);
	class_unregister(&gpureplay_class);
	session_destroy();
}
module_exit(gpureplay_exit);

MODULE_DESCRIPTION("Records what a Mali driver does to its GPU");
MODULE_AUTHOR("The gpureplay authors");
MODULE_LICENSE("GPL");
