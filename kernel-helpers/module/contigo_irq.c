// SPDX-License-Identifier: GPL-2.0
/*
 * A file's interrupts: masked when they come, told by read(), poll(), waits
 * and eventfds, until user space unmasks them.
 */
#include <linux/bitops.h>
#include <linux/eventfd.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "contigo_compat.h"
#include "contigo_internal.h"

/*
 * The bit in masked follows what it says: who unmasks in between finds nothing
 * to do, and hears of this interrupt afterwards.
 *
 * An edge may come again before the handler's thread has masked it: that run
 * finds the bit, and masks nothing, for one unmasking undoes one masking. Runs
 * of one handler follow each other. Only they set the bit, and only after they
 * have masked; it is cleared before the unmasking.
 */
static irqreturn_t contigo_irq_handler(int irq, void *data)
{
	struct contigo_interrupt *interrupt = data;
	struct contigo_file *file = interrupt->file;
	u32 i = interrupt - file->interrupt;
	unsigned long flags;

	if (!test_bit(i, &file->masked)) {
		disable_irq_nosync(irq);
		set_bit(i, &file->masked);
	}
	/* With the lock: a wait that ends takes this one, or its eventfd is signalled. */
	spin_lock_irqsave(&interrupt->lock, flags);
	/* Who reads the second bit may clear the first. */
	smp_mb__before_atomic();
	atomic_or(BIT(i), &file->pending);
	if (interrupt->eventfd && !interrupt->waited)
		contigo_eventfd_signal(interrupt->eventfd);
	spin_unlock_irqrestore(&interrupt->lock, flags);
	wake_up_interruptible(&file->wait);
	return IRQ_HANDLED;
}

static int contigo_irq_request(struct contigo_file *file, u32 i)
{
	struct contigo_interrupt *interrupt = &file->interrupt[i];
	struct contigo_node *node = file->node;
	int irq = node->irq[i];
	int ret;

	set_bit(i, &file->masked);
	ret = contigo_request_irq(irq, contigo_irq_handler, dev_name(&node->dev), interrupt);
	if (ret) {
		dev_err_ratelimited(node->dma_dev, "interrupt %u (%d): error %d\n", i, irq, ret);
		return ret;
	}
	/*
	 * A level is masked in the controller at once, or it would come a second
	 * time. An edge is not: one that comes now would be lost. The line is
	 * ours, and it is disabled; free_irq() takes this back.
	 */
	if (irq_get_trigger_type(irq) & IRQ_TYPE_LEVEL_MASK)
		irq_set_status_flags(irq, IRQ_DISABLE_UNLAZY);
	interrupt->irq = irq;
	return 0;
}

static void contigo_irq_swap_eventfd(struct contigo_interrupt *interrupt,
				     struct eventfd_ctx *eventfd)
{
	spin_lock_irq(&interrupt->lock);
	swap(interrupt->eventfd, eventfd);
	spin_unlock_irq(&interrupt->lock);
	if (eventfd)
		eventfd_ctx_put(eventfd);
}

/* Requests all interrupts, masked. The device is awake. */
int contigo_irq_begin(struct contigo_file *file)
{
	u32 i;
	int ret = 0;

	for (i = 0; i < file->node->interrupts; i++) {
		file->interrupt[i].file = file;
		spin_lock_init(&file->interrupt[i].lock);
	}
	for (i = 0; i < file->node->interrupts && !ret; i++)
		ret = contigo_irq_request(file, i);
	if (ret)
		contigo_irq_end(file);
	return ret;
}

/* A last signal to each eventfd: who waits for nothing else learns that the device is gone. */
void contigo_irq_end(struct contigo_file *file)
{
	u32 i;

	for (i = 0; i < file->node->interrupts; i++) {
		struct contigo_interrupt *interrupt = &file->interrupt[i];

		if (interrupt->irq)
			free_irq(interrupt->irq, interrupt);
		interrupt->irq = 0;
		if (interrupt->eventfd)
			contigo_eventfd_signal(interrupt->eventfd);
		contigo_irq_swap_eventfd(interrupt, NULL);
	}
}

/* With the node's lock: one at a time unmasks. */
static void contigo_unmask_bits(struct contigo_file *file, u32 interrupts)
{
	u32 i;

	for (i = 0; i < file->node->interrupts; i++) {
		if (interrupts & BIT(i) && test_and_clear_bit(i, &file->masked))
			enable_irq(file->interrupt[i].irq);
	}
}

int contigo_unmask(struct contigo_file *file, union contigo_arg *arg)
{
	u32 interrupts = arg->unmask.interrupts;

	if (arg->unmask.reserved || interrupts & ~(BIT(file->node->interrupts) - 1))
		return -EINVAL;
	contigo_unmask_bits(file, interrupts);
	return 0;
}

/*
 * Whether those that come from now on signal their eventfds: not while a call
 * waits for them. At its end it takes those that came.
 */
static u32 contigo_irq_waited(struct contigo_file *file, u32 interrupts, bool waited)
{
	u32 i, came = 0;

	for (i = 0; i < file->node->interrupts; i++) {
		struct contigo_interrupt *interrupt = &file->interrupt[i];

		if (!(interrupts & BIT(i)))
			continue;
		spin_lock_irq(&interrupt->lock);
		interrupt->waited = waited;
		if (!waited)
			came |= atomic_fetch_andnot(BIT(i), &file->pending) & BIT(i);
		spin_unlock_irq(&interrupt->lock);
	}
	return came;
}

static bool contigo_irq_is_over(struct contigo_file *file, u32 wanted)
{
	return atomic_read(&file->pending) & wanted || READ_ONCE(file->gone);
}

/* Without the node's lock while it sleeps. */
int contigo_wait(struct contigo_file *file, union contigo_arg *arg)
{
	ktime_t limit = ns_to_ktime((u64)arg->wait.timeout_us * NSEC_PER_USEC);
	u32 wanted = arg->wait.interrupts;
	int ret;

	if (!wanted || wanted & ~(BIT(file->node->interrupts) - 1))
		return -EINVAL;
	ret = contigo_file_lock(file);
	if (ret)
		return ret;
	if (arg->wait.timeout_us) {
		contigo_irq_waited(file, wanted, true);
		contigo_unmask_bits(file, wanted);
	}
	mutex_unlock(&file->node->lock);
	if (arg->wait.timeout_us)
		ret = wait_event_interruptible_hrtimeout(file->wait,
							 contigo_irq_is_over(file, wanted), limit);
	arg->wait.interrupts = contigo_irq_waited(file, wanted, false);
	if (READ_ONCE(file->gone))
		return -ENODEV;
	/* Not -ERESTARTSYS: the timeout would begin anew with each signal. */
	return ret && ret != -ETIME && !arg->wait.interrupts ? -EINTR : 0;
}

int contigo_set_eventfd(struct contigo_file *file, union contigo_arg *arg)
{
	u32 interrupt = arg->eventfd.interrupt;
	struct eventfd_ctx *eventfd = NULL;
	int ret;

	if (arg->eventfd.fd < -1)
		return -EBADF;
	if (arg->eventfd.fd >= 0) {
		eventfd = eventfd_ctx_fdget(arg->eventfd.fd);
		if (IS_ERR(eventfd))
			return PTR_ERR(eventfd);
	}
	ret = contigo_file_lock(file);
	if (ret)
		goto put;
	if (interrupt < file->node->interrupts) {
		interrupt = array_index_nospec(interrupt, file->node->interrupts);
		contigo_irq_swap_eventfd(&file->interrupt[interrupt], eventfd);
		eventfd = NULL;
	} else {
		ret = -EINVAL;
	}
	mutex_unlock(&file->node->lock);
put:
	if (eventfd)
		eventfd_ctx_put(eventfd);
	return ret;
}

ssize_t contigo_read(struct file *filp, char __user *to, size_t len, loff_t *pos)
{
	struct contigo_file *file = filp->private_data;
	u32 pending;
	int ret;

	if (len < sizeof(pending))
		return -EINVAL;
	for (;;) {
		if (READ_ONCE(file->gone))
			return -ENODEV;
		pending = atomic_xchg(&file->pending, 0);
		if (pending)
			break;
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		ret = wait_event_interruptible(file->wait, atomic_read(&file->pending) ||
					       READ_ONCE(file->gone));
		if (ret)
			return ret;
	}
	if (put_user(pending, (u32 __user *)to)) {
		atomic_or(pending, &file->pending);
		return -EFAULT;
	}
	return sizeof(pending);
}

__poll_t contigo_poll(struct file *filp, poll_table *wait)
{
	struct contigo_file *file = filp->private_data;

	poll_wait(filp, &file->wait, wait);
	if (READ_ONCE(file->gone))
		return EPOLLHUP;
	return atomic_read(&file->pending) ? EPOLLIN | EPOLLRDNORM : 0;
}
