// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of what needs no device: programs against registers that are memory,
 * the parts of a buffer, ranges, what is kept. In the module with `make CONTIGO_KUNIT=y`, for
 * Linux 6.1 and later; they run when it is loaded.
 */
#include <kunit/test.h>
#include <linux/io.h>
#include <linux/overflow.h>
#include <linux/slab.h>

#include "contigo_calls.h"

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
	{ .start = 0x40000000, .len_bytes = 0x20, .hidden_from = 0x10, .hidden_to = 0x18 },
	{ .start = 0x40010ffc, .len_bytes = 6 },
};

static int contigo_test_check(struct contigo_step step)
{
	return contigo_stop_check(contigo_test_window, &step, 1);
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
	/* An MSI-X table. */
	WITH(offset_bytes, 0x0c, 0);
	WITH(offset_bytes, 0x10, -ENXIO);
	WITH(offset_bytes, 0x14, -ENXIO);
	WITH(offset_bytes, 0x18, 0);
	WITH(window, CONTIGO_MAX_WINDOWS, -ENXIO);
	WITH(window, U32_MAX, -ENXIO);
	/* No such window, and one that ends within its second register. */
	WITH(window, 2, -ENXIO);
	good.window = 1;
	WITH(offset_bytes, 0, 0);
	WITH(offset_bytes, 4, -ENXIO);
#undef WITH
}

static int contigo_test_check_all(const struct contigo_step *step, u32 count)
{
	return contigo_stop_check(contigo_test_window, step, count);
}

static void contigo_test_else(struct kunit *test)
{
	struct contigo_step step[] = { DO_POLL(0, 1, 0), DO_ELSE, DO_WRITE(0, 1, 1), DO_ELSE,
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
static int contigo_test_run(struct kunit *test, u32 *reg, const struct contigo_step *step,
			    u32 count, u32 *at)
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
	return contigo_stop_run(stop, at, &value);
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

static struct contigo_mapping *contigo_test_mapping(struct kunit *test)
{
	/* Two that follow each other, one elsewhere, one below it. */
	static const struct contigo_piece piece[] = {
		{ 0, 0x10000, 0x1000 }, { 0x1000, 0x11000, 0x1000 },
		{ 0x2000, 0x20000, 0x3000 }, { 0x5000, 0x1f000, 0x800 },
	};
	struct contigo_mapping *mapping;

	mapping = kunit_kzalloc(test, struct_size(mapping, piece, ARRAY_SIZE(piece)), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mapping);
	memcpy(mapping->piece, piece, sizeof(piece));
	mapping->pieces = ARRAY_SIZE(piece);
	mapping->len_bytes = 0x5800;
	return mapping;
}

static void contigo_test_runs(struct kunit *test)
{
	struct contigo_mapping *mapping = contigo_test_mapping(test);
	struct contigo_segment run[4];

	KUNIT_EXPECT_EQ(test, contigo_pieces_runs(mapping, 0, run, 4), 3U);
	KUNIT_EXPECT_EQ(test, run[0].addr, 0x10000ULL);
	KUNIT_EXPECT_EQ(test, run[0].len_bytes, 0x2000ULL);
	KUNIT_EXPECT_EQ(test, run[1].addr, 0x20000ULL);
	KUNIT_EXPECT_EQ(test, run[1].len_bytes, 0x3000ULL);
	KUNIT_EXPECT_EQ(test, run[2].addr, 0x1f000ULL);
	KUNIT_EXPECT_EQ(test, run[2].len_bytes, 0x800ULL);
	/* From within: the first run begins there, and has its full length. */
	KUNIT_EXPECT_EQ(test, contigo_pieces_runs(mapping, 0xfff, run, 1), 1U);
	KUNIT_EXPECT_EQ(test, run[0].addr, 0x10fffULL);
	KUNIT_EXPECT_EQ(test, run[0].len_bytes, 0x1001ULL);
	KUNIT_EXPECT_EQ(test, contigo_pieces_runs(mapping, 0x57ff, run, 4), 1U);
	KUNIT_EXPECT_EQ(test, run[0].len_bytes, 1ULL);
	KUNIT_EXPECT_EQ(test, contigo_pieces_runs(mapping, 0x5800, run, 4), 0U);
	KUNIT_EXPECT_EQ(test, contigo_pieces_runs(mapping, U64_MAX, run, 4), 0U);
	KUNIT_EXPECT_EQ(test, contigo_pieces_runs(mapping, 0, run, 0), 0U);
}

static void contigo_test_piece_at(struct kunit *test)
{
	struct contigo_mapping *mapping = contigo_test_mapping(test);
	u64 at;

	for (at = 0; at < mapping->len_bytes; at += 0x7ff) {
		const struct contigo_piece *piece = contigo_piece_at(mapping, at);

		KUNIT_EXPECT_LE(test, piece->offset_bytes, at);
		KUNIT_EXPECT_LT(test, at - piece->offset_bytes, (u64)piece->len_bytes);
	}
}

static void contigo_test_within(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, contigo_is_within(0, 1, 1));
	KUNIT_EXPECT_TRUE(test, contigo_is_within(4096, 4096, 8192));
	KUNIT_EXPECT_FALSE(test, contigo_is_within(0, 0, 1));
	KUNIT_EXPECT_FALSE(test, contigo_is_within(1, 1, 1));
	KUNIT_EXPECT_FALSE(test, contigo_is_within(4096, 4097, 8192));
	KUNIT_EXPECT_FALSE(test, contigo_is_within(U64_MAX, 2, U64_MAX));
	KUNIT_EXPECT_FALSE(test, contigo_is_within(1, U64_MAX, U64_MAX));
}

/* Keeps one buffer of a file that armed @step, or nothing. contigo_kept_take() frees it. */
static struct contigo_held *contigo_test_keep(struct kunit *test, struct contigo_kept *kept,
					      const struct contigo_step *step)
{
	struct contigo_held *held = kvzalloc(sizeof(*held), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, held);
	held->imports = 1;
	held->len_bytes = 0x1000;
	list_add_tail(&held->node, &kept->held);
	kept->buffers++;
	kept->len_bytes += held->len_bytes;
	if (!step)
		return held;
	held->stop = kzalloc(struct_size(held->stop, step, 1), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, held->stop);
	held->stop->count = 1;
	held->stop->step[0] = *step;
	return held;
}

static void contigo_test_kept_take(struct kunit *test)
{
	struct contigo_step one = DO_POLL(0, 1, 0), other = DO_POLL(4, 1, 0);
	struct contigo_kept kept = { .held = LIST_HEAD_INIT(kept.held) };
	struct contigo_held *first = contigo_test_keep(test, &kept, &one);

	/* The first one's program speaks for all but one, and is freed with them. */
	contigo_test_keep(test, &kept, &other);
	contigo_test_keep(test, &kept, &one);
	contigo_test_keep(test, &kept, NULL);
	KUNIT_EXPECT_EQ(test, contigo_kept_take(&kept, first->stop), 3U);
	KUNIT_EXPECT_EQ(test, kept.buffers, 1U);
	KUNIT_EXPECT_EQ(test, kept.len_bytes, 0x1000ULL);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&kept.held));

	/* A reset speaks for all. */
	contigo_test_keep(test, &kept, &one);
	KUNIT_EXPECT_EQ(test, contigo_kept_take(&kept, NULL), 2U);
	KUNIT_EXPECT_EQ(test, kept.buffers, 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&kept.held));
}

static struct kunit_case contigo_cases[] = {
	KUNIT_CASE(contigo_test_kept_take),
	KUNIT_CASE(contigo_test_steps),
	KUNIT_CASE(contigo_test_else),
	KUNIT_CASE(contigo_test_poll_time),
	KUNIT_CASE(contigo_test_run_steps),
	KUNIT_CASE(contigo_test_run_else),
	KUNIT_CASE(contigo_test_runs),
	KUNIT_CASE(contigo_test_piece_at),
	KUNIT_CASE(contigo_test_within),
	{ }
};

static struct kunit_suite contigo_suite = {
	.name = "contigo",
	.test_cases = contigo_cases,
};

kunit_test_suites(&contigo_suite);
