// SPDX-License-Identifier: GPL-2.0
/*
 * How a file begins and ends: who may, the device awake and reset; and by
 * whatever end of the process or of the device, the device stopped, or what it
 * was given in quarantine until it has stopped, or the administrator ends that.
 */
#include <linux/capability.h>
#include <linux/highmem.h>
#include <linux/ktime.h>
#include <linux/security.h>
#include <linux/slab.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

int contigo_node_lock(struct contigo_node *node)
{
	/* Nothing was done yet: a handler with SA_RESTART is not noticed. */
	if (mutex_lock_interruptible(&node->lock))
		return -ERESTARTSYS;
	if (READ_ONCE(node->dead)) {
		mutex_unlock(&node->lock);
		return -ENODEV;
	}
	return 0;
}

static void contigo_quarantine_end(struct contigo_node *node, struct contigo_session *session,
				   bool is_lost)
{
	list_del(&session->entry);
	node->quarantined -= session->buffers;
	node->quarantined_bytes -= session->len_bytes;
	contigo_session_free(node, session, is_lost);
}

/*
 * Has the device stopped in the meantime? It is awake. A stop sequence is asked
 * about what its own file left, and only asked: who armed it is gone, so its polls
 * are run, and none of its writes. What was left without one waits for a reset. All
 * of them together have about as long as one.
 */
static void contigo_quarantine_retry(struct contigo_node *node)
{
	ktime_t end = ktime_add_us(ktime_get(), CONTIGO_MAX_POLL_US);
	struct contigo_session *session, *next;
	u32 at, value;

	if (node->in_reset)
		return;
	list_for_each_entry_safe(session, next, &node->quarantine, entry) {
		if (!session->stop || ktime_after(ktime_get(), end) ||
		    contigo_stop_run(session->stop, false, &at, &value))
			continue;
		contigo_quarantine_end(node, session, false);
		contigo_power_down(node);
	}
}

/* The system slept: what answered before may have lost its configuration. */
void contigo_quarantine_disarm(struct contigo_node *node)
{
	struct contigo_session *session;

	list_for_each_entry(session, &node->quarantine, entry) {
		contigo_stop_free(session->stop);
		session->stop = NULL;
	}
}

/*
 * Ends the quarantine of a device that has not stopped: the DMA API forgets it at its
 * unbinding, or the administrator does not want to wait any more. It stays awake, for
 * it may be at work. Behind an IOMMU that forgets an address at once what it does is a
 * fault from here on, until its next user has memory there, and the memory is given
 * back. Returns how many bytes were lost.
 */
u64 contigo_quarantine_discard(struct contigo_node *node)
{
	bool is_lost = !(contigo_dma_flags(node) & CONTIGO_INFO_STRICT);
	u64 lost_bytes = is_lost ? node->quarantined_bytes : 0;
	struct contigo_session *session, *next;

	lockdep_assert_held(&node->lock);
	list_for_each_entry_safe(session, next, &node->quarantine, entry)
		contigo_quarantine_end(node, session, is_lost);
	return lost_bytes;
}

/* Resets the device, which is awake: that ends the quarantine of all that it was given. */
static int contigo_reset_device(struct contigo_node *node, bool hold)
{
	int ret = contigo_reset_lines(node, hold);
	struct contigo_session *session, *next;

	if (ret)
		return ret;
	list_for_each_entry_safe(session, next, &node->quarantine, entry) {
		contigo_quarantine_end(node, session, false);
		contigo_power_down(node);
	}
	return 0;
}

/*
 * The file goes on. Registers are not accessed in reset: on many buses no answer
 * would come. So where the device is left there, the file loses them.
 */
int contigo_file_reset(struct contigo_file *file)
{
	struct contigo_node *node = file->node;
	int ret;

	contigo_registers_pause(file);
	ret = contigo_reset_device(node, false);
	if (node->in_reset)
		file->revoked = true;
	mutex_unlock(&file->map_lock);
	return ret;
}

/*
 * Stops the device, then lets go of what it was given. The device is still ours.
 * Called once for each file, from its last close or from where the device is taken
 * from it.
 */
static void contigo_file_end(struct contigo_file *file)
{
	struct contigo_session *session = file->session;
	const struct contigo_stop *stop = session->stop;
	struct contigo_node *node = file->node;
	u32 at = 0, value = 0;
	bool stopped;

	lockdep_assert_held(&node->lock);
	WRITE_ONCE(file->gone, true);
	contigo_registers_pause(file);
	file->revoked = true;
	mutex_unlock(&file->map_lock);
	contigo_irq_end(file);

	/* Where a reset failed, its registers may not answer. */
	stopped = stop && !node->in_reset && !contigo_stop_run(stop, true, &at, &value);
	if (!contigo_reset_device(node, true))
		stopped = true;
	/* It was given nothing, or was never told of it. */
	if (!session->buffers || (!stop && !file->touched))
		stopped = true;

	file->session = NULL;
	node->file = NULL;
	wake_up_interruptible_all(&file->wait);
	if (stopped) {
		contigo_session_free(node, session, false);
		contigo_quarantine_retry(node);
		contigo_power_down(node);
		return;
	}
	dev_err_ratelimited(node->dma_dev,
			    "not stopped: %u buffers, %llu bytes are in quarantine; step %u read %#010x\n",
			    session->buffers, session->len_bytes, at, value);
	list_add_tail(&session->entry, &node->quarantine);
	node->quarantined += session->buffers;
	node->quarantined_bytes += session->len_bytes;
}

/* The file's teardown, and a last look at what earlier ones left. Has the device stopped? */
bool contigo_node_end(struct contigo_node *node)
{
	if (node->file)
		contigo_file_end(node->file);
	/* What is in quarantine is awake. */
	contigo_quarantine_retry(node);
	return list_empty(&node->quarantine);
}

/* For the administrator: who has the device loses it. It stays in reset. */
int contigo_node_reset(struct contigo_node *node)
{
	int ret;

	if (!node->resets)
		return -EOPNOTSUPP;
	if (node->file)
		contigo_file_end(node->file);
	ret = contigo_power_up(node);
	if (ret)
		return ret;
	ret = contigo_reset_device(node, true);
	contigo_power_down(node);
	return ret;
}

/*
 * Who drives a device that is not confined reaches all memory, the kernel's too:
 * as with /dev/mem, or VFIO without an IOMMU.
 */
static int contigo_may_open(struct contigo_node *node)
{
	int ret;

	if (contigo_dma_flags(node) & CONTIGO_INFO_CONFINED)
		return 0;
	if (!contigo_unprivileged && !capable(CAP_SYS_RAWIO))
		return -EPERM;
	ret = security_locked_down(LOCKDOWN_DEV_MEM);
	if (!ret)
		add_taint(TAINT_USER, LOCKDEP_STILL_OK);
	return ret;
}

static int contigo_file_wake(struct contigo_node *node)
{
	int ret = contigo_power_up(node);

	if (ret)
		return ret;
	if (node->resets) {
		ret = contigo_reset_device(node, false);
	} else {
		contigo_quarantine_retry(node);
		/* Behind an IOMMU its next owner would reach what is in quarantine. */
		if (node->iommu && !list_empty(&node->quarantine))
			ret = -EBUSY;
	}
	if (ret)
		contigo_power_down(node);
	return ret;
}

static int contigo_file_begin(struct contigo_file *file, struct address_space *mapping)
{
	struct contigo_node *node = file->node;
	int ret = contigo_may_open(node);

	if (!ret)
		ret = contigo_dma_set_bits(node, node->default_dma_bits);
	if (!ret)
		ret = contigo_file_wake(node);
	if (ret)
		return ret;
	ret = contigo_irq_begin(file);
	if (ret) {
		contigo_reset_device(node, true);
		contigo_power_down(node);
		return ret;
	}
	node->file = file;
	node->mapping = mapping;
	return 0;
}

static void contigo_file_free(struct contigo_file *file)
{
	if (file->ones)
		__free_page(file->ones);
	mutex_destroy(&file->map_lock);
	kvfree(file->session);
	kfree(file);
}

static struct contigo_file *contigo_file_new(struct contigo_node *node)
{
	struct contigo_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return NULL;
	file->node = node;
	init_waitqueue_head(&file->wait);
	mutex_init(&file->map_lock);
	file->session = kvzalloc(sizeof(*file->session), GFP_KERNEL_ACCOUNT);
	file->ones = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!file->session || !file->ones) {
		contigo_file_free(file);
		return NULL;
	}
	memset(page_address(file->ones), 0xff, PAGE_SIZE);
	flush_dcache_page(file->ones);
	return file;
}

int contigo_open(struct inode *inode, struct file *filp)
{
	struct contigo_node *node = container_of(inode->i_cdev, struct contigo_node, cdev);
	struct contigo_file *file;
	int ret;

	/* Every call changes the device. */
	if ((filp->f_mode & (FMODE_READ | FMODE_WRITE)) != (FMODE_READ | FMODE_WRITE))
		return -EACCES;
	if (test_and_set_bit_lock(0, &node->is_open))
		return -EBUSY;

	ret = -ENOMEM;
	file = contigo_file_new(node);
	if (!file)
		goto clear;
	ret = contigo_node_lock(node);
	if (!ret) {
		ret = contigo_file_begin(file, filp->f_mapping);
		mutex_unlock(&node->lock);
	}
	if (ret)
		goto free;
	filp->private_data = file;
	filp->f_mode |= CONTIGO_FMODE;
	return nonseekable_open(inode, filp);

free:
	contigo_file_free(file);
clear:
	clear_bit_unlock(0, &node->is_open);
	return ret;
}

/* No mapping is left: each has a reference to the file. */
int contigo_release(struct inode *inode, struct file *filp)
{
	struct contigo_file *file = filp->private_data;
	struct contigo_node *node = file->node;

	mutex_lock(&node->lock);
	if (node->file == file)
		contigo_file_end(file);
	node->mapping = NULL;
	mutex_unlock(&node->lock);
	contigo_file_free(file);
	clear_bit_unlock(0, &node->is_open);
	return 0;
}
