// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what needs no device: stop sequences against registers that are
 * memory, and the segments of a mapped list. A module of its own, built with
 * `make CONTIGO_KUNIT=y` for Linux 6.1 and later; they run when it is loaded.
 */
#include <kunit/test.h>
#include <linux/module.h>

/* What is tested, whose functions no other module can call. */
#include "contigo_import.c"
#include "contigo_stop.c"

#define DO_WRITE(at, bits, to) \
	{ .kind = CONTIGO_STEP_WRITE, .offset_bytes = (at), .mask = (bits), .value = (to) }
#define DO_POLL(at, bits, is) \
	{ .kind = CONTIGO_STEP_POLL, .offset_bytes = (at), .mask = (bits), .value = (is), \
	  .timeout_us = 100 }
#define DO_POLL_NOT(at, bits, is) \
	{ .kind = CONTIGO_STEP_POLL_NOT, .offset_bytes = (at), .mask = (bits), .value = (is), \
	  .timeout_us = 100 }
#define DO_ELSE \
	{ .kind = CONTIGO_STEP_ELSE }

static const struct contigo_registers contigo_test_window[CONTIGO_MAX_WINDOWS] = {
	{ .start = 0x40000000, .len_bytes = 0x20, .answers = true },
	{ .start = 0x40010ffc, .len_bytes = 6, .answers = true },
	{ .start = 0x40020000, .len_bytes = 0x20 },
};

static int contigo_test_check(struct contigo_step step)
{
	struct contigo_step both[] = { step, DO_POLL(0x1c, 1, 1) };

	return contigo_stop_check(contigo_test_window, false, both, 2);
}

static void contigo_test_steps(struct kunit *test)
{
	struct contigo_step good = DO_WRITE(0x1c, 0xff, 0x12);
	struct contigo_step step;

	KUNIT_EXPECT_EQ(test, contigo_test_check(good), 0);
#define WITH(field, wrong, error) \
	do { \
		step = good; \
		step.field = (wrong); \
		KUNIT_EXPECT_EQ(test, contigo_test_check(step), (error)); \
	} while (0)
	WITH(kind, 0, -EINVAL);
	WITH(kind, CONTIGO_STEP_ELSE + 1, -EINVAL);
	WITH(kind, CONTIGO_STEP_ELSE, -EINVAL);
	WITH(mask, 0, -EINVAL);
	WITH(value, 0x100, -EINVAL);
	WITH(timeout_us, 1, -EINVAL);
	WITH(offset_bytes, 0x20, -ENXIO);
	WITH(offset_bytes, 2, -ENXIO);
	WITH(offset_bytes, U32_MAX - 3, -ENXIO);
	WITH(window, CONTIGO_MAX_WINDOWS, -ENXIO);
	WITH(window, U32_MAX, -ENXIO);
	/* No such window, one that may not answer, and one that ends within its second register. */
	WITH(window, 3, -ENXIO);
	WITH(window, 2, -EPERM);
	good.window = 1;
	WITH(offset_bytes, 0, 0);
	WITH(offset_bytes, 4, -ENXIO);
#undef WITH
}

static int contigo_test_check_all(const struct contigo_step *step, u32 count)
{
	return contigo_stop_check(contigo_test_window, false, step, count);
}

/* Who may crash the machine may also name a window that may not answer. */
static void contigo_test_trusted(struct kunit *test)
{
	struct contigo_step step = DO_POLL(0, 1, 0);

	step.window = 2;
	KUNIT_EXPECT_EQ(test, contigo_stop_check(contigo_test_window, false, &step, 1), -EPERM);
	KUNIT_EXPECT_EQ(test, contigo_stop_check(contigo_test_window, true, &step, 1), 0);
}

static void contigo_test_else(struct kunit *test)
{
	struct contigo_step step[] = { DO_POLL(0, 1, 0), DO_ELSE, DO_POLL(4, 1, 1), DO_ELSE,
				       DO_POLL(0, 1, 0) };
	struct contigo_step twice[] = { DO_POLL(0, 1, 0), DO_ELSE, DO_ELSE, DO_POLL(0, 1, 0) };

	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 5), 0);
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 3), 0);
	/* Last, first, beside another. */
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step + 1, 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(twice, 4), -EINVAL);
	step[1].value = 1;
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 5), -EINVAL);
}

/* On each way to its end it must have polled after its last write. */
static void contigo_test_polls_last(struct kunit *test)
{
	struct contigo_step step[] = { DO_WRITE(0, 1, 1), DO_POLL(0, 1, 0), DO_ELSE,
				       DO_WRITE(4, 1, 1), DO_POLL(0, 1, 0) };
	struct contigo_step write = DO_WRITE(0, 1, 1);

	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 5), 0);
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(&write, 1), -EINVAL);
	step[1] = write;
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 5), -EINVAL);
}

static void contigo_test_poll_time(struct kunit *test)
{
	struct contigo_step step[] = { DO_POLL(0, 1, 0), DO_POLL(4, 1, 0) };

	step[0].timeout_us = CONTIGO_MAX_POLL_US - 1;
	step[1].timeout_us = 1;
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 2), 0);
	step[1].timeout_us = 2;
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 2), -EINVAL);
	step[0].timeout_us = U32_MAX;
	step[1].timeout_us = U32_MAX;
	KUNIT_EXPECT_EQ(test, contigo_test_check_all(step, 2), -EINVAL);
}

/* Runs the steps on @reg; returns its answer, and the step that was not met. */
static int contigo_test_run_or_ask(struct kunit *test, u32 *reg, const struct contigo_step *step,
				   u32 count, bool writes, u32 *at)
{
	struct contigo_stop *stop;
	u32 value, i;

	stop = kunit_kzalloc(test, struct_size(stop, step, count), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stop);
	stop->count = count;
	for (i = 0; i < count; i++) {
		stop->step[i] = step[i];
		if (step[i].kind != CONTIGO_STEP_ELSE)
			stop->reg[i] = (void __iomem __force *)reg + step[i].offset_bytes;
	}
	*at = U32_MAX;
	return contigo_stop_run(stop, writes, at, &value);
}

static int contigo_test_run(struct kunit *test, u32 *reg, const struct contigo_step *step,
			    u32 count, u32 *at)
{
	return contigo_test_run_or_ask(test, reg, step, count, true, at);
}

/* A stop sequence whose file is gone asks, and writes nothing. */
static void contigo_test_ask(struct kunit *test)
{
	struct contigo_step step[] = { DO_WRITE(0, U32_MAX, 7), DO_POLL(4, 1, 0), DO_ELSE,
				       DO_WRITE(0, U32_MAX, 8), DO_POLL(8, 1, 0) };
	u32 reg[3] = { 0, 0, 1 };
	u32 at;

	KUNIT_EXPECT_EQ(test, contigo_test_run_or_ask(test, reg, step, 5, false, &at), 0);
	reg[1] = 1;
	KUNIT_EXPECT_EQ(test, contigo_test_run_or_ask(test, reg, step, 5, false, &at), -ETIMEDOUT);
	reg[2] = 0;
	KUNIT_EXPECT_EQ(test, contigo_test_run_or_ask(test, reg, step, 5, false, &at), 0);
	KUNIT_EXPECT_EQ(test, reg[0], 0U);
}

static void contigo_test_run_steps(struct kunit *test)
{
	struct contigo_step writes[] = { DO_WRITE(0, 0xff00, 0x1200), DO_WRITE(4, U32_MAX, 7) };
	struct contigo_step polls[] = { DO_POLL(0, 0xff, 0x78), DO_POLL_NOT(4, 1, 0),
					DO_POLL(8, 1, 1), DO_WRITE(0, 1, 1) };
	u32 reg[3] = { 0x12345678, 1, 0 };
	u32 at;

	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, polls, 2, &at), 0);
	/* The third is not met, and the write after it is not done. */
	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, polls, 4, &at), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, at, 2U);
	KUNIT_EXPECT_EQ(test, reg[0], 0x12345678U);

	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, writes, 2, &at), 0);
	KUNIT_EXPECT_EQ(test, reg[0], 0x12341278U);
	KUNIT_EXPECT_EQ(test, reg[1], 7U);
}

static void contigo_test_run_else(struct kunit *test)
{
	/* Is it idle? Else a reset bit. Else another one, and look again. */
	struct contigo_step step[] = { DO_POLL(0, 1, 0), DO_WRITE(4, U32_MAX, 1), DO_ELSE,
				       DO_WRITE(4, U32_MAX, 2), DO_POLL(8, 1, 0), DO_ELSE,
				       DO_WRITE(4, U32_MAX, 3), DO_POLL(12, 1, 0) };
	u32 reg[4] = { 0, 0, 0, 0 };
	u32 at;

	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, step, 8, &at), 0);
	KUNIT_EXPECT_EQ(test, reg[1], 1U);
	reg[0] = 1;
	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, step, 8, &at), 0);
	KUNIT_EXPECT_EQ(test, reg[1], 2U);
	reg[2] = 1;
	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, step, 8, &at), 0);
	KUNIT_EXPECT_EQ(test, reg[1], 3U);
	reg[3] = 1;
	KUNIT_EXPECT_EQ(test, contigo_test_run(test, reg, step, 8, &at), -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, at, 7U);
}

static void contigo_test_segments(struct kunit *test)
{
	/* Two that follow each other, one elsewhere, one below it: all that is mapped, and more. */
	static const struct contigo_segment mapped[] = {
		{ 0x10000, 0x1000 }, { 0x11000, 0x1000 }, { 0x20000, 0x3000 }, { 0x1f000, 0x1000 },
	};
	const u64 len_bytes = 0x5800;
	struct contigo_segment run[4];
	struct scatterlist *sg;
	struct sg_table sgt;
	u32 i;

	KUNIT_ASSERT_EQ(test, sg_alloc_table(&sgt, ARRAY_SIZE(mapped), GFP_KERNEL), 0);
	for_each_sgtable_sg(&sgt, sg, i) {
		sg_dma_address(sg) = mapped[i].addr;
		sg_dma_len(sg) = mapped[i].len_bytes;
	}
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0, NULL, U32_MAX), 3U);
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0, run, 4), 3U);
	KUNIT_EXPECT_EQ(test, run[0].addr, 0x10000ULL);
	KUNIT_EXPECT_EQ(test, run[0].len_bytes, 0x2000ULL);
	KUNIT_EXPECT_EQ(test, run[1].addr, 0x20000ULL);
	KUNIT_EXPECT_EQ(test, run[1].len_bytes, 0x3000ULL);
	KUNIT_EXPECT_EQ(test, run[2].addr, 0x1f000ULL);
	KUNIT_EXPECT_EQ(test, run[2].len_bytes, 0x800ULL);
	/* From within: the first run begins there, and has its full length. */
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0xfff, run, 1), 1U);
	KUNIT_EXPECT_EQ(test, run[0].addr, 0x10fffULL);
	KUNIT_EXPECT_EQ(test, run[0].len_bytes, 0x1001ULL);
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0x2001, run, 4), 2U);
	KUNIT_EXPECT_EQ(test, run[0].addr, 0x20001ULL);
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0x57ff, run, 4), 1U);
	KUNIT_EXPECT_EQ(test, run[0].addr, 0x1f7ffULL);
	KUNIT_EXPECT_EQ(test, run[0].len_bytes, 1ULL);
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0x5800, run, 4), 0U);
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, U64_MAX, run, 4), 0U);
	KUNIT_EXPECT_EQ(test, contigo_segments(&sgt, len_bytes, 0, run, 0), 0U);
	sg_free_table(&sgt);
}

static struct kunit_case contigo_cases[] = {
	KUNIT_CASE(contigo_test_steps),
	KUNIT_CASE(contigo_test_trusted),
	KUNIT_CASE(contigo_test_else),
	KUNIT_CASE(contigo_test_polls_last),
	KUNIT_CASE(contigo_test_poll_time),
	KUNIT_CASE(contigo_test_ask),
	KUNIT_CASE(contigo_test_run_steps),
	KUNIT_CASE(contigo_test_run_else),
	KUNIT_CASE(contigo_test_segments),
	{ }
};

static struct kunit_suite contigo_suite = {
	.name = "contigo",
	.test_cases = contigo_cases,
};

kunit_test_suites(&contigo_suite);

MODULE_DESCRIPTION("Unit tests of the module contigo");
MODULE_LICENSE("GPL");
contigo_import_ns_dma_buf();
